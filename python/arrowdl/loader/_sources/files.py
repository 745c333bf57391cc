"""`SourceFiles`: what is known of the files of a source, for states, plans and errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._storage.readers import Stamp


class SourceFiles:
    """The files of a source that has none."""

    def __init__(
        self,
        refusal: str,  # why there is no plan
    ) -> None:
        self._refusal = refusal

    @property
    def snapshot(self) -> str:
        """The name of the table version that is read; empty for a source without versions."""
        return ""

    @property
    def footers(self) -> Any:
        """What keeps the footers of files over a network; None if nothing does."""
        return None

    def count(self) -> int:
        """Count the files; a source without files counts as one."""
        return 1

    def count_unfiltered(self) -> int | None:
        """Count the rows of the files, which `filter` may drop; None if that is not known."""
        return None

    def list_stamps(self) -> Sequence[Stamp]:
        """Return what tells each file from a later one of its name, in the order of the files."""
        return ()

    def list_rows(self) -> Iterable[tuple[str, int]]:
        """Return the path and the rows of each file, or of its parts, that are read."""
        return ()

    def find_nulls(self, column: str) -> str:
        """Return a sentence that names a file with nulls in `column`; empty if none is known."""
        return ""

    def locate_row(self, row: int) -> tuple[str, int]:
        """Return the path of the file that has a row, "" if none does, and its number there."""
        return "", row

    def find_group(self, unit: int) -> int | None:
        """Return the number of the row group that is a unit, in its file; None for others."""
        return None

    def make_plan(self) -> FilePlan:
        """Return what was found out about the files.

        Raises TypeError if the source has no files, or maps them.
        """
        raise TypeError(self._refusal)


class NamedVersion(SourceFiles):
    """The files of a version, of which only the name is known."""

    def __init__(
        self,
        snapshot: str,
        refusal: str,  # see `SourceFiles`
    ) -> None:
        super().__init__(refusal)
        self._snapshot = snapshot

    @property
    def snapshot(self) -> str:
        return self._snapshot
