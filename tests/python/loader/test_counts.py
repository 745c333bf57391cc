"""Row groups with another number of rows than their footers say: an error, no shorter epoch."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._parquet.counted import RowCountError, check_counts
from helpers.faults import open_checked
from helpers.footers import set_rows, take_column
from helpers.options import group
from helpers.stores import MemoryStore

ROWS = 640  # of a file, in row groups of 100
LAST = 6  # row group, of 40 rows

MESSAGE = r"1\.parquet', row group 2 has \d+ rows, and its footer says \d+"

Lie = Callable[[Path], None]


def lack_rows(path: Path) -> None:
    """100 rows where the footer says 150."""
    set_rows(path, 2, 150)


def lack_group(path: Path) -> None:
    """As many rows are missing as the next row group has, so that ends are where they should be."""
    set_rows(path, 2, 200)


def lack_values(path: Path) -> None:
    """A column has the 40 values of the last row group where the others have 100."""
    take_column(path, 2, 0, LAST)


def hide_rows(path: Path) -> None:
    """100 rows where the footer says 60: a scan drops the others."""
    set_rows(path, 2, 60)


LIES: list[Lie] = [lack_rows, lack_group, lack_values, hide_rows]


def write(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    rows = range(ROWS)
    table = pa.table({"id": pa.array(rows, pa.int64()), "x": [float(i) for i in rows]})
    pq.write_table(table, path, row_group_size=100)


@pytest.fixture(params=LIES, ids=lambda lie: lie.__name__)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of a good file, one that lies and another good one; returns the second."""
    for i in range(3):
        write(tmp_path / "data" / f"{i}.parquet")
    lies = tmp_path / "data" / "1.parquet"
    request.param(lies)
    return lies


def read(source: Any, **options: Any) -> list[int]:
    options = {"columns": ["id"], "framework": "numpy", "batch_size": 25, **options}
    with arrowdl.Loader(source, **group(**options)) as loader:
        return [i for batch in loader for i in batch["id"][: loader.valid_rows].tolist()]


