"""The subject of `check_arrow_producer`: an object with Arrow's methods, or what makes one."""

from __future__ import annotations

import functools
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
        array = self.make()
        try:
            result = getattr(array, method)(**options)
        except Exception as error:
            if self.is_factory or method not in STREAMS or method not in self.exported:
                raise
            raise StopCheck(
                f"the second call of {method} raised {quote(error)}: for a stream that can be read "
                "once, pass a function that makes a new one"
            ) from error
        self.exported.add(method)
        return result

    def methods(self, names: dict[str, str]) -> list[str]:
        array = self.make()
        return [name for name in names if hasattr(array, name)]

    def export_array(self, method: str, **options: Any) -> tuple[Held, Held]:
        pair = getattr(self.make(), method)(**options)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"{method} returned {type(pair).__name__}, not a pair of capsules")
        return Held(pair[0], "arrow_schema"), Held(pair[1], ARRAYS[method])

    def export_stream(self, method: str, **options: Any) -> Held:
        return Held(self.call(method, **options), STREAMS[method])


def open_producer(target: Any, *, failing: Any = None) -> ArrowProducer:
    names = (*ARRAYS, *STREAMS, SCHEMA)
    if any(hasattr(target, name) for name in names) and not isinstance(target, type):
        return ArrowProducer(lambda: target, False, failing)
    if callable(target):
        return ArrowProducer(checked_factory(target), True, failing)
    raise TypeError(
        f"{type(target).__name__} has none of Arrow's methods: pass an object that exports data, "
        "or a function that makes one"
    )


Run = Callable[[ArrowProducer, Recorder], None]
RunMethod = Callable[[ArrowProducer, str, Recorder], None]


def each_array(run: RunMethod) -> Run:
    """Return what calls `run` for each method that exports an array."""
    return functools.partial(_run_each, run, ARRAYS, "array")


def each_stream(run: RunMethod) -> Run:
    """Return what calls `run` for each method that exports a stream."""
    return functools.partial(_run_each, run, STREAMS, "stream")


def each_method(run: RunMethod) -> Run:
    """Return what calls `run` for each method that exports data."""
    return functools.partial(_run_each, run, {**ARRAYS, **STREAMS}, "data")


def _run_each(
    run: RunMethod, method_names: dict[str, str], what: str, producer: ArrowProducer, to: Recorder
) -> None:
    methods = producer.methods(method_names)
    if not methods:
        to.skip(f"the object exports no {what}")
    for method in methods:
        with to.trying(method):
            run(producer, method, to)
