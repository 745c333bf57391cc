"""One schema for several files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl import _core
from arrowdl.loader._progress import OpeningLine
from arrowdl.loader._schema.filters import find_columns
from arrowdl.loader._schema.vocabulary import make_empty
from arrowdl.loader._skipped import OTHER_READERS, OptionError
from arrowdl.loader._storage.threads import FILES_AT_ONCE, map_in_threads

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


def is_any(name: str) -> bool:
    """Stands in for a test of names: all are read."""
    return True


def explain_nothing(name: str) -> str:
    """Stands in for what adds to the error about a column."""
    return ""


def check_names(path: str, schema: pa.Schema, is_read: Callable[[str], bool] = is_any) -> pa.Schema:
    """Return the columns that have a name of their own; raise ValueError if others are read."""
    import pyarrow as pa

    counts = Counter(schema.names)
    if len(counts) == len(schema.names):
        return schema
    for name, number in counts.items():
        if number > 1 and is_read(name):
            raise ValueError(
                f'{path!r} has {number} columns named "{name}", and a batch is a dict, which has '
                "one item of a name: write the file with other names, or read it into a table "
                "(pyarrow.parquet.ParquetFile(path).read(), pyarrow.ipc.open_file(path).read_all())"
                " and give that to the Loader, after rename_columns()"
            )

    return pa.schema([field for field in schema if counts[field.name] == 1], schema.metadata)


def list_schemas(
    dataset: ds.FileSystemDataset,
    alike: Mapping[str, Any],  # by path, what is equal for files with equal columns
) -> list[tuple[str, pa.Schema]]:
    """List the schemas of the first file with its directories' columns, and of different files."""
    fragments = _choose_different(dataset.get_fragments(), alike)
    line = OpeningLine("reads the schemas", len(fragments))
    others = map_in_threads(read_schema, fragments, FILES_AT_ONCE, line)
    return [(dataset.files[0], dataset.schema), *others]


def _choose_different(
    fragments: Iterable[ds.Fragment], alike: Mapping[str, Any]
) -> list[ds.Fragment]:
    """List the first one of the files with equal columns, and those of which nothing is known."""
    import pyarrow.dataset as ds

    different: dict[Any, ds.Fragment] = {}
    for fragment in fragments:
        path = fragment.path
        keys = tuple(ds.get_partition_keys(fragment.partition_expression))
        different.setdefault((alike.get(path, path), keys), fragment)
    return list(different.values())


def read_schema(fragment: ds.Fragment) -> tuple[str, pa.Schema]:
    """Return the path and the columns of a file; an error names it."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    keys = ds.get_partition_keys(fragment.partition_expression)
    try:
        schema = fragment.physical_schema
        fields = [field for field in schema if field.name not in keys]  # a name may not be UTF-8
    except Exception as error:
        if fragment.path not in str(error):
            others = OTHER_READERS if fragment.format.default_extname == "parquet" else ""
            error.add_note(f"while arrowdl.Loader read {fragment.path!r}{others}")
        raise
    return fragment.path, pa.schema(fields) if keys else schema


class Unified(NamedTuple):
    """The columns of all files."""

    schema: pa.Schema
    drifted: set[str]  # columns that have other types in some files, and that are not read
    dtype: Any = None  # as of `unify_schemas`


def unify_schemas(
    schemas: Sequence[tuple[str, pa.Schema]],  # path and schema of each file
    is_read: Callable[[str], bool] = is_any,  # whether a column is read
    explain: Callable[[str], str] = explain_nothing,  # adds to the error about a column
    dtype: Any = None,  # as of a Loader: the unit of times whose units differ
) -> Unified:
    """Return the columns of all files; a column that is not read may have several types."""
    import pyarrow as pa

    drifted = {name for _, schema in schemas for name, n in Counter(schema.names).items() if n > 1}
    (first, unified), *others = [
        (path, _leave_out(check_names(path, schema, is_read), drifted)) for path, schema in schemas
    ]
    for path, file_schema in others:
        schema = _leave_out(file_schema, drifted)
        if schema.equals(unified):
            continue
        unified, schema = _join_types(unified, schema, dtype)
        differing = {name for name in schema.names if not _can_unify(unified, schema, name)}
        for name in differing:
            if is_read(name):
                types = [one.field(name).type for one in (schema, unified)]
                raise ValueError(
                    f'{path!r} has other types than {first!r} and the files after it: "{name}" is '
                    f"{types[0]} and {types[1]}{explain(name)}. Leave it out with columns=, or"
                    f"{advise_unit(name, *types)} give a pyarrow dataset with the schema that "
                    "all files are read as"
                )
        drifted |= differing
        unified = pa.unify_schemas([unified, _leave_out(schema, differing)])
    return Unified(_mark_index(unified, schemas), drifted, dtype)


def _mark_index(unified: pa.Schema, schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the schema with the metadata of the first file that has pandas' unnamed index."""
    for _, schema in schemas:
        columns = _core.list_columns(schema)
        if columns is not None and set(schemas[0][1].names).isdisjoint(
            set(schema.names) - set(columns)
        ):
            metadata = {**(unified.metadata or {}), b"pandas": schema.metadata[b"pandas"]}
            return unified.with_metadata(metadata)
    return unified


