"""Loader over queries through ADBC 1.13, of SQLite."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_sqlite.dbapi as adbc
import arrowdl
import pyarrow as pa
import pytest
from arrowdl import debug
from helpers.tables import make_loader, read_ids

IDS = list(range(5_000))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Any]:
    with adbc.connect(str(tmp_path / "rows.db")) as made:
        with made.cursor() as cursor:
            cursor.adbc_ingest("rows", pa.table({"id": IDS, "x": [i / 2 for i in IDS]}))
        made.commit()
        yield made


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    gc.collect()
    before = debug.live_objects()
    yield
    gc.collect()
    assert debug.live_objects() == before


QUERY = "SELECT * FROM rows ORDER BY id"


def test_a_cursor_is_read_once(connection: Any) -> None:
    with connection.cursor() as cursor:
        loader = make_loader(cursor.execute(QUERY), 64)
        assert read_ids(loader) == IDS
        with pytest.raises(RuntimeError, match="good for one pass"):
            read_ids(loader)
        assert cursor.execute("SELECT 3").fetchone() == (3,), "it is still open"
        assert read_ids(make_loader(cursor.execute(QUERY).fetch_record_batch(), 64)) == IDS
        handle = make_loader(cursor.execute(QUERY).fetch_arrow(), 64)
        assert read_ids(handle) == IDS
        with pytest.raises(RuntimeError, match="good for one pass"):
            read_ids(handle)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_function_that_queries_is_read_each_epoch(connection: Any, prefetch: int) -> None:
    cursors: list[Any] = []

    def query() -> Any:
        cursors.append(connection.execute(QUERY))
        return cursors[-1]

    loader = make_loader(query, 64, shuffle=True, prefetch=prefetch)
    epochs = [read_ids(loader) for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == IDS
    assert epochs[0] != epochs[1]
    batches = iter(loader)
    first = next(batches)["id"].tolist()
    state = loader.state_dict()
    batches.close()
    loader.close()
    assert [cursor._closed for cursor in cursors] == [True] * 3, "also when an epoch is left"
    again = make_loader(query, 64, shuffle=True)
    again.load_state_dict(state)
    assert sorted(first + read_ids(again)) == IDS
    ranks = [make_loader(query, 64, rank=rank, world_size=2) for rank in range(2)]
    assert sorted(i for loader in ranks for i in read_ids(loader)) == IDS


def test_a_query_without_rows(connection: Any) -> None:
    assert (
        read_ids(make_loader(lambda: connection.execute(f"SELECT * FROM ({QUERY}) LIMIT 0"))) == []
    )


def test_errors(connection: Any) -> None:
    loader = make_loader(lambda: connection.execute("SELECT * FROM missing"))
    with pytest.raises(adbc.ProgrammingError, match="no such table: missing"):
        read_ids(loader)
    # The type of a column is that of the first 1,024 rows.
    query = f"SELECT id, CASE WHEN id > 4000 THEN 'text' ELSE id END AS x FROM ({QUERY})"
    loader = arrowdl.Loader(lambda: connection.execute(query), 64, framework="numpy")
    with pytest.raises(OSError, match="Type mismatch in column 1"):
        read_ids(loader)
    with pytest.raises(ValueError, match=r"filter= works on files.*filter the rows in the source"):
        make_loader(lambda: connection.execute(QUERY), filter="id > 3")


def test_what_returns_no_arrow_is_refused(connection: Any) -> None:
    with pytest.raises(TypeError, match=r"lambda: connection.execute\(query\)"):
        make_loader(connection)
    with sqlite3.connect(":memory:") as other:
        for source in (other, other.execute("SELECT 3")):
            with pytest.raises(TypeError, match="rows as tuples: connect by adbc_driver_sqlite"):
                make_loader(source)
    other.close()
