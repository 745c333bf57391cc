"""Consumers that break one rule each, and those of the libraries."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import arrowdl
import numpy as np
import pytest
import torch
from arrowdl.testing import RULES, Report, check_dlpack_consumer
from arrowdl.testing._capsules import capsule_name
from arrowdl.testing._checks import DLPACK_CONSUMER
from arrowdl.testing._managed import (
    Exported,
    can_read,
    deleter_address,
    read_values,
    shape_of,
)
from arrowdl.testing._structs import READ_ONLY, DLManagedTensorVersioned
from helpers.conformance import finds


class Result:
    """The values of a tensor, read where they are."""

    def __init__(self, made: Exported, tensor: Any = None) -> None:
        self.made, self.tensor = made, tensor or made.tensor
        self.shape = shape_of(self.tensor)
        self.copied: list[Any] | None = None

    def tolist(self) -> list[Any]:
        return read_values(self.tensor) if self.copied is None else self.copied

    def copy(self) -> Result:
        self.copied = read_values(self.tensor)
        return self

    def __setitem__(self, index: int, value: float) -> None:
        if self.made.flags & READ_ONLY:
            raise ValueError("read-only")
        ctypes.c_float.from_address(self.tensor.data).value = value


class Good:
    """A `from_dlpack` that keeps all rules."""

    asks: Mapping[str, Any] = MappingProxyType({"max_version": (1, 0)})

    def __call__(self, x: Any, *, copy: bool | None = None) -> Any:
        made = self.export(x)
        if made.is_versioned and not self.accepts_version(made.version):
            made.take()
            self.delete(made)
            raise BufferError("another major version")
        if not self.accepts(made):
            raise BufferError("not supported")
        self.take(made)
        result = self.result(made)
        return result.copy() if copy else result

    def export(self, x: Any) -> Exported:
        x.__dlpack_device__()
        for options in (self.asks, {}):
            try:
                capsule = x.__dlpack__(**options)
                break
            except TypeError:
                if not options:
                    raise
        if not self.accepts_name(capsule_name(capsule)):
            raise BufferError("no such capsule")
        return Exported(capsule)

    def accepts_name(self, name: str) -> bool:
        return name in ("dltensor", "dltensor_versioned")

    def accepts_version(self, version: tuple[int, int]) -> bool:
        return version[0] == 1

    def accepts(self, made: Exported) -> bool:
        return can_read(made.tensor) and min(shape_of(made.tensor), default=0) >= 0

    def take(self, made: Exported) -> None:
        made.take()

    def delete(self, made: Exported) -> None:
        made.delete()

    def result(self, made: Exported) -> Result:
        result = Result(made)
        weakref.finalize(result, self.delete, made)
        return result


def read(result: Result) -> Any:
    return result.tolist()


def check(consumer: Any) -> Report:
    return check_dlpack_consumer(consumer, read=read)


def found_by(report: Report) -> set[str]:
    return {found.rule.id for found in (*report.errors, *report.warnings)}


def rules_of(prefix: str) -> set[str]:
    return {name for name in RULES if name.startswith(prefix)}


def test_a_good_consumer_has_no_findings() -> None:
    report = check(Good())
    assert (report.errors, report.warnings, report.skipped) == ((), (), ()), str(report)
    assert set(report.passed) == rules_of("from-dlpack-")


class ShapeMethod(Good):
    """Its results have a method that returns the shape, as onnxruntime's have."""

    def __call__(self, x: Any, *, copy: bool | None = None) -> Any:
        result = super().__call__(x, copy=copy)
        shape = list(result.shape)
        result.shape = lambda: shape
        return result


def test_the_shape_of_a_result_may_be_a_method() -> None:
    report = check(ShapeMethod())
    assert report.errors == (), str(report)


class OddShape(Good):
    """Its results have something else that is called shape."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape

    def __call__(self, x: Any, *, copy: bool | None = None) -> Any:
        result = super().__call__(x, copy=copy)
        result.shape = self.shape
        return result


@pytest.mark.parametrize("shape", ["2x3", 6, None, lambda: 1 / 0], ids=type)
def test_the_shape_of_a_result_may_be_something_else(shape: Any) -> None:
    report = check(OddShape(shape))
    assert report.errors == (), str(report)


# ---------------------------------------------------------------------------
# Wrong ones


class Refuses(Good):
    """Refuses what `why_not` says."""

    def __init__(self, why_not: Any) -> None:
        self.why_not = why_not

    def accepts(self, made: Exported) -> bool:
        return super().accepts(made) and not self.why_not(made.tensor)


class Reads(Good):
    """Reads a copy of the tensor's description that `change` has changed."""

    def __init__(self, change: Any) -> None:
        self.change = change

    def result(self, made: Exported) -> Result:
        own = type(made.tensor).from_buffer_copy(made.tensor)
        self.change(own)
        result = Result(made, own)
        weakref.finalize(result, self.delete, made)
        return result


