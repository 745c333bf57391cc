"""The cases of `check_dlpack_consumer`."""

from __future__ import annotations

import functools
import gc
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from arrowdl.testing._capsules import capsule_name, rename_capsule
from arrowdl.testing._made_tensor import CODES, MadeTensor, Memory
from arrowdl.testing._managed import row_major
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, find_target, forget_frames, quote
from arrowdl.testing._structs import CPU, EXT_DEV
from arrowdl.testing._values import flat, read_result, same_values, write_result

_STRUCT_CODES = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B"}
_STRUCT_CODES |= {"uint16": "H", "uint32": "I", "uint64": "Q", "bool": "?"}
_STRUCT_CODES |= {"float16": "e", "float32": "f", "float64": "d"}


@dataclass
class MadeProducer:
    """An object with `__dlpack__` over a `MadeTensor`, which remembers how it was asked.

    It holds its capsules, so that each is deleted when no exception is pending.
    """

    made: MadeTensor
    device: Any = (CPU, 0)
    keywords: frozenset[str] = frozenset({"stream", "max_version", "dl_device", "copy"})
    raises: Exception | None = None
    capsule_of: Callable[[MadeTensor], Any] = MadeTensor.capsule
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
        self.capsules.append(self.capsule_of(self.made))
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
        probe = MadeProducer(make("int32", (2,)))
        self.attempt(probe)
        return not any("max_version" in options for options in probe.asked)

    def __call__(self, producer: MadeProducer, **options: Any) -> Any:
        """Import from `producer`, as a capsule if the consumer takes those."""
        source = producer.__dlpack__() if self.raw_capsules else producer
        try:
            return self.consume(source, **options)
        except SystemError as error:
            # A deleter written in Python ran while an exception was pending, and lost it.
            if producer.made.pending is not None:
                raise producer.made.pending from error
            raise

    def attempt(self, producer: MadeProducer, **options: Any) -> Any:
        """What the consumer makes, or the exception that it raises."""
        try:
            return self(producer, **options)
        except Exception as error:  # what it raises is what a case looks at
            return forget_frames(error)


def open_consumer(
    consume: Any,
    *,
    read: Any = None,
    write: Any = None,
    raw_capsules: bool = False,
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
) -> MadeTensor:
    """A tensor that holds 1, 2, 3... (or `values`) in memory order, strides filled in."""
    count = 1
    for extent in shape:
        count *= extent
    held = list(range(1, count + 1)) if values is None else list(values)
    if dtype == "bool":
        held = [value % 2 == 1 for value in held]
    data = Memory.of(_STRUCT_CODES[dtype], held, shift) if held else None
    fields.setdefault("strides", row_major(shape))
    made = MadeTensor(data, shape, **{"dtype": dtype, **fields})
    made.managed.manager_ctx = made.address  # NULL is a case of its own
    return made


def expected(dtype: str, count: int) -> list[Any]:
    return [value % 2 == 1 if dtype == "bool" else value for value in range(1, count + 1)]


def made_for(consumer: Consumer, *arguments: Any, **fields: Any) -> MadeProducer:
    """A producer of the capsules that the consumer reads."""
    fields.setdefault("versioned", not consumer.legacy)
    return MadeProducer(make(*arguments, **fields))


# ---------------------------------------------------------------------------
# Values


def _compare(
    consumer: Consumer,
    to: Recorder,
    rule: str,
    producer: MadeProducer,
    values: list[Any],
    shape: tuple[int, ...] | None,
    *,
    must: bool,
) -> None:
    """The result holds `values`; if not `must`, the tensor may be refused instead."""
    result = consumer.attempt(producer)
    if isinstance(result, Exception):
        if must and rule != "from-dlpack-reads" and refuses_plain(consumer, result):
            to.skip(rule, f"the type is refused: {quote(result)}")
            return
        to.expect(
            rule,
            not must,
            f"raised {quote(result)}",
            "import it: other producers export such tensors",
        )
        return
    seen = consumer.read(result)
    to.expect(
        rule,
        same_values(seen, values),
        f"reads {seen!r:.60}, not {values!r:.60}",
        "read the field, or raise BufferError",
    )
    own = getattr(result, "shape", None)
    if callable(own):  # a method, as onnxruntime has it
        own = own()
    if shape is not None and own is not None:
        to.expect(
            rule,
            tuple(own) == shape,
            f"the shape is {tuple(own)}, not {shape}",
            "keep the shape",
            "error" if shape else "warning",  # some libraries have no zero-dimensional arrays
        )


