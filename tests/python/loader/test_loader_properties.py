"""Loader over random tables: each epoch row by row against pyarrow's own reading."""

from __future__ import annotations

import tempfile
from collections import Counter
from itertools import pairwise
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from helpers.options import group
from hypothesis import given, settings
from hypothesis import strategies as st

MAKERS: dict[str, Any] = {
    "int32": lambda i: pa.array(i, pa.int32()),
    "uint8": lambda i: pa.array([n % 256 for n in i], pa.uint8()),
    "float64": lambda i: pa.array([n / 7 for n in i], pa.float64()),
    "bool": lambda i: pa.array([n % 3 == 0 for n in i], pa.bool_()),
    "nulls": lambda i: pa.array([None if n % 4 == 1 else n for n in i], pa.int64()),
    "timestamp": lambda i: pa.array(i, pa.timestamp("us")),
    "string": lambda i: pa.array([None if n % 5 == 2 else f"row {n}" for n in i], pa.string()),
    "list": lambda i: pa.array([list(range(n % 4)) for n in i], pa.list_(pa.int16())),
    "fixed": lambda i: pa.array([[n, -n] for n in i], pa.list_(pa.float32(), 2)),
    "struct": lambda i: pa.array(
        [{"a": n, "b": n % 2 == 0} for n in i],
        pa.struct([("a", pa.int64()), ("b", pa.bool_())]),
    ),
    "category": lambda i: pa.array([f"c{n % 3}" for n in i], pa.string()).dictionary_encode(),
}
tables = st.builds(
    lambda rows, names: pa.table(
        {"id": pa.array(range(rows), pa.int64())}
        | {name: MAKERS[name](range(rows)) for name in names}
    ),
    st.integers(0, 120),
    st.lists(st.sampled_from(sorted(MAKERS)), max_size=4, unique=True),
)
orders = st.fixed_dictionaries(
    {"shuffle": st.booleans(), "seed": st.integers(0, 99), "buffer_size": st.integers(1, 60)}
)
thorough = settings(max_examples=80)


def to_rows(batch: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The rows of a batch of `to_numpy(..., nulls="fill")`, as what pyarrow's would be."""
    columns = {name: to_values(name, value, count) for name, value in batch.items()}
    return [{name: values[i] for name, values in columns.items()} for i in range(count)]


def to_values(name: str, value: Any, count: int) -> list[Any]:
    if isinstance(value, dict):
        return to_rows(value, count)
    if isinstance(value, np.ndarray):
        return value.tolist()
    values, offsets = value
    rows = [values[start:stop] for start, stop in pairwise(offsets)]
    return [bytes(row).decode() if name == "string" else row.tolist() for row in rows]


def expected_rows(table: pa.Table) -> list[dict[str, Any]]:
    for i, name in enumerate(table.column_names):
        column = table[name]
        if name == "timestamp":
            table = table.set_column(i, name, column.cast(pa.int64()))
        elif name == "category":
            codes = pa.array([int(word[1:]) for word in column.to_pylist()], pa.int64())
            table = table.set_column(i, name, codes)
        elif column.null_count:
            table = table.set_column(i, name, column.fill_null("" if name == "string" else 0))
    return table.to_pylist()


def read(loader: arrowdl.Loader, steps: int | None = None) -> list[dict[str, Any]]:
    rows = []
    for i, batch in enumerate(loader if steps != 0 else []):
        rows += to_rows(batch, len(batch["id"]))
        if i + 1 == steps:
            break
    return rows


def make(source: Any, size: int, order: dict[str, Any], rank: int = 0, ranks: int = 1) -> Any:
    return arrowdl.Loader(
        source, size, framework="numpy", nulls="fill", **group(rank=rank, world_size=ranks, **order)
    )


def check_epochs(source: Any, table: pa.Table, size: int, order: dict[str, Any]) -> None:
    expected = expected_rows(table)
    loader = make(source, size, order)
    for epoch in range(2):
        rows = read(loader)
        if not order["shuffle"]:
            assert rows == expected
        assert sorted(rows, key=lambda row: row["id"]) == expected
        again = make(source, size, order)
        again.set_epoch(epoch)
        assert read(again) == rows


@given(tables, st.integers(1, 40), st.integers(1, 50), orders)
@thorough
def test_epochs_of_tables_and_streams(
    table: pa.Table, chunk: int, size: int, order: dict[str, Any]
) -> None:
    batches = table.to_batches(max_chunksize=chunk)
    chunked = pa.Table.from_batches(batches, table.schema)
    check_epochs(chunked, table, size, order)
    check_epochs(chunked.to_reader if batches else table, table, size, order)


@given(tables, st.integers(1, 60), st.integers(1, 3), st.integers(1, 50), orders)
@thorough
def test_epochs_of_parquet(
    table: pa.Table, group: int, files: int, size: int, order: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        share = -(-len(table) // files)
        for i in range(files):
            part = table.slice(i * share, share)
            pq.write_table(part, f"{folder}/{i}.parquet", row_group_size=group)
        check_epochs(folder, table, size, order)


@given(
    tables,
    orders,
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 30), st.integers(0, 4)), max_size=3),
    st.booleans(),
)
@thorough
def test_resumes_on_other_ranks_and_batch_sizes(
    table: pa.Table,
    order: dict[str, Any],
    parts: list[tuple[int, int, int]],
    is_stream: bool,
) -> None:
    """Some steps on some ranks, then on others, then the rest: every row, few of them again."""
    source: Any = table.to_reader if is_stream else table
    seen: Counter[int] = Counter()
    rows: dict[int, dict[str, Any]] = {}
    state: dict[str, Any] | None = None
    for ranks, size, steps in [*parts, (1, 10, None)]:
        if state is not None and state["epoch"] == 1:
            break
        states = []
        for rank in range(ranks):
            loader = make(source, size, order, rank, ranks)
            if state is not None:
                loader.load_state_dict(state)
            read_now = read(loader, steps)
            seen.update(row["id"] for row in read_now)
            rows |= {row["id"]: row for row in read_now}
            states.append(loader.state_dict())
        assert all(other == states[0] for other in states)
        state = states[0]
    assert [rows[i] for i in sorted(rows)] == expected_rows(table)
    assert seen.total() - len(table) <= 3 * len(parts)
