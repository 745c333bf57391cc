"""Producers of Arrow data that break one rule each, and those of the libraries."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import arrowdl
import nanoarrow as na
import polars as pl
import pyarrow as pa
import pytest
from arrowdl.testing import RULES, Report, check_arrow_producer
from arrowdl.testing._arrow_cases import bits, ints
from arrowdl.testing._checks import ARROW_PRODUCER
from arrowdl.testing._raw_arrow import RawArray, RawDeviceArray, RawStream
from arrowdl.testing._raw_tensor import Memory
from arrowdl.testing._structs import ArrowSchema
from helpers.arrow import MadeSchema
from helpers.capsules import capsule_address, make_capsule
from helpers.conformance import finds

KEPT: list[Any] = []  # wrong producers release twice: the structs stay


@pytest.fixture(autouse=True)
def _clear() -> Iterator[None]:
    yield
    KEPT.clear()


def numbers(count: int = 4) -> RawArray:
    return RawArray(count, [bits([1, 0, 1, 1]), ints([1, 2, 3, 4])], null_count=1)


def words() -> RawArray:
    dictionary = RawArray(2, [None, ints([0, 1, 3]), Memory(b"abb")])
    return RawArray(4, [None, Memory(bytes([0, 1, 0, 1]))], dictionary=dictionary)


def lists() -> RawArray:
    child = RawArray(5, [None, ints([1, 2, 3, 4, 5])])
    return RawArray(4, [None, ints([0, 2, 2, 4, 5])], children=[child])


class Good:
    """A struct of numbers, words and lists, as an array and as a stream, on the host and a device.

    A subclass changes what it exports: `schema` and `array` are made for each export.
    """

    def schema(self) -> MadeSchema:
        fields = [
            MadeSchema("i", "numbers", metadata={"key": "value"}),
            MadeSchema("c", "words", dictionary=MadeSchema("u")),
            MadeSchema("+l", "lists", children=[MadeSchema("i", "item")]),
        ]
        return MadeSchema("+s", children=fields, flags=0)

    def array(self) -> RawArray:
        return RawArray(4, [None], children=[numbers(), words(), lists()])

    def _pair(self, array_capsule: Callable[[RawArray], Any], request: Any) -> Any:
        self.read_request(request)
        schema, array = self.schema(), self.array()
        array.owner = schema.owner = self
        KEPT.extend((schema, array))
        return schema.capsule(), array_capsule(array)

    def read_request(self, request: Any) -> None:
        if request is None:
            return
        wanted = ArrowSchema.from_address(capsule_address(request))
        names = [wanted.children[index].contents.name for index in range(wanted.n_children)]
        if wanted.n_children != 3 or b"numbers" not in names:
            raise ValueError("other fields")

    def read_keywords(self, keywords: dict[str, Any]) -> None:
        if any(value is not None for value in keywords.values()):
            raise NotImplementedError(str(keywords))

    def device_struct(self, array: RawArray) -> RawDeviceArray:
        made = RawDeviceArray(array)
        array.moved = made
        return made

    def stream(self, device: Any = None) -> RawStream:
        made = RawStream(self.schema, [self.array(), self.array()], device=device)
        KEPT.append(made)
        return made

    def __arrow_c_schema__(self) -> Any:
        return self.schema().capsule()

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._pair(RawArray.capsule, requested_schema)

    def __arrow_c_device_array__(self, requested_schema: Any = None, **keywords: Any) -> Any:
        self.read_keywords(keywords)
        return self._pair(lambda array: self.device_struct(array).capsule(), requested_schema)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.read_request(requested_schema)
        return self.stream().capsule()

    def __arrow_c_device_stream__(self, requested_schema: Any = None, **keywords: Any) -> Any:
        self.read_request(requested_schema)
        self.read_keywords(keywords)
        return self.stream((1, -1)).capsule()


class Failing(Good):
    """Its streams fail after one array."""

    def stream(self, device: Any = None) -> RawStream:
        return RawStream(self.schema, [self.array()], device=device, error="no more")


def make_good() -> Good:
    """Without references to its exports: they are kept, and would keep it."""
    return Good()


def rules_of(prefix: str) -> set[str]:
    return {name for name in RULES if name.startswith(prefix)}


def found_by(report: Report) -> set[str]:
    return {found.rule.id for found in (*report.errors, *report.warnings)}


class Forgetful(Good):
    """The good one, whose exports refer to it until they are released."""

    def _pair(self, array_capsule: Callable[[RawArray], Any], request: Any) -> Any:
        self.read_request(request)
        schema, array = self.schema(), self.array()
        return schema.capsule(), array_capsule(array)


def test_a_good_producer_has_no_findings() -> None:
    report = check_arrow_producer(Forgetful, failing=Failing)
    assert (report.errors, report.warnings, report.skipped) == ((), (), ()), str(report)
    assert set(report.passed) == rules_of("arrow-")


# ---------------------------------------------------------------------------
# Wrong ones


def of_schema(change: Callable[[MadeSchema], None]) -> type[Good]:
    class Wrong(Forgetful):
        def schema(self) -> MadeSchema:
            made = super().schema()
            change(made)
            return made

    return Wrong


def of_array(change: Callable[[RawArray], None]) -> type[Good]:
    class Wrong(Forgetful):
        def array(self) -> RawArray:
            made = super().array()
            change(made)
            return made

    return Wrong


def of_device(change: Callable[[Any], None]) -> type[Good]:
    class Wrong(Forgetful):
        def device_struct(self, array: RawArray) -> RawDeviceArray:
            made = super().device_struct(array)
            change(made.struct)
            return made

    return Wrong


def of_stream(change: Callable[[RawStream], None]) -> type[Good]:
    class Wrong(Forgetful):
        def stream(self, device: Any = None) -> RawStream:
            made = super().stream(device)
            change(made)
            return made

    return Wrong


def set_field(name: str, value: Any, *path: int) -> Callable[[Any], None]:
    """Sets a field of the struct of a node, which is found by the numbers of children."""

    def change(made: Any) -> None:
        for index in path:
            made = made.children[index]
        setattr(made.struct, name, value)

    return change


def no_metadata_length(made: MadeSchema) -> None:
    made.children[0].struct.metadata = ctypes.addressof(_NEGATIVE)


_NEGATIVE = ctypes.c_int32(-5)


def null_values(made: RawArray) -> None:
    made.children[0].struct.buffers[1] = None


def odd_address(made: RawArray) -> None:
    made.children[0].struct.length = made.struct.length = 2
    made.children[0].struct.buffers[1] += 2
    made.children[0].struct.null_count = -1


def falling_offsets(made: RawArray) -> None:
    made.children[2].buffers[1].write(bytes([9, 0, 0, 0]))


def odd_index(made: RawArray) -> None:
    made.children[1].buffers[1].write(bytes([77]))


class NoMethods:
    def __arrow_c_schema__(self) -> Any:
        return MadeSchema("i").capsule()


class NoRequests(Forgetful):
    def __arrow_c_array__(self) -> Any:  # type: ignore[override]
        return super().__arrow_c_array__()


class AnyRequest(Forgetful):
    def read_request(self, request: Any) -> None:
        """Ignores it."""


class KeepsRequests(Forgetful):
    def read_request(self, request: Any) -> None:
        KEPT.append(request)
        super().read_request(request)


class WrongName(Forgetful):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return tuple(reversed(super().__arrow_c_array__(requested_schema)))


class NoDestructor(Forgetful):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        self.read_request(requested_schema)
        schema, array = self.schema(), self.array()
        return make_capsule(schema.address, "arrow_schema"), array.capsule()


class OnePair(Forgetful):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        self.read_request(requested_schema)
        if not hasattr(self, "pair"):
            self.pair = super().__arrow_c_array__()
        return self.pair


class OtherSchema(Forgetful):
    def __arrow_c_schema__(self) -> Any:
        return MadeSchema("l").capsule()


class NeverMarks(Forgetful):
    """The release callback leaves release as it is."""

    def schema(self) -> MadeSchema:
        class Made(MadeSchema):
            def _release(self, address: int) -> None:
                struct = ArrowSchema.from_address(address)
                before = ctypes.cast(struct.release, ctypes.c_void_p).value
                super()._release(address)
                struct.release = type(struct.release)(before)

        good = super().schema()
        made = Made("+s", children=good.children, flags=0)
        KEPT.append(made)
        return made


class ForgetsChildren(Forgetful):
    def array(self) -> RawArray:
        made = super().array()
        KEPT.append(made)
        type(made)._parts.fget  # noqa: B018  the property that is replaced
        made.__class__ = type("Made", (RawArray,), {"_parts": property(lambda _: [])})
        return made


class FixedAddress(Forgetful):
    """Releases the struct where it was made."""

    def array(self) -> RawArray:
        made = super().array()
        release = made._release
        made._callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: release(made.address))
        made.struct.release = ctypes.cast(made._callback, type(made.struct.release))
        KEPT.append(made)
        return made


class ChildrenOfParent(Forgetful):
    """The parent overwrites what its children hold, also what was moved out."""

    def array(self) -> RawArray:
        made = super().array()
        release, memory = made._release, made.children[0].buffers[1]

        def overwrite(address: int) -> None:
            release(address)
            memory.write(bytes(16))

        made._callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(overwrite)
        made.struct.release = ctypes.cast(made._callback, type(made.struct.release))
        KEPT.append(made)
        return made


class KeptForever(Forgetful):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        KEPT.append(self)
        return super().__arrow_c_array__(requested_schema)


class Dangling(Forgetful):
    """The memory is overwritten when the object goes."""

    def __init__(self) -> None:
        self.memory: list[Memory] = []

    def array(self) -> RawArray:
        made = super().array()
        self.memory.append(made.children[0].buffers[1])
        return made

    def __del__(self) -> None:
        for memory in self.memory:
            memory.write(bytes(16))


class NotForThreads(Forgetful):
    """Fails while another thread exports. The first thread waits for a second one."""

    def __init__(self) -> None:
        self.exporting = 0
        self.second = threading.Event()

    def _pair(self, array_capsule: Callable[[RawArray], Any], request: Any) -> Any:
        self.exporting += 1
        try:
            if self.exporting > 1:
                self.second.set()
                raise RuntimeError("two at once")
            if threading.current_thread() is not threading.main_thread():
                self.second.wait(60)
            return super()._pair(array_capsule, request)
        finally:
            self.exporting -= 1


class AnyKeyword(Forgetful):
    def read_keywords(self, keywords: dict[str, Any]) -> None:
        """Ignores them."""


def no_schema(made: RawStream) -> None:
    _replace(made, 0, lambda _stream, _out: 22)


def fails_at_once(made: RawStream) -> None:
    _replace(made, 1, lambda _stream, _out: 5)


def wraps_around(made: RawStream) -> None:
    """Begins again after its end."""
    get_next = made._get_next

    def again(stream: int, out: int) -> int:
        if not made._left and getattr(made, "ended", False):
            made._left = [numbers()]
        made.ended = not made._left
        return get_next(stream, out)

    _replace(made, 1, again)


def keeps_release(made: RawStream) -> None:
    """Leaves release as it is."""
    _replace(made, 3, lambda _stream: None)


def of_this_thread(made: RawStream) -> None:
    """Works on the thread that made it only."""
    home, get_next = threading.get_ident(), made._get_next

    def guarded(stream: int, out: int) -> int:
        return get_next(stream, out) if threading.get_ident() == home else 1

    _replace(made, 1, guarded)


def ends_with_arrays(made: RawStream) -> None:
    """Releases its arrays with itself."""
    arrays, release = list(made.arrays), made._release

    def release_all(stream: int) -> None:
        release(stream)
        for array in arrays:
            array._release = None
            array._callback(array.address)

    for array in arrays:
        array.moved_release = array._release

        def once(address: int, array: Any = array) -> None:
            if not array.released:
                RawArray._release(array, address)

        array._callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(once)
        array.struct.release = ctypes.cast(array._callback, type(array.struct.release))
        KEPT.append(array)
    _replace(made, 3, release_all)


def _replace(made: RawStream, index: int, function: Callable[..., Any]) -> None:
    old = made._owners[index]
    made._owners[index] = new = type(old)(function)
    KEPT.append((made, old, new))
    name = ("get_schema", "get_next", "get_last_error", "release")[index]
    setattr(made.struct, name, ctypes.cast(new, ctypes.c_void_p).value)


class SilentFailing(Failing):
    """A negative code."""

    def stream(self, device: Any = None) -> RawStream:
        made = super().stream(device)
        _replace(made, 1, lambda _stream, _out: -1)
        return made


class MixedDevices(Forgetful):
    """The stream says CUDA, its arrays the CPU."""

    def stream(self, device: Any = None) -> RawStream:
        made = super().stream(device)
        if device is not None:
            made.struct.device_type = 2
        return made


WRONG: dict[str, Any] = {
    "arrow-methods": NoMethods,
    "arrow-requested-schema": NoRequests,
    "arrow-incompatible-request": AnyRequest,
    "arrow-request-kept": KeepsRequests,
    "arrow-capsules": WrongName,
    "arrow-capsule-releases": NoDestructor,
    "arrow-again": OnePair,
    "arrow-schema-agrees": OtherSchema,
    "arrow-format": of_schema(set_field("format", b"?", 0)),
    "arrow-schema-children": of_schema(set_field("n_children", 0, 2)),
    "arrow-schema-flags": of_schema(set_field("flags", 64)),
    "arrow-metadata": of_schema(no_metadata_length),
    "arrow-array-children": of_array(set_field("n_children", 2)),
    "arrow-dictionary": of_array(set_field("dictionary", None, 1)),
    "arrow-n-buffers": of_array(set_field("n_buffers", 1, 0)),
    "arrow-length": of_array(set_field("offset", -1, 0)),
    "arrow-null-count": of_array(set_field("null_count", 0, 0)),
    "arrow-null-buffer": of_array(null_values),
    "arrow-alignment": of_array(odd_address),
    "arrow-offsets": of_array(falling_offsets),
    "arrow-child-length": of_array(set_field("length", 3, 0)),
    "arrow-dictionary-indices": of_array(odd_index),
    "arrow-not-nullable": of_schema(set_field("flags", 0, 0)),
    "arrow-release-marks": NeverMarks,
    "arrow-release-children": ForgetsChildren,
    "arrow-moves": FixedAddress,
    "arrow-child-moves": ChildrenOfParent,
    "arrow-releases-data": KeptForever,
    "arrow-lifetime": Dangling,
    "arrow-threads": NotForThreads,
    "arrow-stream-callbacks": of_stream(lambda made: set_field("get_last_error", None)(made)),
    "arrow-stream-schema": of_stream(no_schema),
    "arrow-stream-next": of_stream(fails_at_once),
    "arrow-stream-end": of_stream(wraps_around),
    "arrow-stream-error": Forgetful,  # with failing=SilentFailing
    "arrow-stream-chunks": of_stream(ends_with_arrays),
    "arrow-stream-release": of_stream(keeps_release),
    "arrow-stream-lock": of_stream(of_this_thread),
    "arrow-device-keywords": AnyKeyword,
    "arrow-device-type": MixedDevices,
    "arrow-device-event": of_device(lambda struct: setattr(struct, "sync_event", 8)),
    "arrow-device-reserved": of_device(lambda struct: struct.reserved.__setitem__(1, 7)),
}
IN_A_PROCESS = {
    "arrow-release-thread": "release_needs_the_lock",
    "arrow-capsule-moved": "no_look",
}  # it crashes: below


@pytest.mark.parametrize("rule", WRONG)
def test_a_wrong_producer_is_found(rule: str) -> None:
    assert finds(ARROW_PRODUCER, rule, WRONG[rule], failing=SilentFailing)


def test_every_rule_can_fail() -> None:
    assert {*WRONG, *IN_A_PROCESS} == rules_of("arrow-")


@pytest.mark.parametrize("rule", IN_A_PROCESS)
def test_a_crash_is_a_finding(rule: str) -> None:
    report = check_arrow_producer(f"helpers.conformance:{IN_A_PROCESS[rule]}", isolate=True)
    crashes = {found.rule.id for found in report.errors if "killed by SIGSEGV" in found.seen}
    assert rule in crashes, str(report)
    assert "arrow-threads" in report.passed, "the cases after it have run"


# ---------------------------------------------------------------------------
# Libraries

TABLE = pa.table({"a": [1, 2, None], "b": ["x", "yy", None], "l": [[1], [], [2, 3]]})


@pytest.mark.parametrize(
    "make",
    [
        lambda: arrowdl.from_arrow(TABLE),
        lambda: arrowdl.from_arrow(TABLE)[1:],
        lambda: arrowdl.from_arrow(TABLE)["b"],
        lambda: arrowdl.from_arrow(pa.array(["p", "q", None]).dictionary_encode()),
        lambda: arrowdl.from_arrow_stream(TABLE),
        lambda: arrowdl.from_arrow_stream(TABLE).rebatch(2).prefetch(),
        lambda: TABLE,
        lambda: TABLE.to_reader(),
    ],
    ids=["struct", "slice", "field", "dictionary", "stream", "adaptors", "pa.Table",
         "pa.RecordBatchReader"],
)  # fmt: skip
def test_libraries_without_findings(make: Callable[[], Any]) -> None:
    report = check_arrow_producer(make)
    assert (report.errors, report.warnings) == ((), ()), str(report)


def test_known_findings_of_libraries() -> None:
    """polars 2.1 ignores requests; nanoarrow 0.9 refuses its own schema; pyarrow 26 leaves the
    reserved bytes of record batches as they were."""
    assert found_by(check_arrow_producer(lambda: pl.Series([1, None]))) == {
        "arrow-incompatible-request"
    }
    of_nanoarrow = check_arrow_producer(lambda: na.Array([1, None], na.int32()))
    assert found_by(of_nanoarrow) == {"arrow-requested-schema"}
    batch = TABLE.to_batches()[0]
    assert found_by(check_arrow_producer(lambda: batch)) == {"arrow-device-reserved"}


def failing_rows() -> Iterator[pa.RecordBatch]:
    yield TABLE.to_batches()[0]
    raise ValueError("the disk is full")


def test_a_stream_of_arrowdl_says_why_it_fails() -> None:
    report = check_arrow_producer(
        lambda: arrowdl.from_arrow_stream(TABLE),
        failing=lambda: arrowdl.from_arrow_stream(failing_rows()),
    )
    assert "arrow-stream-error" in report.passed, str(report)
