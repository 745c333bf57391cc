"""Objects of other libraries, recognised without importing the libraries.

`ADVICE` says what to pass instead of those that have no protocol, and `open_stream` opens those
that scan files or run a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from types import GeneratorType
from typing import Any, NamedTuple

# Iterables of arrays: nothing is looked up for those that the Loader makes for each unit of a file.
_PLAIN = (list, tuple, map, chain, GeneratorType)
# The rows of a batch, as in a scanner of pyarrow.
_SCAN_ROWS = 131_072

_READ_FIRST = (
    "of a file pass its rows, pyarrow.parquet.read_table(path), or a stream of them, "
    "arrowdl.from_arrow_stream(pyarrow.dataset.dataset(path)); arrowdl.Loader takes paths"
)
_SCAN = (
    "it is read in batches: pass arrowdl.from_arrow_stream({0}), or {1} for all rows; "
    "arrowdl.Loader takes it as it is"
)
_TO_TENSOR = "pass {0} to to_arrow_device()"


def _name_splits(splits: Any) -> str:
    names = ", ".join(map(repr, splits))
    return f"it has the splits {names}: pass one of them, dataset[{next(iter(splits), '')!r}]"


class Advice(NamedTuple):
    """What to pass instead of an object of some classes of a module."""

    module: str  # that defines the classes, or a package of it
    classes: tuple[str, ...]  # their names; those of base classes work, too
    text: str | Callable[[Any], str]  # for functions of arrays and streams
    of_loader: str = ""  # for a Loader, if it is something else


ADVICE = (
    # Tensors with functions in the place of __dlpack__.
    Advice(
        "mindspore",
        ("Tensor",),
        _TO_TENSOR.format("mindspore.to_dlpack(tensor), or tensor.asnumpy() of bool or complex,"),
    ),
    Advice("decord", ("NDArrayBase",), _TO_TENSOR.format("array.to_dlpack()")),
    Advice("dgl", ("NDArrayBase",), _TO_TENSOR.format("array.to_dlpack()")),
    Advice("iree.runtime", ("DeviceArray",), _TO_TENSOR.format("array.to_host()")),
    Advice(
        "tinygrad",
        ("Tensor",),
        _TO_TENSOR.format("tensor.data(), its memory, or tensor.numpy(), a copy,"),
    ),
    Advice(
        "openvino",
        ("Tensor",),
        _TO_TENSOR.format("tensor.data, a view")
        + "; of bfloat16 that view is labelled float16: pass "
        "to_arrow_device(tensor.data.view(ml_dtypes.bfloat16))",
    ),
    Advice("taichi", ("Field", "Ndarray", "Matrix"), _TO_TENSOR.format("its to_numpy()")),
    Advice(
        "awkward",
        ("Array", "ArrayBuilder", "Content", "Record"),
        "pass awkward.to_arrow(array, extensionarray=False), an Arrow array",
    ),
    Advice(
        "builtins",
        ("PyCapsule",),
        "pass a DLPack capsule to to_arrow_device(), and the two of an Arrow array as a tuple, "
        "(schema, array)",
    ),
    # What scans or queries; `open_stream` opens some of them.
    Advice("polars", ("LazyFrame",), _SCAN.format("frame", "frame.collect()")),
    Advice(
        "narwhals",
        ("LazyFrame",),
        "pass frame.collect(), or the lazy frame in it, frame.to_native()",
    ),
    Advice("ibis", ("Value",), "pass value.to_pyarrow()", "give the table, value.as_table()"),
    Advice(
        "pyarrow._dataset",
        ("Dataset", "Fragment"),
        _SCAN.format("dataset", "dataset.to_table()"),
        "give a pyarrow dataset of its path, pyarrow.dataset.dataset(fragment.path)",
    ),
    Advice(
        "pyarrow._dataset",
        ("Scanner",),
        "pass arrowdl.from_arrow_stream(scanner), or scanner.to_table() for all rows",
        "give its dataset, with columns= and filter=, or a function, lambda: scanner.to_reader()",
    ),
    Advice(
        "datasets",
        ("Dataset", "IterableDataset"),
        _SCAN.format("dataset", "dataset.with_format('arrow')[:]"),
    ),
    Advice("datasets.table", ("Table",), "pass table.table, a pyarrow.Table"),
    Advice(
        "datasets",
        ("Column",),
        "pass the column of its rows in Arrow, dataset.with_format('arrow')[:][name]",
        "give the dataset, with columns=",
    ),
    Advice("datasets", ("DatasetDict", "IterableDatasetDict"), _name_splits),
    Advice(
        "deltalake",
        ("DeltaTable",),
        _SCAN.format("table.to_pyarrow_dataset()", "table.to_pyarrow_table()"),
    ),
    Advice(
        "deltalake",
        ("QueryBuilder",),
        "pass the result of a query, builder.execute(sql)",
        "give a function that runs a query, lambda: builder.execute(sql)",
    ),
    Advice(
        "pyiceberg.table",
        ("Table",),
        _SCAN.format("table.scan().to_arrow_batch_reader()", "table.scan().to_arrow()"),
    ),
    Advice(
        "pyiceberg.table",
        ("DataScan", "BaseScan"),
        "pass scan.to_arrow_batch_reader(), or scan.to_arrow() for all rows",
        "give a function that makes a stream, lambda: scan.to_arrow_batch_reader()",
    ),
    Advice(
        "lance",
        ("SqlQuery",),
        "pass query.to_stream_reader()",
        "give a function, lambda: query.to_stream_reader()",
    ),
    Advice(
        "lancedb",
        ("Permutation",),
        "pass from_arrow_stream(permutation.with_format('arrow').iter(1024))",
        "give a function, lambda: permutation.with_format('arrow').iter(1024)",
    ),
    Advice(
        "lancedb", ("Table",), "pass table.to_arrow()", "give its Lance dataset, table.to_lance()"
    ),
    Advice(
        "lancedb",
        ("LanceQueryBuilder",),
        "pass query.to_arrow()",
        "give a function, lambda: query.to_batches()",
    ),
    Advice(
        "datafusion",
        ("RecordBatchStream",),
        "pass the DataFrame itself, which has __arrow_c_stream__, or batch.to_pyarrow() of each "
        "batch",
    ),
    Advice("datafusion", ("RecordBatch",), "pass batch.to_pyarrow()"),
    Advice("vortex", ("Array",), "pass array.to_arrow_array()", "give array.to_arrow_table()"),
    Advice("vortex", ("ArrayIterator",), "pass its to_arrow()", "give its file, file.to_dataset()"),
    Advice(
        "vortex", ("VortexFile",), "pass file.to_arrow(), a stream", "give its file.to_dataset()"
    ),
    Advice(
        "vortex",
        ("RepeatedScan",),
        "pass scan.execute().to_arrow(), a stream",
        "give a function, lambda: scan.execute().to_arrow()",
    ),
    Advice(
        "pyarrow.parquet",
        ("ParquetFile",),
        "pass file.read(), or arrowdl.from_arrow_stream(file.iter_batches())",
        "give the path that it was opened with, or its rows, file.read()",
    ),
    Advice(
        "pyarrow.parquet",
        ("ParquetDataset",),
        "pass dataset.read()",
        "give a pyarrow dataset of its files, pyarrow.dataset.dataset(source.files)",
    ),
    Advice(
        "ray.data",
        ("Dataset",),
        "pass pyarrow.concat_tables(ray.get(dataset.to_arrow_refs()))",
        "give a function, lambda: dataset.iter_batches(batch_format='pyarrow')",
    ),
    Advice(
        "dask.dataframe",
        ("DataFrame", "Series"),
        "pass frame.compute()",
        "give frame.compute(), or lambda: (part.compute() for part in frame.partitions)",
    ),
    # Databases and servers.
    Advice("real_ladybug", ("QueryResult",), "pass result.get_as_arrow()"),
    Advice(
        "adbc_driver_manager",
        ("Cursor",),
        "pass cursor.fetch_record_batch(), or cursor.fetch_arrow_table() for all rows",
    ),
    Advice(
        "adbc_driver_manager",
        ("Connection",),
        "pass a cursor's result, connection.execute(query).fetch_record_batch()",
        "give a function that makes a cursor with a result, lambda: connection.execute(query)",
    ),
    Advice(
        "sqlite3",
        ("Connection", "Cursor"),
        "it returns rows as tuples: connect by adbc_driver_sqlite.dbapi, whose cursors return "
        "Arrow, and pass cursor.fetch_record_batch()",
        "it returns rows as tuples: connect by adbc_driver_sqlite.dbapi, whose cursors return "
        "Arrow, and give a function, lambda: connection.execute(query)",
    ),
    Advice(
        "pyarrow._flight",
        ("FlightStreamReader", "MetadataRecordBatchReader"),
        "pass reader.to_reader(), or reader.read_all() for all rows",
    ),
    Advice(
        "pyarrow._flight",
        ("FlightClient", "FlightInfo", "FlightEndpoint"),
        "pass the reader of a ticket, client.do_get(ticket).to_reader()",
        "give a function that makes a stream of it, lambda: client.do_get(ticket), or a generator "
        "function that yields the batches of all endpoints",
    ),
    Advice("_duckdb", ("DuckDBPyConnection",), "pass a relation, connection.sql(query)"),
    # Frames whose protocol is missing, or raises.
    Advice(
        "geopandas", ("GeoDataFrame", "GeoSeries"), "pass its to_arrow(), which writes geometries"
    ),
    Advice(
        "pandas",
        ("Series", "Index", "ExtensionArray"),
        "pass pyarrow.array(series), where a NaN is a null, or to_arrow_device(series.to_numpy())",
        "give a frame of it, series.to_frame()",
    ),
    Advice("pyspark", ("DataFrame",), "pass frame.toArrow()"),
    Advice(
        "polars",
        ("DataFrame", "Series"),
        "Arrow has no type for polars' Int128 and UInt128: cast such a column, or leave it out",
    ),
    # Paths, bytes and containers of Python.
    Advice("builtins", ("str",), _READ_FIRST),
    Advice("pathlib", ("PurePath",), _READ_FIRST),
    Advice(
        "builtins",
        ("bytes", "bytearray", "memoryview"),
        "to_arrow_device() reads its memory as a tensor; of an Arrow stream in it pass "
        "pyarrow.ipc.open_stream(data)",
        "give a file object of the bytes of a file, io.BytesIO(data)",
    ),
    Advice(
        "builtins",
        ("list", "tuple"),
        "pass pyarrow.array(values) or numpy.asarray(values); from_arrow_stream() takes a list of "
        "arrays or record batches",
        "a list has paths, or record batches and tables: Loader.mix reads several sources",
    ),
    *(
        Advice(
            module,
            (name,),
            "to_arrow_device() makes a struct of tensors by name, and pyarrow.table() a table of "
            "columns",
            "give a table of its columns, pyarrow.table(columns)",
        )
        for module, name in (("builtins", "dict"), ("collections.abc", "Mapping"))
    ),
)

_TENSOR_PROTOCOLS = (
    "__dlpack__",
    "__dlpack_c_exchange_api__",
    "__cuda_array_interface__",
    "__sycl_usm_array_interface__",
)
_FROM_DLPACK = {
    "to_torch": "torch.from_dlpack()",
    "to_jax": "jax.dlpack.from_dlpack()",
    "to_numpy": "numpy.from_dlpack()",
}


def is_of(obj: Any, module: str, *names: str) -> bool:
    """Whether `obj` is an instance of one of `names`, classes of `module` or its submodules."""
    for kind in type(obj).__mro__:
        if kind.__name__ in names and f"{kind.__module__}.".startswith(f"{module}."):
            return True
    return False


def name_class(obj: Any) -> str:
    """Return the name of the class of `obj`, or of a class, with its module."""
    kind = obj if isinstance(obj, type) else type(obj)
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def find_advice(obj: Any, *, of_loader: bool = False) -> str:
    """Return what to pass instead of `obj`; an empty string if it is of no known class."""
    for row in ADVICE:
        if is_of(obj, row.module, *row.classes):
            text = row.of_loader if of_loader and row.of_loader else row.text
            return text if isinstance(text, str) else text(obj)
    return ""


def explain_unread(
    function: str,  # such as "to_torch"
    obj: Any,
) -> str:
    """Return the message for an object that a function cannot read."""
    if isinstance(obj, type):
        return f"{function}() cannot read the class {name_class(obj)}: pass an instance of it"
    start = f"{function}() cannot read an object of type {name_class(obj)}: "
    return start + (find_advice(obj) or _advise_by_methods(function, obj))


def _advise_by_methods(function: str, obj: Any) -> str:
    """Say what to pass instead of `obj` by its methods."""
    is_for_tensors = function == "to_arrow_device"
    if not is_for_tensors and _is_tensor(obj):
        other = _FROM_DLPACK.get(function)
        return "it is a tensor: to_arrow_device() converts it to Arrow" + (
            f", and {other} takes it without Arrow" if other else ""
        )
    for name, advice in (
        ("to_dlpack", _TO_TENSOR.format("its to_dlpack()")),
        ("__array__", _TO_TENSOR.format("numpy.asarray(obj)")),
        ("__arrow_array__", "pass pyarrow.array(obj)"),
        ("to_arrow", "pass its to_arrow()"),
        ("to_numpy", _TO_TENSOR.format("its to_numpy()")),
        ("numpy", _TO_TENSOR.format("its numpy()")),
    ):
        if hasattr(type(obj), name):
            return advice
    if function != "from_arrow_stream" and hasattr(type(obj), "__iter__"):
        return "from_arrow_stream() takes an iterable of arrays, record batches or tables"
    if is_for_tensors:
        return (
            "it needs __dlpack__ (a tensor of torch, jax, numpy, ...), __cuda_array_interface__ or "
            "__sycl_usm_array_interface__, or to be a dict of such tensors"
        )
    return (
        "it has none of __arrow_c_device_array__, __arrow_c_array__, __arrow_c_device_stream__, "
        "__arrow_c_stream__ and __dataframe__"
        + (
            ", and is not an iterable of objects that have one"
            if function == "from_arrow_stream"
            else ""
        )
    )


def _is_tensor(obj: Any) -> bool:
    if any(hasattr(type(obj), name) for name in _TENSOR_PROTOCOLS):
        return True
    try:
        memoryview(obj)
    except (TypeError, ValueError, BufferError):
        return False
    return True


def annotate(error: BaseException, method: str, obj: Any) -> None:
    """Add a note to an error that a producer's `method` raised: whose it is, and what to pass."""
    is_ours = type(obj).__module__.partition(".")[0] == "arrowdl"
    if is_ours or any("raised by" in note for note in getattr(error, "__notes__", ())):
        return
    advice = find_advice(obj)
    error.add_note(f"raised by {method}() of {name_class(obj)}" + (f": {advice}" if advice else ""))


