"""The cases of `check_dlpack_producer` that are about release."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from typing import Any

from arrowdl.testing._capsules import capsule_destructor
from arrowdl.testing._dlpack_producer import Producer, each_export, needs_tensor
from arrowdl.testing._managed import (
    CountedDeleter,
    Exported,
    can_read,
    deleter_address,
    on_threads,
    read_values,
    size_of,
)
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote


def _releases(producer: Producer, to: Recorder) -> None:
    for name, made in each_export(producer):
        with to.trying(name):
            if not deleter_address(made.managed):
                to.skip("dlpack-capsule-releases", "the deleter is NULL")
                continue
            has_destructor = capsule_destructor(made.capsule) != 0
            counted = CountedDeleter(made.managed)
            made.capsule = None
            gc.collect()
            if has_destructor and counted.calls == 0:
                why = "the capsule's destructor does not go through the deleter of the struct"
                to.skip("dlpack-capsule-releases", why)
                continue
            to.expect(
                "dlpack-capsule-releases",
                counted.calls == 1,
                f"the deleter was called {counted.calls} times",
                "give the capsule a destructor that calls the deleter once",
            )


def _used(producer: Producer, to: Recorder) -> None:
    for name, made in each_export(producer):
        with to.trying(name):
            if not deleter_address(made.managed):
                to.skip("dlpack-capsule-used", "the deleter is NULL")
                continue
            counted = CountedDeleter(made.managed)
            made.take()
            made.capsule = None
            gc.collect()
            calls = counted.calls
            if calls == 0:
                made.delete()
            to.expect(
                "dlpack-capsule-used",
                calls == 0,
                f"the destructor of a consumed capsule called the deleter {calls} times",
                "call it only if the capsule still has its first name: the consumer owns the rest",
            )


def _again(producer: Producer, to: Recorder) -> None:
    array, options = producer.make(), producer.options()
    first = Exported(array.__dlpack__(**options))
    second = Exported(array.__dlpack__(**options))
    own = first.capsule is not second.capsule and first.address != second.address
    if to.expect(
        "dlpack-again",
        own,
        "two exports share a capsule or a struct",
        "make a new struct and a new capsule for each call",
    ):
        first.take_and_delete()
        if can_read(second.tensor) and size_of(second.tensor):
            read_values(second.tensor)


def _releases_array(producer: Producer, to: Recorder) -> None:
    """By its reference count, and for a factory by a weak reference too."""
    kept, options = producer.make(), producer.options()
    for _ in range(2):  # the first export may fill a cache of the array
        Exported(kept.__dlpack__(**options)).take_and_delete()
    gc.collect()
    before = sys.getrefcount(kept)
    for _ in range(8):
        Exported(kept.__dlpack__(**options)).take_and_delete()
    gc.collect()
    after = sys.getrefcount(kept)
    grown = after - before
    to.expect(
        "dlpack-releases-array",
        grown == 0,
        f"the array has {abs(grown)} {'more' if grown > 0 else 'fewer'} references after 8 exports "
        "were released",
        "let the deleter drop exactly the reference that the export took",
    )
    del kept
    array = producer.make()
    if array is producer.make():  # somebody else holds it
        return
    try:
        alive = weakref.ref(array)
    except TypeError:
        return
    made = Exported(array.__dlpack__(**options))
    del array
    gc.collect()
    made.take_and_delete()
    made.capsule = None
    gc.collect()
    to.expect(
        "dlpack-releases-array",
        alive() is None,
        "the array is alive after its export was released",
        "let the deleter drop the reference that the export took",
    )


def _lifetime(producer: Producer, to: Recorder) -> None:
    if not producer.is_factory:
        to.skip("dlpack-lifetime", "pass a function that makes the array, so that it can go")
        return
    kept: Any = producer.make()
    made = Producer(lambda: kept, False, None, None).best()
    if not can_read(made.tensor) or size_of(made.tensor) == 0:
        to.skip("dlpack-lifetime", "the host cannot read this memory or type")
        return
    before = read_values(made.tensor)
    kept = None
    gc.collect()
    scratch = [ctypes.create_string_buffer(b"\xa5" * 4096, 4096) for _ in range(64)]
    after = read_values(made.tensor)
    del scratch
    to.expect(
        "dlpack-lifetime",
        repr(before) == repr(after),
        f"the values change from {before[:4]} to {after[:4]} once the array is gone",
        "let the export keep the memory alive until its deleter is called",
    )


def _deleter_thread(producer: Producer, to: Recorder) -> None:
    made = producer.best()
    made.take()
    raised = on_threads(1, lambda: made.delete(with_lock=False))
    to.expect(
        "dlpack-deleter-thread",
        not raised,
        f"raised {quote(raised[0]) if raised else ''}",
        "take the interpreter lock in the deleter (PyGILState_Ensure) if it touches Python",
    )


def _threads(producer: Producer, to: Recorder) -> None:
    kept, options = producer.make(), producer.options()

    def work() -> None:
        for _ in range(20):
            Exported(kept.__dlpack__(**options)).take_and_delete()

    gc.collect()
    before = sys.getrefcount(kept)
    raised = on_threads(4, work)
    gc.collect()
    lost = sys.getrefcount(kept) - before
    to.expect(
        "dlpack-threads",
        not raised and lost == 0,
        f"raised {quote(raised[0])}" if raised else f"{lost} references are left",
        "protect what exports of one array share",
    )


CASES = (
    Case("unconsumed capsules", "dlpack-capsule-releases", needs_tensor(_releases)),
    Case("consumed capsules", "dlpack-capsule-used", needs_tensor(_used)),
    Case("two exports", "dlpack-again", needs_tensor(_again)),
    Case("references", "dlpack-releases-array", needs_tensor(_releases_array)),
    Case("lifetime", "dlpack-lifetime", needs_tensor(_lifetime)),
    Case("deleter on a thread", "dlpack-deleter-thread", needs_tensor(_deleter_thread)),
    Case("threads", "dlpack-threads", needs_tensor(_threads)),
)
