"""transform_arrow= of functions of single columns, and of several steps."""

from __future__ import annotations

import pickle
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from helpers.options import group

ROWS = 20
TABLE = pa.table({"id": range(ROWS), "text": [f"w{i}" for i in range(ROWS)]})


def load(transform: Any, **options: Any) -> list[dict[str, Any]]:
    given = {"framework": "numpy", "ragged": "offsets", **options}
    return list(arrowdl.Loader(TABLE, 4, transform_arrow=transform, **group(**given)))


def read_numbers(column: pa.Array) -> pa.Array:
    """Importable, for worker processes."""
    return pc.cast(pc.replace_substring(column, "w", ""), pa.int64())


def draw(column: pa.Array, generator: np.random.Generator) -> np.ndarray:
    return generator.random(len(column))


def add_row(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column("row", pc.multiply(batch["text"], 10))


@pytest.mark.parametrize(
    "make",
    [
        read_numbers,
        lambda column: [int(text[1:]) for text in column.to_pylist()],
        lambda column: np.array([int(text[1:]) for text in column.to_pylist()]),
        lambda column: arrowdl.to_arrow_device(read_numbers(column).to_numpy()),
        lambda column: pa.chunked_array([read_numbers(column)]),
    ],
)
def test_a_function_of_a_column_takes_its_place(make: Any) -> None:
    batches = load({"text": make}, shuffle=True)
    assert [list(batch) for batch in batches] == [["id", "text"]] * 5
    assert all(batch["id"].tolist() == batch["text"].tolist() for batch in batches)


def test_a_function_gets_the_array_of_a_column() -> None:
    seen: list[type] = []
    load({"text": lambda column: seen.append(type(column)) or read_numbers(column)})
    assert set(seen) == {pa.StringArray}


@pytest.mark.parametrize("kind", [list, tuple])
def test_steps_are_called_in_their_order(kind: type) -> None:
    double = {"row": lambda column: pc.add(column, column), "id": lambda column: column}
    for batch in load(kind([{"text": read_numbers}, add_row, double])):
        assert list(batch) == ["id", "text", "row"]
        assert batch["row"].tolist() == [20 * i for i in batch["id"].tolist()]


def test_a_step_may_return_all_that_a_single_function_may() -> None:
    steps = [lambda batch: {"id": batch["id"].to_pylist()}, {"id": lambda ids: pc.negate(ids)}]
    assert load(steps)[0]["id"].tolist() == [0, -1, -2, -3]


@pytest.mark.parametrize(
    "options",
    [{}, {"shuffle": True}, {"num_workers": 2}, {"rank": 1, "world_size": 2}, {"prefetch": 0}],
)
def test_the_order_is_that_without_it(options: dict[str, Any]) -> None:
    steps = [{"text": read_numbers}, add_row]
    wanted = [batch["id"].tolist() for batch in load(None, columns=["id"], **options)]
    batches = load(steps, **options)
    assert [batch["id"].tolist() for batch in batches] == wanted
    assert [(batch["row"] // 10).tolist() for batch in batches] == wanted


def test_a_map_dataset_has_them() -> None:
    loader = arrowdl.Loader(TABLE, 4, transform_arrow={"text": read_numbers}, framework="numpy")
    dataset = loader.map_dataset()
    assert dataset[[7, 3]]["text"].tolist() == [7, 3]
    assert pickle.loads(pickle.dumps(dataset))[5]["text"] == 5


def test_each_function_draws_its_own_numbers_by_the_seed_of_the_batch() -> None:
    first = load({"id": draw, "text": draw})
    assert all((batch["id"] != batch["text"]).all() for batch in first)
    again = load([{"id": draw}, {"text": draw}], num_workers=1)
    assert [batch["text"].tolist() for batch in first] == [
        batch["text"].tolist() for batch in again
    ]
    other = load({"id": draw}, seed=1)
    assert first[0]["id"].tolist() != other[0]["id"].tolist()


def test_columns_that_stay_may_be_written_to() -> None:
    for batch in load({"text": read_numbers}):
        batch["id"][:] = -1
    assert TABLE["id"].to_pylist() == list(range(ROWS))


def fail_late(column: pa.Array) -> pa.Array:
    if column[0].as_py() == 8:
        raise KeyError("missing")
    return column


def test_an_error_of_a_function_names_the_column_and_the_batch() -> None:
    with pytest.raises(KeyError, match="missing") as caught:
        load([{"text": read_numbers}, {"id": fail_late}])
    assert caught.value.__notes__ == [
        'in the function of the column "id"',
        "in transform_arrow, with batch 2 of epoch 0 (rank 0)",
    ]


def test_rows_for_which_a_function_of_a_column_fails_are_skipped() -> None:
    loader = arrowdl.Loader(
        TABLE, 4, transform_arrow={"id": fail_late}, on_error=arrowdl.Skip(4), ragged="offsets"
    )
    valid = [loader.valid_rows for _ in loader]
    assert valid == [4, 4, 0, 4, 4]
    (skipped,) = loader.stats().skipped
    assert skipped.ranges == ((8, 12),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "transform_arrow=3: give a function of one record batch, a mapping from column names"),
        ({"text": 3}, r"transform_arrow=\{'text': 3\}: .* to functions of one column, or a list"),
        ({3: len}, "transform_arrow=.*: give a function"),
        ([len, 3], "transform_arrow=.*: give a function"),
        ([[len]], "transform_arrow=.*: give a function"),
        ("text", "transform_arrow='text': give a function"),
    ],
)
def test_what_may_be_given(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        load(given)


@pytest.mark.parametrize("given", [{}, [], ()])
def test_nothing_to_call_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"transform_arrow=.* is empty: leave it out"):
        load(given)


def test_a_column_that_the_source_lacks_is_an_error_when_the_loader_is_made() -> None:
    message = 'transform_arrow= names the column "txt", and the columns are "id", "text"'
    with pytest.raises(ValueError, match=message):
        arrowdl.Loader(TABLE, 4, transform_arrow=[{"text": read_numbers}, {"txt": read_numbers}])
    with pytest.raises(ValueError, match=r'the column "text", and the columns are "id"$'):
        arrowdl.Loader(TABLE, 4, columns=["id"], transform_arrow={"text": read_numbers})


def test_a_column_that_a_step_lacks_is_an_error_of_its_batch() -> None:
    steps = [lambda batch: batch.select(["id"]), {"text": read_numbers}]
    with pytest.raises(ValueError, match='names the column "text", and the columns are "id"'):
        load(steps)


def test_a_function_of_a_column_returns_as_many_rows() -> None:
    with pytest.raises(ValueError, match='returned 2 rows in the column "text" for a batch of 4'):
        load({"text": lambda column: [1, 2]})
