"""`ResultSchema`: the one schema of the columns that a model makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arrowdl import _core

_CPU = 1


class ResultSchema:
    """The model's columns: those of ``schema=`` (with casts), or of the first batch."""

    def __init__(self, copied_names: Sequence[str], template: _core.DeviceArray | None) -> None:
        self._copied_names = copied_names
        self._types: dict[str, str] = {}
        self._earlier = ""
        self._schemas: dict[str, _core.Schema] = {}
        self._casts = template is not None
        self.template = template
        if template is not None:
            self._set(split(template), "schema= has")

    def check(
        self, columns: dict[str, _core.DeviceArray], start: int, end: int
    ) -> dict[str, _core.DeviceArray]:
        """Return the columns in the order of the first batch or of the schema, cast to that."""
        if not self._types:
            self._set(columns, f"those of rows {start} to {end - 1} are")
            return columns
        if columns.keys() != self._types.keys():
            raise ValueError(
                f"the model returned the columns {sorted(columns)}, and {self._earlier} "
                f"{sorted(self._types)}: a stream has one schema"
            )
        types = {}
        for name, kind in self._types.items():
            column = columns[name]
            if self._casts and column.type != kind:
                try:
                    column = _core.from_arrow(_Cast(column, self._schemas[name]))
                except ValueError as error:
                    error.add_note(f'in the column "{name}" that the model returned')
                    raise
            if column.type != kind:
                raise ValueError(
                    f'the model returned {columns[name].type} for "{name}", and {self._earlier} '
                    f"{kind}: a stream has one schema, return one type (a list if the rows have "
                    "several lengths)"
                )
            types[name] = column
        return types

    def _set(self, columns: Mapping[str, _core.DeviceArray], earlier: str) -> None:
        """Require columns of these names and types from now on."""
        for name, column in columns.items():
            if name in self._copied_names:
                raise ValueError(
                    f'the model makes a column "{name}", and the stream has one that is kept: name '
                    "it otherwise, or list the columns to keep in keep="
                )
            self._types[name] = column.type
            self._schemas[name] = column.schema
        self._earlier = earlier


@dataclass
class _Cast:
    """An array that is exported with a requested schema, which is a cast where it is cheap."""

    array: _core.DeviceArray
    schema: _core.Schema

    def __arrow_c_device_array__(self, requested_schema: Any = None, **_: Any) -> Any:
        return self.array.__arrow_c_device_array__(self.schema.__arrow_c_schema__())


def make_empty(schema: Any) -> _core.DeviceArray:
    """Return a struct without rows."""
    if not hasattr(schema, "__arrow_c_schema__"):
        raise TypeError(
            f"schema={schema!r}: give an Arrow schema of the columns that the model makes, such as "
            "pyarrow.schema({'output': pyarrow.float32()})"
        )
    empty = _core.from_arrow(_core.read_arrays(iter(()), schema, _CPU))
    if empty.schema.format != "+s":
        raise TypeError(f"schema={schema!r} is of {empty.type}, not of columns")
    if not empty.field_names:
        raise ValueError("schema= has no columns: list those that the model makes")
    return empty


def split(array: _core.DeviceArray) -> dict[str, _core.DeviceArray]:
    """Return the fields of a struct by name."""
    return {name: array.field(i) for i, name in enumerate(array.field_names)}
