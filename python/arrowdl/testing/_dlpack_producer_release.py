"""The cases of `check_dlpack_producer` that are about release."""

from __future__ import annotations

import gc
from typing import Any

from arrowdl.testing._capsules import capsule_destructor
from arrowdl.testing._dlpack_producer import Producer, each_export, needs_tensor
from arrowdl.testing._life import expect_end, expect_no_growth, expect_same_after, expect_threads
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
from arrowdl.testing._run import Case, outcome_of


def _releases(producer: Producer, to: Recorder) -> None:
    for name, export in each_export(producer):
        with to.trying(name):
            if not deleter_address(export.managed):
                to.skip("the deleter is NULL")
                continue
            has_destructor = capsule_destructor(export.capsule) != 0
            counted = CountedDeleter(export.managed)
            export.capsule = None
            gc.collect()
            if has_destructor and counted.calls == 0:
                why = "the capsule's destructor does not go through the deleter of the struct"
                to.skip(why)
                continue
            to.expect(counted.calls == 1, f"the deleter was called {counted.calls} times")


def _used(producer: Producer, to: Recorder) -> None:
    for name, export in each_export(producer):
        with to.trying(name):
            if not deleter_address(export.managed):
                to.skip("the deleter is NULL")
                continue
            counted = CountedDeleter(export.managed)
            export.take()
            export.capsule = None
            gc.collect()
            calls = counted.calls
            if calls == 0:
                export.delete()
            to.expect(
                calls == 0, f"the destructor of a consumed capsule called the deleter {calls} times"
            )


def _again(producer: Producer, to: Recorder) -> None:
    array, options = producer.make(), producer.options()
    first = Exported(array.__dlpack__(**options))
    second = Exported(array.__dlpack__(**options))
    is_new = first.capsule is not second.capsule and first.address != second.address
    if to.expect(is_new, "two exports share a capsule or a struct"):
        first.take_and_delete()
        if can_read(second.tensor) and size_of(second.tensor):
            read_values(second.tensor)


def _releases_array(producer: Producer, to: Recorder) -> None:
    """By its reference count, and for a factory by a weak reference too."""
    source, options = producer.make(), producer.options()

    def export(array: Any = source) -> None:
        Exported(array.__dlpack__(**options)).take_and_delete()

    for _ in range(2):  # the first export may fill a cache of the array
        export()
    expect_no_growth("dlpack-releases-array", to, source, export)
    expect_end("dlpack-releases-array", to, producer.make, export)


def _lifetime(producer: Producer, to: Recorder) -> None:
    if not producer.is_factory:
        to.skip("pass a function that makes the array, so that it can go")
        return
    arrays = [producer.make()]
    export = Producer(lambda: arrays[0], False, None, None).best()
    if not can_read(export.tensor) or size_of(export.tensor) == 0:
        to.skip("the host cannot read this memory or type")
        return
    expect_same_after("dlpack-lifetime", to, lambda: read_values(export.tensor), arrays.clear)


def _deleter_thread(producer: Producer, to: Recorder) -> None:
    export = producer.best()
    export.take()
    raised = on_threads(1, lambda: export.delete(with_lock=False))
    to.expect(not raised, outcome_of(raised))


def _threads(producer: Producer, to: Recorder) -> None:
    array, options = producer.make(), producer.options()

    def export() -> None:
        Exported(array.__dlpack__(**options)).take_and_delete()

    expect_threads("dlpack-threads", to, array, export, 20)


CASES = (
    Case("unconsumed capsules", "dlpack-capsule-releases", needs_tensor(_releases)),
    Case("consumed capsules", "dlpack-capsule-used", needs_tensor(_used)),
    Case("two exports", "dlpack-again", needs_tensor(_again)),
    Case("references", "dlpack-releases-array", needs_tensor(_releases_array)),
    Case("lifetime", "dlpack-lifetime", needs_tensor(_lifetime)),
    Case("deleter on a thread", "dlpack-deleter-thread", needs_tensor(_deleter_thread)),
    Case("threads", "dlpack-threads", needs_tensor(_threads)),
)
