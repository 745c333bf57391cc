"""`Loader.explain`, and Loaders as HTML: what is said before the rows are read."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from arrowdl.loader import Explanation
from helpers.options import group

ROWS = 20_000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.array([0.5] * ROWS, pa.float64()),
        "tokens": pa.array([[1, 2]] * ROWS, pa.list_(pa.int32())),
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    for name in ("a", "b"):
        pq.write_table(TABLE, path / f"{name}.parquet", row_group_size=1_000)
    pa.feather.write_feather(TABLE, path / "c.arrow", compression="uncompressed")
    return path


def refuse(batch: Any) -> Any:
    raise AssertionError("explain calls no function of the user")


def explain(source: Any, **options: Any) -> Explanation:
    options = {"batch_size": 100, "framework": "numpy", **options}
    return arrowdl.Loader(source, **group(**options)).explain()


def test_files_are_counted(folder: Path) -> None:
    paths = sorted(folder.glob("*.parquet"))
    told = explain(paths, columns=["id", "x"], transform=refuse, transform_arrow=refuse)
    assert (told.rows, told.files, told.row_groups, told.row_bytes) == (2 * ROWS, 2, 40, 16)
    assert told.file_bytes == sum(path.stat().st_size for path in paths)
    assert (told.mixed, told.order) == (0, "in the order of the source; rank 0 of 1")
    assert dict(told.memory)["batches ahead"] == 3 * 100 * 16
    text = str(told)
    assert text.startswith("source    40,000 rows, 40 row groups, 2 files of ")
    assert "step      transform_arrow: a native thread, 2 batches ahead\n" in text
    assert "step      transform: the training's thread\n" in text
    assert "memory    about 64" in text


def test_a_shuffle_says_how_well_it_mixes(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "arrowdl.loader"):
        told = explain(folder / "a.parquet", shuffle=arrowdl.Shuffle(2_000))
    assert told.mixed == 0.1
    mixing = "mixes rows of 12 of 20 row groups or blocks at a time"
    assert mixing in caplog.text
    assert "2,000 of 20,000 rows (10.0%), and " + mixing in told.order
    whole = explain(folder / "a.parquet", shuffle=True, seed=7)
    assert whole.mixed == 1
    assert whole.order == "a permutation of all rows, seed 7; rank 0 of 1"
    assert whole.memory["shuffle buffer"] == ROWS * whole.row_bytes
    assert ("rows", "once, into the order of the shuffle") in whole.copies


def test_rows_in_memory_are_copied_if_they_may_be_written_to() -> None:
    assert explain(TABLE).copies == (
        ("rows", "once, since batches may be written to: writable=False saves it"),
    )
    told = explain(TABLE, writable=False)
    assert told.copies == ()
    assert (told.files, told.file_bytes, told.row_groups) == (0, None, None)
    assert "copy      none\n" in str(told)
    assert explain(TABLE, framework="jax", columns=["tokens"]).copies == ()


def test_mapped_files_are_copied_by_pages(folder: Path) -> None:
    told = explain(folder / "c.arrow")
    assert told.copies == (
        ("pages that are written to", "files are mapped, and batches may be written to"),
    )
    assert ("read", "rows are in memory, or mapped") in told.steps


def test_streams_say_what_is_unknown() -> None:
    told = explain(lambda: iter(TABLE.to_batches()), shuffle=True)
    assert (told.rows, told.row_bytes, told.mixed, told.memory) == (None, None, None, {})
    assert "permuted in buffers of as many rows as fit" in told.order
    assert "memory    unknown" in str(told)


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({"num_workers": 2, "transform": refuse}, ["transform: 2 worker processes, 2 batches"]),
        ({"num_workers": 2}, ["batches: into memory that is shared with the worker processes"]),
        ({"num_threads": 3}, ["tensors of numpy: 3 threads"]),
        ({"prefetch": 0, "transform_arrow": refuse}, ["transform_arrow: the training's thread"]),
        ({"dtype": "float32"}, ["integers and floats of another type: cast by dtype="]),
        ({"nulls": {"id": "fill", "x": "nan"}}, ["columns with nulls: nulls=fill, nan"]),
        ({"columns": ["id"], "stack": True}, ["columns of a matrix: put side by side by stack="]),
        ({"pad_last": True}, ["the last batch: padded by pad_last=True"]),
        ({"device": "cpu"}, ["copy to cpu: a thread, 2 batches ahead", "batches: to cpu"]),
        ({"columns": ["tokens"], "pack": arrowdl.Pack("tokens", 64)}, ["into blocks of 64"]),
        ({"bucket_by": "tokens"}, ['batches of rows of similar "tokens"']),
        ({"rank": 1, "world_size": 2}, ["rank 1 of 2"]),
    ],
)
def test_each_option_has_its_line(options: dict[str, Any], texts: list[str]) -> None:
    told = str(explain(TABLE, **options))
    for text in texts:
        assert text in told


@pytest.mark.parametrize("stop", ["first", "repeat"])
def test_a_mixture(folder: Path, stop: Any) -> None:
    loader = arrowdl.Loader.mix(
        {"a": folder / "a.parquet", "b": TABLE},
        {"a": 1, "b": 1},
        ranks=arrowdl.Ranks(global_batch_size=64),
        shuffle=True,
        stop=stop,
    )
    told = loader.explain()
    assert "mixed from a, b by weights" in told.order
    assert (told.rows is None) == (stop == "repeat")
    assert told.memory["shuffle buffer"] == 2 * ROWS * told.row_bytes


def test_a_notebook_shows_a_table_and_repr_a_line() -> None:
    loader = arrowdl.Loader(TABLE, 100).map(refuse)
    assert "\n" not in repr(loader)
    html = loader._repr_html_()
    assert html == loader.explain()._repr_html_()
    assert "<tr><th>order</th><td>in the order of the source; rank 0 of 1</td></tr>" in html
    assert "training&#x27;s thread" in html
