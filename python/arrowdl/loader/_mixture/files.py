"""`MixedFiles`: the files of all sources of a mixture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from arrowdl.loader._sources.files import SourceFiles
from arrowdl.loader._storage.readers import Stamp


class MixedFiles(SourceFiles):
    """The files of several sources."""

    def __init__(
        self,
        members: Sequence[tuple[str, SourceFiles]],  # each with the name of the source
    ) -> None:
        super().__init__("a mixture has no plan: make one of each of its Loaders")
        self._members = members

    @property
    def snapshot(self) -> str:
        named = [(name, files.snapshot) for name, files in self._members]
        return "; ".join(f"{name}: {snapshot}" for name, snapshot in named if snapshot)

    def list_stamps(self) -> list[Stamp]:
        return [stamp for _, files in self._members for stamp in files.list_stamps()]

    def list_rows(self) -> Iterator[tuple[str, int]]:
        return chain.from_iterable(files.list_rows() for _, files in self._members)

    def find_nulls(self, column: str) -> str:
        return next(filter(None, (files.find_nulls(column) for _, files in self._members)), "")