SOURCES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "paths": lambda path: {"source": path.parent},
    "dataset": lambda path: {"source": ds.dataset(path.parent)},
    "scanner": lambda path: {"source": open_checked(path.parent)},
    "polars": lambda path: {"source": path.parent, "decoder": "polars"},
    "store": lambda path: {
        "source": "data",
        "filesystem": MemoryStore(
            {f"data/{own.name}": own.read_bytes() for own in path.parent.iterdir()}
        ).open(),
    },
}
MODES: dict[str, dict[str, Any]] = {
    "in order": {},
    "shuffled": {"shuffle": True, "seed": 3},
    "steps": {"splits": None},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
def test_it_is_raised(path: Path, source: str, mode: str) -> None:
    with pytest.raises(OSError, match=MESSAGE):
        read(**SOURCES[source](path), **MODES[mode])


def test_a_worker_raises_it(tmp_path: Path) -> None:
    lies = tmp_path / "data" / "1.parquet"
    write(lies)
    lack_rows(lies)
    with pytest.raises(OSError, match=MESSAGE):
        read(lies.parent, num_workers=1)


@pytest.mark.parametrize("source", SOURCES)
def test_rows_before_it_are_where_they_should_be(path: Path, source: str) -> None:
    """So that a state, or another rank, that begins behind the place reads no row twice."""
    found: list[int] = []
    options = {"columns": ["id"], "framework": "numpy", **SOURCES[source](path)}
    with arrowdl.Loader(**group(batch_size=10, **options)) as loader:
        batches = (batch["id"].tolist() for batch in loader)
        with pytest.raises(OSError, match=MESSAGE):
            found.extend(i for batch in batches for i in batch)
    promised = [*range(ROWS), *range(200)]
    assert found == promised[: len(found)]
    assert len(found) > ROWS - 200


def test_no_rank_reads_rows_of_another(path: Path) -> None:
    found: list[int] = []
    errors = []
    for rank in range(2):
        options: dict[str, Any] = {"rank": rank, "world_size": 2, "splits": None}
        with arrowdl.Loader(
            path, 70, columns=["id"], framework="numpy", **group(**options)
        ) as loader:
            try:
                for batch in loader:
                    found += batch["id"].tolist()
            except RowCountError as error:
                errors.append(error)
    assert errors
    assert len(found) == len(set(found))


def test_it_is_skipped_alone(path: Path) -> None:
    for options in SOURCES.values():
        found = read(**options(path), on_error="skip", max_skipped_rows=1000)
        rows = range(ROWS)
        assert found == [*rows, *rows[:200], *rows[300:], *rows]


@pytest.mark.parametrize("source", SOURCES)
def test_a_row_group_that_hides_all_of_its_rows(tmp_path: Path, source: str) -> None:
    """Without rows by its footer, it would be passed over."""
    for i in range(3):
        write(tmp_path / "data" / f"{i}.parquet")
    path = tmp_path / "data" / "1.parquet"
    set_rows(path, 2, 0)
    with pytest.raises(OSError, match=MESSAGE):
        read(**SOURCES[source](path))
    rows = read(**SOURCES[source](path), on_error="skip", max_skipped_rows=1000)
    assert rows == [*range(ROWS), *range(ROWS)]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("column", [0, 1])
def test_a_column_with_more_values_than_rows(tmp_path: Path, source: str, column: int) -> None:
    """A scan drops those that are too many."""
    for i in range(3):
        write(tmp_path / "data" / f"{i}.parquet")
    path = tmp_path / "data" / "1.parquet"
    take_column(path, LAST, column, 2)
    with pytest.raises(
        OSError, match=r"1\.parquet', row group 6 has 100 rows, and its footer says 40"
    ):
        read(**SOURCES[source](path))


def test_random_access_raises_it(path: Path) -> None:
    rows = arrowdl.Loader(path, 10, columns=["id"], framework="numpy").map_dataset()
    assert rows[199]["id"] == 199
    with pytest.raises(OSError, match=MESSAGE):
        rows[201]


def test_a_plan_raises_it(path: Path) -> None:
    plan = arrowdl.Loader(path.parent, 10, columns=["id"], framework="numpy").plan()
    with pytest.raises(OSError, match=MESSAGE):
        read(path.parent, plan=plan)


def test_the_lengths_of_rows_raise_it(path: Path) -> None:
    with pytest.raises(OSError, match=MESSAGE):
        read(path.parent, batch_size=None, batch_tokens=100, token_column="id", columns=None)


def test_a_filter_cannot_hide_rows(tmp_path: Path) -> None:
    lies = tmp_path / "data" / "1.parquet"
    write(lies)
    hide_rows(lies)
    with pytest.raises(OSError, match=MESSAGE):
        read(lies.parent, filter=ds.field("id") >= 0)


def test_the_counts_of_a_filter_are_compared(tmp_path: Path) -> None:
    write(tmp_path / "data" / "1.parquet")
    with arrowdl.Loader(tmp_path, 10, framework="numpy", filter=ds.field("id") < 450) as loader:
        source: Any = loader._source
        assert source.units == [100, 100, 100, 100, 50, 0, 0]
        source.units[3] = 120
        with pytest.raises(OSError, match="row group 3 has 100 rows, and this Loader counted 120"):
            list(loader)


def test_files_without_row_groups_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2\n3\n")
    with arrowdl.Loader(ds.dataset(tmp_path, format="csv"), 10, framework="numpy") as loader:
        source: Any = loader._source
        source.units[0] = 4
        with pytest.raises(OSError, match=r"a\.csv' has 3 rows, and this Loader counted 4"):
            list(loader)


@pytest.mark.parametrize("filter", [None, ds.field("id") >= 0])
def test_the_rows_of_a_dataset_of_datasets_are_counted(path: Path, filter: Any) -> None:
    one = ds.dataset(path.parent)
    with pytest.raises(OSError, match=MESSAGE):
        read(ds.dataset([one, one]), filter=filter)


@pytest.mark.parametrize("lie", [lack_rows, lack_values, hide_rows])
def test_the_rows_of_a_file_object_are_counted(tmp_path: Path, lie: Lie) -> None:
    write(tmp_path / "data" / "1.parquet")
    lie(tmp_path / "data" / "1.parquet")
    data = io.BytesIO((tmp_path / "data" / "1.parquet").read_bytes())
    with pytest.raises(OSError, match=r"has \d+ rows, and its footer says \d+"):
        read(data)


BATCH = 131_072  # rows of a scanner's batch, at most
LONG = r"lacks\.parquet', row group 1 has 131072 rows, and its footer says 262144"


@pytest.fixture(scope="module")
def lacks_batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A row group that lacks as many rows as a scanner's batch has, among others."""
    path = tmp_path_factory.mktemp("long") / "lacks.parquet"
    rows = pa.table({"id": pa.array(range(7 * BATCH), pa.int64())})
    with pq.ParquetWriter(path, rows.schema) as writer:
        for start, stop in [(0, 2), (2, 3), (3, 5), (5, 7)]:
            writer.write_table(rows[start * BATCH : stop * BATCH], row_group_size=2 * BATCH)
    set_rows(path, 1, 2 * BATCH)
    return path


LONG_SOURCES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "scanner": lambda path: {"source": open_checked(path)},
    "store": lambda path: {
        "source": "lacks.parquet",
        "filesystem": MemoryStore({"lacks.parquet": path.read_bytes()}).open(),
    },
    "filter": lambda path: {"source": path, "filter": ds.field("id") >= 0},
    "datasets": lambda path: {"source": ds.dataset([ds.dataset(path)])},
}


