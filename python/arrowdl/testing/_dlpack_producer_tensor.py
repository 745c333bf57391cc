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
    for name, made in each_export(producer):
        with to.trying(name):
            if _shape_is_sound(made, to):
                _check_dtype(made, to)
                _check_data(made, to)
                _check_strides(made, to)
            if made.is_versioned:
                to.expect(
                    "dlpack-flags",
                    made.flags & ~_KNOWN_FLAGS == 0,
                    f"flags are {made.flags:#x}",
                    "set only the bits that dlpack.h defines",
                )


def _shape_is_sound(made: Exported, to: Recorder) -> bool:
    tensor = made.tensor
    sound = tensor.ndim >= 0 and (tensor.ndim == 0 or bool(tensor.shape))
    sound = sound and all(extent >= 0 for extent in shape_of(tensor))
    return to.expect(
        "dlpack-ndim",
        sound,
        f"ndim is {tensor.ndim}, shape is {'NULL' if not tensor.shape else 'not sound'}",
        "fill ndim and shape",
    )


def _check_dtype(made: Exported, to: Recorder) -> None:
    dtype = made.tensor.dtype
    allowed = CODES.get(dtype.code, frozenset())
    sound = dtype.lanes >= 1 and dtype.bits > 0 and (allowed is None or dtype.bits in allowed)
    to.expect(
        "dlpack-dtype",
        sound,
        f"code {dtype.code}, {dtype.bits} bits, {dtype.lanes} lanes",
        "use a code of DLDataTypeCode with its bits, and at least one lane",
    )


def _check_data(made: Exported, to: Recorder) -> None:
    tensor = made.tensor
    if size_of(tensor) == 0:
        to.expect(
            "dlpack-empty",
            not tensor.data,
            "a tensor of size 0 has an address",
            "set data to NULL: consumers may not look at it",
            "warning",
        )
        return
    if not to.expect(
        "dlpack-data",
        bool(tensor.data),
        "data is NULL",
        "raise BufferError if there is no memory, as in tracing or for fake tensors",
    ):
        return
    to.expect(
        "dlpack-byte-offset",
        tensor.byte_offset == 0,
        f"byte_offset is {tensor.byte_offset}",
        "add the offset to data and set byte_offset to 0",
        "warning",
    )
    width = max(tensor.dtype.bits * tensor.dtype.lanes // 8, 1)
    width = width // 2 if tensor.dtype.code == 5 else width  # complex: two floats
    to.expect(
        "dlpack-alignment",
        start_of(tensor) % max(width, 1) == 0,
        f"the address is not a multiple of {width}",
        "copy to aligned memory, or raise BufferError",
        "warning",
    )


def _check_strides(made: Exported, to: Recorder) -> None:
    tensor = made.tensor
    if tensor.ndim == 0:
        return
    if made.is_versioned and made.version >= (1, 2):
        to.expect(
            "dlpack-strides",
            bool(tensor.strides),
            f"strides are NULL in version {made.version[0]}.{made.version[1]}",
            "fill in strides, also for row-major order",
        )
    to.expect(
        "dlpack-negative-strides",
        all(stride >= 0 for stride in strides_of(tensor)),
        f"strides are {strides_of(tensor)}",
        "copy, or raise BufferError",
        "warning",
    )


def _values(producer: Producer, to: Recorder) -> None:
    if producer.values is None:
        to.skip("dlpack-values", "pass values= to compare them")
        return
    made = producer.best()
    if not can_read(made.tensor):
        to.skip("dlpack-values", "the host cannot read this memory or type")
        return
    size = size_of(made.tensor)
    if not to.expect(
        "dlpack-values",
        size == len(producer.values),
        f"the tensor holds {size} values, not {len(producer.values)}",
        "check the shape, or what you passed as values=",
    ):
        return
    seen = read_values(made.tensor)
    wanted = [rounded(made.tensor, producer.values[index]) for index in read_indices(size)]
    pairs = zip(seen, wanted, strict=True)
    wrong = next((n for n, (left, right) in enumerate(pairs) if not _is_equal(left, right)), None)
    first = max((wrong or 0) - 4, 0)
    to.expect(
        "dlpack-values",
        wrong is None,
        f"the tensor holds {seen[first : first + 8]}, not {wanted[first : first + 8]}",
        "check data, strides (in elements, not bytes), dtype and pending operations",
    )


def _is_equal(left: Any, right: Any) -> bool:
    return bool(left == right or (left != left and right != right))  # NaN is NaN


def _read_only(producer: Producer, to: Recorder) -> None:
    if producer.read_only is None:
        to.skip("dlpack-read-only", "pass read_only= if the array is, or is not, read-only")
        return
    for name, made in each_export(producer):
        with to.trying(name):
            flag = bool(made.flags & READ_ONLY)
            if made.flags & IS_COPIED:
                continue
            if made.is_versioned:
                to.expect(
                    "dlpack-read-only",
                    flag == producer.read_only,
                    f"READ_ONLY is {'set' if flag else 'not set'}",
                    "set the flag exactly for memory that must not be written",
                    "error" if producer.read_only else "warning",
                )
            else:
                to.expect(
                    "dlpack-read-only",
                    not producer.read_only,
                    "read-only memory in a legacy capsule, which cannot say so",
                    "raise BufferError that asks for max_version=(1, 0)",
                    "warning",
                )


CASES = (
    Case("fields", "dlpack-ndim", needs_tensor(_fields)),
    Case("values", "dlpack-values", needs_tensor(_values)),
    Case("read-only memory", "dlpack-read-only", needs_tensor(_read_only)),
)
