"""The cases of `check_arrow_consumer` that are about streams and devices."""

from __future__ import annotations

import gc
from typing import Any

from arrowdl.testing._arrow_cases import primitive
from arrowdl.testing._arrow_consumer import Consumer, StreamObject
from arrowdl.testing._arrow_consumer_release import expect_released
from arrowdl.testing._arrow_consumer_values import same
from arrowdl.testing._made_arrow import MadeArray, MadeSchema
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._structs import EXT_DEV

_ERROR = "the disk is on fire"


def _several(consumer: Consumer, lengths: tuple[int, ...], error: str | None = None) -> Any:
    """A stream of arrays of 1, 2, 3..., with `lengths` rows."""
    arrays, start = [], 1
    for length in lengths:
        values = list(range(start, start + length))
        start += length
        arrays.append(consumer.wrap(*primitive("i", "i", values))[1])
    return StreamObject(
        consumer.protocol,
        lambda: consumer.wrap(*primitive("i", "i", [1]))[0],
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
                same(seen, wanted),
                f"reads {seen!r:.60}, not {wanted}",
                "read until get_next returns a released array; a stream may have no arrays",
            )
            del result
            made.capsules.clear()
            gc.collect()
            _expect_stream_use(made, to)
            expect_released(made, to)


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
    expect_released(made, to, "from-arrow-refused")


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


CASES = (
    Case("several arrays", "from-arrow-stream", _streams),
    Case("a stream that fails", "from-arrow-stream-error", _stream_error),
    Case("an unknown device", "from-arrow-device", _device),
)
