"""`TokenPlanner`: the steps of a budget of tokens, found by the lengths of the rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._epoch.sequences import EpochSequences, OpenSequences
from arrowdl.loader._epoch.sharding import Sharding, Span, locate_sequence
from arrowdl.loader._epoch.steps import Part, TokenPlan, TokenSteps, Window, fill_steps
from arrowdl.loader._epoch.token_counts import TokenCounts
from arrowdl.loader._epoch.windows import Windows
from arrowdl.loader._options.options import Options
from arrowdl.loader._sources.base import ENDLESS, IndexedSource

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK_ROWS = 65_536  # of each sequence, which are planned together
_ENDLESS_ROWS = 1_024  # the same, if only the first steps may be asked for
_MOST_PLANS = 4  # plans, of epochs and of parts of an epoch that had another budget


class RowLengths:
    """The lengths of the rows of a source, in the order of an epoch."""

    def __init__(self, source: IndexedSource, open: OpenSequences) -> None:
        self.source = source
        self._open = open

    def open(self, source: IndexedSource, epoch: int, splits: int) -> EpochSequences:
        """Return the lengths of the rows of `source`, which may have the weights of an epoch."""
        lengths = self.source.with_turns_of(source)
        return self._open(lengths, epoch, splits, shares_units=False)


class TokenPlanner:
    """Cuts the rows of an epoch into steps of a budget of tokens."""

    def __init__(
        self, options: Options, lengths: RowLengths, counts: TokenCounts, windows: Windows
    ) -> None:
        self._options = options
        self._lengths = lengths
        self._counts = counts
        self._windows = windows
        self._plans: dict[tuple[Any, ...], TokenSteps] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_plans": {}}

    def find(self, source: IndexedSource, epoch: int, sharding: Sharding, start: int) -> TokenSteps:
        """Return the steps of an epoch from row `start` of each sequence on."""
        assert sharding.splits is not None
        assert sharding.tokens is not None
        order = (tuple(source.phases), source.is_endless)
        key = (epoch, sharding.splits, sharding.tokens, start, order)
        planned_steps = self._plans.get(key)
        if planned_steps is None or not planned_steps.is_usable:
            planned_steps = self._plan_steps(source, epoch, sharding, start)
            while len(self._plans) >= _MOST_PLANS:
                self._plans.pop(next(iter(self._plans)), None)
            self._plans[key] = planned_steps
        return planned_steps

    def _plan_steps(
        self, source: IndexedSource, epoch: int, sharding: Sharding, start: int
    ) -> TokenSteps:
        assert sharding.tokens is not None
        self._counts.check_longest(self._lengths.source, sharding)
        if self._options.sizes.bucket_by is None:
            parts = self._plan_rows(source, epoch, sharding, start)
        else:
            parts = self._plan_windows(source, epoch, sharding, start)
        return TokenSteps(sharding.tokens, TokenPlan(start, parts, is_endless=source.is_endless))

    def _plan_rows(
        self, source: IndexedSource, epoch: int, sharding: Sharding, start: int
    ) -> Iterator[Part]:
        assert sharding.tokens is not None
        assert sharding.splits is not None
        most, rows, cuts = sharding.tokens // sharding.splits, _CHUNK_ROWS, [start]
        # Other rows might fit into the step before, and move the one whose weights they have.
        cuts += [phase.row for phase in source.phases if phase.row > start]
        rows = min(rows, _ENDLESS_ROWS) if source.is_endless else rows
        for begin, end in itertools.pairwise([*cuts, ENDLESS]):
            streams = self._open_lengths(source, epoch, sharding, begin, end)
            chunks = map(_align, self._read_tokens(streams, rows))
            for size in fill_steps(chunks, most, is_padded=self._counts.is_padded):
                yield (size,), None

    def _plan_windows(
        self, source: IndexedSource, epoch: int, sharding: Sharding, start: int
    ) -> Iterator[Part]:
        streams = self._open_lengths(source, epoch, sharding, start)
        assert sharding.tokens is not None
        most = sharding.tokens // len(streams)
        windows = self._read_tokens(streams, self._windows.count_rows(sharding))
        for number, parts in enumerate(windows):
            window = self._plan_window(parts, most, epoch, number)
            yield [window.sizes[i] for i in window.draw], window

    def _plan_window(self, parts: Sequence[pa.Array], most: int, epoch: int, number: int) -> Window:
        import pyarrow.compute as pc

        chunk = _align([part.take(pc.array_sort_indices(part)) for part in parts])
        sizes = list(fill_steps([chunk], most, is_padded=self._counts.is_padded))
        is_even = all(len(part) == len(parts[0]) for part in parts)
        return self._windows.draw(sizes, epoch, number, is_even=is_even)

    def _read_tokens(
        self, streams: Sequence[_core.DeviceStream], rows: int
    ) -> Iterator[list[pa.Array]]:
        """Return the tokens of each sequence, `rows` rows at a time; a last one may have none."""
        import pyarrow as pa

        cut = [map(self._counts.count, stream.rebatch(rows)) for stream in streams]
        parts = itertools.zip_longest(*cut, fillvalue=pa.array([], pa.int64()))
        return map(list, parts)

    def _open_lengths(
        self,
        source: IndexedSource,
        epoch: int,
        sharding: Sharding,
        start: int,
        stop: int = ENDLESS,
    ) -> list[_core.DeviceStream]:
        """Open the lengths of the rows of each sequence from `start` to `stop`."""
        splits, rows = sharding.splits, source.num_rows
        assert splits is not None
        ends = [len(locate_sequence(i, splits, rows)) for i in range(splits)]
        if self._options.drop_last:
            ends = [rows // splits] * splits
        sequences = self._lengths.open(source, epoch, splits)
        return [
            sequences.open([(i, Span(start, max(start, min(stop, end))))])[0]
            for i, end in enumerate(ends)
        ]


def _align(parts: Sequence[pa.Array]) -> list[pa.Array]:
    """Give the rows of all sequences one length: some have a row less than others."""
    import pyarrow as pa

    rows = max(map(len, parts))
    more = pa.array([0], pa.int64())
    return [part if len(part) == rows else pa.concat_arrays([part, more]) for part in parts]