_REFUSALS = (BufferError, NotImplementedError, TypeError, ValueError)


def refuses_plain(consumer: Consumer, result: Any, dtype: str = "float32") -> bool:
    """Whether `result` refuses the type as such: that breaks from-dlpack-reads, and no other."""
    plain = consumer.attempt(made_for(consumer, dtype, (2, 3)))
    return isinstance(result, _REFUSALS) and isinstance(plain, _REFUSALS)


def _dtypes(consumer: Consumer, to: Recorder) -> None:
    for dtype in _STRUCT_CODES:
        with to.trying(dtype):
            common = dtype in ("int32", "float32", "uint8")
            rule = "from-dlpack-reads" if common else "from-dlpack-dtype"
            producer = made_for(consumer, dtype, (2, 3))
            _compare(consumer, to, rule, producer, expected(dtype, 6), (2, 3), must=common)


def _odd_dtypes(consumer: Consumer, to: Recorder) -> None:
    """Types that few libraries have. Their bytes may not be read as another type."""
    odd = {
        "an opaque handle": (3, 64),
        "float32 with 2 lanes": (2, 32, 2),
        "int of 4 bits": (0, 4),
        "an unknown code": (77, 32),
        "a bool of 1 bit": (6, 1),
    }
    for name, dtype in odd.items():
        with to.trying(name):
            tensor = MadeTensor(
                Memory(bytes(range(64))),
                (2,),
                dtype=dtype,
                strides=(1,),
                versioned=not consumer.legacy,
            )
            result = consumer.attempt(MadeProducer(tensor))
            seen = None if isinstance(result, Exception) else _read_if_plain(consumer, result)
            # A library that has the type may read it; it then has no plain numbers to show.
            to.expect(
                "from-dlpack-dtype",
                seen is None,
                f"is read as {seen!r:.60}",
                "compare code, bits and lanes with the types that you have; else raise BufferError",
            )


def _read_if_plain(consumer: Consumer, result: Any) -> list[Any] | None:
    """The values if they are two plain numbers."""
    try:
        values = consumer.read(result)
    except Exception:  # a type that has no values in Python
        return None
    plain = isinstance(values, list) and len(values) == 2
    plain = plain and all(isinstance(value, int | float) for value in values)
    return values if plain else None


def _strides(consumer: Consumer, to: Recorder) -> None:
    """Memory order is 1, 2, 3..."""
    layouts: dict[str, tuple[tuple[int, ...], tuple[int, ...], list[int], int]] = {
        "columns first": ((2, 3), (1, 2), [1, 3, 5, 2, 4, 6], 6),
        "gaps": ((3,), (2,), [1, 3, 5], 6),
        "gaps between rows": ((2, 2), (3, 1), [1, 2, 4, 5], 6),
        "broadcast": ((2, 3), (0, 1), [1, 2, 3, 1, 2, 3], 3),
        "extent 1 with an odd stride": ((1, 3), (77, 1), [1, 2, 3], 3),
    }
    for name, (shape, strides, values, count) in layouts.items():
        with to.trying(name):
            held = range(1, count + 1)
            producer = made_for(consumer, "float32", shape, values=held, strides=strides)
            _compare(consumer, to, "from-dlpack-strides", producer, values, shape, must=False)


def _null_strides(consumer: Consumer, to: Recorder) -> None:
    version = {"version": (1, 1)} if not consumer.legacy else {}
    producer = made_for(consumer, "float32", (2, 3), strides=None, **version)
    values = expected("float32", 6)
    _compare(consumer, to, "from-dlpack-null-strides", producer, values, (2, 3), must=True)


def _byte_offset(consumer: Consumer, to: Recorder) -> None:
    producer = made_for(consumer, "float32", (2,), values=[7, 8, 9, 10], byte_offset=8)
    _compare(consumer, to, "from-dlpack-byte-offset", producer, [9, 10], (2,), must=False)


