"""The questions that tools/interop.py asks a tensor library, by DLPack in both directions."""

from __future__ import annotations

import gc
import importlib
import os
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
from arrowdl import testing
from arrowdl.testing._dlpack_consumer import (
    Consumer,
    RawProducer,
    make_for,
    open_consumer,
)
from arrowdl.testing._dlpack_consumer_calls import is_view
from arrowdl.testing._managed import Exported, shape_of, start_of, strides_of
from arrowdl.testing._raw_tensor import Memory, RawTensor
from arrowdl.testing._structs import IS_COPIED, READ_ONLY
from arrowdl.testing._values import flat, same_values, write_result
from interop_libraries import TENSORS, TensorLibrary

Question = tuple[str, str, Callable[[], str]]

SECONDS = 200  # of an import, and of each case of a check
KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool", 17: "float4_e2m1fn"}
KINDS |= {7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn"}
KINDS |= {11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz", 14: "float8_e8m0fnu"}

# The bytes of the values that are named, in types that a library may lack or narrow.
VALUES: dict[str, tuple[list[Any], bytes]] = {
    "bool": ([True, False], b"\1\0"),
    "int64": ([2**40 + 1, -1], struct.pack("=qq", 2**40 + 1, -1)),
    "uint16": ([65535, 1], struct.pack("=HH", 65535, 1)),
    "uint64": ([2**63 + 1, 1], struct.pack("=QQ", 2**63 + 1, 1)),
    "float16": ([0.5, 2.0], struct.pack("=ee", 0.5, 2.0)),
    "float64": ([0.1, 1e300], struct.pack("=dd", 0.1, 1e300)),
    "complex64": ([1 + 2j, 3j], struct.pack("=ffff", 1, 2, 0, 3)),
    "complex128": ([0.1 + 2j, 3j], struct.pack("=dddd", 0.1, 2, 0, 3)),
    "bfloat16": ([1.0, 2.0], struct.pack("=HH", 0x3F80, 0x4000)),
    "float8_e4m3fn": ([1.0, 2.0], b"\x38\x40"),
    "float8_e5m2": ([1.0, 2.0], b"\x3c\x40"),
    "float8_e8m0fnu": ([1.0, 2.0], b"\x7f\x80"),
    "float4_e2m1fn_x2": ([1.0, 2.0, 1.0, 2.0], b"\x42\x42"),
    "int4": ([1, 2], b"\x21"),
}
EXPORTED = ("bool", "uint16", "uint64", "float16", "float64", "complex64", "complex128")

# shape, strides, values of memory 1, 2, 3..., what else the tensor has
LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None, list[int], dict[str, Any]]] = {
    "NULL strides": ((2, 3), None, [1, 2, 3, 4, 5, 6], {"version": (1, 1)}),
    "transposed": ((3, 2), (1, 3), [1, 4, 2, 5, 3, 6], {}),
    "every second": ((3,), (2,), [1, 3, 5], {}),
    "reversed": ((6,), (-1,), [6, 5, 4, 3, 2, 1], {"byte_offset": 20}),
    "broadcast": ((2, 6), (0, 1), [1, 2, 3, 4, 5, 6] * 2, {}),
    "byte_offset": ((4,), (1,), [3, 4, 5, 6], {"byte_offset": 8}),
    "4 bytes beside an alignment of 64": ((6,), (1,), [1, 2, 3, 4, 5, 6], {"shift": 4}),
    "0-D": ((), (), [1], {}),
    "empty": ((0, 3), (3, 1), [], {}),
}


