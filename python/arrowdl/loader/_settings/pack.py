"""`Pack`: how a `Loader` packs sequences of tokens into blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, get_args

from arrowdl.loader._checks import (
    is_number,
    require_choice,
    require_column,
    require_int,
    require_names,
)
from arrowdl.loader._settings.value_object import value_object

Strategy = Literal["concat", "best_fit"]
Long = Literal["split", "truncate", "drop", "raise"]
_MOST_LENGTH = 2**30  # as in cpp/src/stream/pack.cpp
_MOST_ITEMS = 2**32  # in a window of "best_fit"
_ADDED = ("position_ids", "segment_ids", "cu_seqlens")
_DECIDING = ("column", "length", "strategy", "buffer_size", "long")


@value_object
@dataclass(frozen=True, slots=True)
class Pack:
    """Pack the rows into blocks of `length` tokens, for ``Loader(batching=Pack("ids", 4096))``.

    Blocks take the place of rows in everything else: a batch has `batch_size` blocks, and ranks,
    workers, `Ranks.splits` and states count blocks. The blocks depend on the rows and their order
    alone (with `splits`, also on the smaller shuffle buffer), so that any number of ranks trains on
    the same blocks. The first epoch reads the lengths of all rows once, or a column of integers
    that has them (`lengths`). For a stream, every rank packs all rows. The arguments are those of
    `DeviceStream.pack`. Whether the columns suit them is checked when a Loader is made, or, for
    streams, when it is iterated.

    Parameters
    ----------
    column : str
        The column with the lists of tokens, or with text for which `transform_arrow` has a
        `Tokenize`.
    length : int
        Tokens of a block.
    strategy : {"concat", "best_fit"}
        "concat": sequences follow one another, and are cut at the ends of blocks. "best_fit": they
        are placed whole.
    buffer_size : int
        How many blocks a window of ``"best_fit"`` has.
    long : {"split", "truncate", "drop", "raise"}
        What happens to a sequence of more than `length` tokens.
    pad_value : int, float, bool, or mapping of str to these
        The padding of the packed columns, or of each of them by name.
    aligned : sequence of str, optional
        The columns with an item for each token. By default all lists with items of a fixed width.
    lengths : str, optional
        A column of integers, one of `columns`, with the number of tokens of each row. It is read
        before the first epoch in place of the lists, except for a stream, whose rows are read once.
        A row with another number of tokens is an error.
    add : sequence of str
        The columns to add: any of ``"position_ids"``, ``"segment_ids"`` and ``"cu_seqlens"``.

    Raises
    ------
    TypeError, ValueError
        An argument has an unsupported type or value; or `add` has ``"resume_from"``, which a
        Loader replaces by its own states.
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
    add: Sequence[str] = _ADDED

    def __post_init__(self) -> None:
        require_column("Pack.column", self.column)
        length = require_int("Pack.length", self.length, 1, _MOST_LENGTH)
        require_choice("Pack.strategy", self.strategy, get_args(Strategy))
        most = _MOST_ITEMS // length if self.strategy == "best_fit" else 2**63 - 1
        blocks = require_int("Pack.buffer_size", self.buffer_size, 1, most)
        for name, number in (("length", length), ("buffer_size", blocks)):
            object.__setattr__(self, name, number)  # states have them: plain ints
        require_choice("Pack.long", self.long, get_args(Long))
        _check_padding(self.pad_value)
        if self.lengths is not None:
            require_column("Pack.lengths", self.lengths)
        if self.aligned is not None:
            require_names("Pack.aligned", self.aligned)
        for name in require_names("Pack.add", self.add):
            require_choice("Pack.add", name, (*_ADDED, "resume_from"))
        if "resume_from" in self.add:
            raise ValueError(
                'Pack.add has "resume_from": a Loader resumes by its own state, see '
                "Loader.state_dict; leave it out"
            )

    def list_arguments(self) -> dict[str, Any]:
        """Return the arguments of `DeviceStream.pack`."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "lengths"
        }

    def list_deciding(self) -> dict[str, Any]:
        """Return the arguments that decide which tokens a block has."""
        return {name: getattr(self, name) for name in _DECIDING}


def _check_padding(value: Any) -> None:
    """Raise TypeError unless `value` is a number, or a mapping of names to numbers."""
    values = value.values() if isinstance(value, Mapping) else (value,)
    names = value if isinstance(value, Mapping) else ()
    is_named = all(isinstance(name, str) for name in names)
    if not is_named or not all(map(is_number, values)):
        raise TypeError(
            f"Pack.pad_value={value!r}: give an int, a float or a bool, or a mapping from column "
            "names to these"
        )
