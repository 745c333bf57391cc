"""Extension types of other libraries: what a tensor of each is, and what an error advises.

The types are made by their names, as the libraries export them; tests/peers runs the libraries.
"""

from __future__ import annotations

import io
import re
import resource
from pathlib import Path
from typing import Any

import arrowdl
import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.optional import torch

NUMBERS = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
FLAT = [row.reshape(-1).tolist() for row in NUMBERS]
RAY = ("ray.data.arrow_tensor", "ray.data.arrow_tensor_v2")
ARRAY_2D = "datasets.features.features.Array2DExtensionType"


def extend(array: Any, name: str, metadata: str = "", field: str = "x") -> pa.Table:
    """Return a table of one column, whose extension type pyarrow does not know."""
    given = {"ARROW:extension:name": name, "ARROW:extension:metadata": metadata}
    schema = pa.schema([pa.field(field, array.type, metadata=given)])
    return pa.table([array], schema)


def extend_item(name: str) -> pa.Table:
    given = {"ARROW:extension:name": name, "ARROW:extension:metadata": ""}
    items = pa.array([b"\x80\x3f", b"\x00\x40"] * 2, pa.binary(2))
    type = pa.list_(pa.field("item", pa.binary(2), metadata=given), 2)
    return pa.table({"x": pa.FixedSizeListArray.from_arrays(items, type=type)})


def test_bfloat16_of_lance() -> None:
    table = extend(pa.array([b"\x80\x3f", b"\x00\x40", None], pa.binary(2)), "lance.bfloat16")
    values, mask = arrowdl.to_torch(table, nulls="mask")["x"]
    assert values.dtype == torch.bfloat16
    assert values[:2].tolist() == [1.0, 2.0]
    assert mask.tolist() == [True, True, False]
    assert arrowdl.to_torch(table[:2], stack=True).dtype == torch.bfloat16
    array = arrowdl.from_arrow(table[:2])["x"]
    assert torch.from_dlpack(array).tolist() == [1.0, 2.0]
    assert pa.field(array.schema).metadata[b"ARROW:extension:name"] == b"lance.bfloat16"
    assert "lance.bfloat16" in repr(array)
    vectors = arrowdl.to_torch(extend_item("lance.bfloat16"))["x"]
    assert (vectors.dtype, vectors.tolist()) == (torch.bfloat16, [[1.0, 2.0]] * 2)
    (batch,) = arrowdl.Loader(table, 3, nulls="fill")
    assert batch["x"].tolist() == [1.0, 2.0, 0.0]
    assert np.dtype(ml_dtypes.bfloat16).itemsize == 2
    with pytest.raises(ValueError, match=r'lance.bfloat16 over the storage "w:3"'):
        arrowdl.from_arrow(extend(pa.array([b"abc"], pa.binary(3)), "lance.bfloat16"))


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
@pytest.mark.parametrize("name", RAY)
def test_tensors_of_ray(name: str, kind: Any) -> None:
    table = extend(pa.array(FLAT, kind(pa.float32())), name, "[2, 3]")
    np.testing.assert_array_equal(arrowdl.to_numpy(table)["x"], NUMBERS)
    np.testing.assert_array_equal(torch.from_dlpack(arrowdl.from_arrow(table)["x"]), NUMBERS)
    assert arrowdl.to_torch(table, stack=True).shape == (2, 6)
    for options in ({}, {"shuffle": True}, {"num_workers": 1}, {"dtype": "float64"}):
        (batch,) = arrowdl.Loader(table, 2, framework="numpy", **options)
        assert batch["x"].shape == (2, 2, 3)
        np.testing.assert_array_equal(np.sort(batch["x"], axis=0), NUMBERS)


