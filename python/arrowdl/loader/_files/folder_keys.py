"""Keys of folders (``day=1/part.parquet``) that are columns of the files too: the folder wins."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from arrowdl.loader._files.footers import read_statistics
from arrowdl.loader._files.stamps import check_fragment

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from arrowdl.loader._files.find_local import Root

_log = logging.getLogger("arrowdl.loader")


def find_keys(
    root: Root,
    # makes a dataset of the files with a schema and a partitioning
    make: Callable[..., ds.FileSystemDataset],
    schema: pa.Schema,  # of the first file
) -> pa.Schema:
    """Return the types of the keys: those of the files where these hold all values."""
    import pyarrow as pa

    segments = [os.path.relpath(os.path.dirname(file), root.base).split("/") for file in root.files]
    names = dict.fromkeys(
        unquote(s.partition("=")[0]) for parts in segments for s in parts if "=" in s
    )
    texts = _list_values(make, pa.schema([(name, pa.string()) for name in names]))
    fields = []
    for name, values in texts.items():
        parts = [schema.field(name).type] if name in schema.names else []
        fits = (type for type in (*parts, pa.int32()) if _holds(make, pa.field(name, type), values))
        fields.append(pa.field(name, next(fits, pa.string())))
    return pa.schema(fields)


def add_keys(schema: pa.Schema, keys: pa.Schema) -> pa.Schema:
    """Return the schema of a file with the keys of its folders."""
    for key in keys:
        i = schema.get_field_index(key.name)
        schema = schema.append(key) if i < 0 else schema.set(i, key)
    return schema


def _list_values(
    make: Callable[..., ds.FileSystemDataset], schema: pa.Schema
) -> dict[str, list[Any]]:
    import pyarrow.dataset as ds

    keys: dict[str, list[Any]] = {}
    for fragment in make(schema=schema, partitioning=ds.HivePartitioning(schema)).get_fragments():
        for name, value in ds.get_partition_keys(fragment.partition_expression).items():
            keys.setdefault(name, []).append(value)
    return keys


def _holds(
    make: Callable[..., ds.FileSystemDataset], field: pa.Field, texts: list[str | None]
) -> bool:
    """Whether the type of a column holds all values of the folders exactly."""
    import pyarrow as pa

    try:
        column = _list_values(make, pa.schema([field]))
        typed = pa.array(column[field.name], field.type)
        return bool(pa.array(texts, pa.string()).cast(field.type).equals(typed))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False


def note_differences(dataset: ds.FileSystemDataset) -> None:
    """Log the first file whose own column has other values than its folder, by its statistics."""
    import pyarrow.dataset as ds

    for fragment in dataset.get_fragments():
        keys = ds.get_partition_keys(fragment.partition_expression)
        if not any(name in fragment.physical_schema.names for name in keys):
            return
        check_fragment(fragment)
        for group in getattr(fragment, "row_groups", ()):
            for name, value in keys.items():
                bounds = _find_bounds(fragment, group.id, name)
                if bounds and set(bounds) != {value}:
                    _log.warning(
                        'the column "%s" of %r has values from %r to %r, and its folder says %r: '
                        "the Loader reads the folder's",
                        *(name, fragment.path, *bounds, value),
                    )
                    return


def _find_bounds(fragment: Any, group: int, name: str) -> tuple[Any, ...]:
    """Return the least and the greatest value of a column of a row group, if these are known."""
    import pyarrow as pa

    metadata = fragment.metadata.row_group(group)
    for chunk in map(metadata.column, range(metadata.num_columns)):
        stats = read_statistics(chunk) if chunk.path_in_schema == name else None
        if stats is not None and stats.has_min_max:
            type = fragment.physical_schema.field(name).type
            return tuple(pa.scalar(bound, type).as_py() for bound in (stats.min, stats.max))
    return ()
