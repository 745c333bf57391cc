"""The cases of `check_arrow_consumer` that are about release, and what is to be refused."""

from __future__ import annotations

import gc
import threading
from typing import Any

from arrowdl.testing._arrow_cases import ints
from arrowdl.testing._arrow_consumer import ArrayObject, Consumer, numbers, try_to
from arrowdl.testing._capsules import rename_capsule
from arrowdl.testing._made_arrow import MadeArray, MadeSchema
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote


def _lifecycle(consumer: Consumer, to: Recorder) -> None:
    """The capsules outlive the import: what happens to them can be seen."""
    has_structs = consumer.types is None or "struct" in consumer.types
    made = consumer.offer(_structs if has_structs else numbers)
    array = made.array if isinstance(made, ArrayObject) else made.stream.arrays[0]
    held = [consumer.consume(made)]
    before = try_to(made, lambda: consumer.values_of(held[0]))
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
    after = try_to(made, lambda: consumer.values_of(held[0]))
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
    expect_released(made, to)


def _structs() -> tuple[MadeSchema, MadeArray]:
    x = MadeArray(3, [None, ints([1, 2, 3])])
    return (
        MadeSchema("+s", children=[MadeSchema("i", "x")]),
        MadeArray(3, [None], children=[x]),
    )


def expect_released(made: Any, to: Recorder, rule: str = "from-arrow-releases") -> None:
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
    made = consumer.offer(numbers)
    held = [consumer.consume(made)]
    made.capsules.clear()
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    expect_released(made, to, "from-arrow-thread")


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


def _released(consumer: Consumer, to: Recorder) -> None:
    """A capsule whose struct was moved out, as one that is used for the second time."""
    made = consumer.offer(numbers)
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
    made = consumer.offer(numbers)
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
            made = consumer.offer(numbers)
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


CASES = (
    Case("capsules and release", "from-arrow-releases", _lifecycle),
    Case("dropped on a thread", "from-arrow-thread", _drop_on_thread),
    Case("refusals", "from-arrow-refused", _refused),
    Case("a released struct", "from-arrow-released", _released),
    Case("a capsule of another name", "from-arrow-wrong-capsule", _wrong_capsule),
    Case("errors of the producer", "from-arrow-raises", _raises),
)
