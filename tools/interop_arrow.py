"""The questions that tools/interop.py asks an Arrow library or engine, in both directions."""

from __future__ import annotations

import decimal
import importlib
import os
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.interchange
from arrowdl import testing
from interop_libraries import LIBRARIES, ArrowLibrary
from interop_tensors import SECONDS, on_thread, say_report

Question = tuple[str, str, Callable[[], str]]

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DAY = datetime(2026, 1, 2, 3, 4, 5)
_LISTS = [[1, None], None, [], [2, 3, 4]]


def _tensors(values: Any) -> Any:
    return pa.FixedShapeTensorArray.from_numpy_ndarray(values)


# Each has a null, and values at the ends of its range.
COLUMNS: dict[str, Callable[[], Any]] = {
    "int8": lambda: pa.array([1, None, -128, 127], pa.int8()),
    "uint8": lambda: pa.array([1, None, 200, 255], pa.uint8()),
    "int64": lambda: pa.array([1, None, -(2**63), 2**63 - 1], pa.int64()),
    "uint64": lambda: pa.array([1, None, 2**63 + 1, 2**64 - 1], pa.uint64()),
    "float16": lambda: pa.array([np.float16(0.5), None, np.float16(65504)], pa.float16()),
    "float32": lambda: pa.array([0.5, None, float("nan"), -0.0], pa.float32()),
    "float64": lambda: pa.array([0.1, None, float("nan"), float("inf")], pa.float64()),
    "bool": lambda: pa.array([True, None, False]),
    "null": lambda: pa.nulls(3),
    "string": lambda: pa.array(["a", None, "", "longer than twelve"]),
    "large_string": lambda: pa.array(["a", None, "", "é"], pa.large_string()),
    "string_view": lambda: pa.array(["a", None, "longer than twelve"], pa.string_view()),
    "binary": lambda: pa.array([b"a\xff", None, b""]),
    "binary_view": lambda: pa.array([b"a\xff", None, b""], pa.binary_view()),
    "fixed_size_binary": lambda: pa.array([b"ab", None, b"\0\xff"], pa.binary(2)),
    "decimal128": lambda: pa.array([decimal.Decimal("1.50"), None], pa.decimal128(38, 2)),
    "decimal32": lambda: pa.array([decimal.Decimal("1.50"), None], pa.decimal32(5, 2)),
    "decimal256": lambda: pa.array([decimal.Decimal("1.50"), None], pa.decimal256(60, 2)),
    "date32": lambda: pa.array([date(2026, 1, 2), None, date(1, 1, 1)]),
    "date64": lambda: pa.array([date(2026, 1, 2), None], pa.date64()),
    "time32[s]": lambda: pa.array([time(1, 2, 3), None], pa.time32("s")),
    "time64[ns]": lambda: pa.array([1000, None], pa.time64("ns")),
    "timestamp[s]": lambda: pa.array([_DAY, None, datetime(1, 1, 1)], pa.timestamp("s")),
    "timestamp[us]": lambda: pa.array([_DAY, None, datetime(9999, 1, 1)], pa.timestamp("us")),
    "timestamp[ns]": lambda: pa.array([1000, None], pa.timestamp("ns")),
    "timestamp[us, tz]": lambda: pa.array(
        [_DAY.replace(tzinfo=UTC), None], pa.timestamp("us", "Europe/Paris")
    ),
    "duration[us]": lambda: pa.array([timedelta(microseconds=1), None], pa.duration("us")),
    "month_day_nano": lambda: pa.array([pa.MonthDayNano([1, 2, 3]), None]),
    "list": lambda: pa.array(_LISTS),
    "large_list": lambda: pa.array(_LISTS, pa.large_list(pa.int64())),
    "list_view": lambda: pa.array(_LISTS, pa.list_view(pa.int64())),
    "fixed_size_list": lambda: pa.array([[1.5, 2.5], [3.5, None]], pa.list_(pa.float32(), 2)),
    "fixed_size_list, null row": lambda: pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)),
    "struct": lambda: pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]),
    "map": lambda: pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "dictionary": lambda: pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "run_end_encoded": lambda: pa.RunEndEncodedArray.from_arrays([2, 3], ["a", None]),
    "dense_union": lambda: pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])]
    ),
    "arrow.uuid": lambda: pa.array([uuid.UUID(int=1).bytes, None], pa.uuid()),
    "arrow.json": lambda: pa.array(['{"a": 1}', None], pa.json_()),
    "arrow.bool8": lambda: pa.array([1, None, 0], pa.bool8()),
    "arrow.fixed_shape_tensor": lambda: _tensors(np.arange(8, dtype="float32").reshape(2, 2, 2)),
    "sliced int64": lambda: pa.array([1, None, 3, 4])[1:],
    "sliced bool": lambda: pa.array([True, None, False, True])[1:],
    "sliced string": lambda: pa.array(["a", None, "c", "d"])[1:],
    "sliced list": lambda: pa.array(_LISTS)[1:],
    "sliced fixed_size_list": lambda: pa.array(
        [[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int64(), 2)
    )[1:],
    "sliced struct": lambda: pa.array([{"a": 1}, None, {"a": 3}])[1:],
    "sliced dictionary": lambda: pa.array(["a", None, "b", "a"]).dictionary_encode()[1:],
    "no rows": lambda: pa.array([], pa.int32()),
}

