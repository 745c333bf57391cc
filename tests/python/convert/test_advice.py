"""Objects that arrowdl cannot read: the error says what was called, given, and what to pass."""

from __future__ import annotations

import sqlite3
import threading
from collections import UserDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import arrowdl
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from arrowdl import c_data
from arrowdl._libraries import ADVICE, Advice, find_advice, is_of

TABLE = pa.table({"a": [1, 2], "b": ["x", "y"]})


def make_double(module: str, name: str, *bases: type, **members: Any) -> Any:
    """An object of a class of a library that is not installed, or whose objects need a device."""
    return type(name, bases or (object,), {"__module__": module, **members})()


# ---------------------------------------------------------------- the function that was called

FUNCTIONS = {
    "from_arrow": arrowdl.from_arrow,
    "from_arrow_stream": arrowdl.from_arrow_stream,
    "to_torch": arrowdl.to_torch,
    "to_jax": arrowdl.to_jax,
    "to_numpy": arrowdl.to_numpy,
    "to_arrow_device": arrowdl.to_arrow_device,
    "flatten_cu_seqlens": arrowdl.flatten_cu_seqlens,
    "export_array": lambda x: c_data.export_array(x, 64),
    "export_schema": lambda x: c_data.export_schema(x, 64),
    "export_stream": lambda x: c_data.export_stream(x, 64),
    "export_device_stream": lambda x: c_data.export_device_stream(x, 64),
    "export_async_stream": lambda x: c_data.export_async_stream(x, 64),
}
UNREAD = {"str": "a.parquet", "int": 3, "NoneType": None, "object": object(), "float": 1.5}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", UNREAD)
def test_an_error_names_the_function_that_was_called(name: str, kind: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) cannot read an object of type {kind}: "):
        FUNCTIONS[name](UNREAD[kind])


