"""The rows of a shuffle beside those that pyarrow takes, of tables large enough for every loop."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest

ROWS = 20_000


def make_mask(random: np.random.Generator, rows: int) -> np.ndarray:
    return random.random(rows) < 0.3


def make_text(random: np.random.Generator, rows: int, kind: pa.DataType) -> pa.Array:
    """Strings of 0 to 70 bytes: shorter and longer than what is copied in one step."""
    lengths = random.integers(0, 71, rows)
    letters = random.integers(97, 123, lengths.sum(), dtype=np.uint8).tobytes().decode()
    ends = np.cumsum(lengths)
    mask = make_mask(random, rows)
    texts = [letters[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    return pa.array([None if m else t for m, t in zip(mask, texts, strict=True)], kind)


def make_offsets(random: np.random.Generator, rows: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(random.integers(0, 9, rows))])


def make_lists(random: np.random.Generator, rows: int, make_values: Any) -> pa.Array:
    offsets = make_offsets(random, rows)
    holes = pa.array(offsets.astype(np.int32), mask=np.append(make_mask(random, rows), False))
    return pa.ListArray.from_arrays(holes, make_values(random, int(offsets[-1])))


def make_numbers(random: np.random.Generator, rows: int, kind: Any = np.float32) -> pa.Array:
    return pa.array((random.random(rows) * 1000).astype(kind), mask=make_mask(random, rows))


def make_bools(random: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(random.random(rows) < 0.5, mask=make_mask(random, rows))


def make_structs(random: np.random.Generator, rows: int) -> pa.Array:
    columns = [
        make_numbers(random, rows),
        make_bools(random, rows),
        make_lists_of_text(random, rows),
    ]
    return pa.StructArray.from_arrays(
        columns, ["x", "b", "t"], mask=pa.array(make_mask(random, rows))
    )


def make_lists_of_text(random: np.random.Generator, rows: int) -> pa.Array:
    words = make_text(random, 100, pa.string())
    return make_lists(random, rows, lambda r, n: words.take(pa.array(r.integers(0, 100, n))))


def make_fixed(random: np.random.Generator, rows: int, size: int, make_values: Any) -> pa.Array:
    values = make_values(random, rows * size)
    return pa.FixedSizeListArray.from_arrays(values, size, mask=pa.array(make_mask(random, rows)))


def make_codes(random: np.random.Generator, rows: int) -> pa.Array:
    values = pa.array([f"value {i}" for i in range(100)])
    codes = pa.array(random.integers(0, 100, rows, dtype=np.int8), mask=make_mask(random, rows))
    return pa.DictionaryArray.from_arrays(codes, values)


COLUMNS = {
    "int8": lambda r, n: make_numbers(r, n, np.uint8),
    "int16": lambda r, n: make_numbers(r, n, np.int16),
    "float32": make_numbers,
    "float64": lambda r, n: make_numbers(r, n, np.float64),
    "decimal": lambda r, n: make_numbers(r, n, np.int32).cast(pa.decimal128(20, 3)),
    "bool": make_bools,
    "string": lambda r, n: make_text(r, n, pa.string()),
    "large_binary": lambda r, n: make_text(r, n, pa.large_binary()),
    "list": lambda r, n: make_lists(r, n, make_numbers),
    "list_of_bools": lambda r, n: make_lists(r, n, make_bools),
    "list_of_text": make_lists_of_text,
    "list_of_structs": lambda r, n: make_lists(r, n, make_structs),
    "list_of_codes": lambda r, n: make_lists(r, n, make_codes),
    "large_list": lambda r, n: make_lists(r, n, make_numbers).cast(pa.large_list(pa.float32())),
    "structs": make_structs,
    "fixed_3": lambda r, n: make_fixed(r, n, 3, make_numbers),
    "fixed_8": lambda r, n: make_fixed(r, n, 8, make_numbers),
    "fixed_100": lambda r, n: make_fixed(r, n, 100, lambda r, n: make_numbers(r, n, np.uint8)),
    "fixed_bools": lambda r, n: make_fixed(r, n, 5, make_bools),
    "fixed_codes": lambda r, n: make_fixed(r, n, 3, make_codes),
    "fixed_text": lambda r, n: make_fixed(r, n, 2, lambda r, n: make_text(r, n, pa.string())),
    "fixed_fixed": lambda r, n: make_fixed(r, n, 3, COLUMNS["fixed_3"]),
    "codes": make_codes,
}


def cut(table: pa.Table, random: np.random.Generator) -> list[pa.RecordBatch]:
    """The rows in batches that start anywhere in their buffers."""
    batches = []
    start = 0
    while start < len(table):
        length = int(random.integers(1, 5_000))
        part = table.slice(start, length)
        batches += part.to_batches()
        start += length
    return batches


@pytest.mark.parametrize("name", COLUMNS)
def test_shuffled_rows_are_those_of_pyarrow(name: str) -> None:
    random = np.random.default_rng(len(name))
    column = COLUMNS[name](random, ROWS + 3)[3:]
    table = pa.table({"id": np.arange(ROWS), "x": column})
    batches = cut(table, random)
    reader = pa.RecordBatchReader.from_batches(table.schema, batches)
    stream = arrowdl.from_arrow_stream(reader).shuffle(7_000, 3).rebatch(999)
    shuffled = pa.table(stream)
    shuffled.validate(full=True)
    assert sorted(shuffled["id"].to_pylist()) == list(range(ROWS))
    assert shuffled["x"].combine_chunks().equals(table.take(shuffled["id"])["x"].combine_chunks())


def test_dictionaries_that_differ_become_one() -> None:
    random = np.random.default_rng(1)
    values = [pa.array([f"value {i}" for i in range(k, k + 50)]) for k in (0, 20, 0)]
    codes = [pa.array(random.integers(0, 50, 3_000, dtype=np.int16)) for _ in values]
    arrays = [pa.DictionaryArray.from_arrays(*pair) for pair in zip(codes, values, strict=True)]
    ids = [pa.array(range(i * 3_000, (i + 1) * 3_000)) for i in range(3)]
    batches = [pa.record_batch({"id": i, "x": x}) for i, x in zip(ids, arrays, strict=True)]
    plain = pa.chunked_array([x.dictionary_decode() for x in arrays])
    for window in (2_000, 9_000):
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        parts = [
            pa.record_batch(array)
            for array in arrowdl.from_arrow_stream(reader).shuffle(window, 1).rebatch(100)
        ]
        taken = pa.concat_arrays([part["id"] for part in parts])
        decoded = pa.concat_arrays([part["x"].dictionary_decode() for part in parts])
        assert decoded.equals(plain.take(taken).combine_chunks())
        assert sorted(taken.to_pylist()) == list(range(9_000))


def test_wide_tables_are_gathered_in_larger_blocks() -> None:
    rows, columns = 20_000, 300  # 24 MB: several blocks, and several of their batches each
    values = np.arange(rows, dtype=np.int32)
    table = pa.table({f"x{i}": values + i for i in range(columns)})
    stream = arrowdl.from_arrow_stream(table).shuffle(rows, 1).rebatch(100)
    batches = [pa.record_batch(array) for array in stream]
    assert {batch.num_rows for batch in batches} == {100}
    first = pa.concat_arrays([batch["x0"] for batch in batches]).to_numpy()
    assert sorted(first) == list(range(rows))
    for i in range(0, columns, 37):
        column = pa.concat_arrays([batch[f"x{i}"] for batch in batches]).to_numpy()
        assert np.array_equal(column, first + i)
