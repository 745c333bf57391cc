"""The cases of `check_dlpack_producer` that are about its methods, capsules, devices and copies."""

from __future__ import annotations

import enum
import operator
from typing import Any

from arrowdl._device_type import DeviceType
from arrowdl.testing._dlpack_producer import Producer, describe_export, needs_tensor
from arrowdl.testing._managed import LEGACY, NEWEST, VERSIONED, Exported, size_of, start_of
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._structs import CPU, CUDA, EXT_DEV, IS_COPIED, ROCM

_MOST_COPIED = 1 << 30  # bytes
_DEVICE_TYPES = frozenset(map(int, DeviceType))


def _methods(producer: Producer, to: Recorder) -> None:
    array = producer.make()
    for name in ("__dlpack__", "__dlpack_device__"):
        to.expect(callable(getattr(array, name, None)), f"{name} is missing")


def _keywords(producer: Producer, to: Recorder) -> None:
    """With None, which every edition of the standard takes for the default."""
    for name in ("stream", "max_version", "dl_device", "copy"):
        export = producer.try_export(**{name: None})
        is_new = name != "stream"
        to.expect(
            not isinstance(export, TypeError),
            f"{name}=None raises TypeError" + ("; the standard has it since 2023.12" * is_new),
            severity="warning" if is_new else "error",
        )
        if isinstance(export, Exception) and not isinstance(export, TypeError | BufferError):
            to.error(f"{name}=None raises {quote(export)}")


def _names(producer: Producer, to: Recorder) -> None:
    for options in ({}, {"max_version": (1, 0)}, {"max_version": NEWEST}):
        export = producer.try_export(**options)
        if isinstance(export, Exported):
            to.expect(export.is_known, f'the capsule is named "{export.name}"')


def _legacy(producer: Producer, to: Recorder) -> None:
    export = producer.try_export()
    if isinstance(export, BufferError):
        to.passed()
        return
    if isinstance(export, Exception):
        raise export
    to.expect(export.name != VERSIONED, "a versioned capsule, though no max_version was passed")


def _versions(producer: Producer, to: Recorder) -> None:
    export = producer.try_export(max_version=NEWEST)
    if isinstance(export, TypeError):
        to.skip("max_version is not a keyword", rule="dlpack-versioned")
        return
    if isinstance(export, Exception):
        raise export
    to.prefer(
        export.name != LEGACY, f"a legacy capsule for max_version={NEWEST}", rule="dlpack-versioned"
    )
    newer = producer.try_export(max_version=(99, 0))
    to.expect(
        isinstance(newer, Exported),
        f"max_version=(99, 0) raises {quote(newer) if isinstance(newer, Exception) else ''}",
        rule="dlpack-newer-consumer",
    )
    older = producer.try_export(max_version=(0, 8))
    good = isinstance(older, BufferError) or (isinstance(older, Exported) and older.name == LEGACY)
    to.prefer(good, "max_version=(0, 8) " + describe_export(older), rule="dlpack-old-consumer")
    for options in ({"max_version": (1, 0)}, {"max_version": NEWEST}, {"max_version": (99, 0)}):
        export = producer.try_export(**options)
        if isinstance(export, Exported) and export.is_versioned:
            to.expect(
                export.version[0] == 1, f"the version is {export.version[0]}.{export.version[1]}"
            )


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
        numbers and None not in parts and parts[0] in _DEVICE_TYPES,
        f"__dlpack_device__ returns {device!r}",
    ):
        return
    to.prefer(not plain_enum, f"the device type {device[0]!r} is not an integer")
    refused = producer.refusal()
    if refused is not None:
        to.skip(refused, rule="dlpack-device-agrees")
        return
    export = producer.best()  # the struct lives as long as its capsule
    on = export.tensor.device
    to.expect(
        (on.device_type, on.device_id) == parts,
        f"the tensor is on ({on.device_type}, {on.device_id}), __dlpack_device__ says {parts}",
        rule="dlpack-device-agrees",
    )


def _dl_device(producer: Producer, to: Recorder) -> None:
    if isinstance(producer.try_export(dl_device=None), TypeError):
        to.skip("dl_device is not a keyword")
        return
    home = producer.device
    for device in dict.fromkeys([home, (CPU, 0), (EXT_DEV, 3)]):
        with to.trying(f"dl_device={device}"):
            export = producer.try_export(dl_device=device, max_version=NEWEST)
            if isinstance(export, Exported) and export.is_known:
                on = export.tensor.device
                to.expect(
                    (on.device_type, on.device_id) == device,
                    f"the tensor is on ({on.device_type}, {on.device_id})",
                )
            elif isinstance(export, Exception):
                to.expect(
                    isinstance(export, BufferError) and device != home, f"raises {quote(export)}"
                )