class ArrayOfWarp:
    """As warp's array: a class with the protocols of its instances."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {}

    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


CLASSES = (
    *(ArrayOfWarp, torch.Tensor, torch.nn.Parameter, torch.masked.MaskedTensor, np.ndarray),
    *(pa.Array, pa.Table, pl.DataFrame, pl.Series, pd.DataFrame, pd.Series, dict, list, UserDict),
    *(arrowdl.DeviceArray, arrowdl.DeviceStream, memoryview, bytes, np.float32, int, type),
)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_class_is_no_instance(name: str, kind: type) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) cannot read the class .*an instance of it"):
        FUNCTIONS[name](kind)
    if name == "to_arrow_device":
        with pytest.raises(TypeError, match=r'field "x": .* the class .*an instance of it'):
            arrowdl.to_arrow_device({"x": kind})
        with pytest.raises(TypeError, match="mask must be"):
            arrowdl.to_arrow_device(np.ones(2), mask=kind)


OBJECTS = pl.Series("o", [object(), None], dtype=pl.Object)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_python_objects_of_polars(name: str) -> None:
    frame = pl.DataFrame({"o": OBJECTS, "x": [1, 2], "p": OBJECTS})
    with pytest.raises(TypeError, match=r"Python objects in 'o', 'p'.*frame\.drop\('o', 'p'\)"):
        FUNCTIONS[name](frame)
    with pytest.raises(TypeError, match=r"series 'o' has Python objects.*numbers"):
        FUNCTIONS[name](OBJECTS)
    if name == "to_numpy":
        assert arrowdl.to_numpy(frame.drop("o", "p"))["x"].tolist() == [1, 2]
        with pytest.raises(TypeError, match="Python objects"):
            arrowdl.to_arrow_device({"o": OBJECTS})
        with pytest.raises(TypeError, match="Python objects"):
            list(arrowdl.from_arrow_stream(frame.lazy()))
        for source in (frame, frame.lazy(), lambda: frame, lambda: iter([frame])):
            with pytest.raises(TypeError, match="Python objects"):
                list(arrowdl.Loader(source, 2))
        for source in (frame, frame.lazy()):
            (batch,) = arrowdl.Loader(source, 2, columns=["x"], framework="numpy")
            assert batch["x"].tolist() == [1, 2]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "to_arrow_device"])
@pytest.mark.parametrize("tensor", [np.ones(2), torch.ones(2), np.float32(1)], ids=type)
def test_a_tensor_goes_to_another_function(name: str, tensor: Any) -> None:
    kind = f"{type(tensor).__module__}.{type(tensor).__name__}"
    with pytest.raises(TypeError, match=rf"^{name}\(\) cannot read .* type {kind}: it is a tensor: "
                                        r"to_arrow_device\(\) converts it"):  # fmt: skip
        FUNCTIONS[name](tensor)


@pytest.mark.parametrize(
    ("name", "other"),
    [("torch", r"torch\.from_dlpack"), ("jax", r"jax\.dlpack\.from_dlpack"),
     ("numpy", r"numpy\.from_dlpack")],
)  # fmt: skip
def test_a_tensor_is_taken_without_arrow(name: str, other: str) -> None:
    with pytest.raises(TypeError, match=rf"and {other}\(\) takes it without Arrow"):
        getattr(arrowdl, f"to_{name}")(np.ones(2))


@pytest.mark.parametrize("name", ["from_arrow", "from_arrow_stream", "to_torch"])
def test_a_class_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}\(\) cannot read the class pyarrow.lib.Table: "):
        FUNCTIONS[name](pa.Table)


def test_a_field_of_a_dict_is_named() -> None:
    with pytest.raises(TypeError, match=r'^field "a": to_arrow_device\(\) cannot read .* type int'):
        arrowdl.to_arrow_device({"a": 1})


# ---------------------------------------------------------------- what to pass


def write(folder: Path) -> Path:
    path = folder / "a.parquet"
    pq.write_table(TABLE, path)
    return path


REAL: dict[str, tuple[Callable[[Path], Any], str]] = {
    "path": (write, r"read_table\(path\).*arrowdl\.Loader takes paths"),
    "str": (lambda p: str(write(p)), r"from_arrow_stream\(pyarrow\.dataset\.dataset\(path\)\)"),
    "lazy frame": (lambda p: pl.LazyFrame({"a": [1]}), r"from_arrow_stream\(frame\), or .*collect"),
    "dataset": (lambda p: ds.dataset(write(p)), r"from_arrow_stream\(dataset\), or .*to_table"),
    "scanner": (lambda p: ds.dataset(write(p)).scanner(), r"from_arrow_stream\(scanner\)"),
    "file": (lambda p: pq.ParquetFile(write(p)), r"pass file\.read\(\)"),
    "files": (lambda p: pq.ParquetDataset(write(p)), r"pass dataset\.read\(\)"),
    "sqlite": (lambda p: sqlite3.connect(":memory:"), "adbc_driver_sqlite"),
    "duckdb": (lambda p: duckdb.connect(), r"connection\.sql\(query\)"),
    "index": (lambda p: pd.Index([1]), r"pyarrow\.array\(series\)"),
    "masked": (lambda p: pd.array([1, None]), r"pyarrow\.array\(series\)"),
    "list": (lambda p: [1, 2], r"pyarrow\.array\(values\)"),
    "dict": (lambda p: {"a": np.ones(2)}, r"pyarrow\.table\(\) a table"),
    "mapping": (lambda p: UserDict(a=np.ones(2)), r"pyarrow\.table\(\) a table"),
    "bytes": (lambda p: b"abc", r"pyarrow\.ipc\.open_stream\(data\)"),
    "capsule": (lambda p: np.ones(2).__dlpack__(), r"DLPack capsule to to_arrow_device\(\)"),
}


@pytest.mark.parametrize("case", REAL)
def test_real_objects_are_told_what_to_pass(case: str, tmp_path: Path) -> None:
    make, advice = REAL[case]
    with pytest.raises(TypeError, match=rf"^to_torch\(\) cannot read .*{advice}"):
        arrowdl.to_torch(make(tmp_path))


@pytest.mark.parametrize("row", ADVICE, ids=lambda row: f"{row.module} {row.classes[0]}")
def test_every_row_is_found(row: Advice) -> None:
    for name in row.classes:
        double = make_double(f"{row.module}.inner", name, dict)
        for of_loader in (False, True):
            advice = find_advice(double, of_loader=of_loader)
            assert advice
            assert not advice.endswith(".")


DOUBLES = {
    "mindspore": (("mindspore.common.tensor", "Tensor"), r"mindspore\.to_dlpack\(tensor\)"),
    "decord": (("decord._ffi.ndarray", "NDArrayBase"), r"array\.to_dlpack\(\)"),
    "dgl": (("dgl._ffi.ndarray", "NDArrayBase"), r"array\.to_dlpack\(\)"),
    "iree": (("iree.runtime.array_interop", "DeviceArray"), r"array\.to_host\(\)"),
    "tinygrad": (("tinygrad.tensor", "Tensor"), r"tensor\.data\(\)"),
    "openvino": (("openvino._pyopenvino", "Tensor"), r"tensor\.data"),
    "taichi": (("taichi.lang._ndarray", "Ndarray"), r"to_numpy\(\)"),
    "awkward": (("awkward.highlevel", "Array"), r"awkward\.to_arrow\(array, extensionarray=False"),
    "vortex": (("vortex", "ArrayIterator"), r"its to_arrow\(\)"),
    "datafusion": (("datafusion.record_batch", "RecordBatchStream"), "DataFrame itself"),
    "hugging face": (("datasets.dataset_dict", "DatasetDict"), "it has the splits"),
    "lancedb": (("lancedb.table", "Table"), r"table\.to_arrow\(\)"),
    "permutation": (
        ("lancedb.permutation", "Permutation"),
        r"with_format\('arrow'\)\.iter\(1024\)",
    ),
    "query of lance": (("lance.dataset", "SqlQuery"), r"query\.to_stream_reader\(\)"),
    "layout": (("awkward.contents.content", "Content"), r"awkward\.to_arrow\(array"),
    "builder": (("awkward.highlevel", "ArrayBuilder"), r"awkward\.to_arrow\(array"),
    "table of hugging face": (("datasets.table", "Table"), r"table\.table, a pyarrow\.Table"),
    "lazy narwhals": (
        ("narwhals.dataframe", "LazyFrame"),
        r"frame\.collect\(\), or .*to_native\(\)",
    ),
    "ibis": (("ibis.expr.types.generic", "Value"), r"value\.to_pyarrow\(\)"),
    "query of delta": (("deltalake.query", "QueryBuilder"), r"execute\(sql\)"),
    "ray": (("ray.data.dataset", "Dataset"), r"ray\.get\(dataset\.to_arrow_refs\(\)\)"),
    "ladybug": (("real_ladybug.query_result", "QueryResult"), r"result\.get_as_arrow\(\)"),
    "dask": (("dask.dataframe.dask_expr._collection", "Series"), r"frame\.compute\(\)"),
}


@pytest.mark.parametrize("name", ["to_torch", "from_arrow_stream", "to_arrow_device"])
@pytest.mark.parametrize("case", DOUBLES)
def test_objects_with_functions_in_place_of_protocols(case: str, name: str) -> None:
    (module, kind), advice = DOUBLES[case]
    double = make_double(module, kind, __iter__=lambda self: iter(()))
    with pytest.raises(TypeError, match=rf"^{name}\(\) cannot read .*{module}\.{kind}: .*{advice}"):
        FUNCTIONS[name](double)


def test_a_series_of_pandas_2_is_not_taken_for_a_dict() -> None:
    """It has `items`, and no protocol."""
    members = {"items": lambda self: [(0, 1.0)], "__len__": lambda self: 1}
    series = make_double("pandas.core.series", "Series", **members)
    with pytest.raises(TypeError, match=r"pass pyarrow\.array\(series\)"):
        arrowdl.to_arrow_device(series)


@pytest.mark.parametrize(
    ("method", "advice"),
    [("to_dlpack", r"its to_dlpack\(\)"), ("__array__", r"numpy\.asarray\(obj\)"),
     ("__arrow_array__", r"pyarrow\.array\(obj\)"), ("to_arrow", r"its to_arrow\(\)"),
     ("numpy", r"its numpy\(\)")],
)  # fmt: skip
def test_methods_of_unknown_classes_are_advice(method: str, advice: str) -> None:
    double = make_double("somewhere", "Thing", **{method: lambda self: None})
    with pytest.raises(TypeError, match=rf"somewhere\.Thing: pass {advice}"):
        arrowdl.to_torch(double)


@pytest.mark.parametrize("name", ["from_arrow", "to_torch", "to_arrow_device"])
def test_iterables_go_to_another_function(name: str) -> None:
    batches = torch.utils.data.DataLoader([TABLE], batch_size=None)
    for iterable in ((table for table in [TABLE]), iter([TABLE]), batches, {1}):
        with pytest.raises(TypeError, match=r"from_arrow_stream\(\) takes an iterable of arrays"):
            FUNCTIONS[name](iterable)
    assert read_streamed(batches).equals(TABLE)


def test_classes_of_other_modules_are_not_meant() -> None:
    assert not is_of(make_double("tinygraded", "Tensor"), "tinygrad", "Tensor")
    assert not find_advice(make_double("mine", "Tensor"))


def test_a_frame_of_parts_that_are_not_computed_is_told_to_compute() -> None:
    """dask's frame: it has __dataframe__, of an object that is not a frame of the protocol."""
    module = "dask.dataframe.dask_expr._collection"
    frame = make_double(module, "DataFrame", __dataframe__=lambda self, allow_copy: object())
    with pytest.raises(TypeError, match="column_names") as caught:
        arrowdl.from_arrow(frame)
    assert "frame.compute()" in caught.value.__notes__[0]
    with pytest.raises(TypeError, match=r"cannot read .*lambda: \(part\.compute\(\) for part in"):
        arrowdl.Loader(frame, 1)


