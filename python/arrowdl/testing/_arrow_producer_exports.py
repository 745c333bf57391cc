"""The cases of `check_arrow_producer` that are about methods, and the structs that they return."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

from arrowdl._device_type import DeviceType
from arrowdl.testing._arrow_layout import check_array, check_schema, describe_schema
from arrowdl.testing._arrow_producer import ArrowProducer, each_array, each_method
from arrowdl.testing._capsules import capsule_name, find_function, is_capsule
from arrowdl.testing._exported_arrow import (
    ARRAYS,
    DEVICE_METHODS,
    SCHEMA,
    STREAMS,
    Held,
    StreamReader,
    release_struct,
)
from arrowdl.testing._raw_arrow import RawSchema
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._structs import CPU

_NO_EVENT = frozenset({CPU, 9, 15, 16})
_DEVICE_TYPES = frozenset(map(int, DeviceType))


def _methods(producer: ArrowProducer, to: Recorder) -> None:
    export_methods = producer.methods({**ARRAYS, **STREAMS})
    # What a function makes is meant to be data; a type or a schema is passed as it is.
    if not export_methods and not producer.is_factory and hasattr(producer.make(), SCHEMA):
        to.skip("the object exports a schema only")
        return
    to.expect(bool(export_methods), "no method that exports data")
    for method in export_methods:
        name = {**ARRAYS, **STREAMS}[method]
        result = producer.call(method)
        parts = result if method in ARRAYS else (result,)
        names = [capsule_name(part) if is_capsule(part) else type(part).__name__ for part in parts]
        wanted = ["arrow_schema", name] if method in ARRAYS else [name]
        to.expect(names == wanted, f"{method} returns {names}, not {wanted}", rule="arrow-capsules")


def _find_schema(producer: ArrowProducer, method: str) -> Any:
    if method in ARRAYS:
        return producer.export_array(method)[0]
    held = producer.export_stream(method)
    reader = StreamReader(held.struct)
    status, schema = reader.get_schema()
    reader.release()
    return schema if status == 0 else None


def _request(producer: ArrowProducer, method: str, to: Recorder) -> None:
    try:
        producer.call(method, requested_schema=None)
    except Exception as error:  # what it raises is what is found
        to.error(f"None raises {quote(error)}")
        return
    # Its own schema can be honoured by every producer.
    schema = _find_schema(producer, method)
    if isinstance(schema, Held):
        counted, request = schema.count(), schema.capsule
        try:
            getattr(producer.make(), method)(requested_schema=request)
            to.passed()
        except Exception as error:  # what it raises is what is found
            to.error(f"its own schema raises {quote(error)}")
        del request, schema
        gc.collect()
        _expect_unreleased(counted.calls, to)
    elif schema is not None:
        release_struct(schema)
    _incompatible_request(producer, method, to)


def _incompatible_request(producer: ArrowProducer, method: str, to: Recorder) -> None:
    """A struct of three fields with names of its own, for whatever the data are."""
    wanted = RawSchema("+s", children=[RawSchema("i", f"no such field {n}") for n in range(3)])
    capsule = wanted.capsule()
    refused = False
    try:
        result = getattr(producer.make(), method)(requested_schema=capsule)
        if method in STREAMS:  # a stream may say it when it is asked for its schema
            reader = StreamReader(Held(result, STREAMS[method]).struct)
            status, schema = reader.get_schema()
            refused = status != 0
            release_struct(schema)
            reader.release()
        del result
    except Exception:  # as it should; kept, it would keep the capsule
        refused = True
    to.prefer(refused, "a schema of other fields is ignored", rule="arrow-incompatible-request")
    del capsule
    gc.collect()
    _expect_unreleased(wanted.released, to)


def _expect_unreleased(calls: int, to: Recorder) -> None:
    to.expect(
        calls == 1, f"the requested schema was released {calls} times", rule="arrow-request-kept"
    )


def _again(producer: ArrowProducer, method: str, to: Recorder) -> None:
    array = producer.make()
    first, second = (getattr(array, method)() for _ in range(2))
    is_new = first[0] is not second[0] and first[1] is not second[1]
    to.expect(is_new, "two exports share a capsule")


def _structs(producer: ArrowProducer, method: str, to: Recorder) -> None:
    schema, array = producer.export_array(method)
    device = array.struct.device_type if method in DEVICE_METHODS else CPU
    if check_schema(schema.struct, to):
        check_array(schema.struct, array.base, to, device=device)
    if method in DEVICE_METHODS:
        check_device_struct(array.struct, to)


def fill_free_memory() -> None:
    """Leave no zeros where the next structs will be: then a field that is not set shows."""
    allocate = find_function("PyMem_RawMalloc", ctypes.c_void_p, ctypes.c_size_t)
    free = find_function("PyMem_RawFree", None, ctypes.c_void_p)
    for size in (128, 144):
        blocks = [allocate(size) for _ in range(16)]
        for block in blocks:
            ctypes.memset(block, 0xA5, size)
        for block in blocks:
            free(block)


def check_device_struct(struct: Any, to: Recorder) -> None:
    to.expect(
        struct.device_type in _DEVICE_TYPES,
        f"the device type is {struct.device_type}",
        rule="arrow-device-type",
    )
    to.expect(
        not (struct.device_type in _NO_EVENT and struct.sync_event),
        f"a sync_event for device type {struct.device_type}, which has no events",
        rule="arrow-device-event",
    )


def _reserved(producer: ArrowProducer, to: Recorder) -> None:
    """Check the reserved bytes several times: memory that was not cleared is often 0."""
    method = "__arrow_c_device_array__"
    if not hasattr(producer.make(), method):
        to.skip(f"the object has no {method}")
        return
    clear = True
    for _ in range(32):
        array = producer.make()
        fill_free_memory()
        pair = getattr(array, method)()
        clear = clear and not any(Held(pair[1], ARRAYS[method]).struct.reserved)
    to.prefer(clear, "the reserved bytes are not 0")


def _schema_method(producer: ArrowProducer, to: Recorder) -> None:
    array = producer.make()
    if not hasattr(array, SCHEMA):
        to.skip(f"the object has no {SCHEMA}")
        return
    alone = Held(getattr(array, SCHEMA)(), "arrow_schema")
    methods = producer.methods({**ARRAYS, **STREAMS})
    if not methods:
        check_schema(alone.struct, to)
        to.skip("the object exports a schema only")
    for method in methods:
        schema = _find_schema(producer, method)
        struct = schema.struct if isinstance(schema, Held) else schema
        if struct is None:
            continue
        to.expect(
            describe_schema(alone.struct) == describe_schema(struct),
            f"{SCHEMA} and {method} export other schemas",
        )
        if not isinstance(schema, Held):
            release_struct(schema)


def _device_keywords(producer: ArrowProducer, to: Recorder) -> None:
    methods = [name for name in DEVICE_METHODS if hasattr(producer.make(), name)]
    if not methods:
        to.skip("the object has no device method")
    for method in methods:
        with to.trying(method):
            raised = _try_keyword(producer, method, None)
            to.expect(
                raised is None,
                f"an unknown keyword that is None raises {quote(raised) if raised else ''}",
            )
            raised = _try_keyword(producer, method, 1)
            to.expect(
                isinstance(raised, NotImplementedError),
                "an unknown keyword " + (f"raises {quote(raised)}" if raised else "is ignored"),
                advice="raise NotImplementedError: the consumer asks for something",
            )


def _try_keyword(producer: ArrowProducer, method: str, value: int | None) -> Exception | None:
    try:
        getattr(producer.make(), method)(a_keyword_to_come=value)
    except Exception as error:  # what it raises is what is found
        return error
    return None


CASES = (
    Case("methods", "arrow-methods", _methods),
    Case("requested schema", "arrow-requested-schema", each_method(_request)),
    Case("two exports", "arrow-again", each_array(_again)),
    Case("structs", "arrow-format", each_array(_structs)),
    Case("schema alone", "arrow-schema-agrees", _schema_method),
    Case("keywords of devices", "arrow-device-keywords", _device_keywords),
    Case("reserved bytes", "arrow-device-reserved", _reserved),
)
