"""Arrays that real producers write and few readers expect: without rows, nulls below nulls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import arrowdl
import nanoarrow
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.arrow import MadeArray, MadeSchema
from helpers.optional import torch


@pytest.mark.parametrize(("format", "child"), [("+vl", "c"), ("+vL", "u")])
def test_list_views_without_rows_go_to_pyarrow(format: str, child: str) -> None:
    buffers = {"c": 2, "u": 3}[child]
    made = MadeArray(0, [None] * 3, children=[MadeArray(0, [None] * buffers)], offset=5)
    schema = MadeSchema(format, children=[MadeSchema(child)])
    array = arrowdl.c_data.import_array(made.address, schema.address)
    there = pa.array(array)
    there.validate(full=True)
    assert len(there) == 0


# ---- slices of what begins where its parent begins


POINTS = pa.array([{"x": i, "s": str(i) if i % 3 else None} for i in range(24)])
HOLES = pa.array([{"x": i} if i % 5 else None for i in range(24)])
EITHER = pa.UnionArray.from_sparse(
    pa.array([0, 1] * 12, pa.int8()), [pa.array(range(24)), POINTS.field("s")]
)
PARENTS = {
    "boxes": pa.FixedSizeListArray.from_arrays(POINTS, 2),
    "boxes of boxes": pa.FixedSizeListArray.from_arrays(
        pa.FixedSizeListArray.from_arrays(POINTS, 2), 3
    ),
    "structs": pa.StructArray.from_arrays([pa.StructArray.from_arrays([POINTS], ["p"])], ["q"]),
    "boxes of unions": pa.FixedSizeListArray.from_arrays(
        pa.StructArray.from_arrays([EITHER, POINTS], ["u", "p"]), 3
    ),
    "boxes of holes": pa.FixedSizeListArray.from_arrays(HOLES, 2),
}


def find_offsets(array: Any, type: pa.DataType) -> set[int]:
    """Return the offsets of what lies at or below `array`, but for structs with a bitmap."""
    offsets = set()
    if pa.types.is_struct(type) or pa.types.is_fixed_size_list(type) or pa.types.is_union(type):
        offsets = {array.offset} if pa.types.is_union(type) or not array.buffers[0] else set()
        for i in range(type.num_fields):
            offsets |= find_offsets(array.child(i), type.field(i).type)
    return offsets


@pytest.mark.parametrize("name", PARENTS)
def test_slices_move_their_offsets_into_the_children(name: str) -> None:
    random = np.random.default_rng(0)
    column = PARENTS[name]
    rows = arrowdl.to_arrow_device({"c": column})
    for _ in range(12):
        start, stop = sorted(random.integers(0, len(column) + 1, 2).tolist())
        parts = rows[start:stop]["c"], arrowdl.to_arrow_device(column[start:stop])
        for part in (*parts, arrowdl.to_arrow_device({"c": column[start:stop]})["c"]):
            there = pa.array(part)
            there.validate(full=True)
            assert there.to_pylist() == column[start:stop].to_pylist()
            assert find_offsets(nanoarrow.c_array(part), column.type) <= {0}
        frame = pa.record_batch(rows[start:stop])
        assert frame["c"].to_pylist() == column[start:stop].to_pylist()


# ---- the null type as polars exports it


@pytest.mark.parametrize("values", [[None, None, None], [[], [], []], [[None], [], None]])
def test_polars_columns_of_nothing(values: list[Any]) -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0], "n": values})
    array = arrowdl.from_arrow(frame)
    assert arrowdl.to_numpy(array["x"]).tolist() == [1.0, 2.0, 3.0]
    for part in (array, array[1:], array[3:]):
        rows = pa.record_batch(part)
        rows.validate(full=True)
        assert rows.to_pydict()["n"] == values[3 - len(part) :]
    selected = list(arrowdl.from_arrow_stream(frame).select(["x"]).rebatch(2))
    assert [len(batch) for batch in selected] == [2, 1]
    taken = arrowdl.from_arrow_stream(frame).shuffle(10, seed=1)
    assert pa.RecordBatchReader.from_stream(taken).read_all().num_rows == 3


def test_structs_without_fields_are_not_null() -> None:
    array = pa.array([{"s": {}}, {"s": {}}, {"s": {}}])
    assert pa.array(arrowdl.from_arrow(array)[1:]).to_pylist() == [{"s": {}}] * 2


# ---- complex numbers whose parts are null with them


def make_complex() -> Any:
    values = np.array([1j, 2, 3 + 4j, 5], np.complex128)
    return arrowdl.to_arrow_device(values, mask=np.array([True, False, True, False]))


def test_null_complex_numbers_of_parquet_and_polars(tmp_path: Path) -> None:
    batch = arrowdl.to_arrow_device({"z": make_complex()})
    pq.write_table(pa.Table.from_batches([pa.record_batch(batch)]), tmp_path / "z.parquet")
    for source in (batch, pq.read_table(tmp_path / "z.parquet"), pl.DataFrame(batch)):
        filled = arrowdl.to_numpy(source, nulls="fill")["z"]
        assert filled.tolist() == [1j, 0, 3 + 4j, 0]
        values, mask = arrowdl.to_numpy(source, nulls="mask")["z"]
        assert mask.tolist() == [True, False, True, False]
        assert values[mask].tolist() == [1j, 3 + 4j]
        assert np.isnan(arrowdl.to_numpy(source, nulls="nan")["z"]).tolist() == (~mask).tolist()
        with pytest.raises(BufferError, match="null"):
            arrowdl.to_numpy(source)


@pytest.mark.parametrize(("valid", "is_read"), [(0b11, False), (0b10, True), (0b01, False)])
def test_a_null_part_of_a_valid_number_is_refused(valid: int, is_read: bool) -> None:
    parts = MadeArray(4, [np.array([0b1110], np.uint8), np.arange(4.0)], null_count=1)
    made = MadeArray(2, [np.array([valid], np.uint8)], children=[parts], null_count=-1)
    schema = MadeSchema(
        "+w:2",
        children=[MadeSchema("g")],
        metadata={"ARROW:extension:name": "arrowdl.complex128", "ARROW:extension:metadata": ""},
    )
    array = arrowdl.c_data.import_array(made.address, schema.address)
    if is_read:
        assert arrowdl.to_numpy(array, nulls="fill").tolist() == [0, 2 + 3j]
    else:
        with pytest.raises(BufferError, match="a null inside a complex number"):
            arrowdl.to_numpy(array, nulls="fill")


# ---- Arrow data that is more than its tensor


@pytest.mark.parametrize(
    "options", [{"copy": True}, {"layout": "list"}, {"bool_as": "bits"}], ids=str
)
@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.timestamp("s")),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array([b"ab", b"cd"], pa.binary(2)),
        pa.array([b"0" * 16, b"1" * 16], pa.uuid()),
        pa.array([[1, 2], [3, 4]], pa.list_(pa.date32(), 2)),
    ],
    ids=lambda column: str(column.type),
)
def test_options_for_tensors_take_no_type_away(column: pa.Array, options: dict[str, Any]) -> None:
    array = arrowdl.from_arrow(column)
    with pytest.raises(BufferError, match="a tensor cannot carry"):
        arrowdl.to_arrow_device(array, **options)
    with pytest.raises(BufferError, match='field "when"'):
        arrowdl.to_arrow_device({"v": np.eye(2), "when": array}, **options)
    both = arrowdl.to_arrow_device({"v": np.eye(2), "when": array})
    assert pa.array(both["when"]).equals(column)


@pytest.mark.parametrize("make", [arrowdl.from_arrow, lambda column: column])
def test_arrays_that_are_their_tensor_are_copied(make: Any) -> None:
    column = pa.array([1, 2, 3], pa.int16())
    copied = arrowdl.to_arrow_device(make(column), copy=True)
    assert pa.array(copied).equals(column)
    assert np.from_dlpack(copied).ctypes.data != column.buffers()[1].address


# ---- tensors that vary in several dimensions


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_variable_shapes_as_offsets() -> None:
    storage = pa.struct([("data", pa.list_(pa.float32())), ("shape", pa.list_(pa.int32(), 2))])
    schema = pa.field(
        "v",
        storage,
        metadata={
            b"ARROW:extension:name": b"arrow.variable_shape_tensor",
            b"ARROW:extension:metadata": b"{}",
        },
    )
    rows = [{"data": [1, 2], "shape": [1, 2]}, {"data": [3, 4, 5], "shape": [3, 1]}]
    batch = pa.record_batch([pa.array(rows, storage)], pa.schema([schema]))
    for convert in (arrowdl.to_torch, arrowdl.to_numpy):
        values, offsets, shapes = convert(batch, ragged="offsets")["v"]
        assert values.tolist() == [1, 2, 3, 4, 5]
        assert offsets.tolist() == [0, 2, 5]
        assert shapes.tolist() == [[1, 2], [3, 1]]
        with pytest.raises(BufferError, match="differ in several dimensions"):
            convert(batch, ragged="padded")
    assert arrowdl.to_torch(batch)["v"].is_nested


# ---- data that cannot become a tensor


def test_what_is_no_tensor_in_a_tensordict() -> None:
    from tensordict import NonTensorData, TensorDict  # which takes seconds, of torch's compiler

    mixed = TensorDict({"a": torch.arange(2), "s": ["hi", "x"]}, batch_size=[2])
    for tensors in (mixed, TensorDict({"s": ["hi", "x"]}, batch_size=[2])):
        with pytest.raises(TypeError, match='field "s": NonTensorStack has data that is no'):
            arrowdl.to_arrow_device(tensors)
    with pytest.raises(TypeError, match="NonTensorData has data"):
        arrowdl.to_arrow_device(NonTensorData("hi"))
    with pytest.raises(ValueError, match="TensorDict has 2 rows and no tensors"):
        arrowdl.to_arrow_device(TensorDict({}, batch_size=[2]))
    assert len(arrowdl.to_arrow_device({})) == 0


# ---- malformed


@pytest.mark.parametrize(
    ("format", "offsets"), [("u", [5, 1, 2]), ("+l", [0, 1, 100]), ("+l", [-1, 0, 1])]
)
def test_bytes_of_offsets_that_make_no_sense(format: str, offsets: list[int]) -> None:
    memory, data = np.array(offsets, np.int32), np.zeros(8, np.uint8)
    if format == "u":
        made, schema = MadeArray(2, [None, memory, data]), MadeSchema(format)
    else:
        made = MadeArray(2, [None, memory], children=[MadeArray(2, [None, data])])
        schema = MadeSchema(format, children=[MadeSchema("C")])
    array = arrowdl.c_data.import_array(made.address, schema.address)
    with pytest.raises(ValueError, match=r"malformed .* array: its rows have the offsets"):
        _ = array.nbytes


def test_the_storage_of_complex_numbers_is_named() -> None:
    made = MadeArray(1, [None], children=[MadeArray(2, [None, np.zeros(2)])])
    metadata = {"ARROW:extension:name": "arrowdl.complex64", "ARROW:extension:metadata": ""}
    schema = MadeSchema("+w:2", children=[MadeSchema("g")], metadata=metadata)
    with pytest.raises(ValueError, match=r'storage "\+w:2" of "g": it needs "\+w:2" of "f"'):
        arrowdl.c_data.import_array(made.address, schema.address)
    made.drop()


def test_names_and_types_that_nobody_can_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # not imported
    with pytest.raises(ValueError, match=r"'\\ud800' is not valid UTF-8"):
        arrowdl.to_arrow_device({"\ud800": np.ones(2)})
    with pytest.raises(BufferError, match="numpy has no bfloat16"):
        np.asarray(arrowdl.to_arrow_device(torch.ones(3, dtype=torch.bfloat16)))
