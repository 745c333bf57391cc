"""The cases of `check_dlpack_consumer` that are about its calls, capsules and release."""

from __future__ import annotations

import gc
import struct
from functools import partial
from typing import Any

from arrowdl.testing._capsules import capsule_name, rename_capsule
from arrowdl.testing._dlpack_consumer import (
    Consumer,
    OnlyDevice,
    RawProducer,
    make,
    make_for,
    refuses_plain,
    vector_for,
)
from arrowdl.testing._managed import on_threads
from arrowdl.testing._raw_tensor import Memory, RawTensor
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, outcome, quote, skip_where
from arrowdl.testing._structs import CPU, EXT_DEV, READ_ONLY
from arrowdl.testing._values import flat


def _lifecycle(consumer: Consumer, to: Recorder) -> None:
    """The capsule outlives the import: what happens to it can be seen."""
    producer = make_for(consumer, "float32", (4, 16))
    tensor = producer.raw
    result = consumer(producer)
    name = capsule_name(producer.capsules[-1])
    to.expect(
        name.startswith("used_") or tensor.released == 0,
        f'the deleter was called, and the capsule is still named "{name}"',
    )
    renamed = name.startswith("used_")
    shares = is_view(consumer, tensor, result)
    if shares:
        to.expect(
            renamed,
            f'the array uses the memory, and the capsule is still named "{name}"',
            advice="rename the capsule to used_...: else its destructor frees the memory",
        )
    producer.capsules.clear()
    gc.collect()
    if shares:
        to.expect(
            tensor.released == 0,
            "the deleter was called while the array is in use",
            rule="from-dlpack-keeps",
        )
    del result
    gc.collect()
    expect_released(tensor, to)


