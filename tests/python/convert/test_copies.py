"""copy.copy and copy.deepcopy."""

from __future__ import annotations

import copy
import datetime
import decimal
from collections.abc import Callable, Iterator
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest

LONG = "a text that is longer than the twelve bytes of a view"
ARRAYS = {
    "null": pa.nulls(9),
    "int": pa.array([1, None, 3, 4, 5, None, 7, 8, 9]),
    "bits": pa.array([True, None, False, True, True, False, None, True, True]),
    "decimal": pa.array([decimal.Decimal("1.5"), None] * 4 + [None]),
    "string": pa.array(["", None, LONG, "b", "", "cd", None, "e", "f"]),
    "binary": pa.array([b"ab", None, b"", b"c"] * 2 + [b"d"], pa.large_binary()),
    "view": pa.array([LONG, None, "short", LONG * 2] * 2 + [None], pa.string_view()),
    "list": pa.array([[1, 2], None, [], [3, None]] * 2 + [[4]]),
    "large": pa.array([["a"], None, [], [None, LONG]] * 2 + [["b"]], pa.large_list(pa.string())),
    "list_view": pa.array([[1, 2], None, [], [3]] * 2 + [[4]], pa.list_view(pa.int8())),
    "fixed": pa.array([[1, 2], None, [3, None]] * 3, pa.list_(pa.int16(), 2)),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": LONG}] * 3),
    "map": pa.array(
        [[("a", 1)], None, [], [("b", 2), ("c", None)], [("d", 4)]]
        + [[("e", i)] for i in range(4)],
        pa.map_(pa.string(), pa.int64()),
    ),
    "dictionary": pa.array(["x", None, LONG, "x"] * 2 + [LONG]).dictionary_encode(),
    "time": pa.array([datetime.datetime(2024, 1, 1), None, None] * 3, pa.timestamp("us", "UTC")),
    "runs": pa.RunEndEncodedArray.from_arrays([2, 6, 9], pa.array([1, None, 3])),
    "sparse": pa.UnionArray.from_sparse(
        pa.array([0, 1, 1] * 3, pa.int8()), [pa.array(range(9)), pa.array([LONG] * 9)]
    ),
    "dense": pa.UnionArray.from_dense(
        pa.array([0, 1, 1] * 3, pa.int8()),
        pa.array([0, 0, 1, 1, 2, 3, 2, 4, 5], pa.int32()),
        [pa.array([1, 2, 3]), pa.array(["a", None, LONG] * 2)],
    ),
    "tensor": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), [2, 1]), pa.array([[1, 2]] * 9, pa.list_(pa.int8(), 2))
    ),
}


def walk(array: pa.Array) -> Iterator[pa.Array]:
    """`array` and all that it is made of."""
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    yield storage
    if isinstance(storage, pa.DictionaryArray):
        yield from walk(storage.dictionary)


def addresses_of(array: pa.Array) -> set[int]:
    """Where the buffers lie, with those of children and dictionaries."""
    return {
        buffer.address
        for part in walk(array)
        for buffer in part.buffers()
        if buffer is not None and buffer.size
    }


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("start", [0, 1, 8], ids="from{}".format)
def test_a_deep_copy_is_of_other_memory(name: str, start: int) -> None:
    source = ARRAYS[name][start:]
    array = arrowdl.from_arrow(source)
    back = pa.array(copy.deepcopy(array))
    back.validate(full=True)
    assert back.type == source.type
    assert back.equals(source)
    assert back.to_pylist() == source.to_pylist()  # which reads maps in another way
    assert addresses_of(pa.array(array)) & addresses_of(source) or name == "null"
    assert not addresses_of(back) & addresses_of(source)


@pytest.mark.parametrize("name", ARRAYS)
def test_a_deep_copy_of_no_rows(name: str) -> None:
    back = pa.array(copy.deepcopy(arrowdl.from_arrow(ARRAYS[name][:0])))
    back.validate(full=True)
    assert back.equals(ARRAYS[name][:0])


def test_a_deep_copy_does_not_see_what_is_written_to_its_source() -> None:
    data = np.arange(3)
    array = arrowdl.to_arrow_device({"x": data})
    tree = {"held": array, "again": array}
    copied = copy.deepcopy(tree)
    data[:] = 7
    assert arrowdl.to_numpy(array)["x"].tolist() == [7, 7, 7]
    assert arrowdl.to_numpy(copied["held"])["x"].tolist() == [0, 1, 2]
    assert copied["held"] is copied["again"]
    assert copied["held"].field_names == ["x"]


def test_a_deep_copy_outlives_its_source() -> None:
    array = arrowdl.from_arrow(pa.array([[1, 2], [3]]))
    copied = copy.deepcopy(array)
    array.release()
    assert pa.array(copied).to_pylist() == [[1, 2], [3]]
    with pytest.raises(ValueError, match="has been released"):
        copy.deepcopy(array)


def test_a_copy_is_the_array_itself() -> None:
    array = arrowdl.from_arrow(ARRAYS["list"])
    assert copy.copy(array) is array
    array.release()
    assert copy.copy(array) is array


@pytest.mark.parametrize("function", [copy.copy, copy.deepcopy])
def test_what_an_array_is_described_by_cannot_change(function: Callable[[Any], Any]) -> None:
    array = arrowdl.from_arrow(ARRAYS["list"])
    for described in array.device, array.schema:
        assert function(described) is described


def test_a_deep_copy_on_a_device(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import copy
import pyarrow as pa

maps = pa.array([[("a", 1)], [("b", 2), ("c", 3)], [], []], pa.map_(pa.string(), pa.int8()))[1:]
table = pa.record_batch({
    "x": pa.array([1, None, 3]), "s": pa.array(["a", None, "bc"]), "m": maps})
for source in arrowdl.from_arrow(table).to("cuda"), arrowdl.from_arrow(table).to("cuda_host"):
    copied = copy.deepcopy(source)
    assert copied.device == source.device
    assert copied.sync_event is not None
    assert len({arrowdl._core.address_of(a.field("x")) for a in (source, copied)}) == 2
    del source
    assert pa.array(copied.to("cpu")).to_pylist() == table.to_pylist()
    del copied
    # pyarrow 26 does not look for an offset of a map's entries
    assert pa.array(arrowdl.from_arrow(maps).to("cuda").to("cpu")).to_pylist() == maps.to_pylist()
settle()
assert debug.live_objects() == 0
""")


def test_a_deep_copy_needs_a_runtime_where_the_memory_lies() -> None:
    from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema

    made = MadeDeviceArray(MadeArray(3, [None, np.arange(3)], null_count=0), (8, 0))
    array = arrowdl.from_arrow((MadeSchema("l").capsule(), made.capsule()))
    assert copy.copy(array) is array
    with pytest.raises(BufferError, match="metal"):
        copy.deepcopy(array)