OURS: dict[str, Callable[[], Any]] = {
    "bool (arrow.bool8)": lambda: np.array([True, False, True]),
    "bool with a mask": lambda: arrowdl.to_arrow_device(
        np.array([True, False, True]), mask=np.array([True, False, True])
    ),
    "2-D float32": lambda: np.arange(6, dtype="float32").reshape(3, 2),
    "3-D float32": lambda: np.arange(12, dtype="float32").reshape(3, 2, 2),
    "2-D bool": lambda: np.array([[True, False], [False, True]]),
    "float16": lambda: np.array([0.5, 2], "float16"),
    "complex64": lambda: np.array([1 + 2j, 3j], "complex64"),
    "bfloat16": lambda: _make_bfloat16(),
    "every second of int64": lambda: np.arange(8)[::2],
}


def _make_bfloat16() -> Any:
    from arrowdl.testing._dlpack_consumer import RawProducer
    from arrowdl.testing._raw_tensor import Memory, RawTensor

    memory = Memory(b"\x80\x3f\x00\x40")
    return RawProducer(RawTensor(memory, (2,), dtype="bfloat16", strides=(1,)))


PROTOCOLS = (
    "__arrow_c_schema__",
    "__arrow_c_array__",
    "__arrow_c_stream__",
    "__arrow_c_device_array__",
    "__arrow_c_device_stream__",
    "__dlpack__",
    "__array__",
    "__dataframe__",
)


class Adaptor:
    """A library, by the expressions of its row."""

    def __init__(self, row: ArrowLibrary) -> None:
        self.row = row
        self._names = {"np": np, "pa": pa, "x": importlib.import_module(row.module)}
        exec(row.setup, self._names)

    def evaluate(self, expression: str, **names: Any) -> Any:
        return eval(expression, {**self._names, **names})

    def take(self, source: Any) -> Any:
        return self.evaluate(self.row.take, s=source)

    def give(self, result: Any) -> Any:
        return self.evaluate(self.row.give, r=result)

    def pass_through(self, source: Any) -> Any:
        """A pyarrow table of what it makes of `source`."""
        return to_table(self.give(self.take(source)))


def to_table(given: Any) -> Any:
    """A pyarrow table of an array, a batch, a table or a stream."""
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.Array):
        return pa.table({"x": given})
    if hasattr(given, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given).read_all()
    if hasattr(given, "__dataframe__"):
        return pa.interchange.from_dataframe(given)
    return pa.Table.from_batches([pa.record_batch(given)])