def is_view(consumer: Consumer, tensor: RawTensor, result: Any) -> bool:
    """Whether a change of the memory shows in the result."""
    if not isinstance(tensor.data, Memory):
        return False
    before = tensor.data.read()
    tensor.data.write(struct.pack("=f", 4711.0) * (len(before) // 4))
    try:
        return 4711.0 in flat(consumer.read(result))
    finally:
        tensor.data.write(before)


def expect_released(tensor: RawTensor, to: Recorder, rule: str = "from-dlpack-releases") -> None:
    to.expect(tensor.released == 1, f"the deleter was called {tensor.released} times", rule=rule)


def _both_kinds(consumer: Consumer, to: Recorder) -> None:
    """Legacy capsules from old producers, versioned ones from new ones."""
    for versioned in (True, False):
        if versioned and (consumer.legacy or consumer.raw_capsules):
            to.skip("legacy capsules only", rule="from-dlpack-max-version")
            continue
        with to.trying("versioned" if versioned else "legacy"):
            producer = RawProducer(make("int32", (3,), versioned=versioned))
            result = consumer.attempt(producer)
            if isinstance(result, Exception):
                to.expect(
                    False,
                    f"raised {quote(result)}",
                    rule="from-dlpack-reads",
                    severity="error" if versioned else "warning",
                )
            del result
            producer.capsules.clear()
            gc.collect()
            expect_released(producer.raw, to)


def _other_capsule(name: str, what: str, consumer: Consumer, to: Recorder) -> None:
    def capsule_of(tensor: RawTensor) -> Any:
        capsule = tensor.capsule()
        rename_capsule(capsule, name.format(capsule_name(capsule)))
        return capsule

    tensor = make("int32", (3,), versioned=not consumer.legacy)
    producer = RawProducer(tensor, capsule_of=capsule_of)
    result = consumer.attempt(producer)
    to.expect(isinstance(result, Exception), f"{what} is imported")
    del result
    gc.collect()
    to.expect(
        tensor.released == 0,
        f"the deleter of {what} was called",
        advice="use nothing of such a capsule: it belongs to somebody else",
    )
    if tensor.released == 0:
        tensor.managed.deleter(tensor.address)


_used_capsule = partial(_other_capsule, "used_{}", "a consumed capsule")
_wrong_name = partial(_other_capsule, "arrow_array", 'a capsule named "arrow_array"')


def _null_deleter(consumer: Consumer, to: Recorder) -> None:
    producer = make_for(consumer, "int32", (3,), deleter=False)
    result = consumer.attempt(producer)
    if refuses_plain(consumer, result, "int32"):
        to.skip(f"the type is refused: {quote(result)}")
        return
    to.expect(not isinstance(result, Exception), outcome(result))
    del result
    gc.collect()


def _null_context(consumer: Consumer, to: Recorder) -> None:
    producer = make_for(consumer, "int32", (3,))
    producer.raw.managed.manager_ctx = None
    result = consumer.attempt(producer)
    del result
    producer.capsules.clear()
    gc.collect()
    expect_released(producer.raw, to, "from-dlpack-null-context")


def _drop_on_thread(consumer: Consumer, to: Recorder) -> None:
    producer = make_for(consumer, "float32", (4, 16))
    held = [consumer(producer)]
    producer.capsules.clear()
    on_threads(1, held.clear)
    gc.collect()
    expect_released(producer.raw, to, "from-dlpack-thread")


def _refused(consumer: Consumer, to: Recorder) -> None:
    """Refusals before and after the consumer could have taken the tensor."""
    refusable: dict[str, tuple[Any, tuple[int, int]]] = {
        "an unknown type": ((77, 32), (CPU, 0)),
        "an unknown device": ("float32", (EXT_DEV, 0)),
    }
    for name, (dtype, device) in refusable.items():
        with to.trying(name):
            producer = vector_for(consumer, Memory(bytes(64)), 3, dtype, device)
            tensor = producer.raw
            result = consumer.attempt(producer)
            del result
            gc.collect()
            if not producer.capsules:  # refused by __dlpack_device__ alone
                tensor.managed.deleter(tensor.address)
            producer.capsules.clear()
            gc.collect()
            expect_released(tensor, to, "from-dlpack-refused")


def _versions(consumer: Consumer, to: Recorder) -> None:
    if consumer.legacy:
        for rule in ("from-dlpack-major", "from-dlpack-minor"):
            to.skip("the consumer reads legacy capsules only", rule=rule)
        return
    newer = make_for(consumer, "int32", (3,), version=(1, 99))
    result = consumer.attempt(newer)
    to.expect(
        not isinstance(result, Exception) or refuses_plain(consumer, result, "int32"),
        f"version 1.99: {outcome(result)}",
        rule="from-dlpack-minor",
    )
    result = None
    # Nothing behind the flags may be read: the shape would be at an address that is not mapped.
    other = make_for(consumer, "int32", (3,), version=(2, 0))
    result = consumer.attempt(other)
    to.expect(isinstance(result, Exception), "version 2.0 is imported")
    result = None
    other.capsules.clear()
    gc.collect()
    to.expect(
        other.raw.released == 1,
        f"the deleter of version 2.0 was called {other.raw.released} times",
        advice="call the deleter once; it is safe",
    )


_needs_object = partial(
    skip_where, lambda consumer: "the consumer takes capsules" if consumer.raw_capsules else None
)


def _max_version(consumer: Consumer, to: Recorder) -> None:
    producer = RawProducer(make("int32", (3,), versioned=not consumer.legacy))
    consumer.attempt(producer)
    asked = [options.get("max_version") for options in producer.asked]
    to.prefer(
        any(version is not None for version in asked), "__dlpack__ was called without max_version"
    )


def _fallback(consumer: Consumer, to: Recorder) -> None:
    for name, keywords in {"2021.12": {"stream"}, "no keywords": set[str]()}.items():
        with to.trying(name):
            tensor = make("int32", (3,), versioned=False)
            producer = RawProducer(tensor, keywords=frozenset(keywords))
            result = consumer.attempt(producer)
            to.prefer(not isinstance(result, Exception), outcome(result))


def _stream(consumer: Consumer, to: Recorder) -> None:
    producer = make_for(consumer, "int32", (3,))
    consumer.attempt(producer)
    streams = [options.get("stream") for options in producer.asked]
    to.expect(all(stream is None for stream in streams), f"the stream was {streams}")


def _read_only(consumer: Consumer, to: Recorder) -> None:
    if consumer.legacy:
        to.skip("legacy capsules have no flags")
        return
    producer = make_for(consumer, "float32", (2, 3), flags=READ_ONLY)
    result = consumer.attempt(producer)
    if isinstance(result, Exception):
        to.passed()
        return
    before = producer.raw.data.read()
    try:
        consumer.write(result)
    except Exception:  # refused, as it should be
        to.passed()
        return
    to.prefer(
        producer.raw.data.read() == before, "a write to the array changes memory with READ_ONLY"
    )


def _copy(consumer: Consumer, to: Recorder) -> None:
    producer = make_for(consumer, "float32", (4, 16))
    result = consumer.attempt(producer, copy=None)
    if isinstance(result, TypeError) or consumer.raw_capsules:
        to.skip("copy is not a keyword")
        return
    for copy, seen, advice in (
        (True, "a view", ""),
        (False, "a copy", "raise BufferError if a view is not possible"),
    ):
        result = None
        producer = make_for(consumer, "float32", (4, 16))
        result = consumer.attempt(producer, copy=copy)
        if not isinstance(result, Exception):
            is_right = is_view(consumer, producer.raw, result) is not copy
            seen = f"copy={copy} returns {seen}"
            to.expect(is_right, seen, advice=advice)


def _device(consumer: Consumer, to: Recorder) -> None:
    producer = vector_for(consumer, 0xDEAD0000, 3, "float32", (EXT_DEV, 0))
    result = consumer.attempt(producer)
    refused = isinstance(result, Exception)
    device = getattr(result, "__dlpack_device__", None)
    passes_on = device is not None and tuple(device()) == (EXT_DEV, 0)
    to.prefer(refused or passes_on, "memory of kDLExtDev is imported as memory of another device")
    if refused:
        to.prefer(
            isinstance(result, BufferError),
            f"raised {quote(result)}",
            advice="raise BufferError, so that callers can copy to the CPU instead",
        )


def _raises(consumer: Consumer, to: Recorder) -> None:
    for error in (BufferError("no strides for this"), MemoryError("no memory for this")):
        with to.trying(type(error).__name__):
            producer = RawProducer(make("int32", (3,)), raises=error)
            result = consumer.attempt(producer)
            to.expect(
                isinstance(result, type(error)) and str(error) in str(result), outcome(result)
            )
            producer.raw.managed.deleter(producer.raw.address)


def _methods(consumer: Consumer, to: Recorder) -> None:
    try:
        result = consumer.consume(OnlyDevice())
    except Exception as error:  # the type is what the rule is about
        result = error
    to.prefer(isinstance(result, AttributeError), outcome(result))


CASES = (
    Case("capsule and deleter", "from-dlpack-renames", _lifecycle),
    Case("both kinds of capsules", "from-dlpack-releases", _both_kinds),
    Case("a used capsule", "from-dlpack-used", _used_capsule),
    Case("a capsule of another name", "from-dlpack-wrong-name", _wrong_name),
    Case("no deleter", "from-dlpack-null-deleter", _null_deleter),
    Case("no context", "from-dlpack-null-context", _null_context),
    Case("dropped on a thread", "from-dlpack-thread", _drop_on_thread),
    Case("refusals", "from-dlpack-refused", _refused),
    Case("versions", "from-dlpack-major", _versions),
    Case("max_version", "from-dlpack-max-version", _needs_object(_max_version)),
    Case("old producers", "from-dlpack-fallback", _needs_object(_fallback)),
    Case("stream", "from-dlpack-stream", _needs_object(_stream)),
    Case("read-only memory", "from-dlpack-read-only", _read_only),
    Case("copy", "from-dlpack-copy", _copy),
    Case("an unknown device", "from-dlpack-device", _device),
    Case("errors of the producer", "from-dlpack-raises", _needs_object(_raises)),
    Case("an object without DLPack", "from-dlpack-methods", _needs_object(_methods)),
)
