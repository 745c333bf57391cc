"""The cases of `check_arrow_producer` that are about streams."""

from __future__ import annotations

from typing import Any

from arrowdl.testing._arrow_layout import check_array, check_schema, describe_schema
from arrowdl.testing._arrow_producer import ArrowProducer, each_stream
from arrowdl.testing._arrow_producer_exports import check_device_struct
from arrowdl.testing._arrow_producer_release import expect_capsule_release, take_out
from arrowdl.testing._exported_arrow import (
    DEVICE_METHODS,
    CountedRelease,
    StreamReader,
    array_of,
    release_struct,
)
from arrowdl.testing._managed import on_threads
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, outcome_of
from arrowdl.testing._structs import CPU

_CALLBACKS = ("get_schema", "get_next", "get_last_error", "release")


def _callbacks(producer: ArrowProducer, method: str, to: Recorder) -> None:
    held = producer.export_stream(method)
    missing = [name for name in _CALLBACKS if not getattr(held.struct, name)]
    to.expect(not missing, f"NULL: {', '.join(missing)}")


def _read(producer: ArrowProducer, method: str, to: Recorder) -> None:
    """From the schema to the end, and what was read after the stream's release."""
    held = producer.export_stream(method)
    reader = StreamReader(held.struct)
    schema = _read_schema(reader, to)
    if schema is None:
        return
    arrays = _read_arrays(reader, to)
    if arrays is None:
        return
    sound = check_schema(schema, to)
    reader.release()
    to.expect(
        not held.struct.release,
        "release of the stream does not set release to NULL",
        rule="arrow-stream-release",
    )
    for array in arrays:
        device = array.device_type if method in DEVICE_METHODS else CPU
        if sound:
            check_array(schema, array_of(array), to, device=device)
        if method in DEVICE_METHODS:
            check_device_struct(array, to)
            to.expect(
                device == held.struct.device_type,
                f"the stream says device type {held.struct.device_type}, an array {device}",
                rule="arrow-device-type",
                advice="make a stream for each device type",
            )
        counted = CountedRelease(array_of(array))
        release_struct(array_of(array))
        to.expect(
            counted.calls == 1 and counted.marked,
            "an array cannot be released after its stream",
            rule="arrow-stream-chunks",
        )
    release_struct(schema)


def _read_schema(reader: StreamReader, to: Recorder) -> Any:
    """The schema, asked for twice."""
    status, schema = reader.get_schema()
    if not to.expect(
        status == 0 and bool(schema.release),
        f"get_schema returns {status}" + ("" if schema.release else " and no schema"),
        rule="arrow-stream-schema",
        advice="return 0 and a schema before the first array is read",
    ):
        return None
    status, again = reader.get_schema()
    same = status == 0 and describe_schema(schema) == describe_schema(again)
    to.expect(
        same,
        f"the second call of get_schema returns {status}" + (" and another schema" * (not status)),
        rule="arrow-stream-schema",
    )
    if status == 0:
        release_struct(again)
    return schema


def _read_arrays(reader: StreamReader, to: Recorder) -> list[Any] | None:
    arrays: list[Any] = []
    while True:
        status, next_array = reader.get_next()
        if not to.expect(status == 0, f"get_next returns {status}", rule="arrow-stream-next"):
            for array in arrays:
                release_struct(array_of(array))
            return None
        if not array_of(next_array).release:
            break
        arrays.append(next_array)
    for _ in range(2):
        status, next_array = reader.get_next()
        to.prefer(
            status == 0 and not array_of(next_array).release,
            f"after the end get_next returns {status}"
            + (" and an array" if array_of(next_array).release else ""),
            rule="arrow-stream-end",
        )
        release_struct(array_of(next_array))
    return arrays


def _unread(producer: ArrowProducer, method: str, to: Recorder) -> None:
    """Check capsules that are not consumed, and streams that are not read to their end."""
    expect_capsule_release(producer.export_stream(method), to)
    if not producer.is_factory and not _is_readable_again(producer, method):
        return
    moved, counted = take_out(producer.export_stream(method), to, "stream")
    reader = StreamReader(moved)
    status, array = reader.get_next()
    if status == 0:
        release_struct(array_of(array))
    reader.release()
    to.expect(
        counted.calls == 1 and counted.marked,
        "a stream that is not read to its end does not mark its release",
        advice="release what is left, and set release to NULL",
    )


def _is_readable_again(producer: ArrowProducer, method: str) -> bool:
    """Whether the object still exports after a stream of it was dropped: readers do not."""
    try:
        getattr(producer.make(), method)()
    except Exception:  # consumed, which is allowed for readers
        return False
    return True


def _lock(producer: ArrowProducer, method: str, to: Recorder) -> None:
    """All callbacks without the interpreter lock, on another thread."""
    held = producer.export_stream(method)
    reader = StreamReader(held.struct, with_lock=False)

    def read(reader: StreamReader = reader) -> None:
        status, schema = reader.get_schema()
        if status == 0:
            release_struct(schema)
        while True:
            status, array = reader.get_next()
            if status != 0:
                raise OSError(status, str(reader.get_last_error()))
            if not array_of(array).release:
                break
            release_struct(array_of(array))
        reader.release()

    raised = on_threads(1, read)
    to.expect(not raised, outcome_of(raised))


def _error(producer: ArrowProducer, to: Recorder) -> None:
    if producer.failing is None:
        to.skip("pass failing=, a function that makes a stream that fails")
    else:
        each_stream(_failure)(ArrowProducer(producer.failing, True, None), to)


def _failure(failing: ArrowProducer, method: str, to: Recorder) -> None:
    held = failing.export_stream(method)  # the struct lives as long as its capsule
    reader = StreamReader(held.struct)
    status, array = 0, None
    while status == 0:
        status, array = reader.get_next()
        if status == 0 and not array_of(array).release:
            break
        release_struct(array_of(array))
    text = reader.get_last_error() if status else None
    to.expect(
        status > 0 and bool(text),
        f"get_next returns {status}, get_last_error {text!r}",
        rule="arrow-stream-error",
    )
    reader.release()


CASES = (
    Case("stream callbacks", "arrow-stream-callbacks", each_stream(_callbacks)),
    Case("a stream read", "arrow-stream-next", each_stream(_read)),
    Case("streams not read", "arrow-stream-release", each_stream(_unread)),
    Case("a stream without the lock", "arrow-stream-lock", each_stream(_lock)),
    Case("a stream that fails", "arrow-stream-error", _error),
)
