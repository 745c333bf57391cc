"""A language model on packed documents: `Loader.mix` with `Pack`, a mask by segments, a resume.

The documents are the docstrings and the functions of modules of Python's standard library. Each
step has blocks of 64 tokens of both, the same ones on any number of ranks.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import tempfile
import textwrap
from collections import Counter
from pathlib import Path
from types import ModuleType

import arrowdl
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

MODULES = [argparse, ast, inspect, textwrap]
LENGTH, BATCH, SIZE, WORDS = 64, 8, 32, 500
END = 0  # of a document


def read_documents(module: ModuleType) -> tuple[list[str], list[str]]:
    """The docstrings of a module, and the source of its functions."""
    source = inspect.getsource(module)
    kinds = (ast.FunctionDef, ast.ClassDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    docstrings = [text for node in nodes if (text := ast.get_docstring(node))]
    lines = source.split("\n")
    return docstrings, ["\n".join(lines[f.lineno - 1 : f.end_lineno]) for f in functions]


class Tokenizer:
    """Frequent words, and the bytes of all others."""

    def __init__(self, texts: list[str]) -> None:
        words = Counter(word for text in texts for word in self.split(text) if len(word) > 1)
        self.numbers = {word: 257 + i for i, (word, _) in enumerate(words.most_common(WORDS))}
        self.size = 257 + len(self.numbers)

    def split(self, text: str) -> list[str]:
        return re.findall(r"\s+|\w+|[^\w\s]", text)

    def encode(self, text: str) -> list[int]:
        tokens = []
        for word in self.split(text):
            known = self.numbers.get(word)
            tokens += [1 + byte for byte in word.encode()] if known is None else [known]
        return [*tokens, END]


class Model(nn.Module):
    """One layer of attention, within the documents of a block."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, SIZE), nn.Embedding(LENGTH, SIZE)
        self.mix, self.out = nn.Linear(SIZE, 3 * SIZE), nn.Linear(SIZE, words)
        self.norms = nn.ModuleList([nn.LayerNorm(SIZE), nn.LayerNorm(SIZE)])

    def forward(self, tokens: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(positions)
        query, key, value = self.mix(self.norms[0](x)).chunk(3, dim=-1)
        same = segments.unsqueeze(1) == segments.unsqueeze(2)
        mask = same & torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
        x = x + nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.out(self.norms[1](x))


def measure_loss(model: Model, batch: dict[str, Tensor]) -> Tensor:
    """The loss of the next tokens; none follows the end of a document, or padding."""
    tokens, segments = batch["tokens"], batch["segment_ids"]
    scores = model(tokens, batch["position_ids"], segments)
    follows = (segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] > 0)
    targets = tokens[:, 1:].long().masked_fill(~follows, -100)
    return nn.functional.cross_entropy(scores[:, :-1].transpose(1, 2), targets)


def make_loader(
    paths: dict[str, Path], rank: int | None = None, world_size: int | None = None
) -> arrowdl.Loader:
    return arrowdl.Loader.mix(
        paths,
        {"docs": 3, "code": 1},  # of documents
        ranks=arrowdl.Ranks(rank, world_size, global_batch_size=BATCH),
        stop="repeat",
        shuffle=True,
        batching=arrowdl.Pack(
            "tokens", LENGTH, "best_fit", buffer_size=64, add=["position_ids", "segment_ids"]
        ),
    )


def train(model: Model, loader: arrowdl.Loader, steps: int) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses, used = [], 0.0
    for step, batch in enumerate(loader, 1):
        loss = measure_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        used += (batch["segment_ids"] > 0).double().mean().item()
        if step == steps:
            break
    full = f"{used / steps:.0%}"
    print(f"{steps} steps, blocks {full} full, loss {losses[0]:.1f} to {losses[-1]:.1f}")
    return losses


def main(folder: Path) -> None:
    torch.manual_seed(0)
    documents = [read_documents(module) for module in MODULES]
    paths = {}
    tokenizer = Tokenizer([text for pair in documents for texts in pair for text in texts])
    for i, name in enumerate(["docs", "code"]):
        tokens = [tokenizer.encode(text) for pair in documents for text in pair[i]]
        paths[name] = folder / f"{name}.parquet"
        table = pa.table({"tokens": pa.array(tokens, pa.list_(pa.int32()))})
        pq.write_table(table, paths[name], row_group_size=100)

    model, loader = Model(tokenizer.size), make_loader(paths)
    losses = train(model, loader, 40)

    # After a restart two ranks have the blocks that one would have had.
    state = loader.state_dict()
    ranks = [make_loader(paths, rank, 2) for rank in range(2)]
    loader = make_loader(paths)
    for resumed in (*ranks, loader):
        resumed.load_state_dict(state)
    halves = torch.cat([next(iter(rank))["tokens"] for rank in ranks])
    print("a step of two ranks is that of one:", halves.equal(next(iter(loader))["tokens"]))
    loader.load_state_dict(state)
    losses += train(model, loader, 40)
    print("learned:", losses[-1] < 0.7 * losses[0])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
