"""The cases of `check_arrow_consumer`."""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from arrowdl.testing._arrow_cases import COLUMNS, TYPES, Column, ints, primitive
from arrowdl.testing._capsules import rename_capsule
from arrowdl.testing._exported_arrow import STREAMS
from arrowdl.testing._made_arrow import MadeArray, MadeDeviceArray, MadeSchema, MadeStream
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, Check, find_target, forget_frames, quote
from arrowdl.testing._structs import EXT_DEV
from arrowdl.testing._values import read_result

Protocol = Literal["array", "stream", "device_array", "device_stream"]
"""Which of Arrow's methods the objects have that a consumer is given."""

_FIELD = "column"
_ERROR = "the disk is on fire"


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
        made = self.export()
        self.capsules += made if isinstance(made, tuple) else (made,)
        return made

    def export(self) -> Any:
        raise NotImplementedError

    @property
    def roots(self) -> list[Any]:
        """What has to be released."""
        raise NotImplementedError

    @property
    def nodes(self) -> list[Any]:
        return [node for root in self.roots for node in getattr(root, "nodes", [root])]


class ArrayObject(ArrowObject):
    def __init__(
        self, protocol: Protocol, schema: MadeSchema, array: MadeArray, device: Any = None
    ) -> None:
        super().__init__(protocol)
        self.schema, self.array = schema, array
        is_device = protocol == "device_array"
        self._moved = MadeDeviceArray(array, device or (1, -1)) if is_device else None

    def export(self) -> Any:
        return self.schema.capsule(), (self._moved or self.array).capsule()

    @property
    def roots(self) -> list[Any]:
        return [self.schema, self.array]

    @property
    def was_moved(self) -> bool:
        array = self.array.struct if self._moved is None else self._moved.struct.array
        return not array.release


class StreamObject(ArrowObject):
    def __init__(
        self,
        protocol: Protocol,
        schema: Callable[[], MadeSchema],
        arrays: list[MadeArray],
        device: Any = None,
        error: str | None = None,
    ) -> None:
        super().__init__(protocol)
        is_device = protocol == "device_stream"
        on = (device or (1, -1)) if is_device else None
        self.stream = MadeStream(schema, arrays, device=on, error=error)

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
    made: list[ArrowObject] = field(default_factory=list)

    @property
    def is_stream(self) -> bool:
        return f"__arrow_c_{self.protocol}__" in STREAMS

    def offer(self, make: Callable[[], tuple[MadeSchema, MadeArray]], **options: Any) -> Any:
        """An object that exports one array, in a struct if the consumer takes tables."""
        schema, array = self._wrapped(*make())
        if not self.is_stream:
            return ArrayObject(self.protocol, schema, array, **options)
        held = [schema]

        def next_schema() -> MadeSchema:
            return held.pop() if held else self._wrapped(*make())[0]

        return StreamObject(self.protocol, next_schema, [array], **options)

    def _wrapped(self, schema: MadeSchema, array: MadeArray) -> tuple[MadeSchema, MadeArray]:
        if not self.tables:
            return schema, array
        schema.struct.name = _FIELD.encode()
        rows = array.struct.length
        return MadeSchema("+s", children=[schema], flags=0), MadeArray(
            rows, [None], children=[array]
        )

    def attempt(self, made: ArrowObject) -> Any:
        """What the consumer makes, or the exception that it raises."""
        return _try(made, lambda: self.consume(made))

    def read_from(self, made: ArrowObject) -> Any:
        """The values that the consumer reads, or the exception that it raises: some read late."""
        return _try(made, lambda: self.values_of(self.consume(made)))

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
    known = ("array", "stream", "device_array", "device_stream")
    if protocol not in known:
        raise ValueError(f'protocol="{protocol}" is not one of {", ".join(known)}')
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


