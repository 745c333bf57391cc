"""The subject of `check_dlpack_producer`: an array, or a function that makes one."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from arrowdl.testing._managed import NEWEST, Exported
from arrowdl.testing._run import checked_factory, quote, skip_where
from arrowdl.testing._values import flat


@dataclass
class Producer:
    """What is checked: `make` returns an array, a new one each time if it is a factory."""

    make: Callable[[], Any]
    is_factory: bool
    read_only: bool | None
    values: list[Any] | None

    def export(self, **options: Any) -> Exported:
        return Exported(self.make().__dlpack__(**options))

    def try_export(self, **options: Any) -> Exported | Exception:
        try:
            return self.export(**options)
        except Exception as error:  # what it raises is what a case looks at
            return error

    def best(self) -> Exported:
        """An export by the newest version that works."""
        for options in ({"max_version": NEWEST}, {}):
            export = self.try_export(**options)
            if isinstance(export, Exported) and export.is_known:
                return export
        if isinstance(export, Exception):
            raise export
        raise TypeError(f'the capsule is named "{export.name}"')

    def options(self) -> dict[str, Any]:
        """The keywords with which `__dlpack__` works: none, or read-only memory needs a version."""
        export = self.try_export()
        return {"max_version": NEWEST} if isinstance(export, BufferError) else {}

    def refusal(self) -> str | None:
        """Why an array cannot be exported at all: by a BufferError, as the standard has it."""
        plain = self.try_export()
        if not isinstance(plain, BufferError):
            return None
        newest = self.try_export(max_version=NEWEST)
        is_refused = isinstance(newest, BufferError | TypeError)
        return f"the array cannot be exported: {quote(plain)}" if is_refused else None

    @property
    def device(self) -> tuple[int, int]:
        type, number = self.make().__dlpack_device__()
        type = type.value if isinstance(type, enum.Enum) else type
        return int(type), int(number or 0)  # None is a finding of the case "device"


def open_producer(target: Any, *, read_only: bool | None = None, values: Any = None) -> Producer:
    expected = None if values is None else flat(values)
    if hasattr(target, "__dlpack__") and not isinstance(target, type):
        return Producer(lambda: target, False, read_only, expected)
    if callable(target):
        return Producer(checked_factory(target), True, read_only, expected)
    raise TypeError(
        f"{type(target).__name__} has no __dlpack__: pass an array, or a function that makes one"
    )


needs_tensor = partial(skip_where, Producer.refusal)
"""Return a case that is skipped for an array that is refused with BufferError."""


def each_export(producer: Producer) -> list[tuple[str, Exported]]:
    exports = []
    for options in ({}, {"max_version": (1, 0)}, {"max_version": NEWEST}):
        export = producer.try_export(**options)
        if isinstance(export, Exported) and export.is_known:
            exports.append((", ".join(f"{k}={v}" for k, v in options.items()) or "plain", export))
    if not exports:
        producer.best()  # raises what the producer raises
    return exports


def describe_export(export: Exported | Exception) -> str:
    """Return what an export did, after the name of an option."""
    return (
        f"raises {quote(export)}" if isinstance(export, Exception) else f'returns "{export.name}"'
    )
