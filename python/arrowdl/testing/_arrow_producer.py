"""The subject of `check_arrow_producer`: an object with Arrow's methods, or what makes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from arrowdl.testing._exported_arrow import ARRAYS, SCHEMA, STREAMS, Held
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import StopCheck, checked_factory, quote


@dataclass
class ArrowProducer:
    """What is checked: `make` returns an object, a new one each time if it is a factory."""

    make: Callable[[], Any]
    is_factory: bool
    failing: Callable[[], Any] | None
    exported: set[str] = field(default_factory=set)

    def call(self, method: str, **options: Any) -> Any:
        """What a method returns. Ends the check if an object has only one stream to give."""
        made = self.make()
        try:
            result = getattr(made, method)(**options)
        except Exception as error:
            if self.is_factory or method not in STREAMS or method not in self.exported:
                raise
            raise StopCheck(
                f"the second call of {method} raised {quote(error)}: for a stream that can be read "
                "once, pass a function that makes a new one"
            ) from error
        self.exported.add(method)
        return result

    def methods(self, known: dict[str, str]) -> list[str]:
        made = self.make()
        return [name for name in known if hasattr(made, name)]

    def export_array(self, method: str, **options: Any) -> tuple[Held, Held]:
        pair = getattr(self.make(), method)(**options)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"{method} returned {type(pair).__name__}, not a pair of capsules")
        return Held(pair[0], "arrow_schema"), Held(pair[1], ARRAYS[method])

    def export_stream(self, method: str, **options: Any) -> Held:
        return Held(self.call(method, **options), STREAMS[method])


def open_producer(target: Any, *, failing: Any = None) -> ArrowProducer:
    known = (*ARRAYS, *STREAMS, SCHEMA)
    if any(hasattr(target, name) for name in known) and not isinstance(target, type):
        return ArrowProducer(lambda: target, False, failing)
    if callable(target):
        return ArrowProducer(checked_factory(target), True, failing)
    raise TypeError(
        f"{type(target).__name__} has none of Arrow's methods: pass an object that exports data, "
        "or a function that makes one"
    )


def each_array(producer: ArrowProducer, to: Recorder) -> list[str]:
    methods = producer.methods(ARRAYS)
    if not methods:
        to.skip(to.rule, "the object exports no array")
    return methods
