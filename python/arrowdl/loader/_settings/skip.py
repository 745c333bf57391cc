"""`Skip`: rows that cannot be read are left out, up to a number of them."""

from __future__ import annotations

from dataclasses import dataclass

from arrowdl.loader._checks import require_int
from arrowdl.loader._settings.value_object import value_object


@value_object
@dataclass(frozen=True, slots=True)
class Skip:
    """Leave out what cannot be read, and go on, for ``Loader(on_error=Skip(1_000))``.

    ``on_error="skip"`` is ``Skip()``. These are left out: a file whose footer cannot be read, with
    a warning when the Loader is made; a row group that is damaged or gone (in formats other than
    Parquet, a file); a batch for which `transform`, `transform_arrow` or a function of `map` or
    `filter` raises (with `Ranks.splits`, only those sequences of its rows for which it raises); an
    image that `Image`, audio that `Audio` or a text that `Tokenize` cannot decode or tokenize.

    Steps, ranks and states stay as they are: a batch has fewer rows, and a batch without rows
    repeats a row, with 0 `valid_rows`. Each error is logged once an epoch, as a warning of the
    logger "arrowdl.loader" with the file and its rows, and is in ``stats().skipped``. Errors of
    streams, and of options such as `nulls`, are raised. With `Pack`, a block is left out if rows of
    one of its documents fail, and documents whose length cannot be read are in no block.

    Parameters
    ----------
    max_rows : int, optional
        How many rows may be left out in an epoch, or in each pass of a mixture without end, before
        the error is raised. The ranks of a process group of ``torch.distributed`` count their rows
        together; other ranks count their own. By default a tenth of the rows of the source; for a
        stream, 10,000. With `Pack`, this is a number of blocks, and documents whose length cannot
        be read are counted apart from them.

    Raises
    ------
    ValueError
        `max_rows` is not a number of rows.
    """

    max_rows: int | None = None

    def __post_init__(self) -> None:
        if self.max_rows is not None:
            object.__setattr__(self, "max_rows", require_int("Skip.max_rows", self.max_rows, 0))
