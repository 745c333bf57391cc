"""`TableField`: a column of a table whose files may store it under another name and type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class TableField:
    """A column of a table, or a field in one."""

    name: str  # in the table
    type: pa.DataType  # in the table. Files may have narrower ones
    key: int | str  # its field id, or its name, in files
    # of a struct its fields, of a list its items, of a map its keys and values
    children: tuple[TableField, ...] = ()
    default: Any = None  # its value in files without it
    is_required: bool = False  # whether a file without it and without `default` is an error

    def find_in(self, fields: Iterable[pa.Field]) -> pa.Field | None:
        """Return the field of a file that has the values, or None if none does."""
        if isinstance(self.key, str):
            return next((field for field in fields if field.name == self.key), None)
        return next((field for field in fields if get_field_id(field) == self.key), None)

    def is_as_in(self, fields: Sequence[pa.Field]) -> bool:
        """Whether reading a file by the names of the table gives the values of this column."""
        import pyarrow as pa

        stored_field = self.find_in(fields)
        if stored_field is None:
            has_value = self.default is not None or self.is_required
            return not has_value and all(field.name != self.name for field in fields)
        if stored_field.name != self.name:
            return False
        if not pa.types.is_nested(self.type):
            return not pa.types.is_nested(stored_field.type)
        inner = list_children(stored_field.type)
        # The items of a list and of a map have the names that their writer chose.
        is_struct = pa.types.is_struct(self.type)
        return bool(stored_field.type == self.type) and all(
            child.is_as_in(inner if is_struct else [replace_name(inner[i], child)])
            for i, child in enumerate(self.children)
        )

    def read(
        self,
        column: pa.Array | None,  # of the file; None if the file lacks it
        stored: pa.Field | None,  # the field of `column`
        rows: int,
    ) -> pa.Array:
        """Return the values of this column in a batch of a file."""
        import pyarrow as pa

        if column is None or stored is None:
            if self.is_required and self.default is None:
                raise ValueError(
                    f'the column "{self.name}" is required, and the file has neither it nor a '
                    "default: write the file again"
                )
            return pa.repeat(pa.scalar(self.default, self.type), rows)
        if pa.types.is_struct(self.type):
            return self._read_struct(column, stored)
        if self.children:
            return self._read_lists(column, stored)
        return column if column.type == self.type else column.cast(self.type)

    def _read_struct(self, column: pa.Array, stored: pa.Field) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        fields = list_children(stored.type)
        arrays = []
        for child in self.children:
            field = child.find_in(fields)
            values = None if field is None else pc.struct_field(column, [fields.index(field)])
            arrays.append(child.read(values, field, len(column)))
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(arrays, fields=list(self.type), mask=mask)

    def _read_lists(self, column: pa.Array, stored: pa.Field) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        fields = list_children(stored.type)
        if pa.types.is_map(self.type):
            pairs = column.cast(pa.list_(pa.struct(fields)))
            offsets, values = _split_lists(pairs, is_large=False)
            parts = [pc.struct_field(values, [i]) for i in range(2)]
        else:
            offsets, values = _split_lists(column, is_large=pa.types.is_large_list(self.type))
            parts = [values]
        items = [
            child.read(part, field, len(part))
            for child, part, field in zip(self.children, parts, fields, strict=True)
        ]
        if pa.types.is_map(self.type):
            return pa.MapArray.from_arrays(offsets, *items, type=self.type)
        kind = pa.LargeListArray if pa.types.is_large_list(self.type) else pa.ListArray
        return kind.from_arrays(offsets, *items, type=self.type)


def _split_lists(lists: pa.Array, *, is_large: bool) -> tuple[pa.Array, pa.Array]:
    """Return offsets, of which those of null lists are null, and the items of all others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths)
    kind = pa.int64() if is_large else pa.int32()
    starts = pc.subtract(ends, lengths).cast(kind)
    total = ends[-1:].cast(kind) if len(lists) else pa.array([0], kind)
    if lists.null_count:
        starts = pc.if_else(lists.is_null(), pa.scalar(None, kind), starts)
    return pa.concat_arrays([starts, total]), lists.flatten()


def list_children(type: pa.DataType) -> list[pa.Field]:
    """List the fields of a struct, the items of a list, or keys and values of a map."""
    import pyarrow as pa

    if pa.types.is_map(type):
        return [type.key_field, type.item_field]
    return [type.field(i) for i in range(type.num_fields)]


def get_field_id(field: pa.Field) -> int | None:
    """Return the number that a Parquet file has for a field."""
    metadata = field.metadata or {}
    return int(metadata[_FIELD_ID]) if _FIELD_ID in metadata else None


def replace_name(stored: pa.Field, field: TableField) -> pa.Field:
    """Return the field of a file that is an item of a list, with the name that `field` has."""
    named = stored.with_name(field.name)
    return named.with_metadata({_FIELD_ID: str(field.key).encode()})


def set_field_ids(
    fields: Iterable[pa.Field],
    # the number and the mapping of the children, by name; of lists ``"element"``, of maps ``"key"``
    # and ``"value"``
    ids: Mapping[str, Any],
) -> list[pa.Field]:
    """Return fields of a file with numbers, for a file that was written without them."""
    return [_set_field_id(field, field.name, ids) for field in fields]


def _set_field_id(field: pa.Field, name: str, ids: Mapping[str, Any]) -> pa.Field:
    import pyarrow as pa

    number, children = ids.get(name, (None, {}))
    kind, inner = field.type, list_children(field.type)
    if pa.types.is_struct(kind):
        kind = pa.struct(set_field_ids(inner, children))
    elif pa.types.is_map(kind):
        kind = pa.map_(*map(_set_field_id, inner, ("key", "value"), (children, children)))
    elif inner:
        make = pa.large_list if pa.types.is_large_list(kind) else pa.list_
        kind = make(_set_field_id(inner[0], "element", children))
    metadata = {} if number is None else {_FIELD_ID: str(number).encode()}
    return field.with_type(kind).with_metadata(metadata)
