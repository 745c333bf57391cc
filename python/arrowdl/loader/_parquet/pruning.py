"""Leaves out files and row groups of which a filter keeps no row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from arrowdl.loader._parquet.fragments import remake_fragment
from arrowdl.loader._schema.bounds import find_bounds, find_partition_bounds, read_partition

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


def list_fragments(dataset: ds.Dataset, filter: Any) -> list[ds.Fragment]:
    """List the fragments of a dataset, without those that a filter excludes by their partitions.

    Ranges in partition expressions stay behind: pyarrow would take them for ranges of NaN, too.
    """
    if filter is None:
        return list(dataset._get_fragments(None))
    partitions = [
        read_partition(item.partition_expression) for item in dataset._get_fragments(None)
    ]
    constants = set.intersection(*(item.constants for item in partitions)) if partitions else set()
    fragments = list(
        dataset._get_fragments(find_partition_bounds(filter, dataset.schema, constants))
    )
    return (
        list(map(drop_ranges, fragments))
        if any(item.has_ranges for item in partitions)
        else fragments
    )


def drop_ranges(fragment: Any) -> ds.Fragment:
    """Return a fragment whose partition expression has constants alone."""
    partition = read_partition(fragment.partition_expression)
    if not partition.has_ranges:
        return fragment
    return remake_fragment(fragment, fragment.format, fragment.filesystem, partition.expression)


def prune(
    units: Sequence[Any],
    filter: Any,
    schema: pa.Schema,  # of the dataset
) -> Sequence[int]:
    """List those of the units of one file, row groups, of which a filter may keep rows."""
    bounds = None
    if units and hasattr(units[0], "row_groups"):
        fragment = units[0]
        stored_schema = _find_stored_schema(fragment, schema)
        bounds = find_bounds(filter, stored_schema)
    if bounds is None:
        return range(len(units))
    groups = [group.id for unit in units for group in unit.row_groups]
    chosen = fragment.subset(row_group_ids=groups).subset(filter=bounds, schema=stored_schema)
    group_ids = {group.id for group in chosen.row_groups}
    return [
        i
        for i, unit in enumerate(units)
        if any(row_group.id in group_ids for row_group in unit.row_groups)
    ]


def _find_stored_schema(fragment: ds.Fragment, schema: pa.Schema) -> pa.Schema:
    """Return the columns that are read as the file has them: those of its statistics."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    stored = fragment.physical_schema
    constants = ds.get_partition_keys(fragment.partition_expression)
    return pa.schema(
        [
            field
            for field in schema
            if field.name not in constants
            and (i := stored.get_field_index(field.name)) >= 0
            and stored.field(i).type == field.type
        ]
    )
