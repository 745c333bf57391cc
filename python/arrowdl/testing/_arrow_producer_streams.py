"""The cases of `check_arrow_producer` that are about streams."""

from __future__ import annotations

import gc
from typing import Any

from arrowdl.testing._arrow_layout import check_array, check_schema, describe_schema
from arrowdl.testing._arrow_producer import ArrowProducer
from arrowdl.testing._arrow_producer_exports import check_device_struct
from arrowdl.testing._exported_arrow import (
    DEVICE_METHODS,
    STREAMS,
    CountedRelease,
    StreamReader,
    array_of,
    copy_struct,
    release_struct,
)
from arrowdl.testing._managed import on_threads
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._structs import CPU

_CALLBACKS = ("get_schema", "get_next", "get_last_error", "release")


def _each_stream(producer: ArrowProducer, to: Recorder) -> list[str]:
    methods = producer.methods(STREAMS)
    if not methods:
        to.skip(to.rule, "the object exports no stream")
    return methods


def _callbacks(producer: ArrowProducer, to: Recorder) -> None:
    for method in _each_stream(producer, to):
        with to.trying(method):
            held = producer.export_stream(method)
            missing = [name for name in _CALLBACKS if not getattr(held.struct, name)]
            to.expect(
                "arrow-stream-callbacks",
                not missing,
                f"NULL: {', '.join(missing)}",
                "implement all four: consumers call them without a check",
            )
            if missing and "release" not in missing:
                continue


def _read(producer: ArrowProducer, to: Recorder) -> None:
    """From the schema to the end, and what was read after the stream's release."""
    for method in _each_stream(producer, to):
        with to.trying(method):
            held = producer.export_stream(method)
            reader = StreamReader(held.struct)
            schema = _read_schema(reader, to)
            if schema is None:
                continue
            arrays = _read_arrays(reader, to)
            if arrays is None:
                continue
            sound = check_schema(schema, to)
            reader.release()
            to.expect(
                "arrow-stream-release",
                not held.struct.release,
                "release of the stream does not set release to NULL",
                "set it: else the stream is released again",
            )
            for made in arrays:
                device = made.device_type if method in DEVICE_METHODS else CPU
                if sound:
                    check_array(schema, array_of(made), to, device=device)
                if method in DEVICE_METHODS:
                    check_device_struct(made, to)
                    to.expect(
                        "arrow-device-type",
                        device == held.struct.device_type,
                        f"the stream says device type {held.struct.device_type}, an array {device}",
                        "make a stream for each device type",
                    )
                counted = CountedRelease(array_of(made))
                release_struct(array_of(made))
                to.expect(
                    "arrow-stream-chunks",
                    counted.calls == 1 and counted.marked,
                    "an array cannot be released after its stream",
                    "let each array own what it needs",
                )
            release_struct(schema)


def _read_schema(reader: StreamReader, to: Recorder) -> Any:
    """The schema, asked for twice."""
    status, schema = reader.get_schema()
    if not to.expect(
        "arrow-stream-schema",
        status == 0 and bool(schema.release),
        f"get_schema returns {status}" + ("" if schema.release else " and no schema"),
        "return 0 and a schema before the first array is read",
    ):
        return None
    status, again = reader.get_schema()
    same = status == 0 and describe_schema(schema) == describe_schema(again)
    to.expect(
        "arrow-stream-schema",
        same,
        f"the second call of get_schema returns {status}" + (" and another schema" * (not status)),
        "return a new export of the same schema each time",
    )
    if status == 0:
        release_struct(again)
    return schema


def _read_arrays(reader: StreamReader, to: Recorder) -> list[Any] | None:
    arrays: list[Any] = []
    while True:
        status, made = reader.get_next()
        if not to.expect(
            "arrow-stream-next",
            status == 0,
            f"get_next returns {status}",
            "return 0, at the end as well",
        ):
            for array in arrays:
                release_struct(array_of(array))
            return None
        if not array_of(made).release:
            break
        arrays.append(made)
    for _ in range(2):
        status, made = reader.get_next()
        to.expect(
            "arrow-stream-end",
            status == 0 and not array_of(made).release,
            f"after the end get_next returns {status}"
            + (" and an array" if array_of(made).release else ""),
            "return 0 and a released array again",
            "warning",
        )
        release_struct(array_of(made))
    return arrays


