"""The cases of `check_dlpack_producer`."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from arrowdl._device_type import DeviceType
from arrowdl.testing._managed import (
    CODES,
    LEGACY,
    VERSIONED,
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
from arrowdl.testing._run import Case, checked_factory, quote
from arrowdl.testing._structs import CPU, CUDA, EXT_DEV, IS_COPIED, READ_ONLY, ROCM
from arrowdl.testing._values import flat

NEWEST = (1, 3)
"""The DLPack version whose rules are checked."""

_MOST_COPIED = 1 << 30  # bytes
_KNOWN_FLAGS = 0b111
_DEVICE_TYPES = frozenset(map(int, DeviceType))


@dataclass
class Producer:
    """What is checked: `make` returns an array, a new one each time if it is a factory."""

    make: Callable[[], Any]
    is_factory: bool
    read_only: bool | None
    values: list[Any] | None

    def export(self, **options: Any) -> Exported:
        return Exported(self.make().__dlpack__(**options))

    def try_export(self, **options: Any) -> Exported | Exception:
        try:
            return self.export(**options)
        except Exception as error:  # what it raises is what a case looks at
            return error

    def best(self) -> Exported:
        """An export by the newest version that works."""
        for options in ({"max_version": NEWEST}, {}):
            made = self.try_export(**options)
            if isinstance(made, Exported) and made.is_known:
                return made
        if isinstance(made, Exception):
            raise made
        raise TypeError(f'the capsule is named "{made.name}"')

    def options(self) -> dict[str, Any]:
        """The keywords with which `__dlpack__` works: none, or read-only memory needs a version."""
        made = self.try_export()
        return {"max_version": NEWEST} if isinstance(made, BufferError) else {}

    def refusal(self) -> BufferError | None:
        """The BufferError of an array that cannot be exported at all, as the standard has it."""
        plain = self.try_export()
        if not isinstance(plain, BufferError):
            return None
        newest = self.try_export(max_version=NEWEST)
        return plain if isinstance(newest, BufferError | TypeError) else None

    @property
    def device(self) -> tuple[int, int]:
        type, number = self.make().__dlpack_device__()
        type = type.value if isinstance(type, enum.Enum) else type
        return int(type), int(number or 0)  # None is a finding of the case "device"


def open_producer(target: Any, *, read_only: bool | None = None, values: Any = None) -> Producer:
    expected = None if values is None else flat(values)
    if hasattr(target, "__dlpack__") and not isinstance(target, type):
        return Producer(lambda: target, False, read_only, expected)
    if callable(target):
        return Producer(checked_factory(target), True, read_only, expected)
    raise TypeError(
        f"{type(target).__name__} has no __dlpack__: pass an array, or a function that makes one"
    )


def needs_tensor(
    run: Callable[[Producer, Recorder], None],
) -> Callable[[Producer, Recorder], None]:
    """Return `run`, which is skipped for an array that is refused with BufferError."""

    def checked(producer: Producer, to: Recorder) -> None:
        refused = producer.refusal()
        if refused is None:
            run(producer, to)
        else:
            to.skip(to.rule, f"the array cannot be exported: {quote(refused)}")

    return checked


# ---------------------------------------------------------------------------
# Methods and keywords


def _methods(producer: Producer, to: Recorder) -> None:
    array = producer.make()
    for name in ("__dlpack__", "__dlpack_device__"):
        to.expect(
            "dlpack-methods",
            callable(getattr(array, name, None)),
            f"{name} is missing",
            "add the method: consumers call both",
        )


def _keywords(producer: Producer, to: Recorder) -> None:
    """With None, which every edition of the standard takes for the default."""
    for name in ("stream", "max_version", "dl_device", "copy"):
        made = producer.try_export(**{name: None})
        lacks = isinstance(made, TypeError)
        to.expect(
            "dlpack-keywords",
            not lacks,
            f"{name}=None raises TypeError",
            "accept the keyword with None as its default"
            + ("" if name == "stream" else "; it is in the standard since 2023.12"),
            "error" if name == "stream" else "warning",
        )
        if isinstance(made, Exception) and not isinstance(made, TypeError | BufferError):
            to.error("dlpack-keywords", f"{name}=None raises {quote(made)}", "treat it as default")


# ---------------------------------------------------------------------------
# Capsules and versions


def _names(producer: Producer, to: Recorder) -> None:
    for options in ({}, {"max_version": (1, 0)}, {"max_version": NEWEST}):
        made = producer.try_export(**options)
        if isinstance(made, Exported):
            to.expect(
                "dlpack-capsule-name",
                made.is_known,
                f'the capsule is named "{made.name}"',
                f'name it "{LEGACY}" or "{VERSIONED}"',
            )


def _legacy(producer: Producer, to: Recorder) -> None:
    made = producer.try_export()
    if isinstance(made, BufferError):
        to.expect("dlpack-legacy", True, "", "")
        return
    if isinstance(made, Exception):
        raise made
    to.expect(
        "dlpack-legacy",
        made.name != VERSIONED,
        "a versioned capsule, though no max_version was passed",
        "return a legacy capsule, or raise BufferError",
    )


def _versions(producer: Producer, to: Recorder) -> None:
    made = producer.try_export(max_version=NEWEST)
    if isinstance(made, TypeError):
        to.skip("dlpack-versioned", "max_version is not a keyword")
        return
    if isinstance(made, Exception):
        raise made
    to.expect(
        "dlpack-versioned",
        made.name != LEGACY,
        f"a legacy capsule for max_version={NEWEST}",
        "return DLManagedTensorVersioned: only it can say that memory is read-only or a copy",
        "warning",
    )
    newer = producer.try_export(max_version=(99, 0))
    to.expect(
        "dlpack-newer-consumer",
        isinstance(newer, Exported),
        f"max_version=(99, 0) raises {quote(newer) if isinstance(newer, Exception) else ''}",
        "compare max_version with your own version, and return your own",
    )
    older = producer.try_export(max_version=(0, 8))
    good = isinstance(older, BufferError) or (isinstance(older, Exported) and older.name == LEGACY)
    to.expect(
        "dlpack-old-consumer",
        good,
        "max_version=(0, 8) " + _outcome(older),
        "return a legacy capsule or raise BufferError",
        "warning",
    )
    for options in ({"max_version": (1, 0)}, {"max_version": NEWEST}, {"max_version": (99, 0)}):
        made = producer.try_export(**options)
        if isinstance(made, Exported) and made.is_versioned:
            to.expect(
                "dlpack-version",
                made.version[0] == 1,
                f"the version is {made.version[0]}.{made.version[1]}",
                "set version to that of the dlpack.h that you compile with",
            )


def _outcome(made: Exported | Exception) -> str:
    return f"raises {quote(made)}" if isinstance(made, Exception) else f'returns "{made.name}"'


# ---------------------------------------------------------------------------
# The tensor


def each_export(producer: Producer) -> list[tuple[str, Exported]]:
    exports = []
    for options in ({}, {"max_version": (1, 0)}, {"max_version": NEWEST}):
        made = producer.try_export(**options)
        if isinstance(made, Exported) and made.is_known:
            exports.append((", ".join(f"{k}={v}" for k, v in options.items()) or "plain", made))
    if not exports:
        producer.best()  # raises what the producer raises
    return exports


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


# ---------------------------------------------------------------------------
# Devices, copies, streams


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
        f"the device type {device[0]!r} is no integer",
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
        "stream=None " + _outcome(made),
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
            f"stream={stream} " + _outcome(made),
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


CALLS_AND_FIELDS = (
    Case("methods", "dlpack-methods", _methods),
    Case("keywords", "dlpack-keywords", _keywords),
    Case("names", "dlpack-capsule-name", needs_tensor(_names)),
    Case("no max_version", "dlpack-legacy", _legacy),
    Case("versions", "dlpack-version", needs_tensor(_versions)),
    Case("fields", "dlpack-ndim", needs_tensor(_fields)),
    Case("values", "dlpack-values", needs_tensor(_values)),
    Case("read-only memory", "dlpack-read-only", needs_tensor(_read_only)),
    Case("device", "dlpack-device", _device),
    Case("dl_device", "dlpack-dl-device", needs_tensor(_dl_device)),
    Case("copies", "dlpack-copy-true", needs_tensor(_copies)),
    Case("streams", "dlpack-stream", needs_tensor(_streams)),
)
