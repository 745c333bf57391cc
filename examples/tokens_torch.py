"""Ragged tokens as nested tensors, with PyTorch: rows of any length, without padding.

The texts are paragraphs of two modules of Python's standard library; the model tells which.
"""

import _pydecimal
import argparse
import tempfile
from pathlib import Path

import arrowdl
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

MODULES = [argparse, _pydecimal]
WORDS = 2_000


def read_paragraphs() -> pa.Table:
    """The hashed words of each paragraph, and the number of its module."""
    tokens, labels = [], []
    for label, module in enumerate(MODULES):
        for paragraph in Path(module.__file__).read_text().split("\n\n"):
            words = "".join(c if c.isalpha() else " " for c in paragraph.lower()).split()
            tokens.append([sum(map(ord, word)) * len(word) % WORDS for word in words])
            labels.append(label)
    return pa.table({"tokens": pa.array(tokens, pa.list_(pa.int32())), "label": labels})


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(WORDS, 16, mode="mean")
        self.head = nn.Linear(16, len(MODULES))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        # EmbeddingBag takes the values and offsets of a jagged nested tensor.
        return self.head(self.embedding(tokens.values(), tokens.offsets()[:-1]))


def main(folder: Path) -> None:
    path = folder / "tokens.parquet"
    torch.manual_seed(0)
    table = read_paragraphs()
    pq.write_table(table, path, row_group_size=200)

    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    loader = arrowdl.Loader(path, 64, shuffle=True)
    batch = next(iter(loader))
    lengths = batch["tokens"].offsets().diff().tolist()
    print(f"rows of {min(lengths)} to {max(lengths)} tokens, nested: {batch['tokens'].is_nested}")
    for _ in range(3):
        correct = 0
        for batch in loader:
            scores = model(batch["tokens"])
            loss = nn.functional.cross_entropy(scores, batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (scores.argmax(1) == batch["label"]).sum().item()
    print(f"{correct / len(table):.1%} of {len(table)} paragraphs right")
    print("learned:", correct / len(table) > 0.9)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