def ignore_strides(tensor: Any) -> None:
    tensor.strides = type(tensor.strides)()


def ignore_offset(tensor: Any) -> None:
    tensor.byte_offset = 0


def align_down(tensor: Any) -> None:
    tensor.data = (tensor.data or 0) // 16 * 16 or None


def has_no_strides(tensor: Any) -> bool:
    return tensor.ndim > 0 and not tensor.strides


class AnyType(Good):
    """Reads what it does not know as int32."""

    def accepts(self, made: Exported) -> bool:
        return min(shape_of(made.tensor), default=0) >= 0 and made.tensor.device.device_type == 1

    def result(self, made: Exported) -> Result:
        if not can_read(made.tensor):
            made.tensor.dtype.code, made.tensor.dtype.bits, made.tensor.dtype.lanes = 0, 32, 1
        return super().result(made)


class NoDimensions(Good):
    """Reads zero-dimensional tensors as two values."""

    def result(self, made: Exported) -> Result:
        result = super().result(made)
        if result.shape == ():
            result.copied = [1, 2]
        return result


class NeverRenames(Good):
    def take(self, made: Exported) -> None:
        self.made = made.capsule

    def delete(self, made: Exported) -> None:
        """Leaves it to the capsule."""


class AnyName(Good):
    """Reads capsules with the names of `taken`, whatever they hold."""

    taken = ("arrow_array",)

    def accepts_name(self, name: str) -> bool:
        return name in self.taken or super().accepts_name(name)

    def accepts(self, made: Exported) -> bool:
        if not made.is_known:
            made.name, made.is_versioned = "dltensor_versioned", True
            made.managed = DLManagedTensorVersioned.from_address(made.address)
        return super().accepts(made)


class UsedNames(AnyName):
    taken = ("used_dltensor_versioned",)


class NeverDeletes(Good):
    def delete(self, made: Exported) -> None:
        """Leaks."""


class DeletesAtOnce(Good):
    def result(self, made: Exported) -> Result:
        made.delete()
        return Result(made)


class NeedsADeleter(Good):
    def accepts(self, made: Exported) -> bool:
        return super().accepts(made) and deleter_address(made.managed) != 0


class NeedsAContext(Good):
    """paddle 3.3 does not call the deleter either."""

    def delete(self, made: Exported) -> None:
        if made.managed.manager_ctx:
            made.delete()


class OfOneThread(Good):
    """Deletes on the thread that imported only."""

    def result(self, made: Exported) -> Result:
        home = threading.get_ident()
        result = Result(made)

        def delete() -> None:
            if threading.get_ident() == home:
                made.delete()

        weakref.finalize(result, delete)
        return result


class AnyVersion(Good):
    def accepts_version(self, version: tuple[int, int]) -> bool:
        return True


class ThisMinor(Good):
    def accepts_version(self, version: tuple[int, int]) -> bool:
        return version <= (1, 3)


class OldCall(Good):
    asks = MappingProxyType({"stream": None})


class NoFallback(Good):
    def export(self, x: Any) -> Exported:
        x.__dlpack_device__()
        capsule = x.__dlpack__(stream=None, max_version=(1, 0))
        if not self.accepts_name(capsule_name(capsule)):
            raise BufferError("no such capsule")
        return Exported(capsule)


class PassesAStream(Good):
    asks = MappingProxyType({"max_version": (1, 0), "stream": 1})


class IgnoresReadOnly(Good):
    def result(self, made: Exported) -> Result:
        result = super().result(made)
        made.managed.flags = 0
        return result


class NeverCopies(Good):
    def __call__(self, x: Any, *, copy: bool | None = None) -> Any:
        return super().__call__(x)


class AnyDevice(Good):
    def accepts(self, made: Exported) -> bool:
        return made.tensor.device.device_type == 12 or super().accepts(made)

    def result(self, made: Exported) -> Result:
        made.tensor.device.device_type = 1
        return super().result(made)


class OwnErrors(Good):
    def export(self, x: Any) -> Exported:
        try:
            return super().export(x)
        except (BufferError, MemoryError):
            raise RuntimeError("cannot import") from None


