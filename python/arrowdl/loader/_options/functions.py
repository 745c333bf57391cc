"""`Functions`: what a Loader calls with each batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from arrowdl.loader._types import TransformArrowLike


@dataclass(frozen=True)
class Step:
    """A function of `Loader.map` or `Loader.filter`."""

    function: Callable[[Any], Any]
    is_filter: bool


@dataclass(frozen=True)
class ArrowStep:
    """A function of `transform_arrow`."""

    function: Callable[..., Any]
    column: str | None = None  # whose array it takes. None: it takes the record batch

    @property
    def is_new(self) -> bool:
        """Whether each call returns memory that has no other user, as `Image` says of itself."""
        return self.column is not None and getattr(self.function, "returns_new_memory", False)


@dataclass(kw_only=True)
class Functions:
    """The functions that a user gave, in the order of their calls.

    Raises TypeError if one of them cannot be called, and ValueError if there are none.
    """

    transform_arrow: TransformArrowLike | None = None
    arrow_steps: tuple[ArrowStep, ...] = field(init=False)  # what `transform_arrow` calls
    transform: Callable[[Any], Any] | None = None  # takes a batch of tensors
    chain: tuple[Step, ...] = ()  # from `Loader.map` and `Loader.filter`
    sets_seeds: bool = True  # whether draws of the functions are repeatable

    def __post_init__(self) -> None:
        self.arrow_steps = tuple(_list_arrow_steps(self.transform_arrow))
        if self.transform is not None and not callable(self.transform):
            raise TypeError(f"transform={self.transform!r}: give a function of one batch")

    def check_arrow_columns(self, names: Sequence[str]) -> None:
        """Raise ValueError if `transform_arrow` names another column of a source than `names`."""
        for step in takewhile(lambda step: step.column is not None, self.arrow_steps):
            find_arrow_column(step.column, names)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is called with each batch of tensors."""
        first = () if self.transform is None else (Step(self.transform, False),)
        return (*first, *self.chain)

    @property
    def filters(self) -> bool:
        """Whether a step drops rows."""
        return any(step.is_filter for step in self.chain)

    @property
    def maps_after_filter(self) -> bool:
        """Whether a `map` follows a `filter`."""
        kinds = [step.is_filter for step in self.chain]
        return True in kinds and False in kinds[kinds.index(True) :]


def find_arrow_column(column: str | None, names: Sequence[str]) -> int:
    """Return the index of a column that `transform_arrow` names.

    Raises ValueError if it is not one of `names`.
    """
    if column in names:
        return names.index(column)
    columns = ", ".join(f'"{name}"' for name in names)
    raise ValueError(f'transform_arrow= names the column "{column}", and the columns are {columns}')


def list_new_columns(steps: Sequence[ArrowStep]) -> Set[str]:
    """Return the columns whose memory has no other user after all steps."""
    new: set[str] = set()
    for step in steps:
        if step.column is None:
            new.clear()
        elif step.is_new:
            new.add(step.column)
        else:
            new.discard(step.column)
    return new


def _list_arrow_steps(steps: Any) -> Iterator[ArrowStep]:
    if steps is None:
        return
    parts = steps if isinstance(steps, (list, tuple)) else [steps]
    if not all(parts) or not parts:
        raise ValueError(f"transform_arrow={steps!r} is empty: leave it out")
    for part in parts:
        functions = part if isinstance(part, Mapping) else {None: part}
        for column, function in functions.items():
            is_name = isinstance(column, str) or functions is not part
            if not is_name or not callable(function):
                raise TypeError(
                    f"transform_arrow={steps!r}: give a function of one record batch, a mapping "
                    "from column names to functions of one column, or a list of these"
                )
            yield ArrowStep(function, column)
