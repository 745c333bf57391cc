"""Text in Parquet as batches of ids: ours, the bare tokenizer, and other loaders.

Run it with ``python -m benchmarks.loader.text``. It needs arrowdl, pyarrow, tokenizers and torch.
Hugging Face datasets are left out if they are not installed. The passes alternate, as in
`benchmarks.loader.images`. All encode with the same tokenizer and its threads, and make padded
tensors of 64 rows; the bare tokenizer makes none.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from benchmarks.loader.images import Pass, measure, print_rates

BATCH_ROWS = 64
WORDS = 20_000
ROW_WORDS = 350  # 2 kB
PAD = 0
SYLLABLES = [first + last for first in "bcdfgklmnprst" for last in ("a", "en", "i", "or", "u")]


def make_words() -> list[str]:
    """Words of one to four syllables."""
    draw = random.Random(7)
    return ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 4))) for _ in range(WORDS)]


def make_texts(count: int, seed: int) -> list[str]:
    """Texts of words, some of which are much more frequent than others."""
    words, rng = np.array(make_words()), np.random.default_rng(seed)
    chosen = np.minimum(rng.zipf(1.3, (count, ROW_WORDS)), WORDS) - 1
    return [" ".join(row) for row in words[chosen].tolist()]


def train() -> Tokenizer:
    """A byte-level BPE, as of GPT-2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=16_000,
        special_tokens=["<pad>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(make_texts(2_000, 1), trainer)
    return tokenizer


def write(path: Path, megabytes: int) -> int:
    """Write texts to a Parquet file; return their number."""
    rows = 0
    with pq.ParquetWriter(path, pa.schema([("text", pa.string())])) as writer:
        while megabytes * 10**6 > rows * 2_000:
            texts = make_texts(2_000, rows)
            writer.write_table(pa.table({"text": texts}))
            rows += len(texts)
    return rows


def list_texts(path: Path) -> Iterator[list[str]]:
    for batch in pq.ParquetFile(path).iter_batches(BATCH_ROWS):
        yield batch["text"].to_pylist()


def run_tokenizer(texts: list[list[str]], tokenizer: Tokenizer) -> int:
    """The bare tokenizer: no reading, no tensors."""
    return sum(len(row) for own in texts for row in tokenizer.encode_batch_fast(own))


def run_by_hand(path: Path, tokenizer: Tokenizer) -> int:
    """A loop as one writes it: read a batch, encode it, pad it."""
    count = 0
    for texts in list_texts(path):
        rows = [torch.tensor(row.ids) for row in tokenizer.encode_batch_fast(texts)]
        batch = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        count += sum(map(len, rows)) if len(batch) else 0
    return count


def run_ours(path: Path, tokenizer: Tokenizer, **options: Any) -> int:
    step = {"text": arrowdl.Tokenize(tokenizer)}
    given = {"ragged": arrowdl.Padded(PAD), **options}
    loader = arrowdl.Loader(path, BATCH_ROWS, transform_arrow=step, **given)
    return sum(int(batch["text"][1].sum()) for batch in loader)


def run_packed(path: Path, tokenizer: Tokenizer) -> int:
    """Blocks of 1,024 tokens, in the first epoch: each text is encoded once, for both passes."""
    step = {"text": arrowdl.Tokenize(tokenizer)}
    pack = arrowdl.Pack("text", 1_024, add=())
    loader = arrowdl.Loader(path, BATCH_ROWS, transform_arrow=step, batching=pack)
    return sum(batch["text"].numel() for batch in loader)


def collate(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    ids = [torch.tensor(row["ids"]) for row in rows]
    return {"ids": torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=PAD)}


def encode_rows(rows: dict[str, list[Any]], tokenizer: Tokenizer) -> dict[str, list[Any]]:
    return {"ids": [row.ids for row in tokenizer.encode_batch_fast(rows["text"])]}


def count_ids(rows: Any, workers: int) -> int:
    batches = torch.utils.data.DataLoader(rows, BATCH_ROWS, num_workers=workers, collate_fn=collate)
    return sum(int((batch["ids"] != PAD).sum()) for batch in batches)


def run_map(rows: Any, encode: Any, folder: str) -> int:
    """Hugging Face's ``map`` into a file, and a DataLoader: the first epoch."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = f"{place}/ids.arrow"
        made = rows.map(encode, batched=True, remove_columns=["text"], cache_file_name=file)
        return count_ids(made, 0)


def make_passes(path: Path, threads: int, folder: str) -> dict[str, Pass]:
    tokenizer = train()
    texts = list(list_texts(path))
    passes: dict[str, Pass] = {
        "arrowdl": partial(run_ours, path, tokenizer),
        "arrowdl, packed": partial(run_packed, path, tokenizer),
        "bare tokenizer": partial(run_tokenizer, texts, tokenizer),
        "by hand": partial(run_by_hand, path, tokenizer),
    }
    if importlib.util.find_spec("datasets") is not None:
        import datasets

        datasets.disable_progress_bars()
        rows = datasets.Dataset.from_parquet(str(path), cache_dir=folder)
        encode = partial(encode_rows, tokenizer=tokenizer)
        passes["datasets, map"] = partial(run_map, rows, encode, folder)
        passes["datasets, ahead"] = partial(count_ids, rows.with_transform(encode), threads)
    return passes


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.loader.text", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.parquet"
        rows = write(path, given.megabytes)
        found = measure(make_passes(path, given.workers, folder), given.rounds)
    print(f"{rows} texts, {given.megabytes} MB; worker processes of datasets: {given.workers}")
    print_rates(found, "token", 1e6)


if __name__ == "__main__":
    main()