def test_a_loader_has_its_own_advice() -> None:
    for module, kind, advice in (
        ("vortex.file", "VortexFile", r"file\.to_dataset\(\)"),
        ("lancedb.table", "Table", r"table\.to_lance\(\)"),
        ("pandas.core.series", "Series", r"series\.to_frame\(\)"),
        ("awkward.highlevel", "Array", r"awkward\.to_arrow"),
        ("ibis.expr.types.generic", "Value", r"value\.as_table\(\)"),
        ("lance.dataset", "SqlQuery", r"lambda: query\.to_stream_reader\(\)"),
        ("ray.data.dataset", "Dataset", r"lambda: dataset\.iter_batches\(batch_format='pyarrow'\)"),
        ("real_ladybug.query_result", "QueryResult", r"pass result\.get_as_arrow\(\)"),
    ):
        with pytest.raises(TypeError, match=rf"a Loader cannot read {module}\.{kind}: .*{advice}"):
            arrowdl.Loader(make_double(module, kind), 1)
    with pytest.raises(TypeError, match=r"lambda: scanner\.to_reader\(\)"):
        arrowdl.Loader(ds.dataset(TABLE).scanner(), 1)


# ---------------------------------------------------------------- streams of what scans


def read_streamed(source: Any) -> pa.Table:
    return pa.table(arrowdl.from_arrow_stream(source))


