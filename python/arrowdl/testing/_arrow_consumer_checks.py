"""The cases of `check_arrow_consumer`: what it reads, releases and refuses."""

from __future__ import annotations

import functools
import gc
from typing import Any

from arrowdl.testing._arrow_cases import COLUMNS, Column, ints, primitive
from arrowdl.testing._arrow_consumer import (
    ArrayObject,
    Consumer,
    Panic,
    StreamObject,
    numbers,
    try_to,
)
from arrowdl.testing._capsules import rename_capsule
from arrowdl.testing._managed import on_threads
from arrowdl.testing._raw_arrow import RawArray, RawSchema
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, outcome, quote, skip_where
from arrowdl.testing._structs import EXT_DEV

_ERROR = "the disk is on fire"


def _column(column: Column, consumer: Consumer, to: Recorder) -> None:
    sample = consumer.offer(column.make)
    seen = consumer.read_from(sample)
    if isinstance(seen, Exception):
        types = consumer.types
        lacks = [] if types is None else [name for name in column.types if name not in types]
        if lacks and not isinstance(seen, Panic):
            to.skip(f"types= has no {lacks[0]}, which is refused: {quote(seen)}", rule=column.rule)
            return
        has_to = column.is_common if types is None else not lacks
        to.expect(
            not has_to and not isinstance(seen, Panic),
            f"raised {quote(seen)}",
            rule=column.rule,
            advice="import it, or raise an exception that `except Exception` catches, and leave "
            "the type out of types=",
            severity="error" if has_to else "warning",
        )
        return
    to.expect(
        same(seen, column.values),
        f"reads {seen!r:.70}, not {column.values!r:.70}",
        rule=column.rule,
    )


def _case_of(column: Column) -> Case:
    """Each column is a case: it may crash without the others."""
    return Case(column.name, column.rule, functools.partial(_column, column))


def same(seen: Any, wanted: Any) -> bool:
    """Whether rows have equal values, of which true and 1 are two."""
    if isinstance(wanted, list):
        return (
            isinstance(seen, list | tuple)
            and len(seen) == len(wanted)
            and all(map(same, seen, wanted))
        )
    if isinstance(wanted, dict):
        return (
            isinstance(seen, dict)
            and seen.keys() == wanted.keys()
            and all(same(seen[key], wanted[key]) for key in wanted)
        )
    try:
        return bool(seen == wanted) and isinstance(seen, bool) == isinstance(wanted, bool)
    except Exception:  # an array in the place of a value
        return False


def _lifecycle(consumer: Consumer, to: Recorder) -> None:
    """The capsules outlive the import: what happens to them can be seen."""
    has_structs = consumer.types is None or "struct" in consumer.types
    sample = consumer.offer(_structs if has_structs else numbers)
    array = sample.array if isinstance(sample, ArrayObject) else sample.stream.arrays[0]
    held = [consumer.consume(sample)]
    before = try_to(sample, lambda: consumer.values_of(held[0]))
    to.prefer(
        sample.was_moved,
        "the struct is still in its capsule, not released",
        rule="from-arrow-moves",
    )
    data = array.nodes[-1].buffers[-1]
    values = data.read()
    data.write(bytes(reversed(values)))
    after = try_to(sample, lambda: consumer.values_of(held[0]))
    data.write(values)
    again = isinstance(after, list) and len(after) == len(before)  # others can be read once
    in_use = again and repr(before) != repr(after)
    to.expect(
        not (in_use and array.released),
        "the array was released, and its memory is in use",
        rule="from-arrow-keeps",
    )
    held.clear()
    sample.capsules.clear()
    gc.collect()
    expect_released(sample, to)


def _structs() -> tuple[RawSchema, RawArray]:
    x = RawArray(3, [None, ints([1, 2, 3])])
    return RawSchema("+s", children=[RawSchema("i", "x")]), RawArray(3, [None], children=[x])


def expect_released(sample: Any, to: Recorder, rule: str = "from-arrow-releases") -> None:
    _expect_one_release(sample, to, rule)
    by_hand = [
        node
        for root in sample.roots
        for node in getattr(root, "nodes", [root])[1:]
        if node.in_place
    ]
    to.expect(
        not by_hand,
        f"the release callbacks of {len(by_hand)} children were called by the consumer",
        rule="from-arrow-children",
    )


def _expect_one_release(sample: Any, to: Recorder, rule: str, advice: str = "") -> None:
    what = "schema and array"
    if not isinstance(sample, ArrayObject):
        what = f"{len(sample.stream.schemas)} schemas, the arrays and the stream"
    counts = [root.released for root in sample.roots]
    seen = f"release of {what} was called {counts} times"
    to.expect(all(count == 1 for count in counts), seen, rule=rule, advice=advice)


def _drop_on_thread(consumer: Consumer, to: Recorder) -> None:
    sample = consumer.offer(numbers)
    held = [consumer.consume(sample)]
    sample.capsules.clear()
    on_threads(1, held.clear)
    gc.collect()
    expect_released(sample, to, "from-arrow-thread")