def refuse_objects(obj: Any) -> None:
    """Raise TypeError for a frame or series of polars that holds Python objects.

    polars exports their addresses, as fixed_size_binary[8] without another sign.
    """
    if is_of(obj, "polars", "DataFrame"):
        names = [name for name, dtype in obj.schema.items() if type(dtype).__name__ == "Object"]
        if names:
            listed = ", ".join(map(repr, names))
            raise TypeError(
                f"the polars frame has Python objects in {listed}, and Arrow has no type for them: "
                f"make a column of numbers of them, or leave them out, frame.drop({listed})"
            )
    elif is_of(obj, "polars", "Series") and type(obj.dtype).__name__ == "Object":
        raise TypeError(
            f"the polars series {obj.name!r} has Python objects, and Arrow has no type for them: "
            "make a series of numbers of them"
        )


def open_stream(obj: Any) -> Any:
    """Return a stream, or an iterator, of a dataset, a scanner or a lazy frame.

    Returns None for other objects, which may be iterables of arrays.

    Raises TypeError if `obj` is something else that arrowdl knows, such as a tensor or a path.
    """
    if isinstance(obj, _PLAIN):
        return None
    if is_of(obj, "pyarrow._dataset", "Scanner"):
        return obj.to_reader()
    if is_of(obj, "pyarrow._dataset", "Dataset", "Fragment"):
        return obj.scanner().to_reader()
    if is_of(obj, "polars", "LazyFrame"):
        return _run_query(obj)
    if is_of(obj, "datasets", "Dataset", "IterableDataset"):
        return _read_huggingface(obj)
    if find_advice(obj) or _is_tensor(obj):
        raise TypeError(explain_unread("from_arrow_stream", obj))
    return None


