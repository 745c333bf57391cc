"""The cases of `check_exchange_api`."""

from __future__ import annotations

import ctypes
import gc
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from arrowdl.testing._capsules import capsule_address, capsule_name, is_capsule
from arrowdl.testing._life import expect_no_growth
from arrowdl.testing._managed import (
    CountedDeleter,
    Exported,
    export_newest,
    row_major,
    shape_of,
    start_of,
    strides_of,
)
from arrowdl.testing._raw_tensor import Memory, RawTensor
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, Check, checked_factory, quote, skip_where
from arrowdl.testing._structs import CPU, DLManagedTensorVersioned, DLPackExchangeAPI, DLTensor

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

    def find_lack(self) -> str | None:
        """Why the cases are skipped: the class has no table."""
        has_table = hasattr(self.type, ATTRIBUTE)
        return None if has_table else f"{self.type.__qualname__} has no exchange API"

    def export(self, array: Any) -> tuple[int, Any]:
        """Return the status, and the tensor or None."""
        out = _Address()
        function = self.function("managed_tensor_from_py_object_no_sync", _FromObject)
        return function(array, ctypes.addressof(out)), _read_managed(out)


def _delete(managed: Any) -> None:
    if managed.deleter:
        managed.deleter(ctypes.addressof(managed))


def _read_managed(out: ctypes.c_void_p) -> Any:
    """Return the tensor at an address; None for NULL."""
    return None if out.value is None else DLManagedTensorVersioned.from_address(out.value)


def open_subject(target: Any, *, refused: Any = None) -> Subject:
    if hasattr(type(target), ATTRIBUTE) or not callable(target):
        return Subject(lambda: target, refused)
    return Subject(checked_factory(target), refused)


def _type(subject: Subject, to: Recorder) -> None:
    capsule = getattr(subject.type, ATTRIBUTE)
    sound = is_capsule(capsule) and capsule_name(capsule) == NAME
    to.expect(sound, f"{ATTRIBUTE} is {capsule!r:.80}")
    again = getattr(subject.type, ATTRIBUTE)
    to.expect(
        not sound or capsule_address(again) == capsule_address(capsule),
        "the address of the table changes",
        rule="exchange-api-static",
    )


def _header(subject: Subject, to: Recorder) -> None:
    table = subject.table
    version = (table.version.major, table.version.minor)
    to.expect((1, 3) <= version < (2, 0), f"the version is {version[0]}.{version[1]}")
    seen, previous = [version], table.prev_api
    while previous and len(seen) < 16:
        older = DLPackExchangeAPI.from_address(previous)
        seen.append((older.version.major, older.version.minor))
        previous = older.prev_api
    to.expect(
        all(new > old for new, old in itertools.pairwise(seen)),
        f"the versions of the tables are {seen[:4]}",
        rule="exchange-api-chain",
    )
    missing = [name for name in _REQUIRED if not getattr(table, name)]
    to.expect(not missing, f"NULL: {', '.join(missing)}", rule="exchange-api-functions")


def _export(subject: Subject, to: Recorder) -> None:
    array = subject.make()
    status, managed = subject.export(array)
    if not to.expect(
        status == 0 and managed is not None,
        f"it returns {status} and {'NULL' if managed is None else 'a tensor'}",
    ):
        return
    exported = export_newest(array)
    ours, theirs = _describe(managed.dl_tensor), _describe(exported.tensor)
    to.expect(
        ours == theirs,
        f"the table says {ours}, __dlpack__ says {theirs}",
        rule="exchange-api-agrees",
    )
    to.expect(
        managed.version.major == 1,
        f"the tensor has version {managed.version.major}",
        advice="set the version of the tensor",
    )
    _delete(managed)


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
    array = subject.make()

    def export() -> None:
        _delete(subject.export(array)[1])

    export()  # the first one may fill a cache of the array
    expect_no_growth("exchange-api-releases", to, array, export)


def _borrow(subject: Subject, to: Recorder) -> None:
    if not subject.table.dltensor_from_py_object_no_sync:
        to.skip("the function is NULL, which is allowed")
        return
    array = subject.make()
    borrow = subject.function("dltensor_from_py_object_no_sync", _FromObject)
    tensor = DLTensor()
    before = sys.getrefcount(array)
    status = borrow(array, ctypes.addressof(tensor))
    references = sys.getrefcount(array) - before
    _, managed = subject.export(array)
    same = status == 0 and _describe(tensor) == _describe(managed.dl_tensor)
    _delete(managed)
    to.expect(
        same and references == 0,
        f"it returns {status}, "
        + (f"keeps {references} references" if references else "and another tensor"),
    )


