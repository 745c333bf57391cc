"""The cases of `check_arrow_producer` that are about methods, and the structs that they return."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

from arrowdl._device_type import DeviceType
from arrowdl.testing._arrow_layout import check_array, check_schema, describe_schema
from arrowdl.testing._arrow_producer import ArrowProducer, each_array
from arrowdl.testing._capsules import capsule_name, is_capsule
from arrowdl.testing._exported_arrow import (
    ARRAYS,
    DEVICE_METHODS,
    SCHEMA,
    STREAMS,
    Held,
    StreamReader,
    release_struct,
)
from arrowdl.testing._made_arrow import MadeSchema
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._structs import CPU

_NO_EVENT = frozenset({CPU, 9, 15, 16})
_DEVICE_TYPES = frozenset(map(int, DeviceType))


def _methods(producer: ArrowProducer, to: Recorder) -> None:
    found = producer.methods({**ARRAYS, **STREAMS})
    # What a function makes is meant to be data; a type or a schema is passed as it is.
    if not found and not producer.is_factory and hasattr(producer.make(), SCHEMA):
        to.skip("arrow-methods", "the object exports a schema only")
        return
    to.expect(
        "arrow-methods",
        bool(found),
        "no method that exports data",
        "add __arrow_c_array__ for one array, __arrow_c_stream__ for several",
    )
    for method in found:
        name = {**ARRAYS, **STREAMS}[method]
        result = producer.call(method)
        parts = result if method in ARRAYS else (result,)
        names = [capsule_name(part) if is_capsule(part) else type(part).__name__ for part in parts]
        wanted = ["arrow_schema", name] if method in ARRAYS else [name]
        to.expect(
            "arrow-capsules",
            names == wanted,
            f"{method} returns {names}, not {wanted}",
            "name capsules after their structs",
        )


def _requests(producer: ArrowProducer, to: Recorder) -> None:
    for method in producer.methods({**ARRAYS, **STREAMS}):
        with to.trying(method):
            _check_request(producer, method, to)


def _own_schema(producer: ArrowProducer, method: str) -> Any:
    if method in ARRAYS:
        return producer.export_array(method)[0]
    held = producer.export_stream(method)
    reader = StreamReader(held.struct)
    status, schema = reader.get_schema()
    reader.release()
    return schema if status == 0 else None


def _check_request(producer: ArrowProducer, method: str, to: Recorder) -> None:
    advice = "take requested_schema, and return your own schema if you cannot honour it"
    try:
        producer.call(method, requested_schema=None)
    except Exception as error:  # what it raises is what is found
        to.expect("arrow-requested-schema", False, f"None raises {quote(error)}", advice)
        return
    # Its own schema can be honoured by every producer.
    own = _own_schema(producer, method)
    if isinstance(own, Held):
        counted = own.count()
        request: Any = own.capsule
        own_struct = own.struct
    else:
        request, counted, own_struct = None, None, own
    if request is not None:
        try:
            result = getattr(producer.make(), method)(requested_schema=request)
            del result
            to.expect("arrow-requested-schema", True, "", "")
        except Exception as error:  # what it raises is what is found
            to.expect(
                "arrow-requested-schema", False, f"its own schema raises {quote(error)}", advice
            )
        del request, own, own_struct
        gc.collect()
        assert counted is not None
        _expect_kept(counted.calls, to)
    elif own_struct is not None:
        release_struct(own_struct)
    _incompatible_request(producer, method, to)


def _incompatible_request(producer: ArrowProducer, method: str, to: Recorder) -> None:
    """A struct of three fields with names of its own, for whatever the data are."""
    wanted = MadeSchema("+s", children=[MadeSchema("i", f"no such field {n}") for n in range(3)])
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
    to.expect(
        "arrow-incompatible-request",
        refused,
        "a schema of other fields is ignored",
        "raise an exception: the consumer asked for other data",
        "warning",
    )
    del capsule
    gc.collect()
    _expect_kept(wanted.released, to)


def _expect_kept(calls: int, to: Recorder) -> None:
    to.expect(
        "arrow-request-kept",
        calls == 1,
        f"the requested schema was released {calls} times",
        "read it, or move it out and release it",
    )


def _again(producer: ArrowProducer, to: Recorder) -> None:
    for method in each_array(producer, to):
        array = producer.make()
        first, second = (getattr(array, method)() for _ in range(2))
        own = first[0] is not second[0] and first[1] is not second[1]
        to.expect(
            "arrow-again",
            own,
            "two exports share a capsule",
            "make new structs and capsules for each call",
        )


def _structs(producer: ArrowProducer, to: Recorder) -> None:
    for method in each_array(producer, to):
        with to.trying(method):
            schema, array = producer.export_array(method)
            device = array.struct.device_type if method in DEVICE_METHODS else CPU
            if check_schema(schema.struct, to):
                check_array(schema.struct, array.base, to, device=device)
            if method in DEVICE_METHODS:
                check_device_struct(array.struct, to)


def fill_free_memory() -> None:
    """Leave no zeros where the next structs will be: then a field that is not set shows."""
    allocate, free = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawFree
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    for size in (128, 144):
        blocks = [allocate(size) for _ in range(16)]
        for block in blocks:
            ctypes.memset(block, 0xA5, size)
        for block in blocks:
            free(block)


def check_device_struct(struct: Any, to: Recorder) -> None:
    to.expect(
        "arrow-device-type",
        struct.device_type in _DEVICE_TYPES,
        f"the device type is {struct.device_type}",
        "use a number of ArrowDeviceType",
    )
    to.expect(
        "arrow-device-event",
        not (struct.device_type in _NO_EVENT and struct.sync_event),
        f"a sync_event for device type {struct.device_type}, which has no events",
        "set sync_event to NULL, after the work is done",
    )


def _reserved(producer: ArrowProducer, to: Recorder) -> None:
    """Check the reserved bytes several times: memory that was not cleared is often 0."""
    method = "__arrow_c_device_array__"
    if not hasattr(producer.make(), method):
        to.skip("arrow-device-reserved", f"the object has no {method}")
        return
    clear = True
    for _ in range(32):
        made = producer.make()
        fill_free_memory()
        pair = getattr(made, method)()
        clear = clear and not any(Held(pair[1], ARRAYS[method]).struct.reserved)
    to.expect(
        "arrow-device-reserved",
        clear,
        "the reserved bytes are not 0",
        "clear the whole struct",
        "warning",
    )


def _schema_method(producer: ArrowProducer, to: Recorder) -> None:
    made = producer.make()
    if not hasattr(made, SCHEMA):
        to.skip("arrow-schema-agrees", f"the object has no {SCHEMA}")
        return
    alone = Held(getattr(made, SCHEMA)(), "arrow_schema")
    methods = producer.methods({**ARRAYS, **STREAMS})
    if not methods:
        check_schema(alone.struct, to)
        to.skip("arrow-schema-agrees", "the object exports a schema only")
    for method in methods:
        own = _own_schema(producer, method)
        struct = own.struct if isinstance(own, Held) else own
        if struct is None:
            continue
        to.expect(
            "arrow-schema-agrees",
            describe_schema(alone.struct) == describe_schema(struct),
            f"{SCHEMA} and {method} export other schemas",
            "export one schema",
        )
        if not isinstance(own, Held):
            release_struct(own)


def _device_keywords(producer: ArrowProducer, to: Recorder) -> None:
    methods = [name for name in DEVICE_METHODS if hasattr(producer.make(), name)]
    if not methods:
        to.skip("arrow-device-keywords", "the object has no device method")
    for method in methods:
        with to.trying(method):
            try:
                getattr(producer.make(), method)(a_keyword_to_come=None)
                raised: Exception | None = None
            except Exception as error:  # what it raises is what is found
                raised = error
            to.expect(
                "arrow-device-keywords",
                raised is None,
                f"an unknown keyword that is None raises {quote(raised) if raised else ''}",
                "take **kwargs and ignore those that are None",
            )
            try:
                getattr(producer.make(), method)(a_keyword_to_come=1)
                raised = None
            except Exception as error:  # as it should
                raised = error
            to.expect(
                "arrow-device-keywords",
                isinstance(raised, NotImplementedError),
                "an unknown keyword " + (f"raises {quote(raised)}" if raised else "is ignored"),
                "raise NotImplementedError: the consumer asks for something",
            )


CASES = (
    Case("methods", "arrow-methods", _methods),
    Case("requested schema", "arrow-requested-schema", _requests),
    Case("two exports", "arrow-again", _again),
    Case("structs", "arrow-format", _structs),
    Case("schema alone", "arrow-schema-agrees", _schema_method),
    Case("keywords of devices", "arrow-device-keywords", _device_keywords),
    Case("reserved bytes", "arrow-device-reserved", _reserved),
)
