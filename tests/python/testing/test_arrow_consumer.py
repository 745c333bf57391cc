"""Consumers of Arrow data that break one rule each, and those of the libraries."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import Any

import arrowdl
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from arrowdl.testing import RULES, Report, check_arrow_consumer
from arrowdl.testing._checks import ARROW_CONSUMER
from arrowdl.testing._exported_arrow import (
    ARRAYS,
    STREAMS,
    STRUCTS,
    Held,
    StreamReader,
    array_of,
    copy_struct,
    release_struct,
)
from arrowdl.testing._structs import ArrowArray, ArrowSchema
from helpers.conformance import finds

KEPT: list[Any] = []  # of consumers that leak


class Result:
    """What was imported: a schema and arrays, which are released with it."""

    def __init__(self, schema: Any, arrays: list[Any], release: Callable[[Any], None]) -> None:
        self.schema, self.arrays = schema, arrays
        self.copied: list[Any] | None = None
        for struct in (schema, *map(array_of, arrays)):
            weakref.finalize(self, release, struct)

    def to_pylist(self) -> list[Any]:
        if self.copied is not None:
            return self.copied
        rows: list[Any] = []
        for array in self.arrays:
            copy, schema = _borrow(array_of(array)), _borrow(self.schema)
            made = pa.Array._import_from_c(ctypes.addressof(copy), ctypes.addressof(schema))
            made.validate(full=True)
            rows += made.to_pylist()
        return rows


def _mark(kind: Any) -> Any:
    """A release callback of a struct that somebody else owns: it marks the struct."""

    def mark(address: int) -> None:
        struct = kind.from_address(address)
        struct.release = type(struct.release)()

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(mark)


MARKS = {kind: _mark(kind) for kind in (ArrowArray, ArrowSchema)}


def _borrow(struct: Any) -> Any:
    """A copy of an array or a schema whose release callback releases nothing."""
    kind = type(struct)
    copy = kind.from_buffer_copy(struct)
    copy.release = ctypes.cast(MARKS[kind], type(copy.release))
    KEPT.append(copy)
    return copy


class Good:
    """Imports what has a method of Arrow, and keeps all rules."""

    def __call__(self, x: Any) -> Result:
        for method in (*STREAMS, *ARRAYS):
            if hasattr(x, method):
                break
        exported = self.export(x, method)
        if method in ARRAYS:
            schema, array = (self.hold(part) for part in exported)
            if array.name == "arrow_device_array" and not self.reads(array.struct.device_type):
                raise BufferError("only the CPU")
            moved = [self.move(schema), self.move(array)]
            try:
                self.look(moved[0])
                self.count(moved[0], array_of(moved[1]))
            except ValueError:
                self.give_up(moved)
                raise
            return self.result(moved[0], moved[1:])
        stream = self.move(self.hold(exported))
        if getattr(stream, "device_type", 1) != 1 and not self.reads(stream.device_type):
            release_struct(stream)
            raise BufferError("only the CPU")
        return self.read(StreamReader(stream))

    def export(self, x: Any, method: str) -> Any:
        return getattr(x, method)()

    def hold(self, capsule: Any) -> Held:
        from arrowdl.testing._capsules import capsule_name

        name = capsule_name(capsule)
        held = Held(capsule, name) if name in STRUCTS else self.odd(capsule)
        if not held.base.release:
            self.refuse_released()
        return held

    def odd(self, capsule: Any) -> Held:
        raise ValueError("not a capsule of Arrow")

    def refuse_released(self) -> None:
        raise ValueError("consumed before")

    def reads(self, device_type: int) -> bool:
        return device_type == 1

    def move(self, held: Held) -> Any:
        return copy_struct(held.struct)

    def look(self, schema: Any) -> None:
        if schema.format == b"?" or any(
            schema.children[index].contents.format == b"?" for index in range(schema.n_children)
        ):
            raise ValueError("unknown format")

    def count(self, schema: Any, array: Any) -> None:
        pairs = [(schema, array)]
        pairs += [
            (schema.children[index].contents, array.children[index].contents)
            for index in range(schema.n_children)
        ]
        if any(below.format == b"i" and child.n_buffers != 2 for below, child in pairs):
            raise ValueError("too few buffers")

    def give_up(self, moved: list[Any]) -> None:
        for struct in moved:
            release_struct(array_of(struct))

    def result(self, schema: Any, arrays: list[Any]) -> Result:
        return Result(schema, arrays, self.release)

    def release(self, struct: Any) -> None:
        release_struct(struct)

    def read(self, reader: StreamReader) -> Result:
        _, schema = reader.get_schema()
        arrays: list[Any] = []
        try:
            self.look(schema)
            while True:
                status, made = reader.get_next()
                if status:
                    raise self.error(reader)
                if not array_of(made).release:
                    break
                arrays.append(made)
                self.count(schema, array_of(made))
                if self.is_enough(arrays):
                    break
        except Exception:
            self.give_up([schema, *arrays])
            raise
        finally:
            self.close(reader)
        return self.result(schema, arrays)

    def is_enough(self, arrays: list[Any]) -> bool:
        return False

    def error(self, reader: StreamReader) -> Exception:
        return OSError(str(reader.get_last_error()))

    def close(self, reader: StreamReader) -> None:
        reader.release()


def read(result: Result) -> list[Any]:
    return result.to_pylist()


def found_by(report: Report) -> set[str]:
    return {found.rule.id for found in (*report.errors, *report.warnings)}


def rules_of(prefix: str) -> set[str]:
    return {name for name in RULES if name.startswith(prefix)}


PROTOCOLS = ["array", "device_array", "stream", "device_stream"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tables", [False, True])
def test_a_good_consumer_has_no_findings(protocol: Any, tables: bool) -> None:
    report = check_arrow_consumer(Good(), protocol=protocol, tables=tables, read=read)
    assert (report.errors, report.warnings) == ((), ()), str(report)
    if protocol == "device_stream":
        assert set(report.passed) == rules_of("from-arrow-")


# ---------------------------------------------------------------------------
# Wrong ones


class Changes(Good):
    """Reads arrays that `change` has changed, at each level."""

    def __init__(self, change: Callable[[Any], None]) -> None:
        self.change = change

    def result(self, schema: Any, arrays: list[Any]) -> Result:
        result = super().result(schema, [])
        result.arrays = [self.changed(array_of(array)) for array in arrays]
        KEPT.append(arrays)
        return result

    def changed(self, array: Any) -> Any:
        copy = ArrowArray.from_buffer_copy(array)
        children = [self.changed(array.children[i].contents) for i in range(array.n_children)]
        pointers = (ctypes.POINTER(ArrowArray) * max(len(children), 1))(
            *map(ctypes.pointer, children)
        )
        if children:
            copy.children = ctypes.cast(pointers, type(copy.children))
        self.change(copy)
        KEPT.extend((children, pointers))
        return copy


def no_offset(array: Any) -> None:
    array.offset = 0


def no_offset_of_children(array: Any) -> None:
    for index in range(array.n_children):
        array.children[index].contents.offset = 0


def no_nulls(array: Any) -> None:
    if array.n_buffers == 2 and array.null_count > 0:
        array.null_count = 0


def uncounted_is_none(array: Any) -> None:
    array.null_count = max(array.null_count, 0)


class RefusesBuffers(Good):
    """Refuses NULL buffers, however long they are."""

    def count(self, schema: Any, array: Any) -> None:
        super().count(schema, array)
        if array.n_buffers > 1 and not array.buffers[array.n_buffers - 1]:
            self.refuse()

    def refuse(self) -> None:
        raise ValueError("a NULL buffer")


class NoLists(Good):
    def look(self, schema: Any) -> None:
        super().look(schema)
        if schema.format == b"+l":
            raise ValueError("no lists")


class LeavesIt(Good):
    """Copies, and leaves the structs to their capsules."""

    def move(self, held: Held) -> Any:
        KEPT.append(held.capsule)
        return _borrow(held.struct)


class NeverReleases(Good):
    def release(self, struct: Any) -> None:
        KEPT.append(struct)


class ReleasesAtOnce(Changes):
    def result(self, schema: Any, arrays: list[Any]) -> Result:
        result = super().result(schema, arrays)
        for array in arrays:
            release_struct(array_of(array))
        return result


class ReleasesChildren(Good):
    def release(self, struct: Any) -> None:
        for index in range(struct.n_children):
            release_struct(struct.children[index].contents)
        release_struct(struct)


class TakesReleased(Good):
    def refuse_released(self) -> None:
        """Goes on."""


class AnyName(Good):
    def odd(self, capsule: Any) -> Held:
        from arrowdl.testing._capsules import rename_capsule

        rename_capsule(capsule, "arrow_array_stream")
        return Held(capsule, "arrow_array_stream")


class OwnErrors(Good):
    def export(self, x: Any, method: str) -> Any:
        try:
            return super().export(x, method)
        except Exception:
            raise RuntimeError("cannot import") from None


class LeaksRefused(Good):
    def give_up(self, moved: list[Any]) -> None:
        KEPT.extend(moved)


class OfOneThread(Good):
    def result(self, schema: Any, arrays: list[Any]) -> Result:
        home = threading.get_ident()

        def release(struct: Any) -> None:
            KEPT.append(struct) if threading.get_ident() != home else release_struct(struct)

        return Result(schema, arrays, release)


class FirstOnly(Good):
    def is_enough(self, arrays: list[Any]) -> bool:
        return True


class NoText(Good):
    def error(self, reader: StreamReader) -> Exception:
        return OSError("a stream failed")


class AsksForErrors(Good):
    def close(self, reader: StreamReader) -> None:
        reader.get_next()
        reader.get_last_error()
        super().close(reader)


class AnyDevice(Good):
    """Believes that all memory is the host's; does not look at it, so that it does not crash."""

    def reads(self, device_type: int) -> bool:
        return True

    def result(self, schema: Any, arrays: list[Any]) -> Result:
        result = super().result(schema, arrays)
        if any(getattr(array, "device_type", 1) != 1 for array in arrays):
            result.copied = [0, 0, 0]
        return result