def test_a_stream_of_datasets_and_scanners(tmp_path: Path) -> None:
    dataset = ds.dataset(write(tmp_path))
    fragment = next(dataset.get_fragments())
    for source in (dataset, fragment, dataset.scanner(), ds.dataset(TABLE)):
        assert read_streamed(source).equals(TABLE)
    assert read_streamed(dataset.scanner(columns=["a"], filter=ds.field("a") > 1)).to_pydict() == {
        "a": [2]
    }
    assert read_streamed(dataset.scanner(filter=ds.field("a") > 9)).schema == TABLE.schema


def test_a_stream_of_a_lazy_frame() -> None:
    frame = pl.DataFrame({"a": range(1000), "b": ["x", None] * 500})
    query = frame.lazy().filter(pl.col("a") % 2 == 0)
    assert pl.DataFrame(arrowdl.from_arrow_stream(query)).equals(query.collect())
    nothing = frame.lazy().filter(pl.col("a") > 5000)
    assert pl.DataFrame(arrowdl.from_arrow_stream(nothing)).equals(nothing.collect())
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        arrowdl.from_arrow_stream(frame.lazy().select("c"))


def test_a_lazy_frame_is_not_collected_as_a_whole() -> None:
    rows = 4_000_000
    query = pl.LazyFrame({"a": range(rows)}).with_columns(b=pl.col("a") * 2)
    stream = arrowdl.from_arrow_stream(query)
    first = next(stream)
    assert 0 < len(first) < rows
    before = threading.active_count()
    del stream, first
    assert threading.active_count() <= before


def test_a_model_maps_a_lazy_frame() -> None:
    query = pl.LazyFrame({"x": [1.0, 2.0]})
    made = pa.table(arrowdl.from_arrow_stream(query).map(lambda x: 2 * x, columns="x"))
    assert made["output"].to_pylist() == [2.0, 4.0]