def _adaptor() -> Adaptor:
    """The one of the process: some libraries start a server."""
    name = os.environ["ARROWDL_INTEROP"]
    if name not in _OPEN:
        _OPEN[name] = Adaptor(LIBRARIES[name])
    return _OPEN[name]


_OPEN: dict[str, Adaptor] = {}


def make_table() -> Any:
    """Make what `testing.check_arrow_producer` imports by name."""
    adaptor = _adaptor()
    return adaptor.give(adaptor.take(pa.table({"a": [1, 2, None], "b": ["x", "yy", None]})))


def take_table(source: Any) -> Any:
    """Take what `testing.check_arrow_consumer` makes."""
    adaptor = _adaptor()
    return to_table(adaptor.give(adaptor.take(source)))


def read_table(table: Any) -> Any:
    return table.to_pylist()


# ---------------------------------------------------------------------------


def ask(name: str) -> Iterator[Question]:
    """Yield direction, question and a function that returns the answer."""
    os.environ["ARROWDL_INTEROP"] = name
    adaptor = _adaptor()

    def make(
        direction: str, question: str, answer: Callable[..., str], *arguments: Any
    ) -> Question:
        return direction, question, lambda: answer(adaptor, *arguments)

    if adaptor.row.take:
        for column, of in COLUMNS.items():
            yield make("in", f"type {column}", _pass_column, of)
        for kind, of in OURS.items():
            yield make("in", f"arrowdl's {kind}", _pass_ours, of)
        yield make("in", "field", _pass_field)
        yield make("in", "which protocol of arrowdl's table", _find_protocol)
        yield make("in", "on another thread", _take_on_thread)
        yield make("in", "rules of arrowdl.testing", _check_consumer)
        yield make("out", "protocols", _list_protocols)
        yield make("out", "read twice", _read_twice)
        yield make("out", "rows a batch", _count_rows)
        yield make("out", "requested_schema", _request_schema)
        yield make("out", "memory of int64", _compare_memory)
        yield make("out", "on another thread", _read_on_thread)
        yield make("out", "Loader, two epochs", _load)
        yield make("out", "rules of arrowdl.testing", _check_producer)
    for kind, expression in adaptor.row.own.items():
        yield make("out", f"own {kind}", _describe_own, expression)


def _storage(column: Any) -> Any:
    """The values below extension types, which differ by what Python shows of them."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # pyarrow keeps one of no chunks
        return pa.array([], array.type)
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _list_values(column: Any) -> list[Any]:
    return [_plain(value) for value in _storage(column).to_pylist()]


def _plain(value: Any) -> Any:
    """NaN equals NaN, an array is a list, a UUID its bytes, a date its midnight, UTC no zone."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, str) and _UUID.fullmatch(value):
        return uuid.UUID(value).bytes
    if isinstance(value, float):
        whole = value.is_integer() and str(value) != "-0.0"
        return int(value) if whole else str(value)
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value


def _describe_change(column: Any, wanted: Any, kind: str) -> str:
    said = "the same" if str(column.type) == kind else str(column.type)
    try:
        seen, values = _list_values(column), _list_values(wanted)
    except Exception as error:
        return f"{said}; pyarrow cannot read it: {type(error).__name__}"
    return said if seen == values else f"{said}; values differ: {seen} for {values}"


def _pass_column(adaptor: Adaptor, of: Callable[[], Any]) -> str:
    array = of()
    table = adaptor.pass_through(pa.table({"x": array}))
    return _describe_change(table.column("x"), array, str(array.type))


def _pass_ours(adaptor: Adaptor, of: Callable[[], Any]) -> str:
    source = arrowdl.to_arrow_device(of())
    wanted = pa.array(source)
    table = arrowdl.to_arrow_device({"x": source})
    try:
        result = adaptor.pass_through(table)
        said = ""
    except Exception as error:
        said = f"taken as pa.table alone ({type(error).__name__}); "
        result = adaptor.pass_through(pa.table(table))
    said += _describe_change(result.column("x"), wanted, str(wanted.type))
    return f"{said}; back by arrowdl: {_compare_tensors(source, result)}"