WRONG: dict[str, Good] = {
    "from-arrow-reads": NoLists(),
    "from-arrow-offset": Changes(no_offset),
    "from-arrow-nulls": Changes(no_nulls),
    "from-arrow-null-count": Changes(uncounted_is_none),
    "from-arrow-empty": RefusesBuffers(),
    "from-arrow-nested": Changes(no_offset_of_children),
    "from-arrow-moves": LeavesIt(),
    "from-arrow-releases": NeverReleases(),
    "from-arrow-keeps": ReleasesAtOnce(lambda _: None),
    "from-arrow-children": ReleasesChildren(),
    "from-arrow-released": TakesReleased(),
    "from-arrow-wrong-capsule": AnyName(),
    "from-arrow-raises": OwnErrors(),
    "from-arrow-refused": LeaksRefused(),
    "from-arrow-thread": OfOneThread(),
    "from-arrow-stream": FirstOnly(),
    "from-arrow-stream-error": NoText(),
    "from-arrow-stream-use": AsksForErrors(),
    "from-arrow-device": AnyDevice(),
}
OF_ARRAYS = {"from-arrow-moves", "from-arrow-keeps", "from-arrow-released", "from-arrow-children"}


@pytest.mark.parametrize("rule", WRONG)
def test_a_wrong_consumer_is_found(rule: str) -> None:
    protocol = "array" if rule in OF_ARRAYS else "device_stream"
    if rule == "from-arrow-wrong-capsule":
        protocol = "stream"
    assert finds(ARROW_CONSUMER, rule, WRONG[rule], protocol=protocol, read=read)