def _run_query(frame: Any) -> Any:
    """Yield the frames of a lazy query of polars; one without rows if it has none."""
    if not hasattr(frame, "collect_batches"):  # polars before 1.34
        return frame.collect()
    batches: Iterator[Any] = frame.collect_batches(lazy=True)
    first = next(batches, None)
    if first is None:
        return frame.collect_schema().to_frame()
    return chain([first], batches)


def _read_huggingface(dataset: Any) -> Iterator[Any]:
    """Yield the tables of a Hugging Face dataset."""
    require_no_transform(dataset)
    if is_of(dataset, "datasets", "IterableDataset"):
        tables: Iterator[Any] = dataset.with_format("arrow").iter(batch_size=_SCAN_ROWS)
        return tables
    columns = dataset.format["columns"]
    tables = dataset.with_format("arrow", columns=columns).iter(batch_size=_SCAN_ROWS)
    return tables if len(dataset) else iter([dataset.data.table.select(columns).slice(0, 0)])


def require_no_transform(dataset: Any) -> None:
    """Raise ValueError for a Hugging Face dataset with a transform (set_transform)."""
    if getattr(dataset, "format", {}).get("type") == "custom":
        raise ValueError(
            "the Hugging Face dataset has a transform (set_transform), and arrowdl reads the "
            "columns without it: remove it with dataset.with_format(None), and transform the "
            "batches, as by the Loader's transform="
        )