def _compare_tensors(source: Any, table: Any) -> str:
    """How the tensor of a table's column x differs from the tensor of `source`."""
    try:
        wanted, valid = arrowdl.to_numpy(source, nulls="mask")
        seen, still_valid = arrowdl.to_numpy(table, nulls="mask")["x"]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(seen, tuple):
        return f"values and offsets for {wanted.dtype} {wanted.shape}"
    if seen.dtype != wanted.dtype or seen.shape != wanted.shape:
        return f"{seen.dtype} {seen.shape} for {wanted.dtype} {wanted.shape}"
    same = np.array_equal(valid, still_valid) and np.array_equal(seen[valid], wanted[valid])
    return "equal" if same else "values differ"


def _pass_field(adaptor: Adaptor) -> str:
    field = pa.field("x", pa.int64(), nullable=False, metadata={"key": "value"})
    table = pa.table([pa.array([1])], pa.schema([field], metadata={"of": "table"}))
    schema = adaptor.pass_through(table).schema
    seen = schema.field("x")
    words = ["nullable" if seen.nullable else "not nullable"]
    words.append(
        "metadata kept" if (seen.metadata or {}).get(b"key") == b"value" else "metadata lost"
    )
    words.append(
        "the table's kept" if (schema.metadata or {}).get(b"of") == b"table" else "the table's lost"
    )
    return ", ".join(words)


class _Seen:
    """A table that remembers which of its protocols were called."""

    def __init__(self, table: Any) -> None:
        self.called: list[str] = []
        self.table = table

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__arrow_c"):
            raise AttributeError(name)
        method = getattr(self.table, name)

        def call(*arguments: Any, **options: Any) -> Any:
            asked = any(value is not None for value in (*arguments, *options.values()))
            self.called.append(name.strip("_") + (" with a schema" if asked else ""))
            return method(*arguments, **options)

        return call


def _find_protocol(adaptor: Adaptor) -> str:
    if "pa.table(s)" in adaptor.row.take + adaptor.row.setup:
        return "none: it takes pyarrow's tables"
    names = {
        name: property(lambda self, name=name: self.__getattr__(name))
        for name in PROTOCOLS
        if name.startswith("__arrow")
    }
    seen = type("Seen", (_Seen,), names)(arrowdl.from_arrow(pa.table({"x": [1, 2]})))
    adaptor.pass_through(seen)
    return " ".join(dict.fromkeys(seen.called)) or "none"


def _taken(adaptor: Adaptor, **columns: Any) -> Any:
    return adaptor.give(adaptor.take(pa.table(columns)))


def _list_protocols(adaptor: Adaptor) -> str:
    result = adaptor.take(pa.table({"x": [1, 2]}))
    names = [name for name in PROTOCOLS if hasattr(result, name)]
    return f"{type(result).__name__}: {' '.join(name.strip('_') for name in names) or 'none'}"


def _read_twice(adaptor: Adaptor) -> str:
    result = _taken(adaptor, x=[1, 2, 3])
    first = to_table(result).num_rows
    try:
        second = to_table(result).num_rows
    except Exception as error:
        return f"the second raises {type(error).__name__}: {error}"
    return "yes" if (first, second) == (3, 3) else f"{first} rows, then {second}"


def _count_rows(adaptor: Adaptor) -> str:
    given = _taken(adaptor, x=np.arange(300_000))
    table = to_table(given)
    lengths = [batch.num_rows for batch in table.to_batches()]
    first = table.column("x").chunk(0)
    least = first.buffers()[1].address + first.offset * 8
    return f"{lengths[0]} of 300000, at a multiple of {min(64, least & -least)} bytes"


