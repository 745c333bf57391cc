"""The cases of `check_arrow_producer` that are about release and the life of the data."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
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
from arrowdl.testing._managed import on_threads
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._structs import HOST_READABLE, ArrowArray, ArrowSchema


def _unconsumed(producer: ArrowProducer, to: Recorder) -> None:
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


def _moved(producer: ArrowProducer, to: Recorder) -> None:
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


def _children(producer: ArrowProducer, to: Recorder) -> None:
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


def _child_moves(producer: ArrowProducer, to: Recorder) -> None:
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


def _release_thread(producer: ArrowProducer, to: Recorder) -> None:
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


def _references(producer: ArrowProducer, to: Recorder) -> None:
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


def _lifetime(producer: ArrowProducer, to: Recorder) -> None:
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


def _threads(producer: ArrowProducer, to: Recorder) -> None:
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


CASES = (
    Case("unconsumed capsules", "arrow-capsule-releases", _unconsumed),
    Case("moved structs", "arrow-capsule-moved", _moved),
    Case("children", "arrow-release-children", _children),
    Case("a child moved out", "arrow-child-moves", _child_moves),
    Case("release on a thread", "arrow-release-thread", _release_thread),
    Case("references", "arrow-releases-data", _references),
    Case("lifetime", "arrow-lifetime", _lifetime),
    Case("threads", "arrow-threads", _threads),
)