@pytest.mark.parametrize("source", LONG_SOURCES)
def test_no_row_comes_in_the_place_of_a_batch_that_lacks(lacks_batch: Path, source: str) -> None:
    found: list[int] = []
    options = LONG_SOURCES[source](lacks_batch)
    with pytest.raises(OSError, match=LONG):
        read_into(found, **options)
    assert found == list(range(len(found)))
    assert len(found) <= 3 * BATCH


def read_into(found: list[int], **options: Any) -> None:
    options = {"columns": ["id"], "framework": "numpy", "batch_size": BATCH // 2, **options}
    for batch in arrowdl.Loader(**group(**options)):
        found += batch["id"].tolist()


@pytest.mark.parametrize("source", ["scanner", "store"])
def test_a_row_group_that_lacks_a_batch_is_skipped_alone(lacks_batch: Path, source: str) -> None:
    options = {**LONG_SOURCES[source](lacks_batch), "on_error": "skip"}
    found = read(**options, batch_size=BATCH, max_skipped_rows=2 * BATCH)
    assert found == [*range(2 * BATCH), *range(3 * BATCH, 7 * BATCH)]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_where_no_batch_tells_what_lacks_it_is_named_and_not_skipped(
    lacks_batch: Path, on_error: str
) -> None:
    """A scanner casts all columns: each batch looks like the first one of a row group."""
    source = ds.dataset(lacks_batch, schema=pa.schema([("id", pa.float64())]))
    with pytest.raises(OSError, match=LONG):
        read(source, batch_size=BATCH, on_error=on_error)


def name(position: int) -> str:
    return f"unit {position}"


@pytest.mark.parametrize(
    ("batches", "counts", "message"),
    [
        ([3, 2, 4], [5, 4], ""),
        ([0, 5, 0], [0, 5, 0], ""),
        ([3, 4], [5, 4], "unit 0 has 3 rows"),
        ([5, 3], [5, 4], "unit 1 has 3 rows"),
        ([5, 5], [5, 4], "unit 1 has 5 rows"),
        ([5, 4, 1], [5, 4, 0], "unit 2 has 1 rows"),
        ([], [0, 2], "unit 1 has 0 rows"),
    ],
)
def test_what_is_refused(batches: list[int], counts: list[int], message: str) -> None:
    parts = [range(rows) for rows in batches]
    if not message:
        assert list(check_counts(parts, counts, name)) == parts
        return
    given = []
    with pytest.raises(RowCountError, match=message):
        given.extend(check_counts(parts, counts, name))
    with pytest.raises(RowCountError):
        list(check_counts(parts, counts, name, joins=True))