class Rows:
    """An iterable by `__getitem__`, whose keys are not row numbers."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __getitem__(self, key: Any) -> Any:
        raise self.error("by name")

    def __len__(self) -> int:
        return 1


def test_items_by_name_are_not_iterated() -> None:
    with pytest.raises(TypeError, match=r"from_arrow_stream\(\) cannot read .*Rows"):
        arrowdl.from_arrow_stream(Rows(RuntimeError))
    with pytest.raises(KeyboardInterrupt):
        arrowdl.from_arrow_stream(Rows(KeyboardInterrupt))


def test_items_by_number_are_an_iterable() -> None:
    class Batches:
        def __getitem__(self, i: int) -> Any:
            return TABLE.to_batches()[i]

    assert pa.table(arrowdl.from_arrow_stream(Batches())).equals(TABLE)


# ---------------------------------------------------------------- producers that raise


class Failing:
    """A producer that raises, as a GeoDataFrame and Spark Connect's frames with times do."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise self.error


NOTE = r"raised by __arrow_c_stream__\(\) of .*Failing"


@pytest.mark.parametrize("name", ["from_arrow", "from_arrow_stream", "to_torch", "export_array"])
def test_an_error_of_a_producer_names_it(name: str) -> None:
    with pytest.raises(AssertionError) as caught:
        FUNCTIONS[name](Failing(AssertionError()))
    (note,) = caught.value.__notes__
    assert note.startswith("raised by __arrow_c_stream__() of ")
    assert note.endswith("Failing")


def test_an_error_of_a_known_producer_names_the_way() -> None:
    frame = make_double(
        "geopandas.geodataframe", "GeoDataFrame", Failing, __init__=lambda self: None,
        error=pa.ArrowTypeError("no"),
    )  # fmt: skip
    with pytest.raises(pa.ArrowTypeError) as caught:
        arrowdl.to_numpy(frame)
    assert caught.value.__notes__ == [
        "raised by __arrow_c_stream__() of geopandas.geodataframe.GeoDataFrame: pass its "
        "to_arrow(), which writes geometries"
    ]
    batch = make_double(
        "datafusion.record_batch", "RecordBatch", __arrow_c_array__=lambda self: 1 / 0
    )
    with pytest.raises(ZeroDivisionError) as raised:
        arrowdl.from_arrow(batch)
    assert raised.value.__notes__[0].endswith("RecordBatch: pass batch.to_pyarrow()")


def test_an_error_that_is_raised_again_has_one_note() -> None:
    failing = Failing(AssertionError())
    for _ in range(2):
        with pytest.raises(AssertionError):
            arrowdl.from_arrow(failing)
    assert len(failing.error.__notes__) == 1


def test_an_interrupt_has_no_note() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        arrowdl.from_arrow(Failing(KeyboardInterrupt()))
    assert not hasattr(caught.value, "__notes__")


def test_an_error_of_a_frame_of_mixed_objects_names_it() -> None:
    frame = pd.DataFrame({"a": [1, "x", None]})
    for read in (arrowdl.to_torch, lambda frame: arrowdl.Loader(frame, 1)):
        with pytest.raises(pa.ArrowInvalid) as caught:
            read(frame)
        assert any("of pandas.DataFrame" in note for note in caught.value.__notes__)


def iterate_then_fail() -> Iterator[Any]:
    yield TABLE
    yield "a"


def test_a_later_item_of_an_iterable_is_named() -> None:
    stream = arrowdl.from_arrow_stream(iterate_then_fail())
    next(stream)
    with pytest.raises(TypeError, match=r"from_arrow_stream\(\) cannot read .* type str"):
        next(stream)


# ---------------------------------------------------------------- types of one library

INT128 = pl.DataFrame({"big": pl.Series([1], dtype=pl.Int128), "x": [1.5]})
UINT128 = pl.DataFrame({"big": pl.Series([1], dtype=pl.UInt128), "x": [1.5]})


