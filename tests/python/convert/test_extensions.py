"""`extensions=False`: Arrow's own types alone, which engines compute on; bools alone are copied."""

from __future__ import annotations

from typing import Any

import arrowdl
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from helpers.optional import torch

TENSORS = {
    "id": np.arange(4),
    "flag": np.array([True, False, True, True]),
    "matrix": np.arange(8, dtype="float32").reshape(4, 2),
    "cube": np.arange(16, dtype="int32").reshape(4, 2, 2),
    "flags": np.eye(4, 2, dtype=bool),
    "day": np.array(["2013-01-01"] * 4, "datetime64[s]"),
}
TYPES = pa.schema(
    {
        "id": pa.int64(),
        "flag": pa.bool_(),
        "matrix": pa.list_(pa.float32(), 2),
        "cube": pa.list_(pa.list_(pa.int32(), 2), 2),
        "flags": pa.list_(pa.bool_(), 2),
        "day": pa.timestamp("s"),
    }
)


def make(**options: Any) -> arrowdl.DeviceArray:
    return arrowdl.to_arrow_device(TENSORS, **{"extensions": False, **options})


def test_all_types_are_of_arrow_itself() -> None:
    assert pa.table(make()).schema == TYPES
    for name, tensor in TENSORS.items():
        assert pa.array(make()[name]).to_pylist() == tensor.tolist()


def test_nothing_but_bools_is_copied() -> None:
    for name in ("id", "matrix", "cube"):
        array = arrowdl.to_arrow_device(TENSORS[name], extensions=False, copy=False)
        assert arrowdl.to_numpy(array).ctypes.data == TENSORS[name].ctypes.data
    for name in ("flag", "flags"):
        with pytest.raises(BufferError, match="booleans have to be packed into bits"):
            arrowdl.to_arrow_device(TENSORS[name], extensions=False, copy=False)


def test_lists_and_permuted_rows_are_plain_too() -> None:
    rows = [torch.tensor([True, False]), torch.tensor([True])]
    nested = torch.nested.nested_tensor(rows, layout=torch.jagged)
    made = pa.array(arrowdl.to_arrow_device(nested, extensions=False))
    assert made.type.value_type == pa.bool_()
    assert made.to_pylist() == [[True, False], [True]]
    images = torch.arange(24.0).reshape(2, 3, 2, 2).to(memory_format=torch.channels_last)
    lists = pa.array(arrowdl.to_arrow_device(images, extensions=False))
    assert lists.to_pylist() == images.tolist(), "in C order"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.complex64], ids=str)
def test_what_arrow_has_only_as_an_extension_type_is_refused(dtype: torch.dtype) -> None:
    name = str(dtype).removeprefix("torch.")
    for tensor in (torch.ones(2).to(dtype), torch.ones(2, 2).to(dtype)):
        with pytest.raises(
            BufferError, match=rf'"x": extensions=False: {name} is only .* arrowdl\.{name}'
        ):
            arrowdl.to_arrow_device({"x": tensor}, extensions=False)


def test_options_that_ask_for_extension_types_are_refused() -> None:
    options: dict[str, Any]
    for options in ({"layout": "fixed_shape_tensor"}, {"bool_as": "bool8"}):
        with pytest.raises(ValueError, match=r"^extensions=False makes lists and bits: leave out"):
            make(**options)
    assert pa.table(make(layout="list", bool_as="bits")).schema == TYPES
    for wrong in (None, 0, "no"):
        with pytest.raises(TypeError, match=r"^extensions must be a bool, got "):
            make(extensions=wrong)


def test_arrow_data_is_taken_if_it_has_no_extension_type() -> None:
    table = pa.table({"x": [1, None], "s": ["a", "b"]})
    assert pa.table(arrowdl.to_arrow_device(table, extensions=False)) == table
    converted = arrowdl.to_arrow_device(arrowdl.to_arrow_device(TENSORS["flags"]), extensions=False)
    assert pa.array(converted).type == TYPES.field("flags").type
    for data in (pa.table(arrowdl.to_arrow_device(TENSORS)), pa.array([b"a" * 16], pa.uuid())):
        with pytest.raises(BufferError, match="extensions= are for tensors"):
            arrowdl.to_arrow_device(data, extensions=False)


def test_extension_types_of_pyarrow_are_read_without_its_dlpack() -> None:
    """pyarrow exports no extension type by DLPack, and its error says nothing of extensions=."""
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([None, 1, 0, 5], pa.int8()))
    made = pa.array(arrowdl.to_arrow_device(flags[1:], extensions=False))
    assert made.equals(pa.array([True, False, True]))


