"""A stream whose dictionary grows keeps its codes; one whose values change is refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from helpers.options import group

VALUES = ["a", "b", "c", "d", "e", "f", "g"]


def make_batch(codes: list[int], values: list[str]) -> pa.RecordBatch:
    array = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values))
    return pa.record_batch({"k": array, "x": pa.array(codes)})


GROWING = [
    make_batch([0, 1], VALUES[:2]),
    make_batch([1, 2, 0], VALUES[:3]),
    make_batch([1], VALUES[:2]),
    make_batch([6, 5], VALUES),
]
CODES = [0, 1, 1, 2, 0, 1, 6, 5]


def write_deltas() -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, GROWING[0].schema, options=options) as writer:
        for batch in (GROWING[0], GROWING[1], GROWING[3]):
            writer.write_batch(batch)
    return sink.getvalue()


SOURCES: dict[str, Callable[[], Any]] = {
    "function": lambda: lambda: iter(GROWING),
    "reader": lambda: lambda: pa.RecordBatchReader.from_batches(GROWING[0].schema, GROWING),
    "one pass": lambda: iter(GROWING),
    "deltas": lambda: lambda: pa.ipc.open_stream(write_deltas()),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_codes_stay(kind: str, batch_size: int) -> None:
    expected = [0, 1, 1, 2, 0, 6, 5] if kind == "deltas" else CODES
    for options in ({}, {"shuffle": True, "buffer_size": 5, "seed": 3}):
        loader = arrowdl.Loader(SOURCES[kind](), batch_size, framework="numpy", **group(**options))
        batches = list(loader)
        codes = [int(code) for batch in batches for code in batch["k"]]
        assert sorted(codes) == sorted(expected)
        assert codes == [int(x) for batch in batches for x in batch["x"]]
        assert options or codes == expected
        assert loader.vocabulary("k").to_pylist() == VALUES


def test_ranks_and_states() -> None:
    ranks = [
        arrowdl.Loader(lambda: iter(GROWING), 1, framework="numpy", ranks=arrowdl.Ranks(rank, 2))
        for rank in range(2)
    ]
    found = [int(batch["k"][0]) for batch in ranks[0]] + [int(b["k"][0]) for b in ranks[1]]
    assert sorted(found) == sorted(CODES)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["b", "a"], r"mean \['a', 'b'\] in one batch and \['b', 'a'\] in another\. Give"),
        ([*VALUES[:5], "z"], r"\.\.\.\] in another \(code 5 is 'f' and 'z'\)\. Give"),
    ],
)
def test_other_values_are_refused(values: list[str], message: str) -> None:
    first = make_batch([0, 1], VALUES if len(values) > 2 else VALUES[:2])
    batches = [first, make_batch([0], values)]
    loader = arrowdl.Loader(lambda: iter(batches), 1, framework="numpy")
    with pytest.raises(ValueError, match=message):
        list(loader)
    loader = arrowdl.Loader(lambda: iter(batches), 10, framework="numpy")
    with pytest.raises(ValueError, match=message):
        list(loader)


def test_streams_of_arrays_keep_codes_too() -> None:
    for rows in (2, 100):
        stream = arrowdl.from_arrow_stream(iter(GROWING)).rebatch(rows)
        codes = [int(code) for array in stream for code in arrowdl.to_numpy(array)["k"]]
        assert codes == CODES
    whole = arrowdl.from_arrow(pa.RecordBatchReader.from_batches(GROWING[0].schema, GROWING))
    assert arrowdl.to_numpy(whole)["k"].tolist() == CODES
    assert pa.array(whole["k"]).dictionary.to_pylist() == VALUES


def test_files_of_streams(tmp_path: Path) -> None:
    path = tmp_path / "deltas.arrow"
    path.write_bytes(write_deltas())
    batches = list(arrowdl.Loader(path, 3, framework="numpy"))
    assert [int(c) for batch in batches for c in batch["k"]] == [0, 1, 1, 2, 0, 6, 5]
