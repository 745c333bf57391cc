"""`StepPlan`: the steps of a Loader with a budget of tokens, or with rows sorted by length."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from arrowdl.loader._epoch.buckets import BucketedRows
from arrowdl.loader._epoch.documents import find_faults
from arrowdl.loader._epoch.lengths import NAME_IT, describe_lost, list_lengths, open_lengths
from arrowdl.loader._epoch.plan_tokens import RowLengths, TokenPlanner
from arrowdl.loader._epoch.read import Order
from arrowdl.loader._epoch.sequences import EpochSequences, OpenSequences
from arrowdl.loader._epoch.sharding import Sharding, Stage
from arrowdl.loader._epoch.steps import Steps, TokenSteps, Window, find_even_steps
from arrowdl.loader._epoch.token_counts import TokenCounts
from arrowdl.loader._epoch.windows import Windows
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._mixture.schedule import Phase
from arrowdl.loader._options.options import Options
from arrowdl.loader._skip.stand_ins import Faults
from arrowdl.loader._sources.base import IndexedSource


class StepPlan:
    """Which rows each step has, if that depends on the lengths of the rows.

    The lengths of all rows are known before an epoch begins: so all ranks and workers find the same
    steps alone, in each epoch's order, and a position is a number of steps.

    Raises ValueError if the source lacks the column, or has several that may be meant.
    """

    def __init__(
        self,
        source: IndexedSource,
        order: Order,
        options: Options,  # with `is_planned`
        open: OpenSequences,  # opens the sequences of an epoch, of the source or of its lengths
    ) -> None:
        self._options = options
        column = options.sizes.bucket_by or options.sizes.token_column or _find_ragged(source)
        names = source.column_names
        if names is not None and column not in names:
            raise ValueError(
                f'{options.sizes.name_plan()}: "{column}" is not one of the columns that are read, '
                f"{list(names)}: {NAME_IT}"
            )
        self._counts = TokenCounts(options, column)
        self._windows = Windows(options, order)
        # Rows that are skipped have the place that their lengths say, in every epoch.
        self._lengths: RowLengths | None = None
        self._planner: TokenPlanner | None = None
        if options.sizes.counts_tokens or options.skips:
            row_lengths = open_lengths(source, column, skips=options.skips)
            self._lengths = RowLengths(row_lengths, open)
            self._planner = TokenPlanner(options, self._lengths, self._counts, self._windows)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_planner": copy(self._planner)}  # without the steps it keeps

    def prepare(self) -> None:
        """Read the lengths that each worker process would read again."""
        if self._lengths is not None:
            self._lengths.source.prepare()

    def describe(self, sharding: Sharding) -> dict[str, Any]:
        """Return what decides on the steps, besides the order of the rows, for states."""
        options = self._options
        about: dict[str, Any] = {}
        if options.sizes.bucket_by is not None:
            size = sharding.tokens or sharding.global_batch_size
            about |= {
                "bucket_by": options.sizes.bucket_by,
                "drop_last": options.drop_last,
                "window": self._windows.count_rows(sharding),
                "global_batch_tokens" if sharding.tokens else "global_batch_size": size,
            }
        if options.sizes.counts_tokens:
            about |= self._counts.describe()
        row_lengths = self._lengths if options.skips else None
        if row_lengths is not None and (lost := describe_lost(row_lengths.source)):
            about["unread"] = lost
        return about

    def list_faults(self) -> list[Faults]:
        """Return what is known of each source by the lengths of its rows."""
        sources = [] if self._lengths is None else list_lengths(self._lengths.source)
        return [find_faults(source) for source in sources]

    def find_steps(
        self, source: IndexedSource, epoch: int, stages: Sequence[Stage], sharding: Sharding
    ) -> Steps:
        """Return the steps that are left of an epoch, after `stages` that were read.

        Raises ValueError if a row is longer than the budget, or more was read than there is.
        """
        if sharding.tokens is None:
            return find_even_steps(source.num_rows, stages, sharding)
        return self._find_rest(source, epoch, stages, sharding)

    def find_phases(
        self,
        source: MixedSource,
        saved: Sequence[Phase],  # of the state that was loaded; none for a new epoch
        epoch: int,
        stages: Sequence[Stage],
        sharding: Sharding,
    ) -> list[Phase]:
        """Return the weights of an epoch of a mixture with a budget of tokens.

        A step begins at the row where the steps before it end, which depend on the weights before
        it alone. Rows that are sorted keep their weights up to the end of their window.
        """
        schedule = source.schedule
        done = sum(stage.batches for stage in stages)
        phases = list(saved) or [Phase(0, schedule[0][1])]
        present = [entry for entry in schedule if entry[0] <= done][-1]
        to_come = [entry for entry in schedule if entry[0] > done]
        for step, weights in ([(done, present[1])] if saved else []) + to_come:
            if not to_come and weights == phases[-1].weights:
                break  # nothing to find
            steps = self._find_rest(
                source.with_order(source.order.without_end(phases)), epoch, stages, sharding
            )
            end = source.order.find_length(phases)
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
        assert self._planner is not None
        for stage in [*stages, Stage(sharding, 0)]:
            tokens = stage.sharding.tokens
            assert tokens is not None
            if left is None or left.tokens != tokens:
                start = 0 if left is None else left.find_row(0)
                token_sharding = replace(sharding, tokens=tokens)
                left = self._planner.find(source, epoch, token_sharding, start)
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
        if self._options.sizes.bucket_by is None:
            return sequences
        assert sharding.splits is not None
        splits, size, rows = sharding.splits, self._windows.count_rows(sharding), source.num_rows
        row_lengths = None
        if self._options.skips:
            assert self._lengths is not None
            row_lengths = self._lengths.open(source, epoch, splits)

        def find_window(number: int) -> Window:
            if isinstance(steps, TokenSteps):
                return steps.find_window(number)
            left = min(size, rows // splits - number * size)  # of the shortest sequence
            batch = sharding.global_batch_size // splits
            return self._windows.draw([batch] * (left // batch), epoch, number, is_even=True)

        return BucketedRows(
            sequences, self._counts.column, rows, splits, size, find_window, row_lengths
        )

    def find_window_end(self, rows: int, sharding: Sharding) -> int:
        """Return the end of the window in which row `rows` of each sequence is, if not its first.

        The rows up to there are in an order that depends on all of them.
        """
        return self._windows.find_end(rows, sharding)


def _find_ragged(source: IndexedSource) -> str:
    """Return the only column of lists."""
    import pyarrow as pa

    types = pa.types
    checks = (types.is_list, types.is_large_list, types.is_list_view, types.is_large_list_view)
    schema = pa.schema(source.read([]).schema)
    columns = [field.name for field in schema if any(check(field.type) for check in checks)]
    if len(columns) == 1:
        return str(columns[0])
    raise ValueError(
        f"a budget of tokens counts the items of a column of lists, and the source has {columns}: "
        "name one as Tokens(column=...), which may also be a column of integers"
    )
