"""Loaders that tokenize: orders, resumes, workers and skips are those without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl import Pack, Padded, Tokenize
from helpers.options import group
from helpers.text import TOKENIZER, make_texts
from tokenizers import Tokenizer, models

ROWS = 24
TEXTS = make_texts(ROWS, seed=2)
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int32()), "text": TEXTS})
IDS = [row.ids for row in TOKENIZER.encode_batch(TEXTS)]
STEP = {"text": Tokenize(TOKENIZER)}


def make(source: Any = TABLE, **options: Any) -> arrowdl.Loader:
    return arrowdl.Loader(source, **group(**{"batch_size": 5, "transform_arrow": STEP, **options}))


def split(batch: Any) -> list[list[int]]:
    """The ids of each row, in any of the forms of ragged columns."""
    rows = batch["text"]
    if not isinstance(rows, tuple):
        return [row.tolist() for row in rows.unbind()]
    values, other = (np.asarray(part) for part in rows)
    if values.ndim == 2:  # and the lengths
        return [row[:length].tolist() for row, length in zip(values, other, strict=True)]
    return [part.tolist() for part in np.split(values, other[1:-1])]


def read(loader: arrowdl.Loader) -> dict[int, list[int]]:
    """The ids of rows by their number, in the order of an epoch."""
    found = {}
    for batch in loader:
        found.update(zip(batch["id"].tolist(), split(batch), strict=True))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(3):
        pq.write_table(TABLE.slice(8 * i, 8), tmp_path / f"{i}.parquet", row_group_size=3)
    return tmp_path


@pytest.mark.parametrize(
    ("framework", "ragged"),
    [("torch", "jagged")]  # nested tensors are torch's
    + [
        (framework, ragged)
        for framework in ("torch", "jax", "numpy")
        for ragged in ("padded", "offsets", Padded(3, multiple=8))
    ],
    ids=str,
)
def test_every_framework(framework: Any, ragged: Any) -> None:
    loader = make(framework=framework, ragged=ragged)
    batch = next(iter(loader))
    assert split(batch) == IDS[:5]
    values = batch["text"][0] if isinstance(batch["text"], tuple) else batch["text"]
    assert str(values.dtype).endswith("int32")
    if isinstance(ragged, Padded):
        assert values.shape[1] % 8 == 0
        assert {int(row[-1]) for row in values} == {3}


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": True},
        {"shuffle": True, "prefetch": 0, "writable": False},
        {"num_threads": 2},
        {"num_workers": 2, "shuffle": True},
        {"rank": 1, "world_size": 2},
        {"on_error": "skip"},
    ],
    ids=str,
)
def test_the_order_is_that_without_it(folder: Path, options: dict[str, Any]) -> None:
    other = {**options, "columns": ["id"], "transform_arrow": None}
    with make(folder, **options) as loader, make(folder, **other) as plain:
        wanted = [int(i) for batch in plain for i in batch["id"]]
        found = read(loader)
    assert list(found) == wanted
    assert found == {i: IDS[i] for i in wanted}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_resumed_epoch_has_the_same_ids(folder: Path, workers: int) -> None:
    options = {"shuffle": True, "num_workers": workers}
    with make(folder, **options) as loader, make(folder, **options) as resumed:
        whole = read(loader)
        loader.set_epoch(0)
        batches = iter(loader)
        next(batches), next(batches)
        resumed.load_state_dict(loader.state_dict())
        assert read(resumed) == dict(list(whole.items())[10:])


def test_nulls() -> None:
    table = pa.table({"text": [TEXTS[0], None, TEXTS[1]]})
    with pytest.raises(BufferError, match="null"):
        next(iter(make(table)))
    assert split(next(iter(make(table, nulls="fill")))) == [IDS[0], [], IDS[1]]


def test_text_that_cannot_be_tokenized_is_skipped(folder: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({text: i for i, text in enumerate(TEXTS) if i != 9}))
    options = {"transform_arrow": {"text": Tokenize(tokenizer)}}
    with pytest.raises(ValueError, match="row 4 of the batch: cannot tokenize the text") as caught:
        read(make(folder, **options))
    assert f"row 1 of {str(folder / '1.parquet')!r}" in caught.value.__notes__[-1]
    assert [*read(make(folder, on_error="skip", **options))] == [i for i in range(ROWS) if i != 9]


def test_packing_text_says_how_it_is_tokenized() -> None:
    with pytest.raises(TypeError, match="of string") as caught:
        make(batching=Pack("text", 16), transform_arrow={"text": lambda column: column})
    assert 'transform_arrow={"text": arrowdl.Tokenize' in caught.value.__notes__[0]


PROGRAM = """
import multiprocessing, os, sys
import arrowdl, torch
sys.path.insert(0, {tests!r})
from helpers.text import TOKENIZER, make_texts
import pyarrow as pa

if __name__ == "__main__":
    texts = make_texts(40)
    expected = [row.ids for row in TOKENIZER.encode_batch(texts)]  # in threads
    step = {{"text": arrowdl.Tokenize(TOKENIZER, max_length=30)}}
    loader = arrowdl.Loader(pa.table({{"text": texts}}), 8, transform_arrow=step, ragged="padded")
    (first, *_) = loader
    for workers in (0, 2):
        context = {method!r} if workers else None
        batches = torch.utils.data.DataLoader(
            loader.map_dataset(), batch_size=8, num_workers=workers, multiprocessing_context=context
        )
        rows = [row[:n].tolist() for b in batches for row, n in zip(*b["text"])]
        assert rows == [ids if len(ids) <= 30 else [*ids[:29], 2] for ids in expected]
    assert os.environ.get("TOKENIZERS_PARALLELISM") == {says!r}
    print("done")
"""


@pytest.mark.parametrize("says", [None, "true"])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_torch_after_a_batch_in_threads(
    method: str, says: str | None, tmp_path: Path
) -> None:
    """The library's threads do not come along into a forked process."""
    program = tmp_path / "program.py"
    tests = str(Path(__file__).parents[1])
    program.write_text(PROGRAM.format(tests=tests, method=method, says=says))
    env = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    if says is not None:
        env["TOKENIZERS_PARALLELISM"] = says
    run = subprocess.run(
        [sys.executable, program], env=env, capture_output=True, text=True, timeout=100, check=False
    )
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr


def tell_threads(batch: Any) -> Any:
    """Add what a worker process lets libraries use."""
    says = os.environ.get("TOKENIZERS_PARALLELISM") == "false"
    return {**batch, "one": arrowdl.config.num_threads == 1 and says}


def test_a_worker_process_uses_one_thread() -> None:
    with make(num_workers=1, transform=tell_threads) as loader:
        assert all(batch["one"] for batch in loader)


def test_rows_of_a_map_dataset() -> None:
    dataset = make(ragged="offsets").map_dataset()
    assert split(dataset[[3, 0, 3]]) == [IDS[3], IDS[0], IDS[3]]
    assert dataset[5]["text"].tolist() == IDS[5]
