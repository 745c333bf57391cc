"""The subject of `check_arrow_consumer`, and the objects that it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from arrowdl.testing._arrow_cases import TYPES, primitive
from arrowdl.testing._exported_arrow import STREAMS
from arrowdl.testing._raw_arrow import RawArray, RawDeviceArray, RawSchema, RawStream
from arrowdl.testing._run import find_target, forget_frames, quote
from arrowdl.testing._values import read_result

Protocol = Literal["array", "stream", "device_array", "device_stream"]
"""Which of Arrow's methods the objects have that a consumer is given."""

_FIELD = "column"


class ArrowObject:
    """An object with one of Arrow's methods, over structs made by hand.

    It holds its capsules, so that each is deleted when no exception is pending.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.capsules: list[Any] = []
        self.asked: list[dict[str, Any]] = []
        self.raises: Exception | None = None
        name = f"__arrow_c_{protocol}__"
        # Consumers look for methods on the type.
        self.__class__ = type("ArrowObject", (type(self),), {name: self._method})

    @staticmethod
    def _method(self: ArrowObject, requested_schema: Any = None, **options: Any) -> Any:
        self.asked.append({"requested_schema": requested_schema, **options})
        if self.raises is not None:
            raise self.raises
        sample = self.export()
        self.capsules += sample if isinstance(sample, tuple) else (sample,)
        return sample

    def export(self) -> Any:
        raise NotImplementedError

    @property
    def roots(self) -> list[Any]:
        """What has to be released."""
        raise NotImplementedError

    @property
    def nodes(self) -> list[Any]:
        return [node for root in self.roots for node in getattr(root, "nodes", [root])]

    def drop(self) -> None:
        """Release all structs, as an owner would that no consumer took them from."""
        for root in self.roots:
            root.drop()


class ArrayObject(ArrowObject):
    def __init__(
        self, protocol: Protocol, schema: RawSchema, array: RawArray, device: Any = None
    ) -> None:
        super().__init__(protocol)
        self.schema, self.array = schema, array
        is_device = protocol == "device_array"
        self._moved = RawDeviceArray(array, device or (1, -1)) if is_device else None

    def export(self) -> Any:
        return self.schema.capsule(), (self._moved or self.array).capsule()

    @property
    def roots(self) -> list[Any]:
        return [self.schema, self.array]

    def drop(self) -> None:
        super().drop()
        if self._moved is not None:
            self._moved.drop()

    @property
    def was_moved(self) -> bool:
        array = self.array.struct if self._moved is None else self._moved.struct.array
        return not array.release


class StreamObject(ArrowObject):
    def __init__(
        self,
        protocol: Protocol,
        schema: Callable[[], RawSchema],
        arrays: list[RawArray],
        device: Any = None,
        error: str | None = None,
    ) -> None:
        super().__init__(protocol)
        is_device = protocol == "device_stream"
        on = (device or (1, -1)) if is_device else None
        self.stream = RawStream(schema, arrays, device=on, error=error)

    def export(self) -> Any:
        return self.stream.capsule()

    @property
    def roots(self) -> list[Any]:
        return [*self.stream.schemas, *self.stream.arrays, self.stream]

    @property
    def was_moved(self) -> bool:
        return not self.stream.struct.release


@dataclass
class Consumer:
    """What is checked: a function that imports Arrow data, and how its results are read."""

    consume: Callable[[Any], Any]
    protocol: Protocol
    tables: bool
    read: Callable[[Any], Any]
    types: frozenset[str] | None = None

    @property
    def is_stream(self) -> bool:
        return f"__arrow_c_{self.protocol}__" in STREAMS

    def offer(self, make: Callable[[], tuple[RawSchema, RawArray]], **options: Any) -> Any:
        """An object that exports one array, in a struct if the consumer takes tables."""
        schema, array = self.wrap(*make())
        if not self.is_stream:
            return ArrayObject(self.protocol, schema, array, **options)
        held = [schema]

        def next_schema() -> RawSchema:
            return held.pop() if held else self.wrap(*make())[0]

        return StreamObject(self.protocol, next_schema, [array], **options)

    def wrap(self, schema: RawSchema, array: RawArray) -> tuple[RawSchema, RawArray]:
        """Make a column of a struct, if the consumer takes tables."""
        if not self.tables:
            return schema, array
        schema.struct.name = _FIELD.encode()
        rows = RawArray(array.struct.length, [None], children=[array])
        return RawSchema("+s", children=[schema], flags=0), rows

    def attempt(self, sample: ArrowObject) -> Any:
        """What the consumer makes, or the exception that it raises."""
        return try_to(sample, lambda: self.consume(sample))

    def read_from(self, sample: ArrowObject) -> Any:
        """The values that the consumer reads, or the exception that it raises: some read late."""
        return try_to(sample, lambda: self.values_of(self.consume(sample)))

    def values_of(self, result: Any) -> Any:
        values = self.read(result)
        if self.tables and isinstance(values, list):
            return [row[_FIELD] if isinstance(row, dict) else row for row in values]
        return values


def open_consumer(
    consume: Any,
    *,
    protocol: Protocol = "array",
    tables: bool = False,
    read: Any = None,
    types: Iterable[str] | None = None,
) -> Consumer:
    if not callable(consume):
        raise TypeError(f"{type(consume).__name__} is not callable: pass a function that imports")
    kinds = ("array", "stream", "device_array", "device_stream")
    if protocol not in kinds:
        raise ValueError(f'protocol="{protocol}" is not one of {", ".join(kinds)}')
    reader = find_target(read) or read_result
    return Consumer(consume, protocol, tables, reader, _read_types(types))


def _read_types(types: Iterable[str] | None) -> frozenset[str] | None:
    if types is None:
        return None
    names = [types] if isinstance(types, str) else list(types)
    unknown = [name for name in names if name not in TYPES]
    if unknown:
        raise ValueError(f"types={names!r} names {unknown[0]!r}: give some of {', '.join(TYPES)}")
    if "int32" not in names:
        raise ValueError(f'types={names!r} lacks "int32", of which the arrays of most cases are')
    return frozenset(names)


class Panic(Exception):
    """Stands for what `except Exception` does not catch, such as a panic of Rust."""


def try_to(sample: ArrowObject, call: Callable[[], Any]) -> Any:
    """What `call` returns, or the exception that it raises, without references to its frames."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what it raises is what a case looks at
        raised: BaseException = error
        lost = [node.pending for node in sample.nodes if node.pending is not None]
        if isinstance(error, SystemError) and lost:
            raised = lost[0]  # a callback in Python ran while it was pending
    return forget_frames(raised) if isinstance(raised, Exception) else Panic(quote(raised))


def numbers() -> tuple[RawSchema, RawArray]:
    return primitive("i", "i", [1, 2, 3])
