"""What exports do to the life of the object that makes them: references, threads, memory."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

from arrowdl.testing._managed import on_threads
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import outcome_of

_EXPORTS = 8


def expect_no_growth(
    rule: str,
    to: Recorder,
    array: Any,  # what is exported
    export: Callable[[], object],  # exports it, and releases the export
) -> None:
    """Expect that exports leave an object as many references as it had."""
    gc.collect()
    before = sys.getrefcount(array)
    for _ in range(_EXPORTS):
        export()
    gc.collect()
    grown = sys.getrefcount(array) - before
    to.expect(
        grown == 0,
        f"the object has {abs(grown)} {'more' if grown > 0 else 'fewer'} references after "
        f"{_EXPORTS} exports were released",
        rule=rule,
    )


def expect_end(
    rule: str, to: Recorder, make: Callable[[], Any], export: Callable[[Any], object]
) -> None:
    """Expect that nothing keeps an object alive after its export was released."""
    exported = make()
    if exported is make():  # somebody else holds it
        return
    try:
        alive = weakref.ref(exported)
    except TypeError:
        return
    held = [export(exported)]
    del exported
    gc.collect()
    held.clear()
    gc.collect()
    to.expect(alive() is None, "the object is alive after its export was released", rule=rule)


def expect_same_after(
    rule: str,
    to: Recorder,
    read: Callable[[], Any],  # the values of an export
    forget: Callable[[], object],  # lets go of its object
) -> None:
    """Expect that an export has its values once its object is gone."""
    before = read()
    forget()
    gc.collect()
    scratch = [ctypes.create_string_buffer(b"\xa5" * 4096, 4096) for _ in range(64)]
    after = read()
    del scratch
    seen = f"the values change from {before[:4]} to {after[:4]} once the object is gone"
    to.expect(repr(before) == repr(after), seen, rule=rule)


def expect_threads(
    rule: str, to: Recorder, array: Any, export: Callable[[], object], exports: int
) -> None:
    """Expect that several threads can export an object at the same time."""

    def work() -> None:
        for _ in range(exports):
            export()

    gc.collect()
    before = sys.getrefcount(array)
    raised = on_threads(4, work)
    gc.collect()
    lost = sys.getrefcount(array) - before
    to.expect(
        not raised and lost == 0, outcome_of(raised, f"{lost} references are left"), rule=rule
    )
