"""`Buckets`: batches of rows with similar lengths."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from arrowdl.loader._checks import require_column, require_rows
from arrowdl.loader._settings.value_object import value_object


@value_object
@dataclass(frozen=True, slots=True)
class Buckets:
    """Batches of rows with similar lengths, for ``Loader(batching=Buckets("tokens"))``.

    The rows of each window are sorted by length and cut into batches. With `shuffle`, the order of
    these batches is drawn from the seed, so that long rows are in the same steps on all ranks.

    Parameters
    ----------
    column : str
        A column of lists, strings or integers, one of `columns`. With `Tokenize`, text has the
        length of its tokens.
    window : int or "auto"
        How many rows a window has; they are held in memory. With `shuffle`, the window is the
        shuffle buffer: give its size here or to `Shuffle`. "auto": the size of the shuffle buffer,
        or as many rows as fit into some 256 MiB, up to 65,536.

    Raises
    ------
    TypeError, ValueError
        `column` is not a name, or `window` is neither "auto" nor a positive integer.
    """

    column: str
    _: KW_ONLY
    window: int | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        require_column("Buckets.column", self.column)
        object.__setattr__(self, "window", require_rows("Buckets.window", self.window))
