"""pyarrow's types are remembered between calls: what differs in anything has to stay apart."""

from __future__ import annotations

import threading

import arrowdl
import pyarrow as pa
import pytest

ALMOST_EQUAL = {
    "list item name": [
        pa.list_(pa.field("item", pa.int32())),
        pa.list_(pa.field("element", pa.int32())),
    ],
    "list item nullability": [
        pa.list_(pa.field("item", pa.int32())),
        pa.list_(pa.field("item", pa.int32(), nullable=False)),
    ],
    "list item metadata": [
        pa.list_(pa.field("item", pa.int32())),
        pa.list_(pa.field("item", pa.int32(), metadata={"unit": "m"})),
        pa.list_(pa.field("item", pa.int32(), metadata={"unit": "km"})),
    ],
    "list size": [pa.list_(pa.float32(), 2), pa.list_(pa.float32(), 4)],
    "list element": [pa.list_(pa.float32(), 2), pa.list_(pa.int32(), 2)],
    "time zone": [
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("us", "Europe/Paris"),
        pa.timestamp("ns"),
    ],
    "dictionary order": [
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int8(), pa.string(), ordered=True),
        pa.dictionary(pa.int8(), pa.large_string()),
    ],
    "field name": [
        pa.struct([pa.field("a", pa.int8())]),
        pa.struct([pa.field("b", pa.int8())]),
        pa.struct([pa.field("a", pa.int8(), metadata={"unit": "m"})]),
    ],
    "map keys": [
        pa.map_(pa.string(), pa.int32()),
        pa.map_(pa.string(), pa.int32(), keys_sorted=True),
    ],
    "decimal scale": [pa.decimal128(10, 2), pa.decimal128(10, 3), pa.decimal128(11, 2)],
    "width": [pa.binary(3), pa.binary(4)],
    "extension": [
        pa.fixed_shape_tensor(pa.float32(), (2, 3)),
        pa.fixed_shape_tensor(pa.float32(), (3, 2)),
        pa.fixed_shape_tensor(pa.float32(), (2, 3), permutation=[1, 0]),
    ],
}


def read_type(type: pa.DataType) -> pa.DataType:
    """The type of an empty array of `type` after arrowdl has read it."""
    is_extension = isinstance(type, pa.BaseExtensionType)
    # Not pa.array([]), of which pyarrow 24 forgets that a dictionary is ordered.
    array = pa.nulls(0, type.storage_type if is_extension else type)
    if is_extension:
        array = pa.ExtensionArray.from_storage(type, array)
    return pa.array(arrowdl.from_arrow(array)).type


@pytest.mark.parametrize("types", ALMOST_EQUAL.values(), ids=ALMOST_EQUAL.keys())
def test_types_that_differ_stay_apart(types: list[pa.DataType]) -> None:
    for type in types + types[::-1]:
        assert read_type(type).equals(type, check_metadata=True)


def test_names_in_a_dictionary_which_pyarrow_does_not_compare_stay_apart() -> None:
    """pyarrow 26: types of dictionaries are equal whatever the fields in their values are named."""
    for name in ("item", "element", "item"):
        values = pa.array([], pa.list_(pa.field(name, pa.binary(2))))
        array = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), values)
        assert arrowdl.from_arrow(array).schema.dictionary.children[0].name == name


def test_more_types_than_are_remembered() -> None:
    types = [pa.list_(pa.float32(), size) for size in range(1, 40)]
    for type in types + types:
        assert read_type(type) == type


def test_record_batches_keep_their_own_metadata() -> None:
    plain = pa.record_batch({"x": [1.0]})
    described = plain.replace_schema_metadata({"origin": "here"})
    for batch in (plain, described, plain):
        again = pa.record_batch(arrowdl.from_arrow(batch))
        assert again.schema.equals(batch.schema, check_metadata=True)


class _Liar(pa.ExtensionType):
    """An extension whose author calls all of its types equal."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(pa.list_(pa.float32(), width), "arrowdl.test.liar")

    def __arrow_ext_serialize__(self) -> bytes:
        return str(self.width).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> _Liar:
        return cls(int(serialized))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Liar)

    def __hash__(self) -> int:
        return 0


def test_an_extension_is_not_taken_for_another() -> None:
    for width in (2, 3, 2):
        storage = pa.array([[1.0] * width], pa.list_(pa.float32(), width))
        array = pa.ExtensionArray.from_storage(_Liar(width), storage)
        assert arrowdl.to_numpy(array).shape == (1, width)
        held = pa.StructArray.from_arrays([array], ["x"])
        assert arrowdl.to_numpy(held)["x"].shape == (1, width)


def test_the_first_reading_of_a_type_serves_many_threads() -> None:
    failures: list[str] = []

    def read(start: int) -> None:
        for i in range(200):
            width = (start + i) % 13 + 1
            array = pa.FixedSizeListArray.from_arrays(pa.array(range(2 * width), "f4"), width)
            if arrowdl.to_numpy(array).shape != (2, width):
                failures.append(f"{width}")

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
