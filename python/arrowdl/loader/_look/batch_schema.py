"""`BatchSchema`: the columns of a Loader's batches, by their names, before they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._batches.convert import choose_converter
from arrowdl.loader._batches.explain import explain_errors
from arrowdl.loader._html import make_table
from arrowdl.loader._pipeline import Pipeline
from arrowdl.loader._schema.vocabulary import make_empty
from arrowdl.loader._settings.pack import Pack

if TYPE_CHECKING:
    import pyarrow as pa

_CPU = 1  # of DLDeviceType

# The formats of rows with several lengths: lists, maps, strings, binary and their views.
_RAGGED = ("+l", "+L", "+v", "+m", "u", "U", "z", "Z", "v")


@dataclass(frozen=True)
class TensorSpec:
    """What each batch has in the place of a tensor.

    Attributes
    ----------
    dtype : dtype
        A dtype of the framework.
    shape : tuple of int or None
        None for a dimension whose length depends on the rows: the first one, and ragged ones.
    nulls : str, number or None
        What becomes of nulls: "raise", "fill", "nan", "mask" or a number. None if the type of the
        column allows no nulls, and for masks, lengths and offsets.
    """

    dtype: Any
    shape: tuple[int | None, ...]
    nulls: str | float | None = None

    def __str__(self) -> str:
        nulls = "" if self.nulls is None else f", nulls: {self.nulls}"
        return f"{self.dtype} {self.shape}{nulls}"


class BatchSchema(Mapping[str, Any]):
    """The columns of a batch by their names, in their order: what ``Loader.schema`` returns.

    A value is a `TensorSpec`, or what the batch has there, with these in the place of tensors: a
    tuple for values with their mask, lengths or offsets, a dict for a struct. With ``stack=True``
    the whole batch is the value of the name "".
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"<arrowdl.loader.BatchSchema of {', '.join(self._columns) or 'no columns'}>"

    def __str__(self) -> str:
        return "\n".join(f"{name}: {show(spec)}" for name, spec in self.items())

    def _repr_html_(self) -> str:
        rows = [(name, show(spec)) for name, spec in self.items()]
        return make_table("arrowdl.loader.BatchSchema", rows, ("column", "tensor"))


def show(spec: Any) -> str:
    """Return the text of what a schema has for a column."""
    if isinstance(spec, dict):
        return f"{{{'; '.join(f'{name}: {show(inner)}' for name, inner in spec.items())}}}"
    return f"({'; '.join(map(show, spec))})" if isinstance(spec, tuple) else str(spec)


def find_schema(pipeline: Pipeline) -> BatchSchema:
    """Return the schema of a pipeline's batches: a batch without rows is converted."""
    schema = _find_columns(pipeline.source, pipeline.options.pack)
    array, batch = pipeline.assembly.convert_empty(schema)
    return _describe_batch(batch, array.schema.children, pipeline.options.columns)


def describe_field(field: pa.Field, framework: str) -> Any:
    """Return what a column becomes by the defaults of a Loader."""
    import pyarrow as pa

    columns = _core.ColumnOptions()
    array = _core.from_arrow(make_empty(pa.schema([field])))
    convert = explain_errors(choose_converter(framework, columns, {}), lambda column: "")
    return _describe_batch(convert(array), array.schema.children, columns)[field.name]


def _find_columns(source: Any, pack: Pack | None) -> _core.Schema:
    schema: _core.Schema = source.read([]).schema if source.list_members() else source.find_schema()
    if pack is None:
        return schema
    rows = _core.read_arrays(iter(()), schema, _CPU)
    return rows.pack(**pack.list_arguments()).schema


def _describe_batch(
    batch: Any, fields: Sequence[_core.Schema], columns: _core.ColumnOptions
) -> BatchSchema:
    arguments: Any = columns.__reduce__()  # the arguments of its constructor
    nulls, _, _, stack = arguments[1]
    if columns.is_matrix:
        return BatchSchema({"": _Column(_find_policy(nulls, ""), False).describe(batch, fields)})
    by_name = {field.name: [field] for field in fields}
    for name, parts in (stack or {}).items():
        by_name[name] = [field for part in parts for field in by_name[part]]

    def describe(name: str) -> Any:
        column = _Column(_find_policy(nulls, name), columns.pads(name))
        return column.describe(batch[name], by_name[name])

    return BatchSchema({name: describe(name) for name in batch})


def _find_policy(nulls: Any, name: str) -> str | float:
    policy: str | float = nulls.get(name, "raise") if isinstance(nulls, Mapping) else nulls
    return policy


@dataclass
class _Column:
    """Describes the tensors of a column, or of a matrix."""

    nulls: str | float
    is_padded: bool

    def describe(self, value: Any, fields: Sequence[_core.Schema], nullable: bool = False) -> Any:
        """Describe a value of fields, of one that may have `nullable` rows."""
        nullable = nullable or any(map(_has_nulls, fields))
        if isinstance(value, dict):
            children = _find_struct(fields[0]).children
            return {
                child.name: self.describe(value[child.name], [child], nullable)
                for child in children
            }
        if isinstance(value, tuple):
            first, *others = value
            return self.describe(first, fields, nullable), *map(self._describe_other, others)
        spec = self._describe_other(value, fields[0].format)
        return TensorSpec(spec.dtype, spec.shape, self.nulls if nullable else None)

    def _describe_other(self, value: Any, format: str = "") -> TensorSpec:
        _, *shape = value.shape
        # A nested tensor has a symbol for its ragged dimension.
        lengths = [length if isinstance(length, int) else None for length in shape]
        if self.is_padded and lengths and format.startswith(_RAGGED):
            lengths[0] = None
        return TensorSpec(value.dtype, (None, *lengths))


def _has_nulls(field: _core.Schema) -> bool:
    """Whether rows of a field, or items of them, may be null; fields of structs are asked alone."""
    if field.format == "+s":
        return field.nullable
    return field.nullable or any(map(_has_nulls, field.children))


def _find_struct(field: _core.Schema) -> _core.Schema:
    """Return the struct that a field is, or that the items of its lists are."""
    while field.format != "+s" and field.children:
        field = field.children[-1]
    return field
