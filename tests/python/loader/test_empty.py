"""What a `Loader` logs of an epoch of which filters keep no row."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from helpers.options import group

TABLE = pa.table({"id": range(100), "kind": ["a", "b"] * 50})
OPTIONS: dict[str, Any] = {"framework": "numpy", "columns": ["id"]}
ABOVE = ds.field("id") > 1_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files, one for each kind, of row groups of 10 rows."""
    for kind in ("a", "b"):
        own = TABLE.filter(ds.field("kind") == kind).select(["id"])
        path = tmp_path / f"kind={kind}" / "0.parquet"
        path.parent.mkdir()
        pq.write_table(own, path, row_group_size=10)
    return tmp_path


def drop(batch: dict[str, Any]) -> Any:
    return batch["id"] < 0


def drop_later(batch: dict[str, Any]) -> Any:
    return batch["id"] < 50


def read_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    assert all(
        (record.name, record.levelno) == ("arrowdl.loader", logging.WARNING)
        for record in caplog.records
    )
    caplog.clear()
    return found


# ---- filter=


@pytest.mark.parametrize(
    "options",
    [{}, {"shuffle": True}, {"drop_last": True}, {"splits": 2}, {"rank": 1, "world_size": 2}],
    ids=str,
)
def test_a_filter_of_files_that_keeps_nothing(
    folder: Path, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    loader = arrowdl.Loader(folder, 10, filter=ABOVE, **group(**OPTIONS, **options))
    for _ in range(2):
        assert list(loader) == []
        (message,) = read_messages(caplog)
        assert message.startswith(
            "filter=(id > 1000) keeps none of 100 rows in 2 files: this epoch has no batch. Look "
        )
    assert list(loader.filter(drop)) == []
    assert len(read_messages(caplog)) == 1


def test_files_that_are_left_out_by_their_partitions(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    arrowdl.Loader(folder, 10, filter=ds.field("kind") == "A", **group(**OPTIONS)).map(dict)
    assert read_messages(caplog) == [], "no epoch has begun"
    assert (
        list(arrowdl.Loader(folder, 10, filter=ds.field("kind") == "A", **group(**OPTIONS))) == []
    )
    (message,) = read_messages(caplog)
    assert 'filter=(kind == "A") keeps no row, since it leaves out all files by their' in message


def test_files_without_row_groups(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pa.ipc.new_file(tmp_path / "0.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert list(arrowdl.Loader(tmp_path, 10, filter=ABOVE, **group(**OPTIONS))) == []
    (message,) = read_messages(caplog)
    assert "keeps none of the rows in 1 files" in message


def test_a_filter_of_a_stream_that_keeps_nothing(caplog: pytest.LogCaptureFixture) -> None:
    in_memory = ds.dataset(TABLE)
    assert list(arrowdl.Loader(in_memory, 10, filter=ABOVE, **group(**OPTIONS))) == []
    (message,) = read_messages(caplog)
    assert message.startswith("filter=(id > 1000) keeps no row of the stream, or fewer than a ")
    assert (
        len(list(arrowdl.Loader(in_memory, 10, filter=ds.field("id") > 50, **group(**OPTIONS))))
        == 5
    )
    assert read_messages(caplog) == []


def test_long_filters_are_one_line(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    many = ds.field("id").isin(list(range(1_000, 2_000)))
    assert list(arrowdl.Loader(folder, 10, filter=many, **group(**OPTIONS))) == []
    (message,) = read_messages(caplog)
    assert "\n" not in message
    assert len(message) < 600


# ---- Loader.filter


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"splits": 2},
        {"pad_last": True},
        {"num_threads": 2},
        {"num_workers": 1},
        {"on_error": "skip"},
    ],
    ids=str,
)
def test_a_function_that_keeps_nothing(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with arrowdl.Loader(TABLE, 10, **group(**OPTIONS, **options)).filter(drop) as loader:
        for _ in range(2):
            assert [loader.valid_rows for _ in loader] == [0] * 10
            (message,) = read_messages(caplog)
            assert message == (
                "filter(drop) dropped all 100 rows of this epoch: valid_rows is 0 for each batch. "
                "Look at what the function returns for a batch: True for the rows that stay"
            )


def test_several_functions_are_named(caplog: pytest.LogCaptureFixture) -> None:
    loader = arrowdl.Loader(TABLE, 10, **group(**OPTIONS))
    list(loader.filter(drop_later).map(dict).filter(lambda batch: batch["id"] >= 50))
    (message,) = read_messages(caplog)
    assert message.startswith("filter(drop_later, test_several_functions_are_named.<locals>.<")


def test_each_rank_says_so_of_its_rows(caplog: pytest.LogCaptureFixture) -> None:
    for rank, warned in enumerate([False, False, True, True]):
        loader = arrowdl.Loader(TABLE, 5, **group(rank=rank, world_size=4, **OPTIONS)).filter(
            drop_later
        )
        assert len(list(loader)) == 5, "ranks have as many batches"
        messages = read_messages(caplog)
        assert len(messages) == warned
        if warned:
            assert f"dropped all 25 rows of this epoch on rank {rank} of 4: " in messages[0]


def test_workers_of_a_data_loader_say_whose_rows(caplog: pytest.LogCaptureFixture) -> None:
    loader = arrowdl.Loader(TABLE, 10, **group(**OPTIONS)).filter(drop_later)
    for worker, warned in enumerate([False, True]):
        assert len(list(loader._read_share(worker, 2))) == 5
        messages = read_messages(caplog)
        assert len(messages) == warned
        if warned:
            assert "dropped all 50 rows of this epoch on worker 1 of 2: " in messages[0]


def test_a_loop_that_stops_at_the_last_batch(caplog: pytest.LogCaptureFixture) -> None:
    """Lightning knows the length, and asks for no more."""
    loader = arrowdl.Loader(TABLE, 10, **group(**OPTIONS)).filter(drop)
    for batches, warned in [(9, False), (10, True)]:
        iterator = iter(loader)
        for _ in range(batches):
            next(iterator)
        del iterator
        assert len(read_messages(caplog)) == warned


# ---- what is legal


def test_no_warning_of_a_part_of_an_epoch(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    loader = arrowdl.Loader(TABLE, 10, **group(**OPTIONS)).filter(drop_later)
    assert sum(loader.valid_rows for _ in loader) == 50
    for batches in (6, 10):
        iterator = iter(loader)
        for _ in range(batches):
            next(iterator)
        resumed = arrowdl.Loader(TABLE, 10, **group(**OPTIONS)).filter(drop_later)
        resumed.load_state_dict(loader.state_dict())
        assert read_messages(caplog) == []
        assert [resumed.valid_rows for _ in resumed] == [0] * (10 - batches)
        messages = read_messages(caplog)
        assert len(messages) == (batches == 10)  # of the end, not of the filter
        assert all("was saved after the last batch of epoch 1" in text for text in messages)
    kept = arrowdl.Loader(folder, 10, filter=ds.field("id") > 80, **group(**OPTIONS))
    next(iterator := iter(kept))
    next(iterator)
    state = kept.state_dict()
    kept = arrowdl.Loader(folder, 10, filter=ds.field("id") > 80, **group(**OPTIONS))
    kept.load_state_dict(state)
    assert list(kept) == []
    (message,) = read_messages(caplog)
    assert "was saved after the last batch of epoch 0" in message


def test_no_warning_without_rows(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for source in (TABLE[:0], ds.dataset(TABLE[:0])):
        assert list(arrowdl.Loader(source, 10, **group(**OPTIONS)).filter(drop)) == []
    assert list(arrowdl.Loader(TABLE, 1_000, drop_last=True, **group(**OPTIONS)).filter(drop)) == []
    few = arrowdl.Loader(
        folder, 1_000, filter=ds.field("id") > 80, drop_last=True, **group(**OPTIONS)
    )
    assert list(few) == []
    pq.write_table(TABLE[:0], folder / "empty.parquet")
    assert (
        list(arrowdl.Loader(folder / "empty.parquet", 10, filter=ABOVE, **group(**OPTIONS))) == []
    )
    assert read_messages(caplog) == []


def test_no_warning_of_an_epoch_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    def fail(batch: dict[str, Any]) -> Any:
        if 50 in batch["id"]:
            raise ValueError("bad")
        return np.zeros(len(batch["id"]), bool)

    with pytest.raises(ValueError, match="bad"):
        list(arrowdl.Loader(TABLE, 10, **group(**OPTIONS)).filter(fail))
    assert read_messages(caplog) == []