def test_tensors_of_hugging_face() -> None:
    nested = pa.array(NUMBERS.tolist(), pa.list_(pa.list_(pa.float32())))
    table = extend(nested, ARRAY_2D, '[[2, 3], "float32"]')
    np.testing.assert_array_equal(arrowdl.to_numpy(table)["x"], NUMBERS)
    np.testing.assert_array_equal(arrowdl.to_numpy(table[1:])["x"], NUMBERS[1:])
    np.testing.assert_array_equal(np.from_dlpack(arrowdl.from_arrow(table)["x"]), NUMBERS)
    deep = pa.array([[[[1, 2]], [[3, 4]]]], pa.list_(pa.list_(pa.list_(pa.int32()))))
    name = "datasets.features.features.Array3DExtensionType"
    table = extend(deep, name, '[[2, 1, 2], "int32"]')
    assert arrowdl.to_numpy(table)["x"].tolist() == deep.to_pylist()
    for size in (4, 5):
        kind = f"datasets.features.features.Array{size}DExtensionType"
        values: Any = 1.5
        type = pa.float64()
        for _ in range(size):
            values, type = [values], pa.list_(type)
        table = extend(pa.array([values], type), kind, f'[{[1] * size}, "float64"]')
        assert arrowdl.to_numpy(table)["x"].shape == (1, *[1] * size)


@pytest.mark.parametrize("name", [RAY[1], ARRAY_2D])
def test_null_rows_and_other_places(name: str) -> None:
    is_ray = name in RAY
    type = pa.list_(pa.float32()) if is_ray else pa.list_(pa.list_(pa.float32()))
    rows = FLAT if is_ray else NUMBERS.tolist()
    json = "[2, 3]" if is_ray else '[[2, 3], "float32"]'
    table = extend(pa.array([rows[0], None, rows[1]], type), name, json)
    with pytest.raises(BufferError, match="nulls"):
        arrowdl.to_numpy(table)
    values, mask = arrowdl.to_numpy(table, nulls="mask")["x"]
    assert mask.all(axis=(1, 2)).tolist() == [True, False, True]
    assert not mask[1].any()
    mask = mask[:, 0, 0]
    np.testing.assert_array_equal(values[mask], NUMBERS)
    filled = arrowdl.to_numpy(table, nulls="fill")["x"]
    np.testing.assert_array_equal(filled, [NUMBERS[0], np.zeros((2, 3)), NUMBERS[1]])
    struct = pa.table(
        [pa.StructArray.from_arrays([table["x"].chunk(0)], fields=list(table.schema))],
        ["s"],
    )
    assert arrowdl.to_numpy(struct, nulls="fill")["s"]["x"].shape == (3, 2, 3)
    ragged = extend(pa.array([rows[0], rows[1][:1]], type), name, json)
    with pytest.raises(ValueError, match=r'field "x".*does not have the shape \[2, 3\]'):
        arrowdl.to_numpy(ragged)


GATHERED = {
    "null": pa.array([[1, 2], None], pa.list_(pa.int32())),
    "gaps": pa.ListViewArray.from_arrays([4, 0], [2, 2], pa.array(range(6), pa.int32())),
    "nested": pa.array([[[1, 2]], None], pa.list_(pa.list_(pa.int32()))),
}


@pytest.mark.parametrize("rows", GATHERED.values(), ids=GATHERED)
def test_shapes_that_need_a_copy(rows: Any) -> None:
    table = extend(rows, RAY[0], "[1, 2]")
    for given, field in ((table, 'field "x"'), (extend_field(table), 'field "s".*field "x"')):
        with pytest.raises(BufferError, match=f"{field}.*have to be gathered.*copy=None"):
            arrowdl.to_numpy(given, copy=False, nulls="mask")
        arrowdl.to_numpy(given, copy=True, nulls="mask")
    column = arrowdl.from_arrow(table)["x"]
    with pytest.raises(BufferError, match=r"have to be gathered.*copy=None"):
        column.__dlpack__(copy=False)
    assert len(np.from_dlpack(column[:1])) == 1
    shared = extend(pa.array(FLAT, pa.list_(pa.float32())), RAY[0], "[2, 3]")
    np.testing.assert_array_equal(arrowdl.to_numpy(shared[1:], copy=False)["x"], NUMBERS[1:])
    array = arrowdl.from_arrow(shared)["x"]
    np.testing.assert_array_equal(np.from_dlpack(array, copy=False), NUMBERS)


