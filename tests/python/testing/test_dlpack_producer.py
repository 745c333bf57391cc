"""Producers that break one rule each, and those of the libraries."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import arrowdl
import numpy as np
import pytest
from arrowdl.testing import RULES, Report, check_dlpack_producer
from arrowdl.testing._checks import DLPACK_PRODUCER
from arrowdl.testing._raw_tensor import Memory, RawTensor
from arrowdl.testing._structs import IS_COPIED, READ_ONLY
from helpers.capsules import make_capsule
from helpers.conformance import finds

VALUES = [1, 2, 3, 4, 5, 6]

KEPT: list[Any] = []  # wrong producers delete their tensors twice: the structs stay


@pytest.fixture(autouse=True)
def _clear() -> Iterator[None]:
    yield
    KEPT.clear()


class Tensor(RawTensor):
    """Holds its array until it is released."""

    owner: Any = None

    def _release(self, address: int) -> None:
        super()._release(address)
        self.owner = None


class Good:
    """An array of shape (2, 3) that keeps all rules."""

    fields: Mapping[str, Any] = MappingProxyType({})
    device: Any = (1, 0)

    def __init__(self) -> None:
        self.memory = Memory.of("f", VALUES)

    def tensor(self, versioned: bool, copied: bool) -> RawTensor:
        memory = Memory(self.memory.read()) if copied else self.memory
        fields = {"strides": (3, 1), "flags": IS_COPIED if copied else 0, **self.fields}
        made = Tensor(memory, (2, 3), dtype="float32", versioned=versioned, **fields)
        made.owner = self
        KEPT.append(made)
        return made

    def capsule(self, made: RawTensor) -> Any:
        return made.capsule()

    def refuse(self, stream: Any, dl_device: Any, copy: Any) -> None:
        if stream is not None:
            raise ValueError("there is no stream on the CPU")
        if dl_device not in (None, (1, 0)):
            raise BufferError("only the CPU")

    def is_versioned(self, max_version: Any) -> bool:
        return max_version is not None and max_version[0] >= 1

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        self.refuse(stream, dl_device, copy)
        made = self.tensor(self.is_versioned(max_version), bool(copy))
        return self.capsule(made)

    def __dlpack_device__(self) -> Any:
        return self.device


def test_a_good_producer_has_no_findings() -> None:
    report = check_dlpack_producer(Good, values=VALUES, read_only=False)
    assert (report.errors, report.warnings) == ((), ()), str(report)
    assert {found.rule.id for found in report.skipped} == {"dlpack-stream-zero"}
    not_here = {"dlpack-stream-zero", "dlpack-empty"}
    assert set(report.passed) == rules_of("dlpack-") - not_here


def rules_of(prefix: str) -> set[str]:
    return {name for name in RULES if name.startswith(prefix)}


# ---------------------------------------------------------------------------
# Wrong ones


def with_fields(**fields: Any) -> Callable[[], Good]:
    return type("Wrong", (Good,), {"fields": fields})


def changed(change: Callable[[RawTensor], None]) -> Callable[[], Good]:
    """A producer whose tensors are changed before they are handed out."""

    class Wrong(Good):
        def tensor(self, versioned: bool, copied: bool) -> RawTensor:
            made = super().tensor(versioned, copied)
            change(made)
            return made

    return Wrong


class OldKeywords(Good):
    def __dlpack__(self, *, stream: Any = None) -> Any:
        return super().__dlpack__(stream=stream)


class NoDevice(Good):
    __dlpack_device__ = None


class WrongName(Good):
    def capsule(self, made: RawTensor) -> Any:
        return make_capsule(made.address, "tensor", lambda: made.managed.deleter(made.address))


class Leaking(Good):
    """The capsule has no destructor."""

    def capsule(self, made: RawTensor) -> Any:
        return make_capsule(made.address, "dltensor_versioned" if made.is_versioned else "dltensor")


class FreesUsed(Good):
    """The destructor does not look at the name."""

    def capsule(self, made: RawTensor) -> Any:
        capsule = super().capsule(made)
        made.destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
            lambda _: made.managed.deleter(made.address)
        )
        set_destructor = ctypes.pythonapi.PyCapsule_SetDestructor
        set_destructor(ctypes.py_object(capsule), ctypes.cast(made.destructor, ctypes.c_void_p))
        return capsule


class OneCapsule(Good):
    def __dlpack__(self, **options: Any) -> Any:
        if not hasattr(self, "held"):
            self.held = super().__dlpack__(**options)
        return self.held


class AlwaysVersioned(Good):
    def is_versioned(self, max_version: Any) -> bool:
        return True


class NeverVersioned(Good):
    def is_versioned(self, max_version: Any) -> bool:
        return False


class RefusesNewer(Good):
    def is_versioned(self, max_version: Any) -> bool:
        if max_version is not None and max_version > (1, 3):
            raise BufferError("too new")
        return super().is_versioned(max_version)


class IgnoresDevice(Good):
    def refuse(self, stream: Any, dl_device: Any, copy: Any) -> None:
        super().refuse(stream, None, copy)


class IgnoresStream(Good):
    def refuse(self, stream: Any, dl_device: Any, copy: Any) -> None:
        super().refuse(None, dl_device, copy)


class RefusesNone(Good):
    def __dlpack__(self, **options: Any) -> Any:
        if "stream" in options and options["stream"] is None:
            raise RuntimeError("which stream?")
        return super().__dlpack__(**options)


class OnCuda(Good):
    """Says CUDA, and takes every stream."""

    device = (2, 0)
    fields = MappingProxyType({"device": (2, 0)})

    def refuse(self, stream: Any, dl_device: Any, copy: Any) -> None:
        super().refuse(None, None, copy)


class NeverCopies(Good):
    def tensor(self, versioned: bool, copied: bool) -> RawTensor:
        return super().tensor(versioned, False)


class SilentCopies(Good):
    def tensor(self, versioned: bool, copied: bool) -> RawTensor:
        made = super().tensor(versioned, copied)
        if versioned:
            made.managed.flags = 0
        return made


class AlwaysCopies(Good):
    def tensor(self, versioned: bool, copied: bool) -> RawTensor:
        return super().tensor(versioned, True)


class KeptForever(Good):
    """Each export takes a reference that is never dropped."""

    def __dlpack__(self, **options: Any) -> Any:
        KEPT.append(self)
        return super().__dlpack__(**options)


class Dangling(Good):
    """The memory is overwritten when the array goes, and exports do not keep the array."""

    def tensor(self, versioned: bool, copied: bool) -> RawTensor:
        made = super().tensor(versioned, copied)
        made.owner = None
        return made

    def __del__(self) -> None:
        self.memory.write(bytes(24))


class NotForThreads(Good):
    """Fails while another thread exports. The first thread waits for a second one."""

    def __init__(self) -> None:
        super().__init__()
        self.exporting = 0
        self.second = threading.Event()

    def __dlpack__(self, **options: Any) -> Any:
        self.exporting += 1
        try:
            if self.exporting > 1:
                self.second.set()
                raise RuntimeError("two at once")
            if threading.current_thread() is not threading.main_thread():
                self.second.wait(60)
            return super().__dlpack__(**options)
        finally:
            self.exporting -= 1


def no_strides(made: RawTensor) -> None:
    made.tensor.strides = type(made.tensor.strides)()


def no_data(made: RawTensor) -> None:
    made.tensor.data = None


def negative_strides(made: RawTensor) -> None:
    made.tensor.strides[1] = -1
    made.tensor.data += 8


def negative_extent(made: RawTensor) -> None:
    made.tensor.shape[0] = -1


def no_elements(made: RawTensor) -> None:
    made.tensor.shape[0] = 0


def odd_type(made: RawTensor) -> None:
    made.tensor.dtype.bits = 16
    made.tensor.dtype.code = 6


def unaligned(made: RawTensor) -> None:
    made.tensor.shape[0] = 1
    made.tensor.data += 1


def unknown_flag(made: RawTensor) -> None:
    if made.is_versioned:
        made.managed.flags |= 1 << 40


def transposed(made: RawTensor) -> None:
    made.tensor.strides[0], made.tensor.strides[1] = 1, 2


class PermittedCopyFlag(Good):
    """Says IS_COPIED of memory that is shared."""

    def tensor(self, versioned: bool, copied: bool) -> RawTensor:
        made = super().tensor(versioned, copied)
        if versioned:
            made.managed.flags = IS_COPIED
        return made


WRONG: dict[str, Any] = {
    "dlpack-methods": NoDevice,
    "dlpack-keywords": OldKeywords,
    "dlpack-capsule-name": WrongName,
    "dlpack-capsule-releases": Leaking,
    "dlpack-capsule-used": FreesUsed,
    "dlpack-again": OneCapsule,
    "dlpack-legacy": AlwaysVersioned,
    "dlpack-versioned": NeverVersioned,
    "dlpack-old-consumer": AlwaysVersioned,
    "dlpack-newer-consumer": RefusesNewer,
    "dlpack-version": with_fields(version=(2, 0)),
    "dlpack-flags": changed(unknown_flag),
    "dlpack-device": type("Wrong", (Good,), {"device": (1, None)}),
    "dlpack-device-agrees": type("Wrong", (Good,), {"device": (1, 3)}),
    "dlpack-dl-device": IgnoresDevice,
    "dlpack-copy-true": NeverCopies,
    "dlpack-copied-flag": SilentCopies,
    "dlpack-copy-false": AlwaysCopies,
    "dlpack-not-copied-flag": PermittedCopyFlag,
    "dlpack-read-only": with_fields(flags=READ_ONLY),  # and read_only=False
    "dlpack-stream-cpu": IgnoresStream,
    "dlpack-stream-zero": OnCuda,
    "dlpack-stream": RefusesNone,
    "dlpack-ndim": changed(negative_extent),
    "dlpack-strides": changed(no_strides),
    "dlpack-negative-strides": changed(negative_strides),
    "dlpack-dtype": changed(odd_type),
    "dlpack-empty": changed(no_elements),
    "dlpack-data": changed(no_data),
    "dlpack-byte-offset": with_fields(byte_offset=4),
    "dlpack-alignment": changed(unaligned),
    "dlpack-values": changed(transposed),
    "dlpack-lifetime": Dangling,
    "dlpack-releases-array": KeptForever,
    "dlpack-threads": NotForThreads,
}
IN_A_PROCESS = {"dlpack-deleter-thread"}  # it crashes: below


def found_by(report: Report) -> set[str]:
    return {found.rule.id for found in (*report.errors, *report.warnings)}


@pytest.mark.parametrize("rule", WRONG)
def test_a_wrong_producer_is_found(rule: str) -> None:
    assert finds(DLPACK_PRODUCER, rule, WRONG[rule], values=VALUES, read_only=False)


def test_every_rule_can_fail() -> None:
    assert {*WRONG, *IN_A_PROCESS} == rules_of("dlpack-")


@pytest.mark.parametrize("rule", ["dlpack-read-only"])
def test_memory_that_must_not_be_written_says_so(rule: str) -> None:
    assert rule in found_by(check_dlpack_producer(Good, read_only=True))
    good = check_dlpack_producer(with_fields(flags=READ_ONLY), read_only=True)
    assert {found.severity for found in good.findings if found.rule.id == rule} == {"warning"}


def test_a_crash_is_a_finding() -> None:
    report = check_dlpack_producer("helpers.conformance:needs_the_lock", isolate=True)
    (error,) = [found for found in report.errors if found.rule.id == "dlpack-deleter-thread"]
    assert "killed by SIGSEGV" in error.seen
    assert "dlpack-threads" in report.passed, "the cases after it have run"


# ---------------------------------------------------------------------------
# Libraries


def test_numpy() -> None:
    report = check_dlpack_producer(lambda: np.arange(6.0), values=range(6), read_only=False)
    assert (report.errors, report.warnings) == ((), ()), str(report)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (0, 3)], ids=str)
def test_arrowdl(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype="f4")
    report = check_dlpack_producer(
        lambda: arrowdl.to_arrow_device(values.reshape(shape)), values=values.tolist()
    )
    assert (report.errors, report.warnings) == ((), ()), str(report)


def test_read_only_memory_of_arrowdl() -> None:
    import pyarrow as pa

    report = check_dlpack_producer(
        lambda: arrowdl.from_arrow(pa.array([1.0, 2.0])), values=[1, 2], read_only=True
    )
    assert report.errors == (), str(report)


def test_what_is_neither_an_array_nor_a_function() -> None:
    with pytest.raises(TypeError, match="has no __dlpack__: pass an array"):
        check_dlpack_producer(3)
    with pytest.raises(ValueError, match='"numpy" is not "module:object"'):
        check_dlpack_producer("numpy")