def _leave_out(schema: pa.Schema, names: set[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([field for field in schema if field.name not in names], schema.metadata)


def _join_types(one: pa.Schema, other: pa.Schema, dtype: Any) -> tuple[pa.Schema, pa.Schema]:
    """Return both schemas with the columns of other types that are the same tensors as one type."""
    for name in set(one.names) & set(other.names):
        fields = [schema.field(name) for schema in (one, other)]
        joined = join_types(fields[0].type, fields[1].type, find_unit(dtype, name))
        if joined is not None and fields[0].type != fields[1].type:
            one, other = (
                schema.set(schema.get_field_index(name), field.with_type(joined))
                for schema, field in zip((one, other), fields, strict=True)
            )
    return one, other


def find_unit(dtype: Any, name: str) -> str | None:
    """Return the unit of times that `dtype=` of a Loader has for a column; None if it has none."""
    unit = str(dtype.get(name) if isinstance(dtype, Mapping) else dtype)
    return unit if re.fullmatch(r"(timestamp|duration)\[(s|ms|us|ns)\]", unit) else None


def advise_unit(name: str, one: pa.DataType, other: pa.DataType) -> str:
    """Say which `dtype=` reads a column of two units as one; empty for other types."""
    for unit in ("timestamp[us]", "duration[us]"):
        if join_types(one, other) is None and join_types(one, other, unit) is not None:
            return f' choose a unit that holds all times, as in dtype={{"{name}": "{unit}"}}, or'
    return ""


def _join_times(one: pa.DataType, other: pa.DataType, unit: str) -> pa.DataType | None:
    """Return the type of two kinds of times in one unit; None for others, or unequal zones."""
    import pyarrow as pa

    wanted = pa.type_for_alias(unit)
    if pa.types.is_duration(wanted):
        return wanted if all(map(pa.types.is_duration, (one, other))) else None
    zones = {getattr(type, "tz", None) for type in (one, other)}
    are_times = all(pa.types.is_timestamp(t) or pa.types.is_date(t) for t in (one, other))
    return pa.timestamp(wanted.unit, *zones) if are_times and len(zones) == 1 else None


def join_types(one: pa.DataType, other: pa.DataType, unit: str | None = None) -> pa.DataType | None:
    """Return the type that columns of two types are read as; None if they are other tensors.

    Strings and binary differ in their offsets only, and so do lists. A list is a row of a
    fixed-size list, if it has its length; pyarrow raises where one has another. Times whose units
    differ are read in `unit`.
    """
    import pyarrow as pa

    if one.equals(other):
        return one
    if unit is not None and (times := _join_times(one, other, unit)) is not None:
        return times
    for kinds, joined in (
        ((pa.string(), pa.large_string(), pa.string_view()), pa.large_string()),
        ((pa.binary(), pa.large_binary(), pa.binary_view()), pa.large_binary()),
    ):
        if one in kinds and other in kinds:
            return joined
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _join_structs(one, other, unit)
    if not (_is_list(one) and _is_list(other)):
        return None
    items = join_types(one.value_type, other.value_type, unit)
    if items is None:
        return None
    field = one.value_field.with_type(items).with_nullable(True)
    sizes = {type.list_size for type in (one, other) if pa.types.is_fixed_size_list(type)}
    if len(sizes) > 1:
        return None
    return pa.list_(field, sizes.pop()) if sizes else pa.large_list(field)


def _join_structs(one: pa.StructType, other: pa.StructType, unit: str | None) -> pa.DataType | None:
    import pyarrow as pa

    pairs = list(zip(one, other, strict=False))
    if len(one) != len(other) or any(mine.name != theirs.name for mine, theirs in pairs):
        return None
    joined = [join_types(mine.type, theirs.type, unit) for mine, theirs in pairs]
    if None in joined:
        return None
    return pa.struct(
        [
            mine.with_type(type).with_nullable(mine.nullable or theirs.nullable)
            for (mine, theirs), type in zip(pairs, joined, strict=True)
        ]
    )


def _is_list(type: pa.DataType) -> bool:
    """Whether a type is of lists that pyarrow casts: it breaks list views."""
    import pyarrow as pa

    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_kind(type) for is_kind in kinds)


def join_tables(tables: Iterable[tuple[str, pa.Table]], unified: Unified) -> pa.Table:
    """Return the rows of files, each of which has a name, with the columns of all."""
    import pyarrow as pa

    # Its dictionaries have no values: those of the files are united, and lose their nulls.
    empty = pa.Table.from_batches([make_empty(unified.schema)])
    whole = [_read_alike(name, table, unified) for name, table in (("", empty), *tables)]
    return pa.concat_tables(whole, promote_options="default")


def _read_alike(name: str, table: pa.Table, unified: Unified) -> pa.Table:
    """Return a table of one file with the types of all files, without columns that are not read."""
    import pyarrow as pa

    indices = [i for i, name in enumerate(table.column_names) if name not in unified.drifted]
    table = table.select(indices) if len(indices) < table.num_columns else table
    for i, field in enumerate(table.schema):
        wanted, unit = unified.schema.field(field.name).type, find_unit(unified.dtype, field.name)
        if field.type == wanted or join_types(field.type, wanted, unit) is None:
            continue
        try:
            column = table.column(i).cast(wanted)
        except pa.ArrowInvalid as error:
            raise OptionError(f'"{field.name}" of {name}: {error}') from error
        table = table.set_column(i, field.with_type(wanted), column)
    return table


def _can_unify(one: pa.Schema, other: pa.Schema, name: str) -> bool:
    import pyarrow as pa

    if name not in one.names or one.field(name).equals(other.field(name)):
        return True
    try:
        pa.unify_schemas([pa.schema([one.field(name)]), pa.schema([other.field(name)])])
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return False
    return True


def choose_read(columns: Sequence[str] | None, filter: Any) -> Callable[[str], bool]:
    """Return whether `columns` or `filter` need a column, whole or a field of it."""
    if columns is None:
        return is_any
    return lambda name: (
        any(column == name or column.startswith(f"{name}.") for column in columns)
        or bool(find_columns([name], [], filter))
    )
