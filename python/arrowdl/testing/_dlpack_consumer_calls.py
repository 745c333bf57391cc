"""The cases of `check_dlpack_consumer` that are about its calls."""

from __future__ import annotations

import gc
from typing import Any

from arrowdl.testing._dlpack_consumer import (
    Consumer,
    MadeProducer,
    OnlyDevice,
    made_for,
    make,
    refuses_plain,
)
from arrowdl.testing._dlpack_consumer_release import is_view
from arrowdl.testing._made_tensor import MadeTensor
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._structs import EXT_DEV, READ_ONLY


def _versions(consumer: Consumer, to: Recorder) -> None:
    if consumer.legacy:
        for rule in ("from-dlpack-major", "from-dlpack-minor"):
            to.skip(rule, "the consumer reads legacy capsules only")
        return
    newer = made_for(consumer, "int32", (3,), version=(1, 99))
    result = consumer.attempt(newer)
    to.expect(
        "from-dlpack-minor",
        not isinstance(result, Exception) or refuses_plain(consumer, result, "int32"),
        f"version 1.99 raised {quote(result) if isinstance(result, Exception) else ''}",
        "compare the major number only",
    )
    result = None
    # Nothing behind the flags may be read: the shape would be at an address that is not mapped.
    other = made_for(consumer, "int32", (3,), version=(2, 0))
    result = consumer.attempt(other)
    to.expect(
        "from-dlpack-major",
        isinstance(result, Exception),
        "version 2.0 is imported",
        "call the deleter and raise BufferError: the layout is another one",
    )
    result = None
    other.capsules.clear()
    gc.collect()
    to.expect(
        "from-dlpack-major",
        other.made.released == 1,
        f"the deleter of version 2.0 was called {other.made.released} times",
        "call the deleter once; it is safe",
    )


def _max_version(consumer: Consumer, to: Recorder) -> None:
    if consumer.raw_capsules:
        to.skip("from-dlpack-max-version", "the consumer takes capsules")
        return
    producer = MadeProducer(make("int32", (3,), versioned=not consumer.legacy))
    consumer.attempt(producer)
    asked = [options.get("max_version") for options in producer.asked]
    to.expect(
        "from-dlpack-max-version",
        any(version is not None for version in asked),
        "__dlpack__ was called without max_version",
        "pass max_version=(1, 0): legacy tensors cannot say that memory is read-only",
        "warning",
    )


def _fallback(consumer: Consumer, to: Recorder) -> None:
    if consumer.raw_capsules:
        to.skip("from-dlpack-fallback", "the consumer takes capsules")
        return
    for name, keywords in {"2021.12": {"stream"}, "no keywords": set[str]()}.items():
        with to.trying(name):
            made = make("int32", (3,), versioned=False)
            producer = MadeProducer(made, keywords=frozenset(keywords))
            result = consumer.attempt(producer)
            to.expect(
                "from-dlpack-fallback",
                not isinstance(result, Exception),
                f"raised {quote(result) if isinstance(result, Exception) else ''}",
                "after TypeError call __dlpack__ again without the new keywords",
                "warning",
            )


def _stream(consumer: Consumer, to: Recorder) -> None:
    if consumer.raw_capsules:
        to.skip("from-dlpack-stream", "the consumer takes capsules")
        return
    producer = made_for(consumer, "int32", (3,))
    consumer.attempt(producer)
    streams = [options.get("stream") for options in producer.asked]
    to.expect(
        "from-dlpack-stream",
        all(stream is None for stream in streams),
        f"the stream was {streams}",
        "pass None, or no stream, if __dlpack_device__ says CPU",
    )


def _read_only(consumer: Consumer, to: Recorder) -> None:
    if consumer.legacy:
        to.skip("from-dlpack-read-only", "legacy capsules have no flags")
        return
    producer = made_for(consumer, "float32", (2, 3), flags=READ_ONLY)
    result = consumer.attempt(producer)
    if isinstance(result, Exception):
        to.expect("from-dlpack-read-only", True, "", "")
        return
    before = producer.made.data.read()
    try:
        consumer.write(result)
    except Exception:  # refused, as it should be
        to.expect("from-dlpack-read-only", True, "", "")
        return
    to.expect(
        "from-dlpack-read-only",
        producer.made.data.read() == before,
        "a write to the array changes memory with READ_ONLY",
        "make the array read-only, or copy; ignoring the flag is allowed, and left to the user",
        "warning",
    )