@pytest.mark.parametrize("copy", [None, True])
def test_bool8_with_nulls_becomes_bits(copy: bool | None) -> None:
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([None, 1, 0, 5], pa.int8()))
    expected = pa.array([None, True, False, True])
    for start in range(5):
        made = arrowdl.to_arrow_device(flags[start:], extensions=False, copy=copy)
        assert pa.array(made).equals(expected[start:])
    source = arrowdl.from_arrow_stream(pa.table({"x": range(4)}))
    mapped = source.map(lambda batch: {"f": flags}, framework="numpy", keep=(), extensions=False)
    assert pa.table(mapped)["f"].combine_chunks().equals(expected)
    with pytest.raises(BufferError, match=r"^the array of arrow\.bool8 has nulls"):
        arrowdl.to_arrow_device(flags, extensions=False, copy=False)


def test_a_map_makes_none_either() -> None:
    def model(batch: Any) -> dict[str, Any]:
        flags = batch["id"] > 1
        return {"m": np.ones((4, 2)), "f": flags, "a": arrowdl.to_arrow_device(flags)}

    def run(model: Any) -> pa.Table:
        source = arrowdl.from_arrow_stream(pa.table({"id": range(4)}))
        return pa.table(source.map(model, framework="numpy", keep=(), extensions=False))

    made = run(model)
    assert made.schema.types == [pa.list_(pa.float64(), 2), pa.bool_(), pa.bool_()]
    assert made["a"].to_pylist() == [False, False, True, True]
    with pytest.raises(BufferError, match="extensions=False: bfloat16"):
        run(lambda batch: {"x": torch.ones(4).bfloat16()})


# ---------------------------------------------------------------- engines: docs/guides/engines.rst


def test_pyarrow_computes() -> None:
    table = pa.table(make())
    assert table.filter(table["flag"])["id"].to_pylist() == [0, 2, 3]
    assert pc.list_element(table["matrix"], 1).to_pylist() == [1, 3, 5, 7]
    tagged = pa.table(arrowdl.to_arrow_device(TENSORS))
    with pytest.raises(pa.ArrowNotImplementedError, match="must be boolean"):
        tagged.filter(tagged["flag"])
    with pytest.raises(pa.ArrowNotImplementedError, match="no kernel matching"):
        pc.list_element(tagged["matrix"], 1)


def test_polars_computes() -> None:
    frame = pl.DataFrame(make())
    assert frame.filter(pl.col("flag"))["id"].to_list() == [0, 2, 3]
    assert frame["matrix"].arr.sum().to_list() == [1, 5, 9, 13]
    assert frame.schema["cube"] == pl.Array(pl.Int32, (2, 2))
    tagged = pl.DataFrame(arrowdl.to_arrow_device(TENSORS))
    assert isinstance(tagged.schema["flag"], pl.BaseExtension)
    for wrong in (pl.col("flag").sum(), pl.col("matrix").arr.sum()):
        with pytest.raises(pl.exceptions.InvalidOperationError):
            tagged.select(wrong)


def test_duckdb_computes() -> None:
    plain, tagged = make(), arrowdl.to_arrow_device(TENSORS)  # noqa: F841
    with duckdb.connect() as connection:
        query = "SELECT count(*), typeof(any_value(cube)) FROM {} WHERE flag"
        assert connection.sql(query.format("plain")).fetchall() == [(3, "INTEGER[2][2]")]
        assert connection.sql(query.format("tagged")).fetchall() == [(3, "INTEGER[4]")], "no shape"


def test_duckdb_reads_a_permuted_tensor_in_the_order_of_its_memory() -> None:
    """It drops the permutation of fixed_shape_tensor silently."""
    image = torch.arange(8.0).reshape(1, 2, 2, 2).to(memory_format=torch.channels_last)
    plain = arrowdl.to_arrow_device({"x": image}, extensions=False)  # noqa: F841
    tagged = arrowdl.to_arrow_device({"x": image})  # noqa: F841
    with duckdb.connect() as connection:
        assert np.ravel(connection.sql("SELECT x FROM plain").fetchall()).tolist() == [*range(8)]
        found = np.ravel(connection.sql("SELECT x FROM tagged").fetchall()).tolist()
        assert found == image.permute(0, 2, 3, 1).flatten().tolist()
