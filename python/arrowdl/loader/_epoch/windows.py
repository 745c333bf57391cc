"""`Windows`: the rows of each sequence that are sorted by length together."""

from __future__ import annotations

from collections.abc import Sequence

from arrowdl import _core
from arrowdl.loader._epoch.read import Order
from arrowdl.loader._epoch.sharding import Sharding
from arrowdl.loader._epoch.steps import Window
from arrowdl.loader._options.options import Options


class Windows:
    """Finds windows, and draws the order of their batches."""

    def __init__(self, options: Options, order: Order) -> None:
        self._options = options
        self._order = order

    def find_end(self, rows: int, sharding: Sharding) -> int:
        """Return the end of the window in which row `rows` of each sequence is, if not its first.

        The rows up to there are in an order that depends on all of them.
        """
        if self._options.sizes.bucket_by is None:
            return rows
        size = self.count_rows(sharding)
        return -(-rows // size) * size

    def count_rows(self, sharding: Sharding) -> int:
        """Return the rows of each sequence that are sorted together, a number of whole batches."""
        assert sharding.splits is not None
        whole = self._options.bucket_rows or self._options.buffer_rows
        rows = -(-whole // sharding.splits)
        if sharding.tokens is not None:
            return rows
        batch = sharding.global_batch_size // sharding.splits
        return max(1, rows // batch) * batch

    def draw(self, sizes: Sequence[int], epoch: int, number: int, *, is_even: bool) -> Window:
        """Return a window of batches of `sizes`; the last one stays there if it is not whole."""
        draw: list[int] = list(range(len(sizes)))
        if self._options.shuffle:
            moved = len(sizes) - (not is_even)
            seed = self._order.make_seed(epoch, f"buckets {number}")
            draw[:moved] = _core.permute(moved, seed)
        return Window(sizes, draw)
