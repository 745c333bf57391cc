"""`Shuffle`: the buffer in which rows are permuted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from arrowdl.loader._checks import require_rows
from arrowdl.loader._settings.value_object import value_object


@value_object
@dataclass(frozen=True, slots=True)
class Shuffle:
    """Each epoch permutes the rows, for ``Loader(shuffle=Shuffle(100_000))``.

    ``shuffle=True`` is ``Shuffle()``.

    Parameters
    ----------
    buffer_size : int or "auto"
        How many rows the buffer holds in memory. If it can hold all rows of the source, each epoch
        permutes all of them. It holds all, whatever the number, of a few row groups that fit into
        256 MiB. Each rank, worker of a ``DataLoader`` and source of a mixture holds its own buffer,
        and so up to 256 MiB. `Ranks.splits` divides it. "auto": as many rows as fit into
        some 256 MiB, by the footers of the files, the size of the table, or the first rows of a
        stream; if these are not all rows, what is read side by side counts too. This number depends
        neither on the machine nor on the rank. A loaded state that was saved with another number of
        rows sets the buffer to that number.

    Raises
    ------
    ValueError
        `buffer_size` is neither "auto" nor a positive integer.
    """

    buffer_size: int | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        size = require_rows("Shuffle.buffer_size", self.buffer_size)
        object.__setattr__(self, "buffer_size", size)