def _to_object(subject: Subject, to: Recorder) -> None:
    shape = (2, 3)
    data = Memory.of("f", range(6))
    tensor = RawTensor(data, shape, dtype="float32", strides=row_major(shape))
    tensor.managed.manager_ctx = tensor.address
    out = _Address()
    function = subject.function("managed_tensor_to_py_object_no_sync", _ToObject)
    status = function(tensor.address, ctypes.addressof(out))
    if not to.expect(
        status == 0 and out.value is not None,
        f"it returns {status}",
        advice="return 0 and a new reference",
    ):
        return
    array = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(array))  # `array` holds a reference of its own
    exported = Exported(array.__dlpack__())
    right = isinstance(array, subject.type) and start_of(exported.tensor) == data.address
    early = tensor.released
    del array, exported
    gc.collect()
    to.expect(
        right and early == 0 and tensor.released == 1,
        f"type and memory are {'right' if right else 'wrong'}, the deleter was called "
        f"{tensor.released} times, {early} of them too early",
    )


def _work_stream(subject: Subject, to: Recorder) -> None:
    out = _Address(1)
    function = subject.function("current_work_stream", _WorkStream)
    status = function(CPU, 0, ctypes.addressof(out))
    to.expect(
        status == 0 and out.value is None,
        f"for the CPU it returns {status} and {'NULL' if out.value is None else 'a stream'}",
    )


def _try_allocate(subject: Subject, dtype: Any) -> tuple[int, Any, list[str]]:
    """Return the status of an allocator, the tensor or None, and what SetError was told."""
    said: list[str] = []

    def note(_context: int, kind: bytes, message: bytes) -> None:
        said.append(f"{kind.decode()}: {message.decode()}")

    out, set_error = _Address(), _SetError(note)
    wanted = RawTensor(None, (2, 3), dtype=dtype, deleter=False)
    allocate = subject.function("managed_tensor_allocator", _Allocator)
    status = allocate(ctypes.addressof(wanted.tensor), ctypes.addressof(out), None, set_error)
    return status, _read_managed(out), said


def _allocate(subject: Subject, to: Recorder) -> None:
    status, managed, said = _try_allocate(subject, "float32")
    failed = status != 0
    to.expect(
        failed == bool(said),
        f"it returns {status}, and SetError was called {len(said)} times",
        rule="exchange-api-set-error",
    )
    if failed:
        to.skip(f"it does not allocate on the CPU: {said}")
    else:
        sound = managed is not None and _is_as_wanted(managed.dl_tensor)
        to.expect(sound, "the tensor is not what the prototype says")
        if managed is not None:
            counted = CountedDeleter(managed)
            _delete(managed)
            assert counted.calls == 1
    _allocation_that_fails(subject, to)


def _is_as_wanted(tensor: DLTensor) -> bool:
    described = _describe(tensor)
    wanted = {"shape": (2, 3), "dtype": (2, 32, 1), "device": (CPU, 0)}
    return bool(described["data"]) and wanted.items() <= described.items()


def _allocation_that_fails(subject: Subject, to: Recorder) -> None:
    """A type that does not exist."""
    try:
        status, _, said = _try_allocate(subject, (77, 32))
    except Exception as error:  # it raised instead of calling SetError
        to.expect(
            False, f"raised {quote(error)}", rule="exchange-api-set-error", advice="call SetError"
        )
        return
    to.expect(
        status != 0 and len(said) == 1,
        f"for an unknown type it returns {status}, and SetError was called {len(said)} times",
        rule="exchange-api-set-error",
        advice="return -1 and call SetError once",
    )


def _refuses(subject: Subject, to: Recorder) -> None:
    if subject.refused is None:
        to.skip("pass refused=, an array that __dlpack__ refuses")
        return
    try:
        status, managed = subject.export(subject.refused)
    except Exception as error:  # what ctypes found set
        to.prefer(
            isinstance(error, BufferError),
            f"raises {quote(error)}",
            advice="raise BufferError, so that callers can copy instead",
        )
        return
    to.prefer(False, f"it returns {status} and no exception is set")
    if status == 0 and managed is not None:
        _delete(managed)


_CASES = (
    Case("type", "exchange-api-type", _type),
    Case("header", "exchange-api-version", _header),
    Case("export", "exchange-api-from", _export),
    Case("references", "exchange-api-releases", _releases),
    Case("borrow", "exchange-api-borrow", _borrow),
    Case("import", "exchange-api-to", _to_object),
    Case("work stream", "exchange-api-stream", _work_stream),
    Case("allocator", "exchange-api-allocate", _allocate),
    Case("refusal", "exchange-api-refuses", _refuses),
)
EXCHANGE_API = Check(
    "exchange-api",
    tuple(replace(case, run=skip_where(Subject.find_lack, case.run)) for case in _CASES),
    open_subject,
)
