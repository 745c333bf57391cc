"""The cases of `check_arrow_producer` that are about release and the life of the data."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

from arrowdl.testing._arrow_layout import addresses_of, children_of, find_layout
from arrowdl.testing._arrow_producer import ArrowProducer, each_array
from arrowdl.testing._exported_arrow import (
    ARRAYS,
    DEVICE_METHODS,
    CountedRelease,
    Held,
    array_of,
    copy_struct,
    release_struct,
)
from arrowdl.testing._life import expect_end, expect_no_growth, expect_same_after, expect_threads
from arrowdl.testing._managed import on_threads
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, outcome_of
from arrowdl.testing._structs import HOST_READABLE, ArrowArray, ArrowSchema


def _unconsumed(producer: ArrowProducer, method: str, to: Recorder) -> None:
    for held in producer.export_array(method):
        expect_capsule_release(held, to)


def expect_capsule_release(held: Held, to: Recorder) -> None:
    """Expect that a capsule releases a struct that no consumer took from it."""
    counted = held.count()
    held.capsule = None
    gc.collect()
    to.expect(
        counted.calls == 1,
        f'release of "{held.name}" was called {counted.calls} times',
        rule="arrow-capsule-releases",
    )


def take_out(held: Held, to: Recorder, what: str) -> tuple[Any, CountedRelease]:
    """Return the struct of a capsule at a new address; expect that the capsule leaves it alone."""
    moved = array_of(copy_struct(held.struct))
    counted = CountedRelease(moved)
    held.capsule = None
    gc.collect()
    to.expect(
        counted.calls == 0,
        f'the destructor of a consumed "{held.name}" released the {what}',
        rule="arrow-capsule-moved",
    )
    return moved, counted


def _moved(producer: ArrowProducer, method: str, to: Recorder) -> None:
    for held in producer.export_array(method):
        counted = held.count()
        held.release()
        to.expect(
            counted.marked,
            f'release of "{held.name}" does not set release to NULL',
            rule="arrow-release-marks",
        )
    for held in producer.export_array(method):
        base, counted = take_out(held, to, "data")
        _read_all(base)
        release_struct(base)
        to.expect(
            counted.calls == 1 and counted.marked,
            f'"{held.name}" is not released at its new address',
            rule="arrow-moves",
        )


def _read_all(struct: Any) -> None:
    """Reads a byte of every buffer, or the format of every schema."""
    for child in children_of(struct):
        _read_all(child)
    if isinstance(struct, ArrowSchema):
        assert struct.format


def _children(producer: ArrowProducer, method: str, to: Recorder) -> None:
    for held in producer.export_array(method):
        counted = [CountedRelease(node) for node in _below(held.base) if node.release]
        held.release()
        calls = [one.calls for one in counted]
        to.expect(
            all(count == 1 for count in calls),
            f'the release callbacks of children of "{held.name}" were called {calls} times',
        )


def _below(struct: Any) -> list[Any]:
    direct = children_of(struct) + ([struct.dictionary.contents] if struct.dictionary else [])
    return [node for part in direct for node in (part, *_below(part))]


def _child_moves(producer: ArrowProducer, method: str, to: Recorder) -> None:
    schema, array = producer.export_array(method)
    children = zip(children_of(schema.struct), children_of(array.base), strict=True)
    if (first := next(children, None)) is None:
        to.skip("the data have no children")
        return
    below, child = first
    before = _bytes_of(below, child)
    taken = copy_struct(child)
    array.release()
    gc.collect()
    counted = CountedRelease(taken)
    after = _bytes_of(below, taken)
    release_struct(taken)
    to.expect(
        before == after and counted.calls == 1 and counted.marked,
        "a child that was moved out does not outlive its parent",
    )


def _bytes_of(schema: ArrowSchema, array: ArrowArray) -> bytes:
    """The values of a primitive array in host memory; nothing for others."""
    layout = find_layout(schema.format.decode())
    if layout is None or "values" not in layout.buffers or not array.length:
        return b""
    address = addresses_of(array)[1]
    start = address + array.offset * layout.width
    return ctypes.string_at(start, array.length * layout.width)


def _release_thread(producer: ArrowProducer, method: str, to: Recorder) -> None:
    for held in producer.export_array(method):
        raised = on_threads(1, held.release)
        to.expect(not raised and not held.base.release, outcome_of(raised, "release is not marked"))


def _references(producer: ArrowProducer, method: str, to: Recorder) -> None:
    source = producer.make()
    getattr(source, method)()

    def export() -> None:
        schema, array = getattr(source, method)()
        Held(schema, "arrow_schema").release()
        Held(array, ARRAYS[method]).release()

    expect_no_growth("arrow-releases-data", to, source, export)
    expect_end("arrow-releases-data", to, producer.make, lambda source: getattr(source, method)())


def _lifetime(producer: ArrowProducer, method: str, to: Recorder) -> None:
    if not producer.is_factory:
        to.skip("pass a function that makes the object, so that it can go")
        return
    arrays = [producer.make()]
    schema, array = ArrowProducer(lambda: arrays[0], False, None).export_array(method)
    if method in DEVICE_METHODS and array.struct.device_type not in HOST_READABLE:
        return
    expect_same_after(
        "arrow-lifetime", to, lambda: _all_bytes(schema.struct, array.base), arrays.clear
    )


def _all_bytes(schema: ArrowSchema, array: ArrowArray) -> list[bytes]:
    below = zip(children_of(schema), children_of(array), strict=True)
    return [_bytes_of(schema, array), *(part for pair in below for part in _all_bytes(*pair))]


def _threads(producer: ArrowProducer, method: str, to: Recorder) -> None:
    array = producer.make()
    expect_threads("arrow-threads", to, array, getattr(array, method), 10)


CASES = (
    Case("unconsumed capsules", "arrow-capsule-releases", each_array(_unconsumed)),
    Case("moved structs", "arrow-capsule-moved", each_array(_moved)),
    Case("children", "arrow-release-children", each_array(_children)),
    Case("a child moved out", "arrow-child-moves", each_array(_child_moves)),
    Case("release on a thread", "arrow-release-thread", each_array(_release_thread)),
    Case("references", "arrow-releases-data", each_array(_references)),
    Case("lifetime", "arrow-lifetime", each_array(_lifetime)),
    Case("threads", "arrow-threads", each_array(_threads)),
)
