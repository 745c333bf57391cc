"""`ColumnOptions`: options of a `Loader` for all columns, or for each by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from arrowdl import _core
from arrowdl.loader._settings.padded import split_padded
from arrowdl.loader._types import Nulls, Ragged

_PADDING = ("pad_value", "max_length", "pad_to_multiple")


@dataclass(kw_only=True)
class ColumnOptions:
    """How columns become tensors. A mapping has names of columns, or of matrices of `stack`.

    `Padded` in `ragged` becomes the arguments of `to_torch`: `pad_value` and its like.

    Raises
    ------
    TypeError, ValueError
        An option has a value that is not supported.
    """

    nulls: Any
    ragged: Any
    dtype: Any
    pad_value: Any = field(init=False)
    max_length: Any = field(init=False)
    pad_to_multiple: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.nulls = _read("nulls", self.nulls, _choose("nulls", get_args(Nulls)))
        self.__dict__.update(split_padded(self.ragged))
        self.ragged = _read("ragged", self.ragged, _choose("ragged", get_args(Ragged)))
        self.dtype = _read("dtype", self.dtype, _core.dtype_name, is_optional=True)

    def _list_given(self) -> dict[str, Any]:
        """Return the options that are not the defaults of `to_torch`."""
        given = {name: value for name, value in self.__dict__.items() if value is not None}
        for name, default in (("pad_value", 0), ("nulls", "raise"), ("ragged", "jagged")):
            if type(given[name]) is type(default) and given[name] == default:
                del given[name]
        return given

    def is_padded(self, column: str) -> bool:
        """Whether rows of `column` are padded, if they have several lengths."""
        forms = self.ragged
        return bool((forms.get(column) if isinstance(forms, dict) else forms) == "padded")

    def may_pad(self, column: str) -> bool:
        """Whether rows of `column` are padded, or of others where no form is given for it."""
        return bool(self._list_others(column)) or self.is_padded(column)

    def _list_others(self, column: str) -> list[str]:
        """List the padded columns whose lengths `column` may have, of which no form is given."""
        forms = self.ragged
        if not isinstance(forms, dict) or column in forms:
            return []
        return [name for name, form in forms.items() if form == "padded"]

    def find_max_length(self, column: str) -> int | None:
        """Return the values of a padded row of `column` that are kept; None for all.

        If `column` has the lengths of others, the values that are kept of each of these.
        """
        most: int | dict[str, int] | None = self.max_length
        if not isinstance(most, dict):
            return most
        names = [column] if column in most else self._list_others(column)
        kept = [most[name] for name in names if name in most]
        return max(kept) if kept and len(kept) == len(names) else None

    def choose_nulls(self, column: str, matrices: Iterable[tuple[str, Sequence[str]]]) -> str:
        """Return what becomes of the nulls of `column`, which may be in one of `matrices`.

        Of several, if it is in matrices that differ: "raise".
        """
        if not isinstance(self.nulls, dict):
            return str(self.nulls)
        names = [name for name, columns in matrices if column in columns]
        found = {self.nulls.get(column, self.nulls.get(name)) for name in names or [column]}
        return str(found.pop() or "raise") if len(found) == 1 else "raise"

    @property
    def has_names(self) -> bool:
        """Whether an option is a mapping."""
        return any(isinstance(value, dict) for value in self.__dict__.values())

    def check_names(self, columns: Sequence[str], matrices: Iterable[str]) -> None:
        """Raise ValueError if a mapping names neither one of `columns` nor one of `matrices`."""
        known = {*columns, *matrices}
        for option, value in self.__dict__.items():
            for name in value if isinstance(value, dict) else ():
                if name not in known:
                    raise ValueError(
                        f'{option}= names "{name}", and the columns are {list(columns)}'
                    )

    def list_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of `to_torch` for all columns."""
        return self._list_given()

    def list_arguments_of(self, columns: Sequence[str], matrix: str) -> dict[str, Any]:
        """Return the keyword arguments of `to_torch` for the columns of a matrix.

        An option of a column comes before that of the matrix.
        """
        return self._restrict(
            lambda value: {
                column: value.get(column, value.get(matrix))
                for column in columns
                if column in value or matrix in value
            }
        )

    def list_arguments_without(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the keyword arguments of `to_torch` for all columns but `names`."""
        dropped = set(names)
        return self._restrict(
            lambda value: {name: own for name, own in value.items() if name not in dropped}
        )

    def _restrict(self, choose: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        arguments = {}
        for option, value in self._list_given().items():
            if not isinstance(value, dict):
                arguments[option] = value
            elif chosen := choose(value):
                arguments[option] = chosen
        if arguments.get("ragged", "jagged") == "jagged":  # nothing is padded
            for option in _PADDING:
                arguments.pop(option, None)
        return arguments


def _read(name: str, value: Any, read: Callable[[Any], Any], is_optional: bool = False) -> Any:
    """Read one value, or each value of a mapping; None stays if the option may be left out."""
    if value is None and is_optional:
        return None
    if not isinstance(value, Mapping):
        return read(value)
    for column in value:
        if not isinstance(column, str):
            raise TypeError(f"{name}={value!r}: {column!r} is no name of a column")
    return {column: read(own) for column, own in value.items()}


def _choose(name: str, choices: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            expected = ", ".join(map(repr, choices))
            padded = " or arrowdl.Padded(...)" if name == "ragged" else ""
            raise ValueError(
                f"{name}={value!r}: expected one of {expected}{padded}, or a mapping from column "
                "names to these"
            )
        return value

    return read
