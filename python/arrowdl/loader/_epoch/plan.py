"""`Plan`: the steps of a Loader with a budget of tokens, or with rows sorted by length."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from arrowdl import _core
from arrowdl.loader._epoch.buckets import Buckets
from arrowdl.loader._epoch.documents import find_faults
from arrowdl.loader._epoch.lengths import (
    LENGTH,
    LengthsSource,
    describe_lost,
    list_lengths,
    open_lengths,
)
from arrowdl.loader._epoch.read import Order
from arrowdl.loader._epoch.sequences import EpochSequences, OpenSequences, locate_sequence
from arrowdl.loader._epoch.sharding import Sharding, Span, Stage
from arrowdl.loader._epoch.steps import (
    Part,
    Steps,
    TokenPlan,
    TokenSteps,
    Window,
    fill_steps,
    find_even_steps,
)
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._mixture.shares import Phase
from arrowdl.loader._options import Options
from arrowdl.loader._skip.stand_ins import Faults
from arrowdl.loader._sources.base import ENDLESS, IndexedSource

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK_ROWS = 65_536  # of each sequence, which are planned together
_ENDLESS_ROWS = 1_024  # the same, if only the first steps may be asked for
_MOST_KEPT = 4  # plans, of epochs and of parts of an epoch that had another budget


class Plan:
    """Which rows each step has, if that depends on the lengths of the rows.

    The lengths of all rows are known before an epoch begins: so all ranks and workers find the same
    steps alone, in each epoch's order, and a position is a number of steps.

    Parameters
    ----------
    source : IndexedSource
    order : Order
    options : Options
        With `is_planned`.
    open : callable
        Opens the sequences of an epoch, of the source or of its lengths.

    Raises
    ------
    ValueError
        The source lacks the column, or has several that may be meant.
    """

    def __init__(
        self, source: IndexedSource, order: Order, options: Options, open: OpenSequences
    ) -> None:
        self._open = open
        self._order = order
        self._options = options
        self._column = options.bucket_by or options.token_column or _find_ragged(source)
        names = source.column_names
        if names is not None and self._column not in names:
            raise ValueError(
                f'{options.name_plan()}: "{self._column}" is not one of the columns that are read, '
                f"{list(names)}"
            )
        self._is_padded = options.columns.may_pad(self._column)
        # Rows that are skipped have the place that their lengths say, in every epoch.
        self._lengths: IndexedSource | None = None
        if options.counts_tokens or options.skips:
            self._lengths = open_lengths(source, self._column, skips=options.skips)
        self._kept: dict[tuple[Any, ...], TokenSteps] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}}

    def prepare(self) -> None:
        """Read the lengths that each worker process would read again."""
        if self._lengths is not None:
            self._lengths.prepare()

    def describe(self, sharding: Sharding) -> dict[str, Any]:
        """Return what decides on the steps, besides the order of the rows, for states."""
        options = self._options
        about: dict[str, Any] = {}
        if options.bucket_by is not None:
            size = sharding.tokens or sharding.global_batch_size
            about |= {
                "bucket_by": options.bucket_by,
                "drop_last": options.drop_last,
                "window": self._find_window_rows(sharding),
                "global_batch_tokens" if sharding.tokens else "global_batch_size": size,
            }
        if options.counts_tokens:
            about |= {
                "tokens": self._column,
                "padded": self._is_padded,
                "max_length": options.columns.find_max_length(self._column),
                "pad_to_multiple": options.pad_to_multiple,
            }
        known = self._lengths if options.skips else None
        if known is not None and (lost := describe_lost(known)):
            about["unread"] = lost
        return about

    def list_faults(self) -> list[Faults]:
        """Return what is known of each source by the lengths of its rows."""
        found = [] if self._lengths is None else list_lengths(self._lengths)
        return [find_faults(own) for own in found]

    def find_steps(
        self, source: IndexedSource, epoch: int, stages: Sequence[Stage], sharding: Sharding
    ) -> Steps:
        """Return the steps that are left of an epoch.

        Parameters
        ----------
        source : IndexedSource
            That of this plan, or of a mixture with the weights of the epoch.
        epoch : int
        stages : sequence of Stage
            What was read.
        sharding : Sharding
            Of what is left.

        Raises
        ------
        ValueError
            A row is longer than the budget, or more was read than there is.
        """
        if sharding.tokens is None:
            return find_even_steps(source.num_rows, stages, sharding)
        return self._find_rest(source, epoch, stages, sharding)

    def find_phases(
        self,
        source: MixedSource,
        saved: Sequence[Phase],
        epoch: int,
        stages: Sequence[Stage],
        sharding: Sharding,
    ) -> list[Phase]:
        """Return the weights of an epoch of a mixture with a budget of tokens.

        A step begins at the row where the steps before it end, which depend on the weights before
        it alone. Rows that are sorted keep their weights up to the end of their window.

        Parameters
        ----------
        source : MixedSource
        saved : sequence of Phase
            Of the state that was loaded; none for a new epoch.
        epoch : int
        stages : sequence of Stage
            What was read.
        sharding : Sharding
            Of what is left.
        """
        schedule = source.schedule
        done = sum(stage.batches for stage in stages)
        phases = list(saved) or [Phase(0, schedule[0][1])]
        present = [own for own in schedule if own[0] <= done][-1]
        to_come = [own for own in schedule if own[0] > done]
        for step, weights in ([(done, present[1])] if saved else []) + to_come:
            if not to_come and weights == phases[-1].weights:
                break  # nothing to find
            steps = self._find_rest(source.go_on(phases), epoch, stages, sharding)
            end = source.find_length(phases)
            row = self.find_window_end(steps.find_row(step - done, end), sharding)
            if row >= end:
                break
            phases = [phase for phase in phases if phase.row < row] or phases[:1]
            if row == 0:
                phases = [Phase(0, weights)]
            elif phases[-1].weights != weights:
                phases.append(Phase(row, weights))
        return phases

    def _find_rest(
        self, source: IndexedSource, epoch: int, stages: Sequence[Stage], sharding: Sharding
    ) -> TokenSteps:
        left: TokenSteps | None = None
        for stage in [*stages, Stage(sharding, 0)]:
            tokens = stage.sharding.tokens
            assert tokens is not None
            if left is None or left.tokens != tokens:
                start = 0 if left is None else left.find_row(0)
                own = replace(sharding, tokens=tokens)
                left = self._find_token_steps(source, epoch, own, start)
            left = left.skip(stage.batches)
        assert left is not None
        return left

    def sort(
        self,
        sequences: EpochSequences,
        source: IndexedSource,
        epoch: int,
        steps: Steps,
        sharding: Sharding,
    ) -> EpochSequences:
        """Return the sequences with their rows in the order of `steps`."""
        if self._options.bucket_by is None:
            return sequences
        assert sharding.splits is not None
        splits, size, rows = sharding.splits, self._find_window_rows(sharding), source.num_rows
        known = self._open_sequences(source, epoch, splits) if self._options.skips else None

        def find_window(number: int) -> Window:
            if isinstance(steps, TokenSteps):
                return steps.find_window(number)
            left = min(size, rows // splits - number * size)  # of the shortest sequence
            batch = sharding.global_batch_size // splits
            return self._make_window([batch] * (left // batch), epoch, number, is_even=True)

        return Buckets(sequences, self._column, rows, splits, size, find_window, known)

    def find_window_end(self, rows: int, sharding: Sharding) -> int:
        """Return the end of the window in which row `rows` of each sequence is, if not its first.

        The rows up to there are in an order that depends on all of them.
        """
        if self._options.bucket_by is None:
            return rows
        size = self._find_window_rows(sharding)
        return -(-rows // size) * size

    def _find_window_rows(self, sharding: Sharding) -> int:
        """Return the rows of each sequence that are sorted together, a number of whole batches."""
        assert sharding.splits is not None
        whole = self._options.bucket_rows or self._options.buffer_rows
        rows = -(-whole // sharding.splits)
        if sharding.tokens is not None:
            return rows
        batch = sharding.global_batch_size // sharding.splits
        return max(1, rows // batch) * batch

    def _make_window(
        self, sizes: Sequence[int], epoch: int, number: int, *, is_even: bool
    ) -> Window:
        draw: list[int] = list(range(len(sizes)))
        if self._options.shuffle:
            moved = len(sizes) - (not is_even)
            seed = self._order.make_seed(epoch, f"buckets {number}")
            draw[:moved] = _core.permute(moved, seed)
        return Window(sizes, draw)

    def _find_token_steps(
        self, source: IndexedSource, epoch: int, sharding: Sharding, start: int
    ) -> TokenSteps:
        assert sharding.splits is not None
        assert sharding.tokens is not None
        order = (tuple(source.phases), source.is_endless)
        key = (epoch, sharding.splits, sharding.tokens, start, order)
        made = self._kept.get(key)
        if made is None or not made.is_usable:
            made = self._plan_steps(source, epoch, sharding, start)
            while len(self._kept) >= _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[key] = made
        return made

    def _plan_steps(
        self, source: IndexedSource, epoch: int, sharding: Sharding, start: int
    ) -> TokenSteps:
        assert sharding.tokens is not None
        self._check_longest(sharding)
        if self._options.bucket_by is None:
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
            for size in fill_steps(chunks, most, is_padded=self._is_padded):
                yield (size,), None

    def _plan_windows(
        self, source: IndexedSource, epoch: int, sharding: Sharding, start: int
    ) -> Iterator[Part]:
        streams = self._open_lengths(source, epoch, sharding, start)
        assert sharding.tokens is not None
        most = sharding.tokens // len(streams)
        windows = self._read_tokens(streams, self._find_window_rows(sharding))
        for number, parts in enumerate(windows):
            window = self._plan_window(parts, most, epoch, number)
            yield [window.sizes[i] for i in window.draw], window

    def _plan_window(self, parts: Sequence[pa.Array], most: int, epoch: int, number: int) -> Window:
        import pyarrow.compute as pc

        chunk = _align([part.take(pc.array_sort_indices(part)) for part in parts])
        sizes = list(fill_steps([chunk], most, is_padded=self._is_padded))
        is_even = all(len(part) == len(parts[0]) for part in parts)
        return self._make_window(sizes, epoch, number, is_even=is_even)

    def _read_tokens(
        self, streams: Sequence[_core.DeviceStream], rows: int
    ) -> Iterator[list[pa.Array]]:
        """Return the tokens of each sequence, `rows` rows at a time; a last one may have none."""
        import pyarrow as pa

        cut = [map(self._count_tokens, stream.rebatch(rows)) for stream in streams]
        parts = itertools.zip_longest(*cut, fillvalue=pa.array([], pa.int64()))
        return map(list, parts)

    def _open_sequences(self, source: IndexedSource, epoch: int, splits: int) -> EpochSequences:
        """Return the lengths of the rows of `source` in the order of an epoch."""
        lengths = self._lengths
        assert lengths is not None
        return self._open(lengths.with_turns_of(source), epoch, splits, shares_units=False)

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
        sequences = self._open_sequences(source, epoch, splits)
        return [
            sequences.open([(i, Span(start, max(start, min(stop, end))))])[0]
            for i, end in enumerate(ends)
        ]

    def _count_tokens(self, rows: _core.DeviceArray) -> pa.Array:
        """Count the tokens that rows take: those of a padded batch as wide as the row.

        A row without tokens takes one, so that a budget bounds the number of rows, too.
        """
        import pyarrow as pa

        return self._widen(pa.array(rows.field(LENGTH)))

    def _widen(self, lengths: pa.Array) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        tokens = pc.max_element_wise(lengths.cast(pa.int64()), 1)
        if not self._is_padded:
            return tokens
        most = self._options.columns.find_max_length(self._column)
        if most is not None:
            tokens = pc.min_element_wise(tokens, most)
        multiple = self._options.pad_to_multiple or 1
        return pc.multiply(pc.divide(pc.add(tokens, multiple - 1), multiple), multiple)

    def _check_longest(self, sharding: Sharding) -> None:
        """Raise ValueError if a row alone is more than its sequence may give to a step."""
        import pyarrow as pa

        assert self._lengths is not None
        assert sharding.splits
        assert sharding.tokens
        row, length, source = _find_longest(self._lengths)
        taken = self._widen(pa.array([length], pa.int32()))[0].as_py()
        if taken * sharding.splits <= sharding.tokens:
            return
        options, ranks = self._options, sharding.world_size
        needed = taken * sharding.splits
        if options.batch_tokens is not None:
            fits = f"batch_tokens={-(-needed // ranks)}"
        else:
            fits = f"global_batch_tokens={needed}"
        width = f", {taken} with padding," if taken != length else ""
        fewer = ", fewer splits," if sharding.splits > ranks else ""
        raise ValueError(
            f'row {row} of {source} has {length} tokens{width} in "{self._column}", and each of '
            f"the {sharding.splits} sequences may give {sharding.tokens // sharding.splits} to a "
            f"step ({options.name_plan()}, splits={sharding.splits}): give {fits} or more{fewer} "
            'or cut longer rows (ragged="padded", max_length=), or leave them out (filter=)'
        )


def _find_longest(lengths: IndexedSource) -> tuple[int, int, str]:
    """Return the number of the longest row, its length, and the source that has it."""
    found = []
    for name, own in lengths.list_members():
        row, length = cast("LengthsSource", own).find_longest()
        found.append((row, length, f'"{name}"' if name else "the source"))
    return max(found, key=lambda item: item[1])


def _align(parts: Sequence[pa.Array]) -> list[pa.Array]:
    """Give the rows of all sequences one length: some have a row less than others."""
    import pyarrow as pa

    rows = max(map(len, parts))
    more = pa.array([0], pa.int64())
    return [part if len(part) == rows else pa.concat_arrays([part, more]) for part in parts]


def _find_ragged(source: IndexedSource) -> str:
    """Return the only column of lists."""
    import pyarrow as pa

    types = pa.types
    checks = (types.is_list, types.is_large_list, types.is_list_view, types.is_large_list_view)
    schema = pa.schema(source.read([]).schema)
    found = [field.name for field in schema if any(check(field.type) for check in checks)]
    if len(found) == 1:
        return str(found[0])
    raise ValueError(
        f"a budget of tokens counts the items of a column of lists, and the source has {found}: "
        "name one as token_column=, which may also be a column of integers"
    )
