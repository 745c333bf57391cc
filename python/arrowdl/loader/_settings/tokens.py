"""`Tokens`: a budget of tokens in place of a number of rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from arrowdl.loader._checks import require_column, require_int
from arrowdl.loader._settings.value_object import value_object


@value_object
@dataclass(frozen=True, slots=True)
class Tokens:
    """A budget of tokens: a batch has as many rows as fit.

    For ``Loader(batch_size=Tokens(4096))``, the tokens of a batch on each rank, and for
    ``Ranks(global_batch_size=Tokens(65536))``, those of a step on all ranks together. All ranks
    have the same number of batches, and each batch has the same number of rows of each sequence of
    `Ranks.splits` (by default one sequence for each rank). If the column is padded, its padding
    counts too. Streams have no such batches, since their lengths are not known ahead.

    Parameters
    ----------
    number : int
        The most tokens.
    column : str, optional
        The column that is counted: the items of lists, the tokens of text with `Tokenize`, the
        bytes of other strings, or the values of integers. By default the column of `Buckets`, or
        the only column of lists. It is one of `columns`, and is read once before the first epoch,
        which for integers in Parquet is quick.

    Raises
    ------
    TypeError, ValueError
        `number` is not a positive integer, or `column` is not a name.
    """

    number: int
    _: KW_ONLY
    column: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", require_int("Tokens.number", self.number, 1, 2**40))
        if self.column is not None:
            require_column("Tokens.column", self.column)