def extend_field(table: pa.Table) -> pa.Table:
    """Return a table with the column as the field of a struct."""
    column = table["x"].combine_chunks()
    return pa.table({"s": pa.StructArray.from_arrays([column], fields=list(table.schema))})


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, lambda item: pa.list_(item, 6)])
@pytest.mark.parametrize("name", RAY)
def test_bool_tensors_of_ray(name: str, kind: Any) -> None:
    bools = NUMBERS % 2 == 0
    rows = [row.reshape(-1).tolist() for row in bools]
    table = extend(pa.array([*rows, None], kind(pa.bool_())), name, "[2, 3]")
    values, mask = arrowdl.to_numpy(table, nulls="mask")["x"]
    np.testing.assert_array_equal(values[mask].reshape(2, 2, 3), bools)
    assert arrowdl.to_torch(table, nulls="fill")["x"].dtype == torch.bool
    np.testing.assert_array_equal(arrowdl.to_numpy(table[1:2])["x"], bools[1:])
    np.testing.assert_array_equal(arrowdl.to_numpy(extend_field(table[:2]))["s"]["x"], bools)
    np.testing.assert_array_equal(np.from_dlpack(arrowdl.from_arrow(table[:2])["x"]), bools)
    (batch,) = arrowdl.Loader(table[:2], 2, framework="numpy")
    np.testing.assert_array_equal(batch["x"], bools)
    with pytest.raises(BufferError, match="bit-packed"):
        arrowdl.to_numpy(table[:2], copy=False)
    flat = extend(pa.array([[True, False]], pa.list_(pa.bool_())), name, "[2]")
    assert arrowdl.to_numpy(flat)["x"].tolist() == [[True, False]]


def test_null_structs_over_lists_of_another_length() -> None:
    lists = pa.array([FLAT[0], [], FLAT[1]], pa.list_(pa.float32()))
    for depth in (1, 2):
        table = extend(lists, RAY[0], "[2, 3]")
        column, field = table["x"].combine_chunks(), table.schema.field("x")
        is_null = pa.array([False, True, False])
        for level in range(depth):
            mask = {"mask": is_null} if level == depth - 1 else {}
            column = pa.StructArray.from_arrays([column], fields=[field], **mask)
            field = pa.field("x", column.type)
        filled = arrowdl.to_numpy(column, nulls="fill")
        for _ in range(depth):
            filled = filled["x"]
        np.testing.assert_array_equal(filled, [NUMBERS[0], np.zeros((2, 3)), NUMBERS[1]])
        with pytest.raises(BufferError, match="nulls"):
            arrowdl.to_numpy(column)


def test_shapes_are_checked_before_memory_is_allocated() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for rows in ([None, [1.0]], [[1.0], None], [None, [1.0], None]):
        table = extend(pa.array(rows, pa.list_(pa.float64())), RAY[0], f"[{2**12}, {2**15}]")
        with pytest.raises(ValueError, match=r'field "x".*does not have the shape'):
            arrowdl.to_numpy(table, nulls="fill")
    spare = pa.ListArray.from_arrays([0, 1, 1], pa.array([7]), mask=pa.array([True, True]))
    table = extend(spare, RAY[0], f"[{2**20}]")
    assert not arrowdl.to_numpy(table, nulls="fill")["x"].any()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    for shape in ("[65536, 32768]", "[2147483648]"):
        table = extend(pa.array([[1.0]]), RAY[0], shape)
        with pytest.raises(ValueError, match=rf'field "x".*{shape[1:-1]}.*2147483647 values'):
            arrowdl.to_numpy(table)


