"""The cases of `check_exchange_api`."""

from __future__ import annotations

import ctypes
import gc
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from arrowdl.testing._capsules import capsule_address, capsule_name, is_capsule
from arrowdl.testing._made_tensor import MadeTensor, Memory
from arrowdl.testing._managed import (
    CountedDeleter,
    Exported,
    row_major,
    shape_of,
    start_of,
    strides_of,
)
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, Check, checked_factory, quote
from arrowdl.testing._structs import (
    CPU,
    Deleter,
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
    DLTensor,
)

ATTRIBUTE = "__dlpack_c_exchange_api__"
NAME = "dlpack_exchange_api"

_REQUIRED = (
    "managed_tensor_allocator",
    "managed_tensor_from_py_object_no_sync",
    "managed_tensor_to_py_object_no_sync",
    "current_work_stream",
)

_Address = ctypes.c_void_p
# With the interpreter lock, and what they raise is raised here.
_FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _Address)
_ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, _Address, _Address)
_WorkStream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, _Address)
_SetError = ctypes.CFUNCTYPE(None, _Address, ctypes.c_char_p, ctypes.c_char_p)
_Allocator = ctypes.PYFUNCTYPE(ctypes.c_int, _Address, _Address, _Address, _SetError)


@dataclass
class Subject:
    """What is checked: the class of the arrays that `make` returns, and its table."""

    make: Callable[[], Any]
    refused: Any

    @property
    def type(self) -> Any:
        return type(self.make())

    @property
    def table(self) -> Any:
        return DLPackExchangeAPI.from_address(capsule_address(getattr(self.type, ATTRIBUTE)))

    def function(self, name: str, prototype: Any) -> Any:
        return prototype(getattr(self.table, name))

    def export(self, array: Any) -> Managed:
        out = _Address()
        function = self.function("managed_tensor_from_py_object_no_sync", _FromObject)
        status = function(array, ctypes.addressof(out))
        return Managed(status, out.value)


@dataclass
class Managed:
    """What an export returned: a status, and the tensor if there is one."""

    status: int
    address: int | None

    @property
    def managed(self) -> Any:
        assert self.address is not None
        return DLManagedTensorVersioned.from_address(self.address)

    def delete(self) -> None:
        deleter = ctypes.cast(self.managed.deleter, _Address).value
        if deleter:
            Deleter(deleter)(self.address)


def open_subject(target: Any, *, refused: Any = None) -> Subject:
    if hasattr(type(target), ATTRIBUTE) or not callable(target):
        return Subject(lambda: target, refused)
    return Subject(checked_factory(target), refused)


def _has_table(subject: Subject, to: Recorder) -> bool:
    if hasattr(subject.type, ATTRIBUTE):
        return True
    to.skip(to.rule, f"{subject.type.__qualname__} has no exchange API")
    return False


def _type(subject: Subject, to: Recorder) -> None:
    if not _has_table(subject, to):
        return
    capsule = getattr(subject.type, ATTRIBUTE)
    sound = is_capsule(capsule) and capsule_name(capsule) == NAME
    to.expect(
        "exchange-api-type",
        sound,
        f"{ATTRIBUTE} is {capsule!r:.80}",
        f'set it on the type, a PyCapsule named "{NAME}"',
    )
    again = getattr(subject.type, ATTRIBUTE)
    to.expect(
        "exchange-api-static",
        not sound or capsule_address(again) == capsule_address(capsule),
        "the address of the table changes",
        "use a static table: consumers keep its address",
    )


def _header(subject: Subject, to: Recorder) -> None:
    if not _has_table(subject, to):
        return
    table = subject.table
    version = (table.version.major, table.version.minor)
    to.expect(
        "exchange-api-version",
        (1, 3) <= version < (2, 0),
        f"the version is {version[0]}.{version[1]}",
        "set the version of your dlpack.h, and put a table of version 1 in prev_api",
    )
    seen, previous = [version], table.prev_api
    while previous and len(seen) < 16:
        older = DLPackExchangeAPI.from_address(previous)
        seen.append((older.version.major, older.version.minor))
        previous = older.prev_api
    to.expect(
        "exchange-api-chain",
        all(new > old for new, old in itertools.pairwise(seen)),
        f"the versions of the tables are {seen[:4]}",
        "link older tables behind newer ones, and end with NULL",
    )
    missing = [name for name in _REQUIRED if not getattr(table, name)]
    to.expect(
        "exchange-api-functions",
        not missing,
        f"NULL: {', '.join(missing)}",
        "implement the function: consumers call it without a check",
    )


