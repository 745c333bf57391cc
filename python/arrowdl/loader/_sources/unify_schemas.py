"""One schema for several files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl import _core
from arrowdl.loader._progress import OpeningLine
from arrowdl.loader._sources.filters import find_columns
from arrowdl.loader._sources.threads import FILES_AT_ONCE, map_in_threads

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


def check_names(path: str, schema: pa.Schema) -> None:
    """Raise ValueError if several columns have one name."""
    for name, number in Counter(schema.names).items():
        if number > 1:
            raise ValueError(
                f'{path!r} has {number} columns named "{name}", and a batch is a dict, which has '
                "one item of a name: write the file with other names, or read it into a table "
                "(pyarrow.parquet.ParquetFile(path).read(), pyarrow.ipc.open_file(path).read_all())"
                " and give that to the Loader, after rename_columns()"
            )


def list_schemas(dataset: ds.FileSystemDataset) -> list[tuple[str, pa.Schema]]:
    """List the schemas of the first file with its directories' columns, and of each file."""
    fragments = list(dataset.get_fragments())
    line = OpeningLine("reads the schemas", len(fragments))
    others = map_in_threads(_read_schema, fragments, FILES_AT_ONCE, line)
    return [(dataset.files[0], dataset.schema), *others]


def _read_schema(fragment: ds.Fragment) -> tuple[str, pa.Schema]:
    import pyarrow as pa
    import pyarrow.dataset as ds

    keys = ds.get_partition_keys(fragment.partition_expression)
    schema = fragment.physical_schema
    if keys:
        schema = pa.schema([field for field in schema if field.name not in keys])
    return fragment.path, schema


class Unified(NamedTuple):
    """The columns of all files.

    Attributes
    ----------
    schema : pyarrow.Schema
    drifted : set of str
        Columns that have other types in some files, and that are not read.
    """

    schema: pa.Schema
    drifted: set[str]


def unify_schemas(
    schemas: Sequence[tuple[str, pa.Schema]], is_read: Callable[[str], bool] = lambda name: True
) -> Unified:
    """Return the columns of all files; a column that is not read may have several types.

    Parameters
    ----------
    schemas : sequence of (str, pyarrow.Schema)
        Path and schema of each file.
    is_read : callable
        Whether a column is read.

    Raises
    ------
    ValueError
        A column that is read has two types, or a file has two columns of one name.
    """
    import pyarrow as pa

    (first, unified), *others = schemas
    drifted: set[str] = set()
    for path, schema in schemas:
        check_names(path, schema)
    for path, schema in others:
        if schema.equals(unified):
            continue
        differing = {name for name in schema.names if not _can_unify(unified, schema, name)}
        for name in differing:
            if is_read(name):
                raise ValueError(
                    f'{path!r} has other types than {first!r} and the files after it: "{name}" is '
                    f"{schema.field(name).type} and {unified.field(name).type}. Leave it out with "
                    "columns=, or give a pyarrow dataset with the schema that all files are read as"
                )
        drifted |= differing
        rest = pa.schema([field for field in schema if field.name not in differing])
        unified = pa.unify_schemas([unified, rest])
    return Unified(_mark_index(unified, schemas), drifted)


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
        return lambda name: True
    return lambda name: (
        any(column == name or column.startswith(f"{name}.") for column in columns)
        or bool(find_columns([name], [], filter))
    )
