"""The cases of `check_dlpack_producer` that are about the fields and values of a tensor."""

from __future__ import annotations

from typing import Any

from arrowdl.testing._dlpack_producer import Producer, each_export, needs_tensor
from arrowdl.testing._managed import (
    CODES,
    Exported,
    can_read,
    read_indices,
    read_values,
    rounded,
    shape_of,
    size_of,
    start_of,
    strides_of,
)
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case
from arrowdl.testing._structs import IS_COPIED, READ_ONLY

_KNOWN_FLAGS = 0b111


def _fields(producer: Producer, to: Recorder) -> None:
    for name, export in each_export(producer):
        with to.trying(name):
            if _shape_is_sound(export, to):
                _check_dtype(export, to)
                _check_data(export, to)
                _check_strides(export, to)
            if export.is_versioned:
                to.expect(
                    export.flags & ~_KNOWN_FLAGS == 0,
                    f"flags are {export.flags:#x}",
                    rule="dlpack-flags",
                )


def _shape_is_sound(export: Exported, to: Recorder) -> bool:
    tensor = export.tensor
    sound = tensor.ndim >= 0 and (tensor.ndim == 0 or bool(tensor.shape))
    sound = sound and all(extent >= 0 for extent in shape_of(tensor))
    return to.expect(
        sound,
        f"ndim is {tensor.ndim}, shape is {'NULL' if not tensor.shape else 'not sound'}",
        rule="dlpack-ndim",
    )


def _check_dtype(export: Exported, to: Recorder) -> None:
    dtype = export.tensor.dtype
    allowed = CODES.get(dtype.code, frozenset())
    sound = dtype.lanes >= 1 and dtype.bits > 0 and (allowed is None or dtype.bits in allowed)
    to.expect(
        sound, f"code {dtype.code}, {dtype.bits} bits, {dtype.lanes} lanes", rule="dlpack-dtype"
    )


def _check_data(export: Exported, to: Recorder) -> None:
    tensor = export.tensor
    if size_of(tensor) == 0:
        to.prefer(not tensor.data, "a tensor of size 0 has an address", rule="dlpack-empty")
        return
    if not to.expect(bool(tensor.data), "data is NULL", rule="dlpack-data"):
        return
    to.prefer(
        tensor.byte_offset == 0, f"byte_offset is {tensor.byte_offset}", rule="dlpack-byte-offset"
    )
    width = max(tensor.dtype.bits * tensor.dtype.lanes // 8, 1)
    width = width // 2 if tensor.dtype.code == 5 else width  # complex: two floats
    to.prefer(
        start_of(tensor) % max(width, 1) == 0,
        f"the address is not a multiple of {width}",
        rule="dlpack-alignment",
    )


def _check_strides(export: Exported, to: Recorder) -> None:
    tensor = export.tensor
    if tensor.ndim == 0:
        return
    if export.is_versioned and export.version >= (1, 2):
        to.expect(
            bool(tensor.strides),
            f"strides are NULL in version {export.version[0]}.{export.version[1]}",
            rule="dlpack-strides",
        )
    to.prefer(
        all(stride >= 0 for stride in strides_of(tensor)),
        f"strides are {strides_of(tensor)}",
        rule="dlpack-negative-strides",
    )


def _values(producer: Producer, to: Recorder) -> None:
    if producer.values is None:
        to.skip("pass values= to compare them")
        return
    export = producer.best()
    if not can_read(export.tensor):
        to.skip("the host cannot read this memory or type")
        return
    size = size_of(export.tensor)
    if not to.expect(
        size == len(producer.values),
        f"the tensor holds {size} values, not {len(producer.values)}",
        advice="check the shape, or what you passed as values=",
    ):
        return
    seen = read_values(export.tensor)
    wanted = [rounded(export.tensor, producer.values[index]) for index in read_indices(size)]
    pairs = zip(seen, wanted, strict=True)
    wrong = next((n for n, (left, right) in enumerate(pairs) if not _is_equal(left, right)), None)
    first = max((wrong or 0) - 4, 0)
    to.expect(
        wrong is None,
        f"the tensor holds {seen[first : first + 8]}, not {wanted[first : first + 8]}",
    )


def _is_equal(left: Any, right: Any) -> bool:
    return bool(left == right or (left != left and right != right))  # NaN is NaN


def _read_only(producer: Producer, to: Recorder) -> None:
    if producer.read_only is None:
        to.skip("pass read_only= if the array is, or is not, read-only")
        return
    for name, export in each_export(producer):
        with to.trying(name):
            flag = bool(export.flags & READ_ONLY)
            if export.flags & IS_COPIED:
                continue
            if export.is_versioned:
                to.expect(
                    flag == producer.read_only,
                    f"READ_ONLY is {'set' if flag else 'not set'}",
                    severity="error" if producer.read_only else "warning",
                )
            else:
                to.prefer(
                    not producer.read_only,
                    "read-only memory in a legacy capsule, which cannot say so",
                    advice="raise BufferError that asks for max_version=(1, 0)",
                )


CASES = (
    Case("fields", "dlpack-ndim", needs_tensor(_fields)),
    Case("values", "dlpack-values", needs_tensor(_values)),
    Case("read-only memory", "dlpack-read-only", needs_tensor(_read_only)),
)