def _export(subject: Subject, to: Recorder) -> None:
    if not _has_table(subject, to):
        return
    array = subject.make()
    made = subject.export(array)
    if not to.expect(
        "exchange-api-from",
        made.status == 0 and made.address is not None,
        f"it returns {made.status} and {'NULL' if made.address is None else 'a tensor'}",
        "return 0 and a tensor, or -1 with an exception set",
    ):
        return
    try:
        exported = Exported(array.__dlpack__(max_version=(1, 3)))
    except TypeError:
        exported = Exported(array.__dlpack__())
    ours, theirs = _describe(made.managed.dl_tensor), _describe(exported.tensor)
    to.expect(
        "exchange-api-agrees",
        ours == theirs,
        f"the table says {ours}, __dlpack__ says {theirs}",
        "make both from one function",
    )
    to.expect(
        "exchange-api-from",
        made.managed.version.major == 1,
        f"the tensor has version {made.managed.version.major}",
        "set the version of the tensor",
    )
    made.delete()


def _describe(tensor: DLTensor) -> dict[str, Any]:
    dtype, device = tensor.dtype, tensor.device
    return {
        "data": start_of(tensor),
        "device": (device.device_type, device.device_id),
        "dtype": (dtype.code, dtype.bits, dtype.lanes),
        "shape": shape_of(tensor),
        "strides": strides_of(tensor),
    }


def _releases(subject: Subject, to: Recorder) -> None:
    if not _has_table(subject, to):
        return
    array = subject.make()
    subject.export(array).delete()
    gc.collect()
    before = sys.getrefcount(array)
    for _ in range(8):
        subject.export(array).delete()
    gc.collect()
    grown = sys.getrefcount(array) - before
    to.expect(
        "exchange-api-releases",
        grown == 0,
        f"the array has {abs(grown)} {'more' if grown > 0 else 'fewer'} references after 8 exports",
        "let the deleter drop exactly the reference that the export took",
    )


def _borrow(subject: Subject, to: Recorder) -> None:
    if not _has_table(subject, to):
        return
    if not subject.table.dltensor_from_py_object_no_sync:
        to.skip("exchange-api-borrow", "the function is NULL, which is allowed")
        return
    array = subject.make()
    borrow = subject.function("dltensor_from_py_object_no_sync", _FromObject)
    tensor = DLTensor()
    before = sys.getrefcount(array)
    status = borrow(array, ctypes.addressof(tensor))
    kept = sys.getrefcount(array) - before
    made = subject.export(array)
    same = status == 0 and _describe(tensor) == _describe(made.managed.dl_tensor)
    made.delete()
    to.expect(
        "exchange-api-borrow",
        same and kept == 0,
        f"it returns {status}, " + (f"keeps {kept} references" if kept else "and another tensor"),
        "fill the struct with pointers that the array owns",
    )


def _to_object(subject: Subject, to: Recorder) -> None:
    if not _has_table(subject, to):
        return
    shape = (2, 3)
    data = Memory.of("f", range(6))
    made = MadeTensor(data, shape, dtype="float32", strides=row_major(shape))
    made.managed.manager_ctx = made.address
    out = _Address()
    function = subject.function("managed_tensor_to_py_object_no_sync", _ToObject)
    status = function(made.address, ctypes.addressof(out))
    if not to.expect(
        "exchange-api-to",
        status == 0 and out.value is not None,
        f"it returns {status}",
        "return 0 and a new reference",
    ):
        return
    array = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(array))  # `array` holds a reference of its own
    exported = Exported(array.__dlpack__())
    right = isinstance(array, subject.type) and start_of(exported.tensor) == data.address
    early = made.released
    del array, exported
    gc.collect()
    to.expect(
        "exchange-api-to",
        right and early == 0 and made.released == 1,
        f"type and memory are {'right' if right else 'wrong'}, the deleter was called "
        f"{made.released} times, {early} of them too early",
        "own the tensor, and call its deleter with the last reference to the memory",
    )


