"""`TokenCounts`: how many tokens the rows of a source take from a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from arrowdl import _core
from arrowdl.loader._epoch.lengths import LENGTH, LengthsSource
from arrowdl.loader._epoch.sharding import Sharding
from arrowdl.loader._options.options import Options
from arrowdl.loader._sources.base import IndexedSource

if TYPE_CHECKING:
    import pyarrow as pa


class TokenCounts:
    """Counts the tokens of rows by their lengths."""

    def __init__(self, options: Options, column: str) -> None:
        self._options = options
        self._most = options.columns.find_max_length(column)
        self._multiple = options.columns.pad_to_multiple
        self.column = column
        self.is_padded = options.columns.may_pad(column)

    def describe(self) -> dict[str, Any]:
        """Return what decides on the counts, for states."""
        return {
            "tokens": self.column,
            "padded": self.is_padded,
            "max_length": self._most,
            "pad_to_multiple": None if self._multiple == 1 else self._multiple,
        }

    def count(self, rows: _core.DeviceArray) -> pa.Array:
        """Count the tokens that rows take: those of a padded batch as wide as the row.

        A row without tokens takes one, so that a budget bounds the number of rows, too.
        """
        import pyarrow as pa

        return self._widen(pa.array(rows.field(LENGTH)))

    def _widen(self, lengths: pa.Array) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        tokens = pc.max_element_wise(lengths.cast(pa.int64()), 1)
        if not self.is_padded:
            return tokens
        if self._most is not None:
            tokens = pc.min_element_wise(tokens, self._most)
        steps = pc.divide(pc.add(tokens, self._multiple - 1), self._multiple)
        return pc.multiply(steps, self._multiple)

    def check_longest(self, lengths: IndexedSource, sharding: Sharding) -> None:
        """Raise ValueError if a row alone is more than its sequence may give to a step."""
        import pyarrow as pa

        assert sharding.splits
        assert sharding.tokens
        row, length, source = _find_longest(lengths)
        taken = self._widen(pa.array([length], pa.int32()))[0].as_py()
        if taken * sharding.splits <= sharding.tokens:
            return
        options, ranks = self._options, sharding.world_size
        if sharding.tokens % (options.sizes.global_batch_tokens or options.sizes.batch_tokens or 1):
            raise ValueError(
                f"not a state of this Loader: its stages have steps of {sharding.tokens} tokens, "
                f"to which each of {sharding.splits} sequences may give "
                f"{sharding.tokens // sharding.splits}, and row {row} of {source} has {taken}"
            )
        needed = taken * sharding.splits
        if options.sizes.batch_tokens is not None:
            fits = f"batch_size=Tokens({-(-needed // ranks)})"
        else:
            fits = f"ranks=Ranks(global_batch_size=Tokens({needed}))"
        width = f", {taken} with padding," if taken != length else ""
        fewer = ", fewer splits," if sharding.splits > ranks else ""
        raise ValueError(
            f'row {row} of {source} has {length} tokens{width} in "{self.column}", and each of '
            f"the {sharding.splits} sequences may give {sharding.tokens // sharding.splits} to a "
            f"step ({options.sizes.name_plan()}, Ranks.splits={sharding.splits}): give {fits} or "
            f"more{fewer} or cut longer rows (ragged=Padded(max_length=...)), or leave them out "
            "(filter=)"
        )


def _find_longest(lengths: IndexedSource) -> tuple[int, int, str]:
    """Return the number of the longest row, its length, and the source that has it."""
    longest = []
    for name, member in lengths.list_members():
        row, length = cast("LengthsSource", member).find_longest()
        longest.append((row, length, f'"{name}"' if name else "the source"))
    return max(longest, key=lambda item: item[1])
