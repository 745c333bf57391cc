"""The cases of `check_dlpack_consumer` that are about capsules and release."""

from __future__ import annotations

import gc
import struct
import threading
from collections.abc import Callable
from typing import Any

from arrowdl.testing._capsules import capsule_name, rename_capsule
from arrowdl.testing._dlpack_consumer import Consumer, MadeProducer, made_for, make, refuses_plain
from arrowdl.testing._made_tensor import MadeTensor, Memory
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._structs import CPU, EXT_DEV
from arrowdl.testing._values import flat


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


CASES = (
    Case("capsule and deleter", "from-dlpack-renames", _lifecycle),
    Case("both kinds of capsules", "from-dlpack-releases", _both_kinds),
    Case("a used capsule", "from-dlpack-used", _used_capsule),
    Case("a capsule of another name", "from-dlpack-wrong-name", _wrong_name),
    Case("no deleter", "from-dlpack-null-deleter", _null_deleter),
    Case("no context", "from-dlpack-null-context", _null_context),
    Case("dropped on a thread", "from-dlpack-thread", _drop_on_thread),
    Case("refusals", "from-dlpack-refused", _refused),
)