@pytest.mark.parametrize(
    "json", ["", "{", "7", "[]", "[-1]", '[[null, 3], "float32"]', "[2, 3, 4]"]
)
def test_shapes_that_say_nothing_leave_lists(json: str) -> None:
    table = extend(pa.array(NUMBERS.tolist(), pa.list_(pa.list_(pa.float32()))), ARRAY_2D, json)
    column = arrowdl.from_arrow(table)["x"]
    with pytest.raises(BufferError, match="not one tensor"):
        np.from_dlpack(column)


def test_files_keep_the_shape() -> None:
    table = extend(pa.array(FLAT, pa.large_list(pa.float32())), RAY[1], "[2, 3]")
    sink = io.BytesIO()
    pq.write_table(table, sink)
    (batch,) = arrowdl.Loader(sink, 2, framework="numpy")
    np.testing.assert_array_equal(batch["x"], NUMBERS)


STORAGE: dict[str, tuple[Any, Any]] = {
    "arrow.uuid": (pa.array([bytes(range(16))], pa.binary(16)), [list(range(16))]),
    "geoarrow.point": (
        pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.0]), 2),
        [[1.0, 2.0], [3.0, 4.0]],
    ),
    "pandas.period": (pa.array([18262, 18263]), [18262, 18263]),
    "vortex.date": (pa.array([1, 2], pa.int32()), [1, 2]),
    "awkward": (pa.array([1, 2], pa.int32()), [1, 2]),
    "someone.else": (pa.array([1, 2], pa.int32()), [1, 2]),
    "daft.super_extension": (
        pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0]), 2),
        [[1.0, 2.0]],
    ),
}


@pytest.mark.parametrize("name", STORAGE)
def test_types_that_are_their_storage(name: str) -> None:
    array, expected = STORAGE[name]
    assert arrowdl.to_numpy(extend(array, name))["x"].tolist() == expected


def test_structs_and_bytes_that_are_their_storage() -> None:
    parts = {"left": pa.array([1, 2]), "right": pa.array([2, 3])}
    struct = pa.StructArray.from_arrays(list(parts.values()), list(parts))
    found = arrowdl.to_numpy(extend(struct, "pandas.interval", '{"closed": "right"}'))["x"]
    assert {name: values.tolist() for name, values in found.items()} == {
        "left": [1, 2],
        "right": [2, 3],
    }
    times = [pa.array([0], pa.timestamp("us", "UTC")), pa.array([60], pa.int16())]
    struct = pa.StructArray.from_arrays(times, ["timestamp", "offset_minutes"])
    found = arrowdl.to_numpy(extend(struct, "arrow.timestamp_with_offset"))["x"]
    assert list(found) == ["timestamp", "offset_minutes"]
    ends = pa.RunEndEncodedArray.from_arrays([2], pa.array([60], pa.int16()))
    for minutes, read in ((ends, [60, 60]), (pa.array([60, 60]).dictionary_encode(), [0, 0])):
        times = [pa.array([0, 1], pa.timestamp("us", "UTC")), minutes]
        struct = pa.StructArray.from_arrays(times, ["timestamp", "offset_minutes"])
        found = arrowdl.to_numpy(extend(struct, "arrow.timestamp_with_offset"))["x"]
        assert found["offset_minutes"].tolist() == read
    for name in ("arrow.json", "geoarrow.wkt"):
        values, offsets = arrowdl.to_numpy(extend(pa.array(["{}"]), name))["x"]
        assert (bytes(values), offsets.tolist()) == (b"{}", [0, 2])


