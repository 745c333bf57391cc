"""The cases of `check_arrow_producer` that are about arrays and schemas."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from arrowdl._device_type import DeviceType
from arrowdl.testing._arrow_layout import (
    addresses_of,
    check_array,
    check_schema,
    children_of,
    describe_schema,
    find_layout,
)
from arrowdl.testing._capsules import capsule_name, is_capsule
from arrowdl.testing._exported_arrow import (
    ARRAYS,
    DEVICE_METHODS,
    SCHEMA,
    STREAMS,
    CountedRelease,
    Held,
    StreamReader,
    array_of,
    copy_struct,
    release_struct,
)
from arrowdl.testing._made_arrow import MadeSchema
from arrowdl.testing._managed import on_threads
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import StopCheck, checked_factory, quote
from arrowdl.testing._structs import CPU, HOST_READABLE, ArrowArray, ArrowSchema

_NO_EVENT = frozenset({CPU, 9, 15, 16})
_DEVICE_TYPES = frozenset(map(int, DeviceType))


@dataclass
class ArrowProducer:
    """What is checked: `make` returns an object, a new one each time if it is a factory."""

    make: Callable[[], Any]
    is_factory: bool
    failing: Callable[[], Any] | None
    exported: set[str] = field(default_factory=set)

    def call(self, method: str, **options: Any) -> Any:
        """What a method returns. Ends the check if an object has only one stream to give."""
        made = self.make()
        try:
            result = getattr(made, method)(**options)
        except Exception as error:
            if self.is_factory or method not in STREAMS or method not in self.exported:
                raise
            raise StopCheck(
                f"the second call of {method} raised {quote(error)}: for a stream that can be read "
                "once, pass a function that makes a new one"
            ) from error
        self.exported.add(method)
        return result

    def methods(self, known: dict[str, str]) -> list[str]:
        made = self.make()
        return [name for name in known if hasattr(made, name)]

    def export_array(self, method: str, **options: Any) -> tuple[Held, Held]:
        pair = getattr(self.make(), method)(**options)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"{method} returned {type(pair).__name__}, not a pair of capsules")
        return Held(pair[0], "arrow_schema"), Held(pair[1], ARRAYS[method])

    def export_stream(self, method: str, **options: Any) -> Held:
        return Held(self.call(method, **options), STREAMS[method])


def open_producer(target: Any, *, failing: Any = None) -> ArrowProducer:
    known = (*ARRAYS, *STREAMS, SCHEMA)
    if any(hasattr(target, name) for name in known) and not isinstance(target, type):
        return ArrowProducer(lambda: target, False, failing)
    if callable(target):
        return ArrowProducer(checked_factory(target), True, failing)
    raise TypeError(
        f"{type(target).__name__} has none of Arrow's methods: pass an object that exports data, "
        "or a function that makes one"
    )


def each_array(producer: ArrowProducer, to: Recorder) -> list[str]:
    methods = producer.methods(ARRAYS)
    if not methods:
        to.skip(to.rule, "the object exports no array")
    return methods


# ---------------------------------------------------------------------------
# Methods, capsules, requests


def check_methods(producer: ArrowProducer, to: Recorder) -> None:
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


def check_requests(producer: ArrowProducer, to: Recorder) -> None:
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


def check_again(producer: ArrowProducer, to: Recorder) -> None:
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


# ---------------------------------------------------------------------------
# The structs


def check_structs(producer: ArrowProducer, to: Recorder) -> None:
    for method in each_array(producer, to):
        with to.trying(method):
            schema, array = producer.export_array(method)
            device = array.struct.device_type if method in DEVICE_METHODS else CPU
            if check_schema(schema.struct, to):
                check_array(schema.struct, array.base, to, device=device)
            if method in DEVICE_METHODS:
                check_device_struct(array.struct, to)


def fill_free_memory() -> None:
    """Leave no zeros where the next structs will be: a field that nobody sets shows."""
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


def check_reserved(producer: ArrowProducer, to: Recorder) -> None:
    """Several times: memory that nobody has cleared is often 0."""
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


def check_schema_method(producer: ArrowProducer, to: Recorder) -> None:
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


def check_device_keywords(producer: ArrowProducer, to: Recorder) -> None:
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


# ---------------------------------------------------------------------------
# Release


def check_unconsumed(producer: ArrowProducer, to: Recorder) -> None:
    for method in each_array(producer, to):
        with to.trying(method):
            for held in producer.export_array(method):
                counted = held.count()
                held.capsule = None
                gc.collect()
                to.expect(
                    "arrow-capsule-releases",
                    counted.calls == 1,
                    f'release of "{held.name}" was called {counted.calls} times',
                    "give the capsule a destructor that calls release unless it is NULL",
                )


def check_moved(producer: ArrowProducer, to: Recorder) -> None:
    for method in each_array(producer, to):
        with to.trying(method):
            for held in producer.export_array(method):
                counted = held.count()
                held.release()
                to.expect(
                    "arrow-release-marks",
                    counted.marked,
                    f'release of "{held.name}" does not set release to NULL',
                    "set it: else the struct is released again",
                )
            for held in producer.export_array(method):
                moved = copy_struct(held.struct)
                base = array_of(moved)
                counted = CountedRelease(base)
                held.capsule = None
                gc.collect()
                to.expect(
                    "arrow-capsule-moved",
                    counted.calls == 0,
                    f'the destructor of a consumed "{held.name}" released the data',
                    "check that release is not NULL",
                )
                _read_all(base)
                release_struct(base)
                to.expect(
                    "arrow-moves",
                    counted.calls == 1 and counted.marked,
                    f'"{held.name}" is not released at its new address',
                    "find everything by private_data, and nothing by the struct's first address",
                )


def _read_all(struct: Any) -> None:
    """Reads a byte of every buffer, or the format of every schema."""
    for child in children_of(struct):
        _read_all(child)
    if isinstance(struct, ArrowSchema):
        assert struct.format


def check_children(producer: ArrowProducer, to: Recorder) -> None:
    some = False
    for method in each_array(producer, to):
        with to.trying(method):
            for held in producer.export_array(method):
                nodes = _below(held.base)
                counted = [CountedRelease(node) for node in nodes if node.release]
                some = some or bool(nodes)
                held.release()
                calls = [one.calls for one in counted]
                to.expect(
                    "arrow-release-children",
                    all(count == 1 for count in calls),
                    f'the release callbacks of children of "{held.name}" were called {calls} times',
                    "walk children and dictionary, and call each release that is not NULL",
                )
    if not some:
        to.skip("arrow-release-children", "the data are not nested")


def _below(struct: Any) -> list[Any]:
    direct = children_of(struct) + ([struct.dictionary.contents] if struct.dictionary else [])
    return [node for part in direct for node in (part, *_below(part))]


def check_child_moves(producer: ArrowProducer, to: Recorder) -> None:
    moved = False
    for method in each_array(producer, to):
        with to.trying(method):
            schema, array = producer.export_array(method)
            for below, child in zip(
                children_of(schema.struct), children_of(array.base), strict=True
            ):
                moved = True
                before = _bytes_of(below, child)
                taken = copy_struct(child)
                array.release()
                gc.collect()
                counted = CountedRelease(taken)
                after = _bytes_of(below, taken)
                release_struct(taken)
                to.expect(
                    "arrow-child-moves",
                    before == after and counted.calls == 1 and counted.marked,
                    "a child that was moved out does not outlive its parent",
                    "let each child own what it needs, and skip released ones",
                )
                break
    if not moved:
        to.skip("arrow-child-moves", "the data have no children")


def _bytes_of(schema: ArrowSchema, array: ArrowArray) -> bytes:
    """The values of a primitive array in host memory; nothing for others."""
    layout = find_layout(schema.format.decode())
    if layout is None or "values" not in layout.buffers or not array.length:
        return b""
    address = addresses_of(array)[1]
    start = address + array.offset * layout.width
    return ctypes.string_at(start, array.length * layout.width)


def check_release_thread(producer: ArrowProducer, to: Recorder) -> None:
    for method in each_array(producer, to):
        with to.trying(method):
            for held in producer.export_array(method):
                raised = on_threads(1, held.release)
                to.expect(
                    "arrow-release-thread",
                    not raised and not held.base.release,
                    f"raised {quote(raised[0])}" if raised else "release is not marked",
                    "take the interpreter lock in release if it touches Python",
                )


def check_references(producer: ArrowProducer, to: Recorder) -> None:
    for method in each_array(producer, to):
        with to.trying(method):
            kept = producer.make()
            getattr(kept, method)()
            gc.collect()
            before = sys.getrefcount(kept)
            for _ in range(8):
                for capsule, name in zip(
                    getattr(kept, method)(), ("arrow_schema", ARRAYS[method]), strict=True
                ):
                    Held(capsule, name).release()
            del capsule
            gc.collect()
            grown = sys.getrefcount(kept) - before
            to.expect(
                "arrow-releases-data",
                grown == 0,
                f"the object has {abs(grown)} {'more' if grown > 0 else 'fewer'} references after "
                "8 exports were released",
                "let release drop exactly the reference that the export took",
            )
            _check_weakly(producer, method, to)


def _check_weakly(producer: ArrowProducer, method: str, to: Recorder) -> None:
    made = producer.make()
    if made is producer.make():  # somebody else holds it
        return
    try:
        alive = weakref.ref(made)
    except TypeError:
        return
    pair = getattr(made, method)()
    del made
    gc.collect()
    del pair
    gc.collect()
    to.expect(
        "arrow-releases-data",
        alive() is None,
        "the object is alive after its export was released",
        "let release drop the reference that the export took",
    )


def check_lifetime(producer: ArrowProducer, to: Recorder) -> None:
    if not producer.is_factory:
        to.skip("arrow-lifetime", "pass a function that makes the object, so that it can go")
        return
    for method in each_array(producer, to):
        with to.trying(method):
            kept = producer.make()
            schema, array = ArrowProducer(lambda: kept, False, None).export_array(method)  # noqa: B023
            if method in DEVICE_METHODS and array.struct.device_type not in HOST_READABLE:
                continue
            before = _all_bytes(schema.struct, array.base)
            kept = None
            gc.collect()
            scratch = [ctypes.create_string_buffer(b"\xa5" * 4096, 4096) for _ in range(64)]
            after = _all_bytes(schema.struct, array.base)
            del scratch
            to.expect(
                "arrow-lifetime",
                before == after,
                "the values change once the object is gone",
                "let the export keep the memory alive until release is called",
            )


def _all_bytes(schema: ArrowSchema, array: ArrowArray) -> list[bytes]:
    below = zip(children_of(schema), children_of(array), strict=True)
    return [_bytes_of(schema, array), *(part for pair in below for part in _all_bytes(*pair))]


def check_threads(producer: ArrowProducer, to: Recorder) -> None:
    for method in each_array(producer, to):
        with to.trying(method):
            kept = producer.make()

            def work(kept: Any = kept, method: str = method) -> None:
                for _ in range(10):
                    getattr(kept, method)()

            before = sys.getrefcount(kept)
            raised = on_threads(4, work)
            gc.collect()
            lost = sys.getrefcount(kept) - before
            lost = 0 if abs(lost) <= 1 else lost  # `work` holds one
            to.expect(
                "arrow-threads",
                not raised and lost == 0,
                f"raised {quote(raised[0])}" if raised else f"{lost} references are left",
                "protect what exports of one object share",
            )