def _try(made: ArrowObject, call: Callable[[], Any]) -> Any:
    """What `call` returns, or the exception that it raises, without references to its frames."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what it raises is what a case looks at
        raised: BaseException = error
        lost = [node.pending for node in made.nodes if node.pending is not None]
        if isinstance(error, SystemError) and lost:
            raised = lost[0]  # a callback in Python ran while it was pending
    return forget_frames(raised) if isinstance(raised, Exception) else Panic(quote(raised))


def _numbers() -> tuple[MadeSchema, MadeArray]:
    return primitive("i", "i", [1, 2, 3])


# ---------------------------------------------------------------------------
# Values


def _column(column: Column, consumer: Consumer, to: Recorder) -> None:
    made = consumer.offer(column.make)
    seen = consumer.read_from(made)
    if isinstance(seen, Exception):
        types = consumer.types
        lacks = [] if types is None else [name for name in column.types if name not in types]
        if lacks and not isinstance(seen, Panic):
            to.skip(column.rule, f"types= has no {lacks[0]}, which is refused: {quote(seen)}")
            return
        has_to = column.common if types is None else not lacks
        to.expect(
            column.rule,
            not has_to and not isinstance(seen, Panic),
            f"raised {quote(seen)}",
            "import it, or raise an exception that `except Exception` catches, and leave the type "
            "out of types=",
            "error" if has_to else "warning",
        )
        return
    to.expect(
        column.rule,
        _same(seen, column.values),
        f"reads {seen!r:.70}, not {column.values!r:.70}",
        "read the field, or raise an exception",
    )


def _case_of(column: Column) -> Case:
    """Each column is a case: it may crash without the others."""
    return Case(column.name, column.rule, functools.partial(_column, column))


def _same(seen: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return (
            isinstance(seen, list | tuple)
            and len(seen) == len(wanted)
            and all(map(_same, seen, wanted))
        )
    if isinstance(wanted, dict):
        return (
            isinstance(seen, dict)
            and seen.keys() == wanted.keys()
            and all(_same(seen[key], wanted[key]) for key in wanted)
        )
    return bool(seen == wanted) and isinstance(seen, bool) == isinstance(wanted, bool)


# ---------------------------------------------------------------------------
# Release


def _lifecycle(consumer: Consumer, to: Recorder) -> None:
    """The capsules outlive the import: what happens to them can be seen."""
    has_structs = consumer.types is None or "struct" in consumer.types
    made = consumer.offer(_structs if has_structs else _numbers)
    array = made.array if isinstance(made, ArrayObject) else made.stream.arrays[0]
    held = [consumer.consume(made)]
    before = _try(made, lambda: consumer.values_of(held[0]))
    to.expect(
        "from-arrow-moves",
        made.was_moved,
        "the struct is still in its capsule, not released",
        "move the struct out and set release to NULL, so that it is consumed once",
        "warning",
    )
    data = array.nodes[-1].buffers[-1]
    kept = data.read()
    data.write(bytes(reversed(kept)))
    after = _try(made, lambda: consumer.values_of(held[0]))
    data.write(kept)
    again = isinstance(after, list) and len(after) == len(before)  # others can be read once
    in_use = again and repr(before) != repr(after)
    to.expect(
        "from-arrow-keeps",
        not (in_use and array.released),
        "the array was released, and its memory is in use",
        "call release when the memory is no longer used",
    )
    held.clear()
    made.capsules.clear()
    gc.collect()
    _expect_released(made, to)


def _structs() -> tuple[MadeSchema, MadeArray]:
    x = MadeArray(3, [None, ints([1, 2, 3])])
    return (
        MadeSchema("+s", children=[MadeSchema("i", "x")]),
        MadeArray(3, [None], children=[x]),
    )


def _expect_released(made: Any, to: Recorder, rule: str = "from-arrow-releases") -> None:
    counts = [root.released for root in made.roots]
    to.expect(
        rule,
        all(count == 1 for count in counts),
        f"release of {_names(made)} was called {counts} times",
        "release each struct once, after a failure as well",
    )
    by_hand = [
        node for root in made.roots for node in getattr(root, "nodes", [root])[1:] if node.in_place
    ]
    to.expect(
        "from-arrow-children",
        not by_hand,
        f"the release callbacks of {len(by_hand)} children were called by the consumer",
        "release the base struct, which releases its children",
    )


def _names(made: Any) -> str:
    if isinstance(made, ArrayObject):
        return "schema and array"
    return f"{len(made.stream.schemas)} schemas, the arrays and the stream"


def _drop_on_thread(consumer: Consumer, to: Recorder) -> None:
    made = consumer.offer(_numbers)
    held = [consumer.consume(made)]
    made.capsules.clear()
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    _expect_released(made, to, "from-arrow-thread")


def _refused(consumer: Consumer, to: Recorder) -> None:
    made = consumer.offer(lambda: (MadeSchema("?"), MadeArray(3, [None, ints([1, 2, 3])])))
    seen = consumer.read_from(made)
    to.expect(
        "from-arrow-refused",
        isinstance(seen, Exception),
        'the format "?" is imported',
        "refuse formats that are not known",
    )
    made.capsules.clear()
    gc.collect()
    counts = [root.released for root in made.roots]
    to.expect(
        "from-arrow-refused",
        all(count == 1 for count in counts),
        f"release of {_names(made)} was called {counts} times",
        "release what was moved out, also if the import fails",
    )


# ---------------------------------------------------------------------------
# Capsules


def _released(consumer: Consumer, to: Recorder) -> None:
    """A capsule whose struct was moved out, as one that is used for the second time."""
    made = consumer.offer(_numbers)
    for root in made.roots:
        root.drop()
    if isinstance(made, ArrayObject) and made._moved is not None:
        made._moved.drop()
    result = consumer.read_from(made)
    to.expect(
        "from-arrow-released",
        isinstance(result, Exception),
        "a released struct is imported",
        "check that release is not NULL before anything is read",
    )


def _wrong_capsule(consumer: Consumer, to: Recorder) -> None:
    made = consumer.offer(_numbers)
    export = made.export

    def renamed() -> Any:
        capsules = export()
        last = capsules[-1] if isinstance(capsules, tuple) else capsules
        rename_capsule(last, "dltensor")
        return capsules

    made.export = renamed
    result = consumer.attempt(made)
    to.expect(
        "from-arrow-wrong-capsule",
        isinstance(result, Exception),
        'a capsule named "dltensor" is imported',
        "compare the name with PyCapsule_IsValid before the pointer is used",
    )


def _raises(consumer: Consumer, to: Recorder) -> None:
    for error in (ValueError("no such column"), MemoryError("no memory for this")):
        with to.trying(type(error).__name__):
            made = consumer.offer(_numbers)
            made.raises = error
            result = consumer.attempt(made)
            to.expect(
                "from-arrow-raises",
                isinstance(result, type(error)) and str(error) in str(result),
                f"raised {quote(result)}" if isinstance(result, Exception) else "raised nothing",
                "let the exception of the producer pass, with its text",
                "warning",
            )
            for root in made.roots:
                root.drop()
            if isinstance(made, ArrayObject) and made._moved is not None:
                made._moved.drop()


# ---------------------------------------------------------------------------
# Streams and devices


def _several(consumer: Consumer, lengths: tuple[int, ...], error: str | None = None) -> Any:
    """A stream of arrays of 1, 2, 3..., with `lengths` rows."""
    arrays, start = [], 1
    for length in lengths:
        values = list(range(start, start + length))
        start += length
        arrays.append(consumer._wrapped(*primitive("i", "i", values))[1])
    return StreamObject(
        consumer.protocol,
        lambda: consumer._wrapped(*primitive("i", "i", [1]))[0],
        arrays,
        error=error,
    )


def _streams(consumer: Consumer, to: Recorder) -> None:
    if not consumer.is_stream:
        to.skip("from-arrow-stream", "the consumer takes arrays")
        return
    for lengths in ((3, 2), (2, 0, 1), (0,), ()):
        with to.trying(f"arrays of {lengths} rows"):
            made = _several(consumer, lengths)
            result = consumer.read_from(made)
            failed = isinstance(result, Exception)
            seen: Any = f"raised {quote(result)}" if failed else _plain(result)
            wanted = list(range(1, sum(lengths) + 1))
            to.expect(
                "from-arrow-stream",
                _same(seen, wanted),
                f"reads {seen!r:.60}, not {wanted}",
                "read until get_next returns a released array; a stream may have no arrays",
            )
            del result
            made.capsules.clear()
            gc.collect()
            _expect_stream_use(made, to)
            _expect_released(made, to)


def _plain(values: Any) -> Any:
    """The rows of a result that keeps the arrays of a stream apart."""
    if isinstance(values, list) and values and all(isinstance(part, list) for part in values):
        return [row for part in values for row in part]
    return values


def _expect_stream_use(made: Any, to: Recorder) -> None:
    to.expect(
        "from-arrow-stream-use",
        not made.stream.misuse,
        f"{', '.join(dict.fromkeys(made.stream.misuse))}",
        "call get_last_error only after a code that is not 0, and nothing after release",
    )


def _stream_error(consumer: Consumer, to: Recorder) -> None:
    if not consumer.is_stream:
        to.skip("from-arrow-stream-error", "the consumer takes arrays")
        return
    made = _several(consumer, (3,), _ERROR)
    result = consumer.read_from(made)
    to.expect(
        "from-arrow-stream-error",
        isinstance(result, Exception) and _ERROR in str(result),
        f"raised {quote(result)}" if isinstance(result, Exception) else "raised nothing",
        "raise an exception with the text of get_last_error",
    )
    del result
    made.capsules.clear()
    gc.collect()
    _expect_stream_use(made, to)
    _expect_released(made, to, "from-arrow-refused")


def _device(consumer: Consumer, to: Recorder) -> None:
    if "device" not in consumer.protocol:
        to.skip("from-arrow-device", "the consumer takes no device arrays")
        return

    def elsewhere() -> tuple[MadeSchema, MadeArray]:
        return MadeSchema("i"), MadeArray(3, [None, 0xDEAD0000])

    result = consumer.read_from(consumer.offer(elsewhere, device=(EXT_DEV, 0)))
    to.expect(
        "from-arrow-device",
        isinstance(result, Exception),
        "memory of ARROW_DEVICE_EXT_DEV is read",
        "raise an exception: the type says nothing about who can read it",
    )


_CASES: list[tuple[str, str, Callable[[Consumer, Recorder], None]]] = [
    ("capsules and release", "from-arrow-releases", _lifecycle),
    ("dropped on a thread", "from-arrow-thread", _drop_on_thread),
    ("refusals", "from-arrow-refused", _refused),
    ("a released struct", "from-arrow-released", _released),
    ("a capsule of another name", "from-arrow-wrong-capsule", _wrong_capsule),
    ("errors of the producer", "from-arrow-raises", _raises),
    ("several arrays", "from-arrow-stream", _streams),
    ("a stream that fails", "from-arrow-stream-error", _stream_error),
    ("an unknown device", "from-arrow-device", _device),
]

ARROW_CONSUMER = Check(
    "arrow-consumer",
    (*map(_case_of, COLUMNS), *(Case(*case) for case in _CASES)),
    open_consumer,
)