def _copies(producer: Producer, to: Recorder) -> None:
    if isinstance(producer.try_export(copy=None), TypeError):
        for rule in ("dlpack-copy-true", "dlpack-copy-false", "dlpack-copied-flag"):
            to.skip("copy is not a keyword", rule=rule)
        return
    array = producer.make()
    fixed = Producer(lambda: array, False, None, None)
    plain = fixed.best()
    empty = size_of(plain.tensor) == 0
    _copy_true(fixed, plain, empty, to)
    shared = fixed.try_export(copy=False, max_version=NEWEST)
    if isinstance(shared, Exported) and shared.is_known:
        again = fixed.try_export(copy=False, max_version=NEWEST)
        same = isinstance(again, Exported) and start_of(again.tensor) == start_of(shared.tensor)
        to.expect(
            same or empty, "copy=False returns other memory each time", rule="dlpack-copy-false"
        )
        to.expect(
            not shared.flags & IS_COPIED, "copy=False sets IS_COPIED", rule="dlpack-not-copied-flag"
        )
    elif isinstance(shared, Exception):
        to.expect(
            isinstance(shared, BufferError),
            f"copy=False raises {quote(shared)}",
            rule="dlpack-copy-false",
            advice="raise BufferError if a copy is needed",
        )


def _copy_true(producer: Producer, plain: Exported, empty: bool, to: Recorder) -> None:
    if size_of(plain.tensor) * plain.tensor.dtype.bits // 8 > _MOST_COPIED:
        to.skip("a copy of this array needs more than 1 GiB", rule="dlpack-copy-true")
        return
    copied = producer.try_export(copy=True, max_version=NEWEST)
    if isinstance(copied, Exception):
        to.expect(
            isinstance(copied, BufferError),
            f"copy=True raises {quote(copied)}",
            rule="dlpack-copy-true",
            advice="copy, or raise BufferError if you cannot",
        )
        return
    shares = start_of(copied.tensor) == start_of(plain.tensor) and not empty
    to.expect(not shares, "copy=True returns the memory of the array", rule="dlpack-copy-true")
    if not shares and not empty and copied.is_versioned:
        to.expect(
            bool(copied.flags & IS_COPIED),
            "IS_COPIED is not set on the copy",
            rule="dlpack-copied-flag",
        )


def _streams(producer: Producer, to: Recorder) -> None:
    export = producer.try_export(stream=None)
    to.expect(
        not isinstance(export, Exception) or isinstance(export, BufferError | TypeError),
        "stream=None " + describe_export(export),
    )
    type = producer.device[0]
    if type in (CUDA, ROCM):
        _streams_of_gpu(producer, type, to)
        return
    to.skip("the array is not on CUDA or ROCm", rule="dlpack-stream-zero")
    if type != CPU:
        to.skip("the array is not on the CPU", rule="dlpack-stream-cpu")
        return
    export = producer.try_export(stream=5)
    to.prefer(
        isinstance(export, Exception), "stream=5 is accepted on the CPU", rule="dlpack-stream-cpu"
    )


def _streams_of_gpu(producer: Producer, type: int, to: Recorder) -> None:
    allowed, forbidden = ((-1, 1, 2), (0,)) if type == CUDA else ((-1, 0), (1, 2))
    for stream in allowed:
        export = producer.try_export(stream=stream)
        # "Support for a stream value other than None is optional."
        to.prefer(
            isinstance(export, Exported),
            f"stream={stream} " + describe_export(export),
            rule="dlpack-stream",
            advice="support the default streams and -1",
        )
    for stream in forbidden:
        export = producer.try_export(stream=stream)
        to.expect(
            isinstance(export, Exception), f"stream={stream} is accepted", rule="dlpack-stream-zero"
        )
    to.skip("the array is not on the CPU", rule="dlpack-stream-cpu")


CASES = (
    Case("methods", "dlpack-methods", _methods),
    Case("keywords", "dlpack-keywords", _keywords),
    Case("names", "dlpack-capsule-name", needs_tensor(_names)),
    Case("no max_version", "dlpack-legacy", _legacy),
    Case("versions", "dlpack-version", needs_tensor(_versions)),
    Case("device", "dlpack-device", _device),
    Case("dl_device", "dlpack-dl-device", needs_tensor(_dl_device)),
    Case("copies", "dlpack-copy-true", needs_tensor(_copies)),
    Case("streams", "dlpack-stream", needs_tensor(_streams)),
)