def _empties(consumer: Consumer, to: Recorder) -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        with to.trying(f"shape {shape}"):
            producer = made_for(consumer, "float32", shape)
            _compare(consumer, to, "from-dlpack-empty", producer, [], shape, must=True)


def _zero_dim(consumer: Consumer, to: Recorder) -> None:
    for name in ("shape (), empty arrays", "shape (), NULL"):
        with to.trying(name):
            producer = made_for(consumer, "float32", ())
            if name.endswith("NULL"):
                producer.made.tensor.shape = type(producer.made.tensor.shape)()
                producer.made.tensor.strides = type(producer.made.tensor.strides)()
            _compare(consumer, to, "from-dlpack-zero-dim", producer, [1], (), must=False)


def _alignment(consumer: Consumer, to: Recorder) -> None:
    for shift in (4, 1):
        with to.trying(f"an address with {shift} bytes too many"):
            producer = made_for(consumer, "float32", (5,), shift=shift)
            values = expected("float32", 5)
            _compare(consumer, to, "from-dlpack-alignment", producer, values, (5,), must=False)


# ---------------------------------------------------------------------------
# Capsules and release


def _lifecycle(consumer: Consumer, to: Recorder) -> None:
    """The capsule outlives the import: what happens to it can be seen."""
    producer = made_for(consumer, "float32", (4, 16))
    made = producer.made
    result = consumer(producer)
    name = capsule_name(producer.capsules[-1])
    to.expect(
        "from-dlpack-renames",
        name.startswith("used_") or made.released == 0,
        f'the deleter was called, and the capsule is still named "{name}"',
        "rename the capsule before you own the tensor, or leave both to the producer",
    )
    renamed = name.startswith("used_")
    shares = is_view(consumer, made, result)
    if shares:
        to.expect(
            "from-dlpack-renames",
            renamed,
            f'the array uses the memory, and the capsule is still named "{name}"',
            "rename the capsule to used_...: else its destructor frees the memory",
        )
    producer.capsules.clear()
    gc.collect()
    if shares:
        to.expect(
            "from-dlpack-keeps",
            made.released == 0,
            "the deleter was called while the array is in use",
            "call the deleter when the array's memory is freed",
        )
    del result
    gc.collect()
    expect_released(made, to)


