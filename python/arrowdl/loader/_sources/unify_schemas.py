"""One schema for several files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

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
    import pyarrow.dataset as ds

    others = [
        (fragment.path, _without(fragment.physical_schema, keys))
        for fragment in dataset.get_fragments()
        for keys in [ds.get_partition_keys(fragment.partition_expression)]
    ]
    return [(dataset.files[0], dataset.schema), *others]


def _without(schema: pa.Schema, names: Container[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([field for field in schema if field.name not in names])


def unify_schemas(schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the schema with the columns of all files.

    Parameters
    ----------
    schemas : sequence of (str, pyarrow.Schema)
        Path and schema of each file.

    Raises
    ------
    ValueError
        A column has two types, or a file has two columns of one name.
    """
    import pyarrow as pa

    (first, unified), *others = schemas
    for path, schema in schemas:
        check_names(path, schema)
    for path, schema in others:
        if schema.equals(unified):
            continue
        try:
            unified = pa.unify_schemas([unified, schema])
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise ValueError(
                f"{path!r} has other types than {first!r} and the files after it ({error}): give a "
                "pyarrow dataset with the schema that all files are read as"
            ) from error
    return unified
