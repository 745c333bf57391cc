"""`Ranks`: the processes that share the rows, and what all of them read in a step."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from arrowdl.loader._checks import require_int
from arrowdl.loader._settings.tokens import Tokens
from arrowdl.loader._settings.value_object import value_object


@value_object
@dataclass(frozen=True, slots=True)
class Ranks:
    """The processes that share the rows, for ``Loader(ranks=Ranks(global_batch_size=512))``.

    Parameters
    ----------
    rank, world_size : int, optional
        The index of this process, and the number of processes that share the rows. By default they
        come from ``torch.distributed`` if it is initialised, then from the variables ``RANK`` and
        ``WORLD_SIZE``, then from JAX's process index; otherwise they are 0 and 1.
    global_batch_size : int or Tokens, optional
        The rows, or tokens, of a step on all ranks together, in place of the `batch_size` of each
        rank. Rows must be a multiple of the number of ranks. With `splits`, steps are the same on
        any number of ranks.
    splits : int, "auto" or None
        Divides the rows of an epoch into this number of sequences. Each global batch takes equal
        shares of them, so that each step has the same rows, in the same order, on any number of
        ranks that divides `splits`, and with any number of workers. It has to divide the global
        batch. A rank reads ``splits / world_size`` sequences side by side, and holds a row group of
        each. The sequences share the shuffle buffer. With None, the rows of a step depend on the
        number of ranks. "auto" chooses the divisor of `global_batch_size`, up to 8, that has the
        most divisors itself (8 for 96, 6 for 36, 4 for 20, 2 for 10), or None if there is no
        `global_batch_size`.

    Raises
    ------
    TypeError, ValueError
        A value is not supported, only one of `rank` and `world_size` is given, or `rank` is not
        less than `world_size`.
    """

    rank: int | None = None
    world_size: int | None = None
    _: KW_ONLY
    global_batch_size: int | Tokens | None = None
    splits: int | Literal["auto"] | None = "auto"

    def __post_init__(self) -> None:
        self._check_rank()
        size = self.global_batch_size
        if size is not None and not isinstance(size, Tokens):
            size = require_int("Ranks.global_batch_size", size, 1, 2**40)
            object.__setattr__(self, "global_batch_size", size)
        if isinstance(self.splits, str) and self.splits != "auto":
            raise ValueError(
                f'Ranks.splits={self.splits!r}: expected a number of sequences, "auto" or None'
            )
        if self.splits not in (None, "auto"):
            splits = require_int("Ranks.splits", self.splits, 1, 2**32)
            object.__setattr__(self, "splits", splits)

    def _check_rank(self) -> None:
        """Raise ValueError unless `rank` is one of `world_size`, or both are left out."""
        if (self.rank is None) != (self.world_size is None):
            raise ValueError(
                f"Ranks(rank={self.rank!r}, world_size={self.world_size!r}): they belong together, "
                "give both or neither"
            )
        if self.rank is None:
            return
        world_size = require_int("Ranks.world_size", self.world_size, 1)
        rank = require_int("Ranks.rank", self.rank, 0)
        if rank >= world_size:
            raise ValueError(
                f"Ranks(rank={rank}, world_size={world_size}): ranks count from 0 to "
                f"{world_size - 1}"
            )
        object.__setattr__(self, "world_size", world_size)
        object.__setattr__(self, "rank", rank)