def _work_stream(subject: Subject, to: Recorder) -> None:
    if not _has_table(subject, to):
        return
    out = _Address(1)
    function = subject.function("current_work_stream", _WorkStream)
    status = function(CPU, 0, ctypes.addressof(out))
    to.expect(
        "exchange-api-stream",
        status == 0 and out.value is None,
        f"for the CPU it returns {status} and {'NULL' if out.value is None else 'a stream'}",
        "return 0 and NULL for devices without streams",
    )


class _Errors:
    """Collects what an allocator says by SetError."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.callback = _SetError(self._set)

    def _set(self, _context: int, kind: bytes, message: bytes) -> None:
        self.said.append(f"{kind.decode()}: {message.decode()}")


def _allocate(subject: Subject, to: Recorder) -> None:
    if not _has_table(subject, to):
        return
    errors, out = _Errors(), _Address()
    wanted = MadeTensor(None, (2, 3), dtype="float32", deleter=False)
    allocate = subject.function("managed_tensor_allocator", _Allocator)
    status = allocate(ctypes.addressof(wanted.tensor), ctypes.addressof(out), None, errors.callback)
    failed = status != 0
    to.expect(
        "exchange-api-set-error",
        failed == bool(errors.said),
        f"it returns {status}, and SetError was called {len(errors.said)} times",
        "call SetError once if it fails, never if it succeeds",
    )
    if failed:
        to.skip("exchange-api-allocate", f"it does not allocate on the CPU: {errors.said}")
    else:
        made = Managed(status, out.value)
        sound = made.address is not None and _is_as_wanted(made.managed.dl_tensor)
        to.expect(
            "exchange-api-allocate",
            sound,
            "the tensor is not what the prototype says",
            "use dtype, ndim, shape and device of the prototype",
        )
        if made.address is not None:
            counted = CountedDeleter(made.managed)
            made.delete()
            assert counted.calls == 1
    _allocation_that_fails(allocate, to)


def _is_as_wanted(tensor: DLTensor) -> bool:
    described = _describe(tensor)
    wanted = {"shape": (2, 3), "dtype": (2, 32, 1), "device": (CPU, 0)}
    return bool(described["data"]) and wanted.items() <= described.items()


def _allocation_that_fails(allocate: Any, to: Recorder) -> None:
    """A type that does not exist."""
    errors, out = _Errors(), _Address()
    wanted = MadeTensor(None, (2, 3), dtype=(77, 32), deleter=False)
    try:
        status = allocate(
            ctypes.addressof(wanted.tensor), ctypes.addressof(out), None, errors.callback
        )
    except Exception as error:  # it raised instead of calling SetError
        to.expect("exchange-api-set-error", False, f"raised {quote(error)}", "call SetError")
        return
    to.expect(
        "exchange-api-set-error",
        status != 0 and len(errors.said) == 1,
        f"for an unknown type it returns {status}, and SetError was called "
        f"{len(errors.said)} times",
        "return -1 and call SetError once",
    )


def _refuses(subject: Subject, to: Recorder) -> None:
    if subject.refused is None:
        to.skip("exchange-api-refuses", "pass refused=, an array that __dlpack__ refuses")
        return
    if not _has_table(subject, to):
        return
    try:
        made = subject.export(subject.refused)
    except Exception as error:  # what ctypes found set
        to.expect(
            "exchange-api-refuses",
            isinstance(error, BufferError),
            f"raises {quote(error)}",
            "raise BufferError, so that callers can copy instead",
            "warning",
        )
        return
    to.expect(
        "exchange-api-refuses",
        False,
        f"it returns {made.status} and no exception is set",
        "check what __dlpack__ checks, such as gradients, lazy negation and memory that is missing",
        "warning",
    )
    if made.status == 0 and made.address is not None:
        made.delete()


EXCHANGE_API = Check(
    "exchange-api",
    (
        Case("type", "exchange-api-type", _type),
        Case("header", "exchange-api-version", _header),
        Case("export", "exchange-api-from", _export),
        Case("references", "exchange-api-releases", _releases),
        Case("borrow", "exchange-api-borrow", _borrow),
        Case("import", "exchange-api-to", _to_object),
        Case("work stream", "exchange-api-stream", _work_stream),
        Case("allocator", "exchange-api-allocate", _allocate),
        Case("refusal", "exchange-api-refuses", _refuses),
    ),
    open_subject,
)