def _refused(consumer: Consumer, to: Recorder) -> None:
    sample = consumer.offer(lambda: (RawSchema("?"), RawArray(3, [None, ints([1, 2, 3])])))
    seen = consumer.read_from(sample)
    to.expect(isinstance(seen, Exception), 'the format "?" is imported')
    sample.capsules.clear()
    gc.collect()
    advice = "release what was moved out, also if the import fails"
    _expect_one_release(sample, to, "from-arrow-refused", advice)


def _released(consumer: Consumer, to: Recorder) -> None:
    """A capsule whose struct was moved out, as one that is used for the second time."""
    sample = consumer.offer(numbers)
    sample.drop()
    result = consumer.read_from(sample)
    to.expect(isinstance(result, Exception), "a released struct is imported")


def _wrong_capsule(consumer: Consumer, to: Recorder) -> None:
    sample = consumer.offer(numbers)
    export = sample.export

    def renamed() -> Any:
        capsules = export()
        last = capsules[-1] if isinstance(capsules, tuple) else capsules
        rename_capsule(last, "dltensor")
        return capsules

    sample.export = renamed
    result = consumer.attempt(sample)
    to.expect(isinstance(result, Exception), 'a capsule named "dltensor" is imported')


def _raises(consumer: Consumer, to: Recorder) -> None:
    for error in (ValueError("no such column"), MemoryError("no memory for this")):
        with to.trying(type(error).__name__):
            sample = consumer.offer(numbers)
            sample.raises = error
            result = consumer.attempt(sample)
            to.prefer(
                isinstance(result, type(error)) and str(error) in str(result), outcome(result)
            )
            sample.drop()


def _several(consumer: Consumer, lengths: tuple[int, ...], error: str | None = None) -> Any:
    """A stream of arrays of 1, 2, 3..., with `lengths` rows."""
    arrays, start = [], 1
    for length in lengths:
        values = list(range(start, start + length))
        start += length
        arrays.append(consumer.wrap(*primitive("i", "i", values))[1])
    return StreamObject(
        consumer.protocol, lambda: consumer.wrap(*primitive("i", "i", [1]))[0], arrays, error=error
    )


def _streams(consumer: Consumer, to: Recorder) -> None:
    for lengths in ((3, 2), (2, 0, 1), (0,), ()):
        with to.trying(f"arrays of {lengths} rows"):
            sample = _several(consumer, lengths)
            result = consumer.read_from(sample)
            failed = isinstance(result, Exception)
            seen: Any = f"raised {quote(result)}" if failed else _plain(result)
            wanted = list(range(1, sum(lengths) + 1))
            to.expect(same(seen, wanted), f"reads {seen!r:.60}, not {wanted}")
            del result
            sample.capsules.clear()
            gc.collect()
            _expect_stream_use(sample, to)
            expect_released(sample, to)


def _plain(values: Any) -> Any:
    """The rows of a result that keeps the arrays of a stream apart."""
    if isinstance(values, list) and values and all(isinstance(part, list) for part in values):
        return [row for part in values for row in part]
    return values


def _expect_stream_use(sample: Any, to: Recorder) -> None:
    to.expect(
        not sample.stream.misuse,
        ", ".join(dict.fromkeys(sample.stream.misuse)),
        rule="from-arrow-stream-use",
    )


def _stream_error(consumer: Consumer, to: Recorder) -> None:
    sample = _several(consumer, (3,), _ERROR)
    result = consumer.read_from(sample)
    to.expect(isinstance(result, Exception) and _ERROR in str(result), outcome(result))
    del result
    sample.capsules.clear()
    gc.collect()
    _expect_stream_use(sample, to)
    expect_released(sample, to, "from-arrow-refused")


def _device(consumer: Consumer, to: Recorder) -> None:
    if "device" not in consumer.protocol:
        to.skip("the consumer takes no device arrays")
        return

    def elsewhere() -> tuple[RawSchema, RawArray]:
        return RawSchema("i"), RawArray(3, [None, 0xDEAD0000])

    result = consumer.read_from(consumer.offer(elsewhere, device=(EXT_DEV, 0)))
    to.expect(isinstance(result, Exception), "memory of ARROW_DEVICE_EXT_DEV is read")


_needs_streams = functools.partial(
    skip_where, lambda consumer: None if consumer.is_stream else "the consumer takes arrays"
)

CASES = (
    *map(_case_of, COLUMNS),
    Case("capsules and release", "from-arrow-releases", _lifecycle),
    Case("dropped on a thread", "from-arrow-thread", _drop_on_thread),
    Case("refusals", "from-arrow-refused", _refused),
    Case("a released struct", "from-arrow-released", _released),
    Case("a capsule of another name", "from-arrow-wrong-capsule", _wrong_capsule),
    Case("errors of the producer", "from-arrow-raises", _raises),
    Case("several arrays", "from-arrow-stream", _needs_streams(_streams)),
    Case("a stream that fails", "from-arrow-stream-error", _needs_streams(_stream_error)),
    Case("an unknown device", "from-arrow-device", _device),
)
