"""The subject of `check_dlpack_consumer`, and the producers that it is given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from arrowdl.testing._capsules import capsule_name, rename_capsule
from arrowdl.testing._managed import row_major
from arrowdl.testing._raw_tensor import CODES, Memory, RawTensor
from arrowdl.testing._run import find_target, forget_frames
from arrowdl.testing._structs import CPU
from arrowdl.testing._values import read_result, write_result

DTYPES = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B"}
DTYPES |= {"uint16": "H", "uint32": "I", "uint64": "Q", "bool": "?"}
DTYPES |= {"float16": "e", "float32": "f", "float64": "d"}


@dataclass
class RawProducer:
    """An object with `__dlpack__` over a `RawTensor`, which remembers how it was asked.

    It holds its capsules, so that each is deleted when no exception is pending.
    """

    raw: RawTensor
    device: Any = (CPU, 0)
    keywords: frozenset[str] = frozenset({"stream", "max_version", "dl_device", "copy"})
    raises: Exception | None = None
    capsule_of: Callable[[RawTensor], Any] = RawTensor.capsule
    asked: list[dict[str, Any]] = field(default_factory=list)
    capsules: list[Any] = field(default_factory=list)

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options)
        if self.raises is not None:
            raise self.raises
        unknown = set(options) - self.keywords
        if unknown:
            raise TypeError(f"__dlpack__() got an unexpected keyword argument {min(unknown)!r}")
        if options.get("copy"):
            raise BufferError("this producer does not copy")
        for capsule in self.capsules:  # of a call before: one capsule owns the tensor
            if not capsule_name(capsule).startswith("used_"):
                rename_capsule(capsule, f"used_{capsule_name(capsule)}")
        self.capsules.append(self.capsule_of(self.raw))
        return self.capsules[-1]

    def __dlpack_device__(self) -> Any:
        return self.device


class OnlyDevice:
    """An object that lacks `__dlpack__`."""


@dataclass
class Consumer:
    """What is checked: a function that imports a tensor, and how its results are read."""

    consume: Callable[..., Any]
    read: Callable[[Any], Any]
    write: Callable[[Any], None]
    raw_capsules: bool

    @functools.cached_property
    def legacy(self) -> bool:
        """Whether it reads legacy capsules only, as far as is known; asked for inside of cases."""
        probe = RawProducer(make("int32", (2,)))
        self.attempt(probe)
        return not any("max_version" in options for options in probe.asked)

    def __call__(self, producer: RawProducer, **options: Any) -> Any:
        """Import from `producer`, as a capsule if the consumer takes those."""
        source = producer.__dlpack__() if self.raw_capsules else producer
        try:
            return self.consume(source, **options)
        except SystemError as error:
            # A deleter written in Python ran while an exception was pending, and lost it.
            if producer.raw.pending is not None:
                raise producer.raw.pending from error
            raise

    def attempt(self, producer: RawProducer, **options: Any) -> Any:
        """What the consumer makes, or the exception that it raises."""
        try:
            return self(producer, **options)
        except Exception as error:  # what it raises is what a case looks at
            return forget_frames(error)


def open_consumer(
    consume: Any, *, read: Any = None, write: Any = None, raw_capsules: bool = False
) -> Consumer:
    if not callable(consume):
        raise TypeError(f"{type(consume).__name__} is not callable: pass a function as from_dlpack")
    read, write = find_target(read) or read_result, find_target(write) or write_result
    return Consumer(consume, read, write, raw_capsules)


def make(
    dtype: str = "float32",
    shape: tuple[int, ...] = (2, 3),
    *,
    values: Sequence[Any] | None = None,
    shift: int = 0,
    **fields: Any,
) -> RawTensor:
    """A tensor that holds 1, 2, 3... (or `values`) in memory order, strides filled in."""
    count = prod(shape)
    held = list(range(1, count + 1)) if values is None else list(values)
    if dtype == "bool":
        held = [value % 2 == 1 for value in held]
    data = Memory.of(DTYPES[dtype], held, shift) if held else None
    fields.setdefault("strides", row_major(shape))
    tensor = RawTensor(data, shape, **{"dtype": dtype, **fields})
    tensor.managed.manager_ctx = tensor.address  # NULL is a case of its own
    return tensor


def expected(dtype: str, count: int) -> list[Any]:
    return [value % 2 == 1 if dtype == "bool" else value for value in range(1, count + 1)]


def make_for(consumer: Consumer, *arguments: Any, **fields: Any) -> RawProducer:
    """A producer of the capsules that the consumer reads."""
    fields.setdefault("versioned", not consumer.legacy)
    return RawProducer(make(*arguments, **fields))


def vector_for(
    consumer: Consumer, data: Any, length: int, dtype: Any, device: tuple[int, int] = (CPU, 0)
) -> RawProducer:
    """A producer of one row of elements, of any type, in the memory of any device."""
    fields: dict[str, Any] = {"strides": (1,), "versioned": not consumer.legacy}
    return RawProducer(RawTensor(data, (length,), dtype=dtype, device=device, **fields), device)


_REFUSALS = (BufferError, NotImplementedError, TypeError, ValueError)


def refuses_plain(consumer: Consumer, result: Any, dtype: str = "float32") -> bool:
    """Whether `result` refuses the type as such: that breaks from-dlpack-reads, and no other."""
    plain = consumer.attempt(make_for(consumer, dtype, (2, 3)))
    return isinstance(result, _REFUSALS) and isinstance(plain, _REFUSALS)


assert set(DTYPES) <= set(CODES)
