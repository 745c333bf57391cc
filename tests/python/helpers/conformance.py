"""Runs checks of arrowdl.testing; wrong producers that crash, for another process to import."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, ClassVar

from arrowdl.testing._dlpack_consumer import RawProducer
from arrowdl.testing._managed import deleter_address
from arrowdl.testing._raw_arrow import RawArray, RawSchema
from arrowdl.testing._raw_tensor import Memory, RawTensor
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Check, run_case
from arrowdl.testing._structs import ArrayRelease, Deleter

from helpers.capsules import make_capsule


def finds(check: Check, rule: str, target: Any, **options: Any) -> bool:
    """Whether a case of `check` finds that `rule` is broken. Runs no case after that."""
    subject = check.open(target, **options)
    recorder = Recorder()
    for case in check.cases:
        run_case(case, subject, recorder)
        if any(
            found.rule.id == rule and found.severity != "skipped" for found in recorder.findings
        ):
            return True
    return False


class _NeedsTheLock:
    """Its deleter calls Python, and does not take the interpreter lock."""

    def __dlpack__(self, **_: Any) -> Any:
        made = RawTensor(Memory(bytes(8)), (2,), dtype="float32", strides=(1,))
        self.kept = [*getattr(self, "kept", ()), made]
        made.forget()
        function = ctypes.cast(ctypes.pythonapi.PyErr_Clear, ctypes.c_void_p)
        made.managed.deleter = ctypes.cast(function, Deleter)
        return made.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


needs_the_lock = _NeedsTheLock()


class _ReleaseNeedsTheLock:
    """The release callback of its arrays calls Python, and does not take the interpreter lock."""

    kept: ClassVar[list[Any]] = []

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        schema, array = RawSchema("i"), RawArray(1, [None, Memory(bytes(4))])
        self.kept += [schema, array]
        array.forget()
        function = ctypes.cast(ctypes.pythonapi.PyErr_Clear, ctypes.c_void_p)
        array.struct.release = ctypes.cast(function, ArrayRelease)
        return schema.capsule(), array.capsule()


release_needs_the_lock = _ReleaseNeedsTheLock()


class _NoLook:
    """The destructor of its capsules calls release, also if it is NULL."""

    kept: ClassVar[list[Any]] = []

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        schema, array = RawSchema("i"), RawArray(1, [None, Memory(bytes(4))])
        self.kept += [schema, array]
        release = ctypes.c_void_p.from_buffer(array.struct, type(array.struct).release.offset)

        def destroy() -> None:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release.value or 8)(array.address)

        return schema.capsule(), make_capsule(array.address, "arrow_array", destroy)


no_look = _NoLook()


def calls_null(x: Any) -> Any:
    """A `from_dlpack` of numpy that calls a NULL deleter."""
    import numpy as np

    if isinstance(x, RawProducer) and not deleter_address(x.raw.managed):
        ctypes.string_at(0)
    return np.from_dlpack(x)


def hangs(x: Any) -> Any:
    """A `from_dlpack` of numpy that never returns for a NULL deleter."""
    import numpy as np

    if isinstance(x, RawProducer) and not deleter_address(x.raw.managed):
        threading.Event().wait()
    return np.from_dlpack(x)
