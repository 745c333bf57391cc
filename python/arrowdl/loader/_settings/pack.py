"""`Pack`: how a `Loader` packs sequences of tokens into blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal

from arrowdl.loader._checks import require_int, require_names

Strategy = Literal["concat", "best_fit"]
Long = Literal["split", "truncate", "drop", "raise"]
_DECIDING = ("column", "length", "strategy", "buffer_size", "long")


@dataclass(frozen=True, slots=True)
class Pack:
    """Pack the rows into blocks of `length` tokens, for ``Loader(batching=Pack("ids", 4096))``.

    Blocks take the place of rows in everything else: a batch has `batch_size` blocks, and ranks,
    workers, `Ranks.splits` and states count them. Which blocks there are depends on the rows and
    their order alone (with `splits`, on the smaller shuffle buffer), so that every number of ranks
    trains on the same. The first epoch reads the lengths of all rows once, or a column of integers
    that has them (`lengths`). Of a stream, every rank packs all rows. The arguments are those of
    `DeviceStream.pack`; their values are checked when a Loader is made, or, for streams, when it is
    iterated.

    Parameters
    ----------
    column : str
        The lists of tokens.
    length : int
        Tokens of a block.
    strategy : {"concat", "best_fit"}
        Whether sequences follow one another and are cut at the ends of blocks, or are placed whole.
    buffer_size : int
        Blocks of a window of ``"best_fit"``.
    long : {"split", "truncate", "drop", "raise"}
        What happens to a sequence of more than `length` tokens.
    pad_value : int, float, bool, or mapping of str to these
        The padding of the packed columns, or of each of them by name.
    aligned : sequence of str, optional
        The columns with an item for each token. By default all lists of items of a fixed width.
    lengths : str, optional
        A column of integers with the number of tokens of each row. It is read before the first
        epoch in place of the lists, except of a stream, whose rows are read once. A row that has
        another number of tokens is an error.
    add : sequence of str
        Of ``"position_ids"``, ``"segment_ids"`` and ``"cu_seqlens"``.

    Raises
    ------
    TypeError, ValueError
        An argument has an unsupported type; or `add` has ``"resume_from"``, whose place the states
        of a Loader take.
    """

    column: str
    length: int
    strategy: Strategy = "concat"
    _: KW_ONLY
    buffer_size: int = 256
    long: Long = "split"
    pad_value: float | Mapping[str, float] = 0
    aligned: Sequence[str] | None = None
    lengths: str | None = None
    add: Sequence[str] = ("position_ids", "segment_ids", "cu_seqlens")

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise TypeError(f"Pack.column={self.column!r}: give the name of a column")
        for name in ("length", "buffer_size"):  # states have them: plain ints
            object.__setattr__(self, name, require_int(f"Pack.{name}", getattr(self, name)))
        if not isinstance(self.lengths, str | None):
            raise TypeError(f"Pack.lengths={self.lengths!r}: give the name of a column of integers")
        if self.aligned is not None:
            require_names("Pack.aligned", self.aligned)
        require_names("Pack.add", self.add)
        if "resume_from" in self.add:
            raise ValueError(
                'Pack.add has "resume_from": a Loader resumes by its own state, see '
                "Loader.state_dict; leave it out"
            )

    def list_arguments(self) -> dict[str, Any]:
        """Return the arguments of `DeviceStream.pack`."""
        return {own.name: getattr(self, own.name) for own in fields(self) if own.name != "lengths"}

    def list_deciding(self) -> dict[str, Any]:
        """Return the arguments that decide which tokens a block has."""
        return {name: getattr(self, name) for name in _DECIDING}