def on_thread(function: Callable[[], Any]) -> Any:
    """Return what `function` returns on a thread that then ends."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


class Adaptor:
    """A library, by the expressions of its row."""

    def __init__(self, row: TensorLibrary) -> None:
        self.row = row
        self._names = {"np": np, "arrowdl": arrowdl, "x": importlib.import_module(row.module)}
        exec(row.setup, self._names)

    def evaluate(self, expression: str, **names: Any) -> Any:
        return eval(expression, {**self._names, **names})

    def make(self, values: Any) -> Any:
        return self.evaluate(self.row.make, a=values)

    def export(self, tensor: Any, **options: Any) -> Exported:
        return Exported(self.evaluate(self.row.export, t=tensor, options=options))

    def newest(self, tensor: Any) -> Exported:
        """The newest capsule that it has."""
        try:
            return self.export(tensor, max_version=(1, 3))
        except TypeError:
            return self.export(tensor)

    def give(self, tensor: Any) -> Any:
        """What arrowdl takes."""
        return self.evaluate(self.row.give, t=tensor)

    def read(self, tensor: Any) -> Any:
        return self.evaluate(self.row.read, t=tensor)

    def take(self, producer: Any) -> Any:
        return self.evaluate(self.row.take, d=producer)

    def write(self, tensor: Any) -> None:
        write_result(self.evaluate(self.row.written, t=tensor))


# `testing.check_dlpack_consumer` imports these by name in a process of its own.


def _adaptor() -> Adaptor:
    name = os.environ["ARROWDL_INTEROP"]
    if name not in _OPEN:
        _OPEN[name] = Adaptor(TENSORS[name])
    return _OPEN[name]


_OPEN: dict[str, Adaptor] = {}


def take(producer: Any) -> Any:
    return _adaptor().take(producer)


def read(tensor: Any) -> Any:
    return _adaptor().read(tensor)


def write(tensor: Any) -> None:
    _adaptor().write(tensor)


def make_six() -> Any:
    return _adaptor().make(np.arange(6, dtype="float32").reshape(2, 3))


# ---------------------------------------------------------------------------


def ask(name: str) -> Iterator[Question]:
    """Yield direction, question and a function that returns the answer."""
    os.environ["ARROWDL_INTEROP"] = name
    adaptor = _adaptor()
    if adaptor.row.make:
        yield from _ask_out(adaptor)
    if adaptor.row.take:
        yield from _ask_in(adaptor)


def _ask_out(adaptor: Adaptor) -> Iterator[Question]:
    def out(question: str, answer: Callable[..., str], *arguments: Any) -> Question:
        return "out", question, lambda: answer(adaptor, *arguments)

    yield out("capsule for max_version=(1, 3)", _name_capsule, {"max_version": (1, 3)})
    yield out("capsule for no version", _name_capsule, {})
    yield out("capsule for copy=True", _name_capsule, {"copy": True, "max_version": (1, 3)})
    yield out("strides of a contiguous tensor", _describe_strides)
    yield out("alignment", _describe_alignment)
    for dtype in EXPORTED:
        yield out(f"type {dtype}", _export_dtype, dtype)
    for dtype, expression in adaptor.row.types.items():
        yield out(f"type {dtype}", _export_own, expression)
    for layout, (of, values) in _views(adaptor).items():
        yield out(f"layout {layout}", _export_layout, of, values)
    if adaptor.row.read_only:
        yield out("read-only", _export_read_only)
    yield out("memory", _describe_export_memory)
    yield out("after the tensor is gone", _export_and_drop)
    yield out("on another thread", _export_on_thread)
    yield out("rules of arrowdl.testing", _check_producer)


def _views(adaptor: Adaptor) -> dict[str, tuple[Callable[[], Any], Any]]:
    six = np.arange(1, 7, dtype="float32")

    def view(expression: str, of: Any = six) -> Callable[[], Any]:
        return lambda: adaptor.evaluate(expression, t=adaptor.make(of))

    return {
        "slice of the middle": (view("t[2:5]"), six[2:5]),
        "transposed": (view(adaptor.row.transposed, six.reshape(2, 3)), six.reshape(2, 3).T),
        "every second": (view("t[::2]"), six[::2]),
        "reversed": (view("t[::-1]"), six[::-1]),
        "0-D": (view("t", np.array(7, "float32")), np.array(7, "float32")),
        "empty": (view("t", np.ones((0, 3), "float32")), np.ones((0, 3), "float32")),
    }


def _name_capsule(adaptor: Adaptor, options: dict[str, Any]) -> str:
    tensor = adaptor.make(np.arange(6, dtype="float32").reshape(2, 3))
    exported = adaptor.export(tensor, **options)
    words = [exported.name]
    if exported.is_versioned:
        words.append("version {}.{}".format(*exported.version))
        names = {READ_ONLY: "READ_ONLY", IS_COPIED: "IS_COPIED"}
        flags = [name for flag, name in names.items() if exported.flags & flag]
        words.append("flags " + (" and ".join(flags) or "0"))
    if options.get("copy"):
        copies = start_of(exported.tensor) != start_of(adaptor.newest(tensor).tensor)
        words.append("memory of its own" if copies else "the same memory")
    return ", ".join(words)


def _describe_strides(adaptor: Adaptor) -> str:
    tensor = adaptor.make(np.arange(6, dtype="float32").reshape(2, 3))
    exported = adaptor.newest(tensor)
    if not exported.tensor.strides:
        return "NULL"
    return f"{strides_of(exported.tensor)} for shape {shape_of(exported.tensor)}"


def _describe_alignment(adaptor: Adaptor) -> str:
    tensors = [adaptor.make(np.ones((1, size), "float32")) for size in range(3, 400, 7)]
    exported = [adaptor.newest(tensor) for tensor in tensors]
    starts = [start_of(one.tensor) for one in exported]
    least = min(start & -start for start in starts)
    return "64 or more" if least >= 64 else f"{least} at least"


def _type_name(exported: Exported) -> str:
    dtype = exported.tensor.dtype
    kind = KINDS.get(dtype.code, f"code {dtype.code}, ")
    bits = "" if kind == "bool" or "float8" in kind or "float4" in kind else dtype.bits
    return f"{kind}{bits}" + (f" with {dtype.lanes} lanes" if dtype.lanes != 1 else "")


def _export_dtype(adaptor: Adaptor, dtype: str) -> str:
    values = np.array(VALUES[dtype][0], dtype)
    return _export(adaptor, lambda: adaptor.make(values), values)


def _export_own(adaptor: Adaptor, expression: str) -> str:
    return _export(adaptor, lambda: adaptor.evaluate(expression), None)


def _export(adaptor: Adaptor, of: Callable[[], Any], values: Any) -> str:
    """The type of the capsule, and what arrowdl makes of the tensor."""
    tensor = of()
    words = _type_name(adaptor.newest(tensor))
    array = arrowdl.to_arrow_device(adaptor.give(tensor))
    words = f"{words}; arrowdl: {array.type}"
    return words + ("" if values is None else _compare(_to_numpy(array), values))


def _to_numpy(array: Any) -> Any:
    return arrowdl.to_numpy(array.to("cpu"))


def _compare(seen: Any, values: Any) -> str:
    seen, wanted = np.asarray(seen).ravel().tolist(), np.asarray(values).ravel().tolist()
    return "" if seen == wanted else f"; values differ: {seen} for {wanted}"


def _export_layout(adaptor: Adaptor, of: Callable[[], Any], values: Any) -> str:
    tensor = of()
    exported = adaptor.newest(tensor)
    words = f"shape {shape_of(exported.tensor)}"
    words += f", strides {strides_of(exported.tensor) if exported.tensor.strides else 'NULL'}"
    if exported.tensor.byte_offset:
        words += f", byte_offset {exported.tensor.byte_offset}"
    seen = _to_numpy(arrowdl.to_arrow_device(adaptor.give(tensor)))
    return words + _compare(seen, values)


def _export_read_only(adaptor: Adaptor) -> str:
    tensor = adaptor.evaluate(adaptor.row.read_only, a=np.arange(6, dtype="float32"))
    words = []
    for options in ({"max_version": (1, 3)}, {}):
        try:
            exported = adaptor.export(tensor, **options)
            flag = "READ_ONLY" if exported.flags & READ_ONLY else "no READ_ONLY"
            words.append(f"{exported.name}: {flag}")
        except Exception as error:
            words.append(f"{options or 'no version'}: {type(error).__name__}")
    return "; ".join(words)


def _describe_export_memory(adaptor: Adaptor) -> str:
    tensor = adaptor.make(np.arange(6, dtype="float32").reshape(2, 3))
    first, second = adaptor.newest(tensor), adaptor.newest(tensor)
    return "shared" if start_of(first.tensor) == start_of(second.tensor) else "a copy each time"


def _export_and_drop(adaptor: Adaptor) -> str:
    values = np.arange(1000, dtype="float32").reshape(10, 100)
    array = arrowdl.to_arrow_device(adaptor.give(adaptor.make(values.copy())))
    gc.collect()
    others = [adaptor.make(np.zeros((10, 100), "float32")) for _ in range(8)]
    words = _compare(_to_numpy(array), values)
    del others
    return words.removeprefix("; ") or "values kept"


def _export_on_thread(adaptor: Adaptor) -> str:
    """Made here, exported on a thread, released on another."""
    values = np.arange(6, dtype="float32").reshape(2, 3)
    tensors = [adaptor.make(values)]
    arrays = [on_thread(lambda: arrowdl.to_arrow_device(adaptor.give(tensors[0])))]
    words = _compare(_to_numpy(arrays[0]), values)
    tensors.clear()
    on_thread(arrays.clear)
    return words.removeprefix("; ") or "values right"


def _check_producer(adaptor: Adaptor) -> str:
    if adaptor.row.export != TensorLibrary.export:
        return "not asked: it has no method __dlpack__"
    report = testing.check_dlpack_producer(
        "interop_tensors:make_six", isolate=True, timeout=SECONDS
    )
    return say_report(report)


def say_report(report: testing.Report) -> str:
    """The rules that are broken, by severity."""
    words = [f"{len(report.passed)} kept"]
    for severity, findings in (("errors", report.errors), ("warnings", report.warnings)):
        rules = sorted({finding.rule.id for finding in findings})
        if rules:
            words.append(f"{severity}: {' '.join(rules)}")
    return "; ".join(words)


# ---------------------------------------------------------------------------


def _ask_in(adaptor: Adaptor) -> Iterator[Question]:
    consumer = open_consumer(
        adaptor.take, read=adaptor.read, write=adaptor.write, raw_capsules=adaptor.row.raw
    )

    def into(question: str, answer: Callable[..., str], *arguments: Any) -> Question:
        return "in", question, lambda: answer(consumer, *arguments)

    yield into("asks __dlpack__ for", _describe_calls)
    for dtype in VALUES:
        yield into(f"type {dtype}", _import_dtype, dtype)
    for layout in LAYOUTS:
        yield into(f"layout {layout}", _import_layout, layout)
    yield into("READ_ONLY", _import_read_only)
    yield into("after the producer is gone", _import_and_drop)
    yield into("on another thread", _import_on_thread)
    arrays: dict[str, Callable[[], Any]] = {
        "float32": lambda: pa.array(np.arange(1, 7, dtype="float32")),
        "bool": lambda: np.array([False, True, True]),
        "2-D float32": lambda: np.arange(6, dtype="float32").reshape(3, 2),
        "slice": lambda: pa.array(np.arange(1, 7, dtype="float32"))[2:],
    }
    for name, of in arrays.items():
        yield into(f"arrowdl's array, {name}", _import_ours, of)
    yield into("rules of arrowdl.testing", _check_consumer, adaptor.row.raw)


def _describe_calls(consumer: Consumer) -> str:
    if consumer.raw_capsules:
        return "nothing: it takes capsules"
    producer = make_for(consumer, "float32", (2, 3))
    consumer.attempt(producer)
    if not producer.asked:
        return "nothing: it calls no __dlpack__"
    calls = [
        " ".join(f"{key}={value!r}".replace(" ", "") for key, value in sorted(asked.items()))
        for asked in producer.asked
    ]
    return ", then ".join(call or "nothing" for call in calls)


def _import_dtype(consumer: Consumer, dtype: str) -> str:
    values, content = VALUES[dtype]
    made = RawTensor(
        Memory(content), (1, 2), dtype=dtype, strides=(2, 1), versioned=not consumer.legacy
    )
    made.managed.manager_ctx = made.address
    result = consumer(RawProducer(made))
    kind = str(_adaptor().evaluate(_adaptor().row.kind, t=result))
    try:
        seen = flat(consumer.read(result))
    except Exception as error:
        return f"{kind}; not readable there: {type(error).__name__}"
    seen = [value.item() if hasattr(value, "item") else value for value in seen]
    right = same_values(seen, values) or seen == values
    return kind + ("" if right else f"; values differ: {seen} for {values}")


def _import_layout(consumer: Consumer, layout: str) -> str:
    shape, strides, values, fields = LAYOUTS[layout]
    if consumer.legacy:
        fields = {key: value for key, value in fields.items() if key != "version"}
    producer = make_for(consumer, "float32", shape, values=range(1, 7), strides=strides, **fields)
    result = consumer(producer)
    seen = flat(consumer.read(result))
    if not same_values(seen, values):
        return f"values differ: {seen} for {values}"
    if not values:
        return "values right"
    return f"values right, {'view' if is_view(consumer, producer.raw, result) else 'copy'}"


def _import_read_only(consumer: Consumer) -> str:
    if consumer.legacy:
        return "cannot be seen: it takes legacy capsules alone"
    producer = make_for(consumer, "float32", (4, 16), flags=READ_ONLY)
    result = consumer(producer)
    before = producer.raw.data.read()
    if not is_view(consumer, producer.raw, result):
        return "copied"
    try:
        consumer.write(result)
    except Exception as error:
        return f"kept: a write raises {type(error).__name__}"
    return "kept" if producer.raw.data.read() == before else "written through"


def _import_and_drop(consumer: Consumer) -> str:
    producer = make_for(consumer, "float32", (4, 16))
    result = consumer(producer)
    made = producer.raw
    producer.capsules.clear()
    del producer
    gc.collect()
    seen, early = flat(consumer.read(result)), made.released
    view = is_view(consumer, made, result)
    del result
    gc.collect()
    words = "values kept" if same_values(seen, list(range(1, 65))) else "values differ"
    if view and early:
        words += "; released while in use"
    return words + f"; released {made.released} times"


def _import_on_thread(consumer: Consumer) -> str:
    """Taken on a thread, read here, dropped on another thread."""
    producers = [make_for(consumer, "float32", (4, 16))]
    results = [on_thread(lambda: consumer(producers[0]))]
    made = producers[0].raw
    producers.pop().capsules.clear()
    right = same_values(flat(consumer.read(results[0])), list(range(1, 65)))
    on_thread(results.clear)
    gc.collect()
    return f"values {'right' if right else 'differ'}; released {made.released} times"


def _import_ours(consumer: Consumer, of: Callable[[], Any]) -> str:
    source = of()
    if isinstance(source, pa.Array):
        array, values = arrowdl.from_arrow(source), source.to_pylist()
    else:
        array, values = arrowdl.to_arrow_device(source), flat(source)
    result = consumer.consume(array.__dlpack__() if consumer.raw_capsules else array)
    seen = flat(consumer.read(result))
    seen = [value.item() if hasattr(value, "item") else value for value in seen]
    if not same_values(seen, values):
        return f"values differ: {seen} for {values}"
    try:
        consumer.write(result)
    except Exception as error:
        return f"values right; a write raises {type(error).__name__}"
    left = source.to_pylist() if isinstance(source, pa.Array) else flat(source)
    if left == values:
        return "values right; a write does not reach it"
    if isinstance(source, pa.Array):
        return "values right, view; writes into Arrow's array"
    return "values right, view"


def _check_consumer(consumer: Consumer, raw: bool) -> str:
    here = "interop_tensors"
    report = testing.check_dlpack_consumer(
        f"{here}:take",
        read=f"{here}:read",
        write=f"{here}:write",
        raw_capsules=raw,
        isolate=True,
        timeout=SECONDS,
    )
    return say_report(report)