def _request_schema(adaptor: Adaptor) -> str:
    result = _taken(adaptor, x=pa.array([1, 2], pa.int64()), y=["a", "b"])
    wanted = pa.schema({"x": pa.int32(), "y": pa.large_string()})
    if not hasattr(result, "__arrow_c_stream__"):
        return "has no stream"
    capsule = result.__arrow_c_stream__(wanted.__arrow_c_schema__())
    got = pa.RecordBatchReader._import_from_c_capsule(capsule).schema
    words = [
        f"{name} {'given' if got.field(name).type == wanted.field(name).type else 'not given'}"
        for name in ("x", "y")
    ]
    return f"int32 of int64 {words[0][2:]}, large_string {words[1][2:]}"


def _compare_memory(adaptor: Adaptor) -> str:
    array = pa.array(np.arange(1000))
    chunk = to_table(_taken(adaptor, x=array)).column("x").chunk(0)
    return "shared" if chunk.buffers()[1].address == array.buffers()[1].address else "a copy"


def _take_on_thread(adaptor: Adaptor) -> str:
    """Taken on a thread, read here."""
    result = on_thread(lambda: adaptor.take(pa.table({"x": [1, None, 3]})))
    seen = to_table(adaptor.give(result)).column("x").to_pylist()
    return "values right" if seen == [1, None, 3] else f"values differ: {seen}"


def _read_on_thread(adaptor: Adaptor) -> str:
    """Taken here, read by arrowdl on a thread."""
    result = _taken(adaptor, x=[1, None, 3])
    array = on_thread(lambda: arrowdl.from_arrow(result))
    seen = to_table(array).column("x").to_pylist()
    return "values right" if seen == [1, None, 3] else f"values differ: {seen}"


def _load(adaptor: Adaptor) -> str:
    values = np.arange(1000)
    result = adaptor.take(pa.table({"x": values, "s": [str(value) for value in values]}))
    words, kind = "", "its object"
    try:
        loader = arrowdl.Loader(result, 100, columns=["x"], framework="numpy")
    except (TypeError, ValueError) as error:
        words, kind = f"not its object ({type(error).__name__}); ", "what it gives"
        given = adaptor.give(result)
        loader = arrowdl.Loader(given, 100, columns=["x"], framework="numpy")
    for _ in range(2):
        seen = np.concatenate([batch["x"] for batch in loader])
        if sorted(seen.tolist()) != values.tolist():
            return f"{words}{kind}: values differ"
    return f"{words}{kind}: values right"


def _check_producer(adaptor: Adaptor) -> str:
    given = _taken(adaptor, x=[1])
    if not any(hasattr(given, name) for name in PROTOCOLS if name.startswith("__arrow")):
        return "not asked: it has no protocol of Arrow"
    report = testing.check_arrow_producer("interop_arrow:make_table", isolate=True, timeout=SECONDS)
    return say_report(report)


def _check_consumer(adaptor: Adaptor) -> str:
    if "pa.table(s)" in adaptor.row.take + adaptor.row.setup:
        return "not asked: it takes pyarrow's tables"
    report = testing.check_arrow_consumer(
        "interop_arrow:take_table",
        protocol="stream",
        tables=True,
        read="interop_arrow:read_table",
        isolate=True,
        timeout=SECONDS,
    )
    return say_report(report)


def _describe_own(adaptor: Adaptor, expression: str) -> str:
    """The Arrow type of its own data, and what arrowdl makes of it."""
    result = adaptor.evaluate(expression)
    try:
        table = to_table(result)
        name = "x" if "x" in table.column_names else table.column_names[-1]
        field = table.schema.field(name)
        said = str(field.type) + ("" if field.nullable else " not null")
        extension = (field.metadata or {}).get(b"ARROW:extension:name")
        said += f" ({extension.decode()})" if extension else ""
    except Exception as error:
        said, name = f"pyarrow: {type(error).__name__}", None
    try:
        array = arrowdl.from_arrow(adaptor.evaluate(expression))
        seen = array.field(name) if name and array.field_names else array
        return f"{said}; arrowdl: {seen.type}"
    except Exception as error:
        return f"{said}; arrowdl: {type(error).__name__}: {error}"
