"""The cases of `check_dlpack_producer` that are about devices, copies and streams."""

from __future__ import annotations

import enum
import operator
from typing import Any

from arrowdl._device_type import DeviceType
from arrowdl.testing._dlpack_producer import NEWEST, Producer, needs_tensor, outcome
from arrowdl.testing._managed import Exported, size_of, start_of
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._structs import CPU, CUDA, EXT_DEV, IS_COPIED, ROCM

_MOST_COPIED = 1 << 30  # bytes
_DEVICE_TYPES = frozenset(map(int, DeviceType))


def _index(number: Any) -> int | None:
    """`number` as an int if it is an integer of any type."""
    try:
        return operator.index(number)
    except TypeError:
        return None


def _device(producer: Producer, to: Recorder) -> None:
    device = producer.make().__dlpack_device__()
    numbers = isinstance(device, tuple) and len(device) == 2
    parts = tuple(map(_index, device)) if numbers else ()
    plain_enum = numbers and isinstance(device[0], enum.Enum) and _index(device[0]) is None
    if plain_enum:
        parts = (_index(device[0].value), *parts[1:])
    if not to.expect(
        "dlpack-device",
        numbers and None not in parts and parts[0] in _DEVICE_TYPES,
        f"__dlpack_device__ returns {device!r}",
        "return (device_type, device_id), two integers of DLPack",
    ):
        return
    to.expect(
        "dlpack-device",
        not plain_enum,
        f"the device type {device[0]!r} is not an integer",
        "use enum.IntEnum: consumers compare the type with numbers",
        "warning",
    )
    refused = producer.refusal()
    if refused is not None:
        to.skip("dlpack-device-agrees", f"the array cannot be exported: {quote(refused)}")
        return
    made = producer.best()  # the struct lives as long as its capsule
    on = made.tensor.device
    to.expect(
        "dlpack-device-agrees",
        (on.device_type, on.device_id) == parts,
        f"the tensor is on ({on.device_type}, {on.device_id}), __dlpack_device__ says {parts}",
        "return one device in both",
    )


def _dl_device(producer: Producer, to: Recorder) -> None:
    advice = "export on the requested device, or raise BufferError"
    if isinstance(producer.try_export(dl_device=None), TypeError):
        to.skip("dlpack-dl-device", "dl_device is not a keyword")
        return
    own = producer.device
    for device in dict.fromkeys([own, (CPU, 0), (EXT_DEV, 3)]):
        with to.trying(f"dl_device={device}"):
            made = producer.try_export(dl_device=device, max_version=NEWEST)
            if isinstance(made, Exported) and made.is_known:
                on = made.tensor.device
                to.expect(
                    "dlpack-dl-device",
                    (on.device_type, on.device_id) == device,
                    f"the tensor is on ({on.device_type}, {on.device_id})",
                    advice,
                )
            elif isinstance(made, Exception):
                to.expect(
                    "dlpack-dl-device",
                    isinstance(made, BufferError) and device != own,
                    f"raises {quote(made)}",
                    advice,
                )


def _copies(producer: Producer, to: Recorder) -> None:
    if isinstance(producer.try_export(copy=None), TypeError):
        for rule in ("dlpack-copy-true", "dlpack-copy-false", "dlpack-copied-flag"):
            to.skip(rule, "copy is not a keyword")
        return
    kept = producer.make()
    fixed = Producer(lambda: kept, False, None, None)
    plain = fixed.best()
    empty = size_of(plain.tensor) == 0
    _copy_true(fixed, plain, empty, to)
    shared = fixed.try_export(copy=False, max_version=NEWEST)
    if isinstance(shared, Exported) and shared.is_known:
        again = fixed.try_export(copy=False, max_version=NEWEST)
        same = isinstance(again, Exported) and start_of(again.tensor) == start_of(shared.tensor)
        to.expect(
            "dlpack-copy-false",
            same or empty,
            "copy=False returns other memory each time",
            "share the memory, or raise BufferError",
        )
        to.expect(
            "dlpack-not-copied-flag",
            not shared.flags & IS_COPIED,
            "copy=False sets IS_COPIED",
            "set the flag on copies only: its consumer may write to the memory",
        )
    elif isinstance(shared, Exception):
        to.expect(
            "dlpack-copy-false",
            isinstance(shared, BufferError),
            f"copy=False raises {quote(shared)}",
            "raise BufferError if a copy is needed",
        )


def _copy_true(producer: Producer, plain: Exported, empty: bool, to: Recorder) -> None:
    if size_of(plain.tensor) * plain.tensor.dtype.bits // 8 > _MOST_COPIED:
        to.skip("dlpack-copy-true", "a copy of this array needs more than 1 GiB")
        return
    copied = producer.try_export(copy=True, max_version=NEWEST)
    if isinstance(copied, Exception):
        to.expect(
            "dlpack-copy-true",
            isinstance(copied, BufferError),
            f"copy=True raises {quote(copied)}",
            "copy, or raise BufferError if you cannot",
            "error",
        )
        return
    shares = start_of(copied.tensor) == start_of(plain.tensor) and not empty
    to.expect(
        "dlpack-copy-true",
        not shares,
        "copy=True returns the memory of the array",
        "copy, or raise BufferError",
    )
    if not shares and not empty and copied.is_versioned:
        to.expect(
            "dlpack-copied-flag",
            bool(copied.flags & IS_COPIED),
            "IS_COPIED is not set on the copy",
            "set it: its consumer may then write to the memory",
        )


def _streams(producer: Producer, to: Recorder) -> None:
    made = producer.try_export(stream=None)
    to.expect(
        "dlpack-stream",
        not isinstance(made, Exception) or isinstance(made, BufferError | TypeError),
        "stream=None " + outcome(made),
        "None is a valid stream everywhere",
    )
    type = producer.device[0]
    if type in (CUDA, ROCM):
        _streams_of_gpu(producer, type, to)
        return
    to.skip("dlpack-stream-zero", "the array is not on CUDA or ROCm")
    if type != CPU:
        to.skip("dlpack-stream-cpu", "the array is not on the CPU")
        return
    made = producer.try_export(stream=5)
    to.expect(
        "dlpack-stream-cpu",
        isinstance(made, Exception),
        "stream=5 is accepted on the CPU",
        "raise an exception: the consumer believes that the memory has a stream",
        "warning",
    )


def _streams_of_gpu(producer: Producer, type: int, to: Recorder) -> None:
    allowed, forbidden = ((-1, 1, 2), (0,)) if type == CUDA else ((-1, 0), (1, 2))
    for stream in allowed:
        made = producer.try_export(stream=stream)
        # "Support for a stream value other than None is optional."
        to.expect(
            "dlpack-stream",
            isinstance(made, Exported),
            f"stream={stream} " + outcome(made),
            "support the default streams and -1",
            "warning",
        )
    for stream in forbidden:
        made = producer.try_export(stream=stream)
        to.expect(
            "dlpack-stream-zero",
            isinstance(made, Exception),
            f"stream={stream} is accepted",
            "raise an exception: it is not said which stream is meant",
        )
    to.skip("dlpack-stream-cpu", "the array is not on the CPU")


CASES = (
    Case("device", "dlpack-device", _device),
    Case("dl_device", "dlpack-dl-device", needs_tensor(_dl_device)),
    Case("copies", "dlpack-copy-true", needs_tensor(_copies)),
    Case("streams", "dlpack-stream", needs_tensor(_streams)),
)