@pytest.mark.parametrize(("frame", "name"), [(INT128, "Int128"), (UINT128, "UInt128")])
def test_a_type_of_polars_alone_is_not_malformed(frame: pl.DataFrame, name: str) -> None:
    for read in (arrowdl.from_arrow, arrowdl.from_arrow_stream, arrowdl.to_torch):
        with pytest.raises(ValueError, match=f"polars' {name} at .* > big .*cast the column"):
            read(frame)
    with pytest.raises(ValueError, match=f"polars' {name} "):
        arrowdl.from_arrow(frame["big"])
    with pytest.raises(Exception, match=r"pl[iu]128") as caught:
        arrowdl.Loader(frame, 1)
    assert "leave it out" in caught.value.__notes__[0]


def test_a_loader_reads_the_other_columns_of_a_frame() -> None:
    sources: dict[str, Any] = {
        "frame": INT128,
        "lazy": INT128.lazy(),
        "function": lambda: INT128,
        "lazy function": lambda: INT128.lazy(),
    }
    for source in sources.values():
        batches = list(arrowdl.Loader(source, 1, columns=["x"]))
        assert [batch["x"].tolist() for batch in batches] == [[1.5]]
        assert list(batches[0]) == ["x"]
    mixed = pd.DataFrame({"a": [1, "x"], "b": [1, 2]})
    assert next(iter(arrowdl.Loader(mixed, 2, columns=["b"])))["b"].tolist() == [1, 2]
    for frame in (INT128, mixed.drop(columns="a")):
        with pytest.raises(ValueError, match='"z" is not one column of the source, which has'):
            arrowdl.Loader(frame, 1, columns=["z"])


def test_columns_of_a_frame_may_be_fields_and_an_index() -> None:
    frame = pl.DataFrame({"s": [{"x": 1, "y": 2}], "s.t": [3], "u": [4]})
    for source in (frame, frame.lazy()):
        batch = next(iter(arrowdl.Loader(source, 1, columns=["s.t", "s.x"])))
        assert {name: value.tolist() for name, value in batch.items()} == {"s.t": [3], "s.x": [1]}
    indexed = pd.DataFrame({"a": [1], "b": [2]}, index=pd.Index([7], name="i"))
    batch = next(iter(arrowdl.Loader(indexed, 1, columns=["i", "b"])))
    assert {name: value.tolist() for name, value in batch.items()} == {"i": [7], "b": [2]}


# ---------------------------------------------------------------- tensors and devices

LISTS = pa.array([[[1], [2]], [[3]]])


def test_lists_of_lists_name_their_column() -> None:
    with pytest.raises(BufferError, match=r'^field "c": torch\'s jagged tensors'):
        arrowdl.to_torch(pa.table({"c": LISTS}))
    nested = pa.table({"s": pa.array([{"c": row} for row in LISTS.to_pylist()])})
    with pytest.raises(BufferError, match=r'^field "s": field "c": torch\'s jagged tensors'):
        arrowdl.to_torch(nested)
    for workers in (0, 1):
        with pytest.raises(BufferError, match=r'field "c": torch\'s jagged tensors'):
            list(arrowdl.Loader(pa.table({"c": LISTS}), 2, num_workers=workers))


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs torch without a GPU")
@pytest.mark.parametrize(
    ("device", "reason"),
    [("cuda", "(CUDA|torch.cuda)"), ("cuda:1", "(CUDA|torch.cuda)"), ("rocm", "ROCm"),
     ("metal", "MPS"), ("oneapi", "XPU"), ("vulkan", "'vulkan'")],
)  # fmt: skip
def test_a_device_that_torch_lacks_is_named(device: str, reason: str) -> None:
    with pytest.raises(BufferError, match=rf"{reason}.*leave device= out$") as caught:
        arrowdl.to_torch(pa.table({"a": [1]}), device=device)
    assert "aten" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tensor_says_whether_its_strides_matter() -> None:
    """MAX asks, and ignores strides then."""
    images = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert arrowdl.to_arrow_device(images).is_contiguous()
    last = arrowdl.to_arrow_device(images.to(memory_format=torch.channels_last))
    assert not last.is_contiguous()
    assert last.is_contiguous() == torch.from_dlpack(last).is_contiguous()
    for array in (
        pa.array([1, 2]),
        pa.array(["a"]),
        TABLE,
        pa.array([[1, 2]], pa.list_(pa.int8(), 2)),
    ):
        assert arrowdl.from_arrow(array).is_contiguous()
    assert last[:0].is_contiguous()
