"""Finds the file, row group and column that an error is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl.loader._files.footers import read_statistics
from arrowdl.loader._schema.fields import has_column
from arrowdl.loader._schema.filters import add_mask, apply_filter, find_columns
from arrowdl.loader._skipped import OTHER_READERS, OptionError, describe

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


class Candidate(NamedTuple):
    """Rows that may have failed to be read: a file, or a part of it."""

    path: str  # of the file
    fragment: ds.Fragment


def split_row_groups(fragment: ds.Fragment) -> list[ds.Fragment]:
    """Split a Parquet file into its row groups; other files stay whole."""
    if not hasattr(fragment, "row_groups"):
        return [fragment]
    return [fragment.subset(row_group_ids=[group.id]) for group in fragment.row_groups]


def find_damage(
    candidates: Iterable[Candidate],
    schema: pa.Schema,  # of the dataset
    columns: Sequence[str],
    filter: Any,
) -> str:
    """Read `candidates` again, one by one, and say which is the first to fail, and what to do.

    What a cache keeps of its file is dropped. The text is empty if all can be read.

    Raises OptionError if the filter or the types of the dataset fail, on rows that can be read.
    """
    for candidate in candidates:
        if damage := _describe_damage(candidate, schema, columns, filter):
            drop_metadata(candidate.fragment)
            return damage
    return ""


def drop_metadata(fragment: ds.Fragment) -> None:
    """Drop what is kept of a file that cannot be decoded, of a file system of ours."""
    if (forget := _find_forget(fragment)) is not None:
        forget(fragment.path)


def _find_forget(fragment: ds.Fragment) -> Callable[[str], None] | None:
    handler = getattr(getattr(fragment, "filesystem", None), "handler", None)
    return getattr(handler, "forget", None)


def _scan(fragment: ds.Fragment, schema: pa.Schema, columns: Any) -> ds.Scanner:
    """Scan a fragment as it was read: over a network, the checksums of pages are compared."""
    import pyarrow.dataset as ds

    options: dict[str, Any] = {"columns": columns}
    if hasattr(fragment, "row_groups") and _find_forget(fragment) is not None:
        checks = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        options["fragment_scan_options"] = checks
    return fragment.scanner(schema, **options)


def _describe_damage(
    candidate: Candidate, schema: pa.Schema, columns: Sequence[str], filter: Any
) -> str:
    path, fragment = candidate
    if not _can_open(fragment):
        return f"{path!r}, which cannot be opened: leave it out of the Loader's paths"
    try:
        _ = fragment.physical_schema  # read the footer
        parts = split_row_groups(fragment)
    except Exception as error:
        return f"{path!r}, whose footer cannot be read ({error}): write the file again"
    for part in parts:
        if _can_read(part, schema, list(columns), filter):
            continue
        group = f", row group {part.row_groups[0].id}" if hasattr(part, "row_groups") else ""
        _check_filter(part, schema, filter, f"{path!r}{group}")
        names = *columns, *find_columns(schema.names, [], filter)
        bad = next((name for name in names if not _can_read(part, schema, [name], None)), None)
        if bad is not None:
            _check_type(part, schema, bad, f"{path!r}{group}")
        column = "" if bad is None else f', column "{bad}"'
        without = "" if bad is None else ", or read the other columns, columns="
        others = OTHER_READERS if group else ""
        return (
            f"{path!r}{group}{column}, which fails again when it is read alone: write the file "
            f"again, or leave it out of the Loader's paths{without}{others}"
        )
    return ""


def _can_open(fragment: ds.Fragment) -> bool:
    if getattr(fragment, "filesystem", None) is None:  # in memory
        return True
    try:
        with fragment.open() as file:
            file.read(1)
    except Exception:
        return False
    return True


def _can_read(fragment: ds.Fragment, schema: pa.Schema, columns: list[str], filter: Any) -> bool:
    try:
        scanned = columns if filter is None else add_mask(columns, filter, schema)
        for _ in _scan(fragment, schema, scanned).scan_batches():
            pass
    except Exception:
        return False
    return True


def _check_filter(fragment: ds.Fragment, schema: pa.Schema, filter: Any, name: str) -> None:
    """Raise OptionError if `filter` fails on the rows, which can be read, of what has `name`."""
    import pyarrow as pa

    if filter is None:
        return
    needed = find_columns(schema.names, [], filter)
    columns = [name for name in schema.names if name in needed]
    try:
        for batch in _scan(fragment, schema, columns).to_batches():
            apply_filter(pa.table(batch), filter)
    except OptionError as error:
        error.add_note(f"while arrowdl.Loader read {name}")
        raise
    except Exception:  # the file fails, not the filter
        return


def _check_type(fragment: ds.Fragment, schema: pa.Schema, column: str, name: str) -> None:
    """Raise OptionError if a column that can be read does not have values of the dataset's type."""
    import pyarrow as pa

    file_schema = fragment.physical_schema
    if (
        not has_column(column, file_schema)
        or file_schema.field(column).type == schema.field(column).type
    ):
        return
    type = schema.field(column).type
    try:
        for batch in _scan(fragment, file_schema, [column]).to_batches():
            try:
                batch.column(0).cast(type)
            except pa.ArrowException as error:
                raise OptionError(
                    f'column "{column}" of {name} is {file_schema.field(column).type}, and not all '
                    f"of its values fit {type}, the type in the schema of the dataset "
                    f"({describe(error)}): give the dataset a schema with a type that holds them, "
                    "or leave the file out"
                ) from error
    except OptionError:
        raise
    except Exception:  # the file fails, not the type
        return


def find_nulls(
    fragments: Sequence[ds.Fragment],  # files or row groups, whose footers have been read
    column: str,
) -> str:
    """Say which file lacks `column`, or has nulls in it by its statistics; empty if unknown."""
    import pyarrow.dataset as ds

    missing = [
        fragment.path
        for fragment in fragments
        if not has_column(column, fragment.physical_schema)
        and column not in ds.get_partition_keys(fragment.partition_expression)
    ]
    if missing:
        return describe_missing(missing)
    for fragment in fragments:
        for group in getattr(fragment, "row_groups", ()):
            if nulls := _count_nulls(fragment.metadata.row_group(group.id), column):
                return f"Row group {group.id} of {fragment.path!r} has {nulls} of them"
    return ""


def describe_missing(paths: Sequence[str]) -> str:
    """Return a sentence that says that the files at `paths` lack the column."""
    distinct = list(dict.fromkeys(paths))
    if not distinct:
        return ""
    if len(distinct) == 1:
        return f"The file {distinct[0]!r} lacks this column: its rows are null"
    return (
        f"{len(distinct)} files lack this column, and {distinct[0]!r} is the first: rows are null"
    )


def _count_nulls(group: ds.RowGroupInfo, column: str) -> int:
    """Count the nulls of a row group's column by its statistics; 0 if unknown."""
    for i in range(group.num_columns):
        chunk = group.column(i)
        if chunk.path_in_schema == column and (statistics := read_statistics(chunk)) is not None:
            return int(statistics.null_count or 0)
    return 0
