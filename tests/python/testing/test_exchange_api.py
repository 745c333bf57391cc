"""Tables of DLPack's C exchange API that break one rule each, and those of the libraries."""

from __future__ import annotations

import ctypes
from typing import Any

import arrowdl
import numpy as np
import pytest
import torch
from arrowdl._core import make_borrowed_capsule
from arrowdl.testing import RULES, check_exchange_api
from arrowdl.testing._exchange_api import ATTRIBUTE, NAME
from arrowdl.testing._managed import deleter_address
from arrowdl.testing._raw_tensor import Memory, RawTensor
from arrowdl.testing._structs import (
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
    DLPackVersion,
    DLTensor,
)
from helpers.capsules import make_capsule

_Address = ctypes.c_void_p
_Two = ctypes.PYFUNCTYPE(ctypes.c_int, _Address, _Address)
_Three = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, _Address)
_Four = ctypes.PYFUNCTYPE(ctypes.c_int, _Address, _Address, _Address, _Address)
_SetError = ctypes.CFUNCTYPE(None, _Address, ctypes.c_char_p, ctypes.c_char_p)

KEPT: list[Any] = []  # callbacks and tables live as long as the process


def _write(out: int, value: int | None) -> None:
    _Address.from_address(out).value = value


class Good:
    """The functions of a table. The arrays are `Array`s."""

    def __init__(self) -> None:
        functions = [
            _Four(self.allocate),
            _Two(self.from_object),
            _Two(self.to_object),
            _Two(self.borrow),
            _Three(self.work_stream),
        ]
        addresses = [ctypes.cast(function, _Address).value for function in functions]
        self.table = DLPackExchangeAPI(DLPackVersion(1, 3), None, *addresses)
        self.change(self.table)
        self.type: Any = type("Array", (Array,), {ATTRIBUTE: self.capsule()})
        KEPT.append((self, functions))

    def change(self, table: Any) -> None:
        """Change the table before it is used."""

    def capsule(self) -> Any:
        return make_capsule(ctypes.addressof(self.table), NAME)

    def make(self) -> Any:
        return self.type(RawTensor(None, (0,), dtype="float32"), Memory.of("f", range(1, 7)))

    def allocate(self, prototype: int, out: int, context: int | None, set_error: int) -> int:
        wanted = DLTensor.from_address(prototype)
        if wanted.dtype.code > 17:
            self.say(set_error, context)
            return -1
        shape = tuple(wanted.shape[axis] for axis in range(wanted.ndim))
        made = RawTensor(Memory(bytes(64)), shape, dtype=(wanted.dtype.code, wanted.dtype.bits))
        _write(out, made.address)
        return 0

    def say(self, set_error: int, context: int | None) -> None:
        _SetError(set_error)(context, b"ValueError", b"no such type")

    def from_object(self, array: int, out: int) -> int:
        _write(out, self.export(_object_at(array)).address)
        return 0

    def export(self, array: Any) -> RawTensor:
        return array.export()

    def borrow(self, array: int, out: int) -> int:
        made = _object_at(array).export()
        ctypes.memmove(out, ctypes.addressof(made.tensor), ctypes.sizeof(DLTensor))
        KEPT.append(made)
        return 0

    def to_object(self, managed: int, out: int) -> int:
        made = self.type(managed, None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
        _write(out, id(made))
        return 0

    def work_stream(self, _type: int, _id: int, out: int) -> int:
        _write(out, None)
        return 0


def _object_at(address: int) -> Any:
    return ctypes.cast(address, ctypes.py_object).value


class Array:
    """Exports its memory, or the tensor that it was made of."""

    def __init__(self, managed: Any, memory: Memory | None) -> None:
        self.managed, self.memory = managed, memory

    def export(self) -> RawTensor:
        return RawTensor(self.memory, (2, 3), dtype="float32", strides=(3, 1))

    def __dlpack__(self, **_: Any) -> Any:
        if self.memory is not None:
            return self.export().capsule()
        address = DLManagedTensorVersioned.from_address(self.managed).dl_tensor.data
        again = RawTensor(address, (2, 3), dtype="float32", strides=(3, 1))
        return make_borrowed_capsule(again.address, "dltensor_versioned")

    def __del__(self) -> None:
        if isinstance(self.managed, int):
            managed = DLManagedTensorVersioned.from_address(self.managed)
            ctypes.CFUNCTYPE(None, _Address)(deleter_address(managed))(self.managed)


# ---------------------------------------------------------------------------
# Wrong ones


class WrongCapsule(Good):
    def capsule(self) -> Any:
        return 3


class AnotherEachTime(Good):
    """The attribute makes a table whenever it is looked at."""

    def __init__(self) -> None:
        super().__init__()
        first = self.capsule()

        class Meta(type):
            seen: int = 0

            @property
            def __dlpack_c_exchange_api__(cls) -> Any:
                cls.seen += 1
                table = DLPackExchangeAPI.from_buffer_copy(self.table)
                KEPT.append((table, first))
                return make_capsule(ctypes.addressof(table), NAME)

        self.type = Meta("Array", (Array,), {})


class Old(Good):
    def change(self, table: Any) -> None:
        table.version = DLPackVersion(1, 2)


class Circle(Good):
    def change(self, table: Any) -> None:
        table.prev_api = ctypes.addressof(table)


class NoStreams(Good):
    def change(self, table: Any) -> None:
        table.current_work_stream = None


class Fails(Good):
    """Returns -1 and no exception."""

    def from_object(self, array: int, out: int) -> int:
        return -1


class OtherShape(Good):
    def export(self, array: Any) -> RawTensor:
        return RawTensor(array.memory, (6,), dtype="float32", strides=(1,))


class KeepsArrays(Good):
    def export(self, array: Any) -> RawTensor:
        KEPT.append(array)
        return super().export(array)


class BorrowsForever(Good):
    def borrow(self, array: int, out: int) -> int:
        KEPT.append(_object_at(array))
        return super().borrow(array, out)


class DeletesAtOnce(Good):
    def to_object(self, managed: int, out: int) -> int:
        struct = DLManagedTensorVersioned.from_address(managed)
        ctypes.CFUNCTYPE(None, _Address)(deleter_address(struct))(managed)
        return super().to_object(managed, out)


class SomeStream(Good):
    def work_stream(self, _type: int, _id: int, out: int) -> int:
        return -1


class OneShape(Good):
    def allocate(self, prototype: int, out: int, context: int | None, set_error: int) -> int:
        status = super().allocate(prototype, out, context, set_error)
        if status == 0:
            managed = DLManagedTensorVersioned.from_address(_Address.from_address(out).value or 0)
            managed.dl_tensor.ndim = 1
        return status


class Silent(Good):
    def say(self, set_error: int, context: int | None) -> None:
        """Says nothing."""


WRONG: dict[str, type[Good]] = {
    "exchange-api-type": WrongCapsule,
    "exchange-api-static": AnotherEachTime,
    "exchange-api-version": Old,
    "exchange-api-chain": Circle,
    "exchange-api-functions": NoStreams,
    "exchange-api-from": Fails,
    "exchange-api-agrees": OtherShape,
    "exchange-api-releases": KeepsArrays,
    "exchange-api-borrow": BorrowsForever,
    "exchange-api-to": DeletesAtOnce,
    "exchange-api-stream": SomeStream,
    "exchange-api-allocate": OneShape,
    "exchange-api-set-error": Silent,
    "exchange-api-refuses": Good,  # it exports what `refused` says that it refuses
}


def test_a_good_table_has_no_findings() -> None:
    good = Good()
    report = check_exchange_api(good.make)
    assert (report.errors, report.warnings) == ((), ()), str(report)
    assert {found.rule.id for found in report.skipped} == {"exchange-api-refuses"}


@pytest.mark.parametrize("rule", WRONG)
def test_a_wrong_table_is_found(rule: str) -> None:
    wrong = WRONG[rule]()
    report = check_exchange_api(wrong.make, refused=wrong.make())
    KEPT[:] = [kept for kept in KEPT if not isinstance(kept, Array)]
    found = {finding.rule.id for finding in (*report.errors, *report.warnings)}
    assert rule in found, str(report)


def test_every_rule_can_fail() -> None:
    assert set(WRONG) == {name for name in RULES if name.startswith("exchange-api-")}


def test_arrowdl() -> None:
    refused = arrowdl.to_arrow_device(np.arange(3), mask=np.array([True, False, True]))
    report = check_exchange_api(
        lambda: arrowdl.to_arrow_device(np.arange(6.0).reshape(2, 3)), refused=refused
    )
    assert (report.errors, report.warnings) == ((), ()), str(report)


def test_torch_skips_the_checks_of_its_method() -> None:
    """torch 2.13 exports what requires a gradient."""
    report = check_exchange_api(
        lambda: torch.arange(6.0), refused=torch.ones(2, requires_grad=True)
    )
    assert report.errors == (), str(report)
    assert [found.rule.id for found in report.warnings] == ["exchange-api-refuses"]


def test_a_class_without_the_api_is_skipped() -> None:
    report = check_exchange_api(lambda: np.arange(3))
    assert (report.errors, report.warnings, report.passed) == ((), (), ())
    assert len(report.skipped) > 5
