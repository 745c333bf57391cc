"""`Skips`: the rows and files that a Loader leaves out: noted, counted and compared among ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from arrowdl.loader._epoch.compare_ranks import Comparison, Meeting
from arrowdl.loader._epoch.cursor import Cursor
from arrowdl.loader._epoch.read import Reader
from arrowdl.loader._epoch.state import UNREAD, Position
from arrowdl.loader._skip.tally import Tally, add_entry, check_lost, find_most, name_entry
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._stats import Stats


class Skips:
    """What ``on_error="skip"`` leaves out of the epochs of a Loader."""

    def __init__(self, cursor: Cursor, stats: Stats, opening: tuple[Skipped, ...] = ()) -> None:
        self._cursor = cursor
        self._stats = stats  # names what is skipped
        # Files that could not be opened, and documents whose lengths could not be read. They are
        # left out of all epochs, also of those of copies.
        self.opening = opening

    def note(self, entries: Iterable[Skipped]) -> None:
        """Log what is left out of all epochs."""
        for entry in entries:
            name_entry(self._stats, entry)
        self.opening = self._stats.skipped

    def adopt(self, others: Iterable[Skips]) -> None:
        """Name what Loaders of a mixture leave out, and have logged."""
        for other in others:
            for entry in other.opening:
                add_entry(self._stats, entry)
        self.opening = self._stats.skipped

    def begin(
        self,
        reader: Reader,
        state: Mapping[str, Any],  # of `States.save`
    ) -> tuple[Tally, Callable[[], None] | None]:
        """Return what counts the rows that an epoch skips, and what compares the ranks."""
        self._note_lost()
        meeting = check = None
        if self._cursor.is_at(reader):
            meeting, check = self._meet(reader, dict(state))
        return self._make_tally(reader.position, meeting), check

    def _note_lost(self) -> None:
        """Log the documents that are in no block, unless there are too many."""
        epochs = self._cursor.epochs
        entries = [entry for entry in epochs.list_lost() if entry not in self.opening]
        if entries:
            check_lost(entries, epochs.source, epochs.options.max_skipped_rows)
            self.note(entries)

    def _meet(
        self, reader: Reader, state: dict[str, Any]
    ) -> tuple[Meeting, Callable[[], None] | None]:
        """Meet the other ranks; return also what compares what they could read."""
        unread = []
        for by_key, key, what in (
            (state.get("steps"), "unread", "lengths"),
            (state.get("pack"), "unread", "lengths"),
            (state, UNREAD, "dictionaries"),
        ):
            if by_key and (rows := by_key.pop(key, None)):
                unread.append(f"the {what} of {rows}")
        meeting = Meeting(state, reader.rank, reader.sharding.world_size)
        if self._cursor.epochs.source.num_rows is None:
            return meeting, None
        return meeting, Comparison(meeting, " and ".join(unread)).check

    def _make_tally(self, position: Position, meeting: Meeting | None) -> Tally:
        epochs, find_sharding = self._cursor.epochs, self._cursor.make_sharding
        bound = epochs.options.max_skipped_rows

        def find_bound() -> int:
            """Return how many rows, or blocks, may be skipped in an epoch, or in a pass."""
            return find_most(epochs.count_pass(position)) if bound is None else bound

        return Tally(
            self._stats,
            find_bound,
            lambda: epochs.count_passes(position, find_sharding()),
            1 if position.sharding is None else position.sharding.world_size,
            None if meeting is None else meeting.count_skipped,
        )