class NoAttributeError(Good):
    def export(self, x: Any) -> Exported:
        if not hasattr(x, "__dlpack__"):
            raise TypeError("not a tensor")
        return super().export(x)


class TakesFirst(Good):
    """Owns the tensor before it is looked at, and leaks what it refuses."""

    def accepts(self, made: Exported) -> bool:
        made.take()
        return super().accepts(made)

    def take(self, made: Exported) -> None:
        """Done."""


WRONG: dict[str, Any] = {
    "from-dlpack-reads": Refuses(lambda tensor: tensor.dtype.code == 2),
    "from-dlpack-dtype": AnyType(),
    "from-dlpack-strides": Reads(ignore_strides),
    "from-dlpack-null-strides": Refuses(has_no_strides),
    "from-dlpack-byte-offset": Reads(ignore_offset),
    "from-dlpack-empty": Refuses(lambda tensor: not tensor.data),
    "from-dlpack-zero-dim": NoDimensions(),
    "from-dlpack-alignment": Reads(align_down),
    "from-dlpack-renames": NeverRenames(),
    "from-dlpack-used": UsedNames(),
    "from-dlpack-wrong-name": AnyName(),
    "from-dlpack-releases": NeverDeletes(),
    "from-dlpack-keeps": DeletesAtOnce(),
    "from-dlpack-null-deleter": NeedsADeleter(),
    "from-dlpack-null-context": NeedsAContext(),
    "from-dlpack-thread": OfOneThread(),
    "from-dlpack-major": AnyVersion(),
    "from-dlpack-minor": ThisMinor(),
    "from-dlpack-max-version": OldCall(),
    "from-dlpack-fallback": NoFallback(),
    "from-dlpack-stream": PassesAStream(),
    "from-dlpack-read-only": IgnoresReadOnly(),
    "from-dlpack-copy": NeverCopies(),
    "from-dlpack-device": AnyDevice(),
    "from-dlpack-raises": OwnErrors(),
    "from-dlpack-methods": NoAttributeError(),
    "from-dlpack-refused": TakesFirst(),
}


@pytest.mark.parametrize("rule", WRONG)
def test_a_wrong_consumer_is_found(rule: str) -> None:
    assert finds(DLPACK_CONSUMER, rule, WRONG[rule], read=read)


def test_every_rule_can_fail() -> None:
    assert set(WRONG) == rules_of("from-dlpack-")


def test_a_second_deleter_call_is_found() -> None:
    class Twice(Good):
        def delete(self, made: Exported) -> None:
            made.delete()
            made.delete()

    assert "from-dlpack-releases" in found_by(check(Twice()))


# ---------------------------------------------------------------------------
# Libraries


def test_numpy() -> None:
    report = check_dlpack_consumer(np.from_dlpack)
    assert report.errors == (), str(report)
    assert {found.rule.id for found in report.warnings} == {"from-dlpack-device"}


def test_torch_and_arrowdl() -> None:
    """torch ignores READ_ONLY, which is allowed; arrowdl has no zero-dimensional arrays."""
    of_torch = check_dlpack_consumer(torch.from_dlpack)
    assert of_torch.errors == (), str(of_torch)
    assert "from-dlpack-read-only" in {found.rule.id for found in of_torch.warnings}
    ours = check_dlpack_consumer(arrowdl.to_arrow_device)
    assert ours.errors == (), str(ours)
    assert found_by(ours) == {"from-dlpack-zero-dim", "from-dlpack-methods"}


def test_a_crash_is_a_finding_and_the_other_cases_run() -> None:
    report = check_dlpack_consumer("helpers.conformance:calls_null", isolate=True)
    (crash,) = [found for found in report.errors if "killed by SIGSEGV" in found.seen]
    assert crash.rule.id == "from-dlpack-null-deleter"
    assert "from-dlpack-raises" in report.passed


@pytest.mark.slow
def test_a_case_that_hangs_is_a_finding() -> None:
    report = check_dlpack_consumer("helpers.conformance:hangs", isolate=True, timeout=5)
    (hang,) = [found for found in report.errors if "did not end within 5 s" in found.seen]
    assert hang.rule.id == "from-dlpack-null-deleter"


def test_what_cannot_be_sent_to_a_process_says_so() -> None:
    with pytest.raises(TypeError, match='pass "module:object", its name there'):
        check_dlpack_consumer(lambda x: x, isolate=True)
    with pytest.raises(TypeError, match="int is not callable"):
        check_dlpack_consumer(3)  # type: ignore[arg-type]