def test_every_rule_can_fail() -> None:
    assert set(WRONG) == rules_of("from-arrow-")


# ---------------------------------------------------------------------------
# Libraries


def rows(array: Any) -> list[Any]:
    return pa.array(array).to_pylist()


def all_rows(stream: Any) -> list[Any]:
    return [row for array in stream for row in pa.array(array).to_pylist()]


@pytest.mark.parametrize(
    ("consume", "options"),
    [
        (arrowdl.from_arrow, {"read": rows}),
        (arrowdl.from_arrow, {"read": rows, "protocol": "device_array"}),
        (arrowdl.from_arrow, {"read": rows, "protocol": "stream", "tables": True}),
        (arrowdl.from_arrow_stream, {"read": all_rows, "protocol": "device_stream"}),
        (pa.array, {}),
        (pa.array, {"protocol": "device_array"}),
        (pa.table, {"protocol": "stream", "tables": True}),
        (pl.DataFrame, {"protocol": "stream", "tables": True}),
    ],
    ids=["array", "device array", "stream", "device stream", "pa.array", "pa.array on a device",
         "pa.table", "pl.DataFrame"],
)  # fmt: skip
def test_libraries_without_findings(consume: Any, options: dict[str, Any]) -> None:
    report = check_arrow_consumer(consume, **options)
    assert (report.errors, report.warnings) == ((), ()), str(report)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match='protocol="arrays" is not one of array, stream'):
        check_arrow_consumer(pa.array, protocol="arrays")  # type: ignore[arg-type]


class Numbers(Good):
    """Has numbers alone, without nulls."""

    def look(self, schema: Any) -> None:
        if len(schema.format) != 1 or schema.format not in b"cCsSiIlLefg":
            raise ValueError("numbers alone")
        super().look(schema)

    def count(self, schema: Any, array: Any) -> None:
        super().count(schema, array)
        if array.null_count:
            raise ValueError("no nulls")


def test_a_library_of_numbers_says_what_it_takes() -> None:
    assert len(check_arrow_consumer(Numbers()).errors) > 5
    report = check_arrow_consumer(Numbers(), types=["int32", "float64"])
    assert report.errors == ()
    assert {finding.rule.id for finding in report.skipped} >= {"from-arrow-nulls"}
    assert "types= has no nulls, which is refused" in str(report)


def test_what_a_library_says_that_it_takes_may_not_be_refused() -> None:
    report = check_arrow_consumer(Numbers(), types=["int32", "string"])
    assert {finding.case for finding in report.errors if finding.rule.id == "from-arrow-reads"} == {
        "strings"
    }


def test_arrays_in_the_place_of_values_are_wrong_values() -> None:
    report = check_arrow_consumer(pa.array, read=lambda rows: [np.array([1, 2])] * len(rows))
    assert report.errors
    for error in report.errors:
        assert error.seen.startswith("reads [array"), str(error)


def test_wrong_values_of_types_that_are_not_named_are_errors() -> None:
    class Wrong(Good):
        def result(self, schema: Any, arrays: list[Any]) -> Result:
            made = super().result(schema, arrays)
            if schema.format == b"u":
                made.copied = ["wrong"]
            return made

    assert check_arrow_consumer(Good(), types=["int32"]).errors == ()
    report = check_arrow_consumer(Wrong(), types=["int32"])
    assert any("wrong" in finding.seen for finding in report.errors)


@pytest.mark.parametrize(
    ("types", "message"), [(["int32", "int"], "names 'int'"), ("string", 'lacks "int32"')]
)
def test_types_are_named(types: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_arrow_consumer(Good(), types=types)