def _unread(producer: ArrowProducer, to: Recorder) -> None:
    """Check capsules that are not consumed, and streams that are not read to their end."""
    for method in _each_stream(producer, to):
        with to.trying(method):
            held = producer.export_stream(method)
            counted = CountedRelease(held.struct)
            held.capsule = None
            gc.collect()
            to.expect(
                "arrow-capsule-releases",
                counted.calls == 1,
                f'release of "{held.name}" was called {counted.calls} times',
                "give the capsule a destructor that calls release unless it is NULL",
            )
            if not producer.is_factory and not _is_readable_again(producer, method):
                continue
            held = producer.export_stream(method)
            moved = copy_struct(held.struct)
            counted = CountedRelease(moved)
            held.capsule = None
            gc.collect()
            to.expect(
                "arrow-capsule-moved",
                counted.calls == 0,
                f'the destructor of a consumed "{held.name}" released the stream',
                "check that release is not NULL",
            )
            reader = StreamReader(moved)
            status, made = reader.get_next()
            if status == 0:
                release_struct(array_of(made))
            reader.release()
            to.expect(
                "arrow-stream-release",
                counted.calls == 1 and counted.marked,
                "a stream that is not read to its end does not mark its release",
                "release what is left, and set release to NULL",
            )


def _is_readable_again(producer: ArrowProducer, method: str) -> bool:
    """Whether the object still exports after a stream of it was dropped: readers do not."""
    try:
        getattr(producer.make(), method)()
    except Exception:  # consumed, which is allowed for readers
        return False
    return True


def _lock(producer: ArrowProducer, to: Recorder) -> None:
    """All callbacks without the interpreter lock, on another thread."""
    for method in _each_stream(producer, to):
        with to.trying(method):
            held = producer.export_stream(method)
            reader = StreamReader(held.struct, with_lock=False)

            def read(reader: StreamReader = reader) -> None:
                status, schema = reader.get_schema()
                if status == 0:
                    release_struct(schema)
                while True:
                    status, made = reader.get_next()
                    if status != 0:
                        raise OSError(status, str(reader.get_last_error()))
                    if not array_of(made).release:
                        break
                    release_struct(array_of(made))
                reader.release()

            raised = on_threads(1, read)
            to.expect(
                "arrow-stream-lock",
                not raised,
                f"raised {quote(raised[0]) if raised else ''}",
                "take the interpreter lock in callbacks that touch Python",
            )


def _error(producer: ArrowProducer, to: Recorder) -> None:
    if producer.failing is None:
        to.skip("arrow-stream-error", "pass failing=, a function that makes a stream that fails")
        return
    failing = ArrowProducer(producer.failing, True, None)
    for method in _each_stream(failing, to):
        with to.trying(method):
            held = failing.export_stream(method)  # the struct lives as long as its capsule
            reader = StreamReader(held.struct)
            status, made = 0, None
            while status == 0:
                status, made = reader.get_next()
                if status == 0 and not array_of(made).release:
                    break
                release_struct(array_of(made))
            text = reader.get_last_error() if status else None
            to.expect(
                "arrow-stream-error",
                status > 0 and bool(text),
                f"get_next returns {status}, get_last_error {text!r}",
                "return an errno number, such as EIO, and a text until the next call",
            )
            reader.release()


CASES = (
    Case("stream callbacks", "arrow-stream-callbacks", _callbacks),
    Case("a stream read", "arrow-stream-next", _read),
    Case("streams not read", "arrow-stream-release", _unread),
    Case("a stream without the lock", "arrow-stream-lock", _lock),
    Case("a stream that fails", "arrow-stream-error", _error),
)