def _copy(consumer: Consumer, to: Recorder) -> None:
    producer = made_for(consumer, "float32", (4, 16))
    result = consumer.attempt(producer, copy=None)
    if isinstance(result, TypeError) or consumer.raw_capsules:
        to.skip("from-dlpack-copy", "copy is not a keyword")
        return
    result = None
    producer = made_for(consumer, "float32", (4, 16))
    result = consumer.attempt(producer, copy=True)
    if not isinstance(result, Exception):
        to.expect(
            "from-dlpack-copy",
            not is_view(consumer, producer.made, result),
            "copy=True returns a view",
            "copy if the producer did not, or raise",
        )
    result = None
    producer = made_for(consumer, "float32", (4, 16))
    result = consumer.attempt(producer, copy=False)
    if not isinstance(result, Exception):
        to.expect(
            "from-dlpack-copy",
            is_view(consumer, producer.made, result),
            "copy=False returns a copy",
            "raise BufferError if a view is not possible",
        )


def _device(consumer: Consumer, to: Recorder) -> None:
    made = MadeTensor(
        0xDEAD0000,
        (3,),
        dtype="float32",
        strides=(1,),
        device=(EXT_DEV, 0),
        versioned=not consumer.legacy,
    )
    producer = MadeProducer(made, device=(EXT_DEV, 0))
    result = consumer.attempt(producer)
    refused = isinstance(result, Exception)
    device = getattr(result, "__dlpack_device__", None)
    passes_on = device is not None and tuple(device()) == (EXT_DEV, 0)
    to.expect(
        "from-dlpack-device",
        refused or passes_on,
        "memory of kDLExtDev is imported as memory of another device",
        "raise BufferError: the type says nothing about who can read it",
        "warning",
    )
    if refused:
        to.expect(
            "from-dlpack-device",
            isinstance(result, BufferError),
            f"raised {quote(result)}",
            "raise BufferError, so that callers can copy to the CPU instead",
            "warning",
        )


def _raises(consumer: Consumer, to: Recorder) -> None:
    if consumer.raw_capsules:
        to.skip("from-dlpack-raises", "the consumer takes capsules")
        return
    for error in (BufferError("no strides for this"), MemoryError("no memory for this")):
        with to.trying(type(error).__name__):
            producer = MadeProducer(make("int32", (3,)), raises=error)
            result = consumer.attempt(producer)
            to.expect(
                "from-dlpack-raises",
                isinstance(result, type(error)) and str(error) in str(result),
                _outcome(result),
                "let the exception of the producer pass, with its text",
            )
            producer.made.managed.deleter(producer.made.address)


def _outcome(result: Any) -> str:
    return f"raised {quote(result)}" if isinstance(result, Exception) else "raised nothing"


def _methods(consumer: Consumer, to: Recorder) -> None:
    if consumer.raw_capsules:
        to.skip("from-dlpack-methods", "the consumer takes capsules")
        return
    try:
        result = consumer.consume(OnlyDevice())
    except Exception as error:  # the type is what the rule is about
        result = error
    to.expect(
        "from-dlpack-methods",
        isinstance(result, AttributeError),
        _outcome(result),
        "raise AttributeError, which says that the object has no DLPack",
        "warning",
    )


CASES = (
    Case("versions", "from-dlpack-major", _versions),
    Case("max_version", "from-dlpack-max-version", _max_version),
    Case("old producers", "from-dlpack-fallback", _fallback),
    Case("stream", "from-dlpack-stream", _stream),
    Case("read-only memory", "from-dlpack-read-only", _read_only),
    Case("copy", "from-dlpack-copy", _copy),
    Case("an unknown device", "from-dlpack-device", _device),
    Case("errors of the producer", "from-dlpack-raises", _raises),
    Case("an object without DLPack", "from-dlpack-methods", _methods),
)