BYTES = pa.array([b"0" * 16], pa.binary(16))
VARIANT = pa.StructArray.from_arrays([pa.array([b"1"]), pa.array([b"2"])], ["metadata", "value"])
REFUSED: list[tuple[str, Any, str]] = [
    ("arrow.opaque", BYTES, "HUGEINT as BIGINT"),
    ("arrow.opaque", pa.array([1]), "cast the column in the engine"),
    ("arrow.opaque", pa.array(["a"]), "cast the column in the engine"),
    ("arrow.opaque", pa.nulls(1), "cast the column in the engine"),
    ("arrow.parquet.variant", VARIANT, "variant_get"),
    ("daft.super_extension", pa.array([b"pickle"], pa.large_binary()), "cast the column in daft"),
    ("ray.data.arrow_pickled_object", pa.array([b"pickle"]), "map the column to numbers in Ray"),
]


@pytest.mark.parametrize(("name", "array", "advice"), REFUSED)
def test_types_without_a_tensor_say_what_to_do(name: str, array: Any, advice: str) -> None:
    json = '{"type_name": "t", "vendor_name": "v"}' if name == "arrow.opaque" else ""
    table = extend(array, name, json).append_column("n", pa.array([1]))
    message = rf'field "x": {name}<.* has no tensor reading: .*{advice}.*leave it out'
    for nulls in ("raise", "fill", "mask"):
        with pytest.raises(BufferError, match=message):
            arrowdl.to_numpy(table, nulls=nulls)
    with pytest.raises(BufferError, match=rf'"x": {name}.*{advice}'):
        arrowdl.to_numpy(table, stack=True, dtype="float32")
    with pytest.raises(BufferError, match=rf"{name}.*{advice}"):
        np.from_dlpack(arrowdl.from_arrow(table)["x"])
    with pytest.raises(BufferError, match=advice):
        next(iter(arrowdl.Loader(table, 1, framework="numpy")))
    (batch,) = arrowdl.Loader(table, 1, framework="numpy", columns=["n"])
    assert batch["n"].tolist() == [1]
    whole = pa.RecordBatchReader.from_stream(table).read_all()
    assert pa.table(arrowdl.from_arrow(table)).equals(whole), "Arrow data goes on as it is"


CANONICAL: dict[str, tuple[Any, str]] = {
    "arrow.fixed_shape_tensor": (
        pa.array([[1, 2, 3, 4]], pa.list_(pa.int64(), 4)),
        '{"shape": [2, 2]}',
    ),
    "arrow.variable_shape_tensor": (
        pa.StructArray.from_arrays(
            [pa.array([[1, 2]]), pa.array([[2, 1]], pa.list_(pa.int32(), 2))], ["data", "shape"]
        ),
        "{}",
    ),
    "arrow.bool8": (pa.array([1, 0], pa.int8()), ""),
    "arrow.uuid": (BYTES, ""),
    "arrow.json": (pa.array(["{}"]), ""),
    "arrow.timestamp_with_offset": (
        pa.StructArray.from_arrays(
            [pa.array([0], pa.timestamp("us", "UTC")), pa.array([60], pa.int16())],
            ["timestamp", "offset_minutes"],
        ),
        "",
    ),
    "arrow.opaque": (BYTES, '{"type_name": "t", "vendor_name": "v"}'),
    "arrow.parquet.variant": (VARIANT, ""),
}


def test_the_page_of_specifications_says_how_canonical_types_are_read() -> None:
    page = (Path(__file__).parents[3] / "docs/concepts/specifications.rst").read_text()
    rows = re.findall(r"^   \* - (arrow\.[\w.]+)\n     - (.+)\n", page, re.M)
    assert {name for name, _ in rows} == set(CANONICAL)
    for name, said in rows:
        storage, metadata = CANONICAL[name]
        table = extend(storage, name, metadata)
        whole = pa.RecordBatchReader.from_stream(table).read_all()
        assert pa.table(arrowdl.from_arrow(table)).schema.equals(whole.schema), name
        if said == "refused":
            with pytest.raises(BufferError, match="has no tensor reading"):
                arrowdl.to_numpy(table)
            continue
        found = repr(arrowdl.to_numpy(table)["x"])
        as_storage = repr(arrowdl.to_numpy(pa.table({"x": storage}))["x"])
        assert (found == as_storage) == (said == "as its storage"), name
