"""torch, or what stands for it where it is not installed: a test that uses that is skipped.

Newer Pythons and the newest libraries are tested without torch, whose wheels need several GB.
"""

from __future__ import annotations

from typing import Any, NoReturn


class Absent:
    """A module, or a name of it: it may stand in a table, but not be called."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __repr__(self) -> str:
        return self._path

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__dlpack"):
            self()
        if name.startswith("__"):  # pytest looks for the names of functions
            raise AttributeError(name)
        return Absent(f"{self._path}.{name}")

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise ModuleNotFoundError(f"No module named '{self._path}'")

    __instancecheck__ = __mro_entries__ = __getitem__ = __iter__ = __mul__ = __rmul__ = __call__


try:
    import torch
except ModuleNotFoundError:
    torch: Any = Absent("torch")  # type: ignore[no-redef]