def is_view(consumer: Consumer, made: MadeTensor, result: Any) -> bool:
    """Whether a change of the memory shows in the result."""
    if not isinstance(made.data, Memory):
        return False
    before = made.data.read()
    made.data.write(struct.pack("=f", 4711.0) * (len(before) // 4))
    try:
        return 4711.0 in flat(consumer.read(result))
    finally:
        made.data.write(before)


def expect_released(made: MadeTensor, to: Recorder, rule: str = "from-dlpack-releases") -> None:
    to.expect(
        rule,
        made.released == 1,
        f"the deleter was called {made.released} times",
        "call it once: when the memory is no longer used, and after a failure as well",
    )


def _both_kinds(consumer: Consumer, to: Recorder) -> None:
    """Legacy capsules from old producers, versioned ones from new ones."""
    for versioned in (True, False):
        if versioned and (consumer.legacy or consumer.raw_capsules):
            to.skip("from-dlpack-max-version", "legacy capsules only")
            continue
        with to.trying("versioned" if versioned else "legacy"):
            producer = MadeProducer(make("int32", (3,), versioned=versioned))
            result = consumer.attempt(producer)
            if isinstance(result, Exception):
                to.expect(
                    "from-dlpack-reads",
                    False,
                    f"raised {quote(result)}",
                    "read both kinds of capsules: many producers have legacy ones only",
                    "error" if versioned else "warning",
                )
            del result
            producer.capsules.clear()
            gc.collect()
            expect_released(producer.made, to)


def _used_capsule(consumer: Consumer, to: Recorder) -> None:
    def used(made: MadeTensor) -> Any:
        capsule = made.capsule()
        rename_capsule(capsule, f"used_{capsule_name(capsule)}")
        return capsule

    _expect_refused_capsule(consumer, to, "from-dlpack-used", used, "a consumed capsule")


def _wrong_name(consumer: Consumer, to: Recorder) -> None:
    def wrong(made: MadeTensor) -> Any:
        capsule = made.capsule()
        rename_capsule(capsule, "arrow_array")
        return capsule

    rule = "from-dlpack-wrong-name"
    _expect_refused_capsule(consumer, to, rule, wrong, 'a capsule named "arrow_array"')


def _expect_refused_capsule(
    consumer: Consumer, to: Recorder, rule: str, capsule_of: Callable[[MadeTensor], Any], what: str
) -> None:
    made = make("int32", (3,), versioned=not consumer.legacy)
    producer = MadeProducer(made, capsule_of=capsule_of)
    result = consumer.attempt(producer)
    to.expect(
        rule,
        isinstance(result, Exception),
        f"{what} is imported",
        "compare the name with PyCapsule_IsValid before the pointer is used",
    )
    del result
    gc.collect()
    to.expect(
        rule,
        made.released == 0,
        f"the deleter of {what} was called",
        "use nothing of such a capsule: it belongs to somebody else",
    )
    if made.released == 0:
        made.managed.deleter(made.address)


def _null_deleter(consumer: Consumer, to: Recorder) -> None:
    producer = made_for(consumer, "int32", (3,), deleter=False)
    result = consumer.attempt(producer)
    if refuses_plain(consumer, result, "int32"):
        to.skip("from-dlpack-null-deleter", f"the type is refused: {quote(result)}")
        return
    to.expect(
        "from-dlpack-null-deleter",
        not isinstance(result, Exception),
        f"raised {quote(result) if isinstance(result, Exception) else ''}",
        "import it, and call nothing at its end",
    )
    del result
    gc.collect()


def _null_context(consumer: Consumer, to: Recorder) -> None:
    producer = made_for(consumer, "int32", (3,))
    producer.made.managed.manager_ctx = None
    result = consumer.attempt(producer)
    del result
    producer.capsules.clear()
    gc.collect()
    expect_released(producer.made, to, "from-dlpack-null-context")


def _drop_on_thread(consumer: Consumer, to: Recorder) -> None:
    producer = made_for(consumer, "float32", (4, 16))
    held = [consumer(producer)]
    producer.capsules.clear()
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    expect_released(producer.made, to, "from-dlpack-thread")


def _refused(consumer: Consumer, to: Recorder) -> None:
    """Refusals before and after the consumer could have taken the tensor."""
    refusable: dict[str, dict[str, Any]] = {
        "an unknown type": {"dtype": (77, 32)},
        "an unknown device": {"device": (EXT_DEV, 0)},
    }
    for name, fields in refusable.items():
        with to.trying(name):
            fields = {"shape": (3,), "dtype": "float32", **fields}
            device = fields.get("device", (CPU, 0))
            made = MadeTensor(
                Memory(bytes(64)), strides=(1,), versioned=not consumer.legacy, **fields
            )
            producer = MadeProducer(made, device=device)
            result = consumer.attempt(producer)
            del result
            gc.collect()
            if not producer.capsules:  # refused by __dlpack_device__ alone
                made.managed.deleter(made.address)
            producer.capsules.clear()
            gc.collect()
            expect_released(made, to, "from-dlpack-refused")


VALUES_AND_RELEASE = (
    Case("types", "from-dlpack-reads", _dtypes),
    Case("other types", "from-dlpack-dtype", _odd_dtypes),
    Case("strides", "from-dlpack-strides", _strides),
    Case("NULL strides", "from-dlpack-null-strides", _null_strides),
    Case("byte_offset", "from-dlpack-byte-offset", _byte_offset),
    Case("no elements", "from-dlpack-empty", _empties),
    Case("no dimensions", "from-dlpack-zero-dim", _zero_dim),
    Case("alignment", "from-dlpack-alignment", _alignment),
    Case("capsule and deleter", "from-dlpack-renames", _lifecycle),
    Case("both kinds of capsules", "from-dlpack-releases", _both_kinds),
    Case("a used capsule", "from-dlpack-used", _used_capsule),
    Case("a capsule of another name", "from-dlpack-wrong-name", _wrong_name),
    Case("no deleter", "from-dlpack-null-deleter", _null_deleter),
    Case("no context", "from-dlpack-null-context", _null_context),
    Case("dropped on a thread", "from-dlpack-thread", _drop_on_thread),
    Case("refusals", "from-dlpack-refused", _refused),
)

assert set(_STRUCT_CODES) <= set(CODES)
