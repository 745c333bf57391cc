"""`RowGroupFiles`: row groups of local Parquet files, read without a scanner.

A scanner opens each file again and passes each batch through a query, which takes longer than the
decoding if files are small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.stamps import is_local, names_file
from arrowdl.loader._parquet.counted import check_counts, count_groups, refuse
from arrowdl.loader._parquet.joined_files import JoinedFiles
from arrowdl.loader._parquet.planned import PlannedUnit, materialize
from arrowdl.loader._parquet.polars_decoder import PolarsDecoder
from arrowdl.loader._parquet.scans import Check, NotePath, Query, naming_files

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

# Larger row groups are decoded by pyarrow's threads, a column each.
_THREADED_BYTES = 2**20
# A column is read in parts of this size, not as a whole.
_BUFFER_BYTES = 2**16
# One array cannot hold the bytes of a column of strings of a larger row group.
_WHOLE_BYTES = 2**30


class RowGroupFiles:
    """Reads row groups of the files of a dataset, where a scanner would return the same batches."""

    def __init__(
        self,
        dataset: ds.FileSystemDataset,
        query: Query,  # without a filter, with columns that are not fields of others
        # what decodes the columns that it can decode; pyarrow decodes the others
        decoder: str = "pyarrow",
    ) -> None:
        self._columns = query.columns
        unit = dataset.format.read_options.coerce_int96_timestamp_unit
        self._options: dict[str, Any] = {"coerce_int96_timestamp_unit": unit}
        self.schema = query.project(dataset)  # of the batches
        self._polars = PolarsDecoder(self.schema) if decoder == "polars" else None
        self._fits_by_key: dict[Any, bool] = {}  # of files with equal columns, or by path
        self._fitting: list[pa.Schema] = []  # of files that pyarrow.parquet reads alike
        self._joined = JoinedFiles(self._columns, self._options)

    def can_read(self, fragment: ds.Fragment) -> bool:
        """Whether `fragment`, row groups of a file, is read as a scanner reads it."""
        import pyarrow.dataset as ds

        keys = ds.get_partition_keys(fragment.partition_expression)
        if keys and any(name in keys for name in self.schema.names):
            return False
        key = getattr(fragment, "alike", None) or fragment.path
        if key not in self._fits_by_key:
            self._fits_by_key[key] = self._fits(materialize(fragment))
        return self._fits_by_key[key]

    def _fits(self, fragment: ds.Fragment) -> bool:
        if not hasattr(fragment, "row_groups") or names_file(fragment.metadata):
            return False
        file_schema = fragment.physical_schema
        if any(file_schema.equals(fitting) for fitting in self._fitting):
            return True
        if not all(_has_field(file_schema, field) for field in self.schema):
            return False
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pa.OSFile(fragment.path) as opened:
            file = pq.ParquetFile(opened, metadata=fragment.metadata, **self._options)
            if not file.schema_arrow.equals(file_schema):
                return False
        self._fitting.append(file_schema)
        return True

    def read(
        self,
        fragments: Sequence[ds.Fragment],
        rows: int,  # of a batch, at most
        joined_bytes: int,  # of small files that become one batch, at most
        check: Check,
        find_damage: Callable[[int], str],
        note: NotePath | None = None,
        *,
        are_whole: bool = False,  # most bytes of the files are read
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of fragments that `can_read` accepts, as `scans.scan` does.

        A file is checked after the rows of each batch have been read.
        """
        paths = [fragment.path for fragment in fragments]
        joined = _Joined(self.schema, rows, joined_bytes)
        is_one_by_one = note is not None or any(map(_has_dictionary, self.schema.types))
        is_joined = are_whole and not is_one_by_one and self._polars is None
        groups = self._joined.group(fragments, joined_bytes if is_joined else 0, rows)
        with naming_files(paths, find_damage) as names:
            try:
                for group in groups:
                    for batch, nbytes in self._read_group(group, rows, check, note, names):
                        joined.add(batch, nbytes)
                        if joined.is_full or is_one_by_one:
                            yield from joined.take()
            except Exception:
                yield from joined.take()  # the rows before those that cannot be read
                raise
        yield from joined.take()

    def _read_group(
        self,
        group: Sequence[ds.Fragment],
        rows: int,
        check: Check,
        note: NotePath | None,
        names: list[str],  # of files; those that were read are removed
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield batches with the bytes of the files that they are of."""
        nbytes = [sum(part.total_byte_size for part in fragment.row_groups) for fragment in group]
        if len(group) > 1 and (table := self._joined.read(group, check)) is not None:
            for batch in table.to_batches(max_chunksize=rows):
                yield batch, 2 * sum(nbytes)  # what is large enough not to be copied once more
            del names[: len(group)]
            return
        for fragment, size in zip(group, nbytes, strict=True):
            if note is not None:
                note(fragment.path)
            for batch in self._read_file(fragment, rows, check):
                check([fragment.path])
                yield batch, size
                del batch
            del names[0]

    def _read_file(
        self, fragment: ds.Fragment, rows: int, check: Check
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = fragment.path
        groups = fragment.row_groups
        largest = max(group.total_byte_size for group in groups)
        uses_threads = largest > _THREADED_BYTES and len(self.schema) > 1
        options = {"pre_buffer": False, "buffer_size": _BUFFER_BYTES, **self._options}
        with pa.OSFile(path) as opened:
            if isinstance(fragment, PlannedUnit):
                file = fragment.open_local(opened, **options)
            else:
                check([path])  # its pages are where the kept footer says
                file = pq.ParquetFile(opened, metadata=fragment.metadata, **options)
            if getattr(fragment, "alike", None) is None:  # else the core has done it
                count_groups(file.metadata, [group.id for group in groups], repr(path))
            least = 0 if len(groups) == 1 else _THREADED_BYTES  # several small ones are joined
            for how, some in groupby(
                groups, lambda group: self._choose(group, range(least, _WHOLE_BYTES), rows, file)
            ):
                if how == "in parts":
                    read = partial(self._iterate, file, rows, uses_threads=uses_threads)
                    for together in _join_groups(some, rows):
                        yield from _read_together(path, together, read)
                    continue
                # Faster than iter_batches, which has more tasks for each column.
                for group in some:
                    table = None
                    if how == "by polars":
                        table = self._read_by_polars(file, path, group.id, uses_threads)
                    if table is None:
                        table = file.read_row_group(
                            group.id, self._columns, use_threads=uses_threads
                        )
                    if table.num_rows != group.num_rows:
                        raise refuse(_name(path, group), table.num_rows, group.num_rows)
                    batches = table.to_batches(max_chunksize=rows)
                    del table
                    yield from batches
                    del batches

    def _iterate(
        self,
        file: pq.ParquetFile,
        rows: int,
        groups: Sequence[ds.RowGroupInfo],
        *,
        uses_threads: bool,
    ) -> Iterator[pa.RecordBatch]:
        numbers = [group.id for group in groups]
        yield from file.iter_batches(rows, numbers, self._columns, use_threads=uses_threads)

    def _choose(
        self, group: pq.RowGroupMetaData, sizes: range, rows: int, file: pq.ParquetFile
    ) -> str:
        """Say how a row group is read: "by polars", "whole", or "in parts" that are joined."""
        if self._polars is not None and self._polars.fits(group, file.metadata):
            return "by polars"
        is_whole = group.num_rows <= rows and group.total_byte_size in sizes
        return "whole" if is_whole else "in parts"

    def _read_by_polars(
        self, file: pq.ParquetFile, path: str, number: int, uses_threads: bool
    ) -> pa.Table | None:
        """Return a row group, of which polars decodes what it can; None if it fails."""
        import pyarrow as pa

        assert self._polars is not None
        footer = file.metadata
        start = sum(footer.row_group(i).num_rows for i in range(number))
        columns = self._polars.read(path, start, footer.row_group(number).num_rows)
        if columns is None:
            return None
        other_columns = [name for name in self.schema.names if name not in columns]
        if other_columns:
            table = file.read_row_group(number, other_columns, use_threads=uses_threads)
            columns.update(zip(table.column_names, table.columns, strict=True))
        return pa.Table.from_arrays(
            [columns[name] for name in self.schema.names], schema=self.schema
        )


def _join_groups(groups: Iterable[ds.RowGroupInfo], rows: int) -> Iterator[list[ds.RowGroupInfo]]:
    """Join row groups that have `rows` rows together, at most; a larger one stays alone."""
    joined: list[ds.RowGroupInfo] = []
    room = rows
    for group in groups:
        if joined and group.num_rows > room:
            yield joined
            joined, room = [], rows
        joined.append(group)
        room -= group.num_rows
    yield joined


def _read_together(
    path: str,
    groups: Sequence[ds.RowGroupInfo],
    read: Callable[[Sequence[ds.RowGroupInfo]], Iterator[pa.RecordBatch]],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of row groups; those of each alone if they cannot be read, or are too few."""
    if len(groups) > 1:
        batches = []
        with suppress(Exception):
            batches = list(read(groups))
        if sum(map(len, batches)) == sum(group.num_rows for group in groups):
            while batches:
                yield batches.pop(0)
            return
    for group in groups:
        name = [_name(path, group)].__getitem__
        checked = check_counts(read([group]), [group.num_rows], name)
        # Nothing comes of a short one: without the values that one column lacks, rows are wrong.
        yield from list(checked) if group.total_byte_size < _WHOLE_BYTES else checked


def _name(path: str, group: ds.RowGroupInfo) -> str:
    return f"{path!r}, row group {group.id}"


class _Joined:
    """Joins batches of small files, which take longer to hand over than to copy."""

    def __init__(
        self,
        schema: pa.Schema,
        rows: int,  # of a batch, at most
        nbytes: int,  # of its files, at most
    ) -> None:
        self._schema = schema
        self._most_bytes = nbytes
        self._most_rows = rows
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0
        self.is_full = False

    def add(self, batch: pa.RecordBatch, nbytes: int) -> None:
        """Add a batch of a file of `nbytes` bytes."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += nbytes
        self.is_full = self._bytes >= self._most_bytes or self._rows >= self._most_rows

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield what was added."""
        import pyarrow as pa

        batches, self._batches = self._batches, []
        self._rows = self._bytes = 0
        self.is_full = False
        if not batches:
            return
        if not all(batch.schema.equals(self._schema) for batch in batches):  # in order and nulls
            names = self._schema.names
            batches = [
                pa.RecordBatch.from_arrays(
                    [batch.column(name) for name in names], schema=self._schema
                )
                for batch in batches
            ]
        table = pa.Table.from_batches(batches, self._schema)
        if len(batches) > 1:
            del batches[:]
            table = table.combine_chunks()
        yield from table.to_batches()


def open_row_groups(
    dataset: ds.FileSystemDataset, query: Query, decoder: str = "pyarrow"
) -> RowGroupFiles | None:
    """Return what reads row groups of a dataset; None if only a scanner reads what `query` asks.

    `decoder` as of `RowGroupFiles`.
    """
    import pyarrow.dataset as ds
    import pyarrow.fs as fs

    if not isinstance(dataset.format, ds.ParquetFileFormat):
        return None
    unit = dataset.format.read_options.coerce_int96_timestamp_unit
    plain = ds.ParquetFileFormat(coerce_int96_timestamp_unit=unit)
    is_read_as_it_is = (
        query.filter is None
        and is_local(dataset.filesystem)
        and dataset.filesystem.equals(fs.LocalFileSystem())
        and dataset.format.equals(plain)
        and dataset.format.default_fragment_scan_options.equals(plain.default_fragment_scan_options)
    )
    if not is_read_as_it_is or isinstance(query.projection, dict) or query.columns == []:
        return None
    names = dataset.schema.names
    # pyarrow.parquet takes a dot in a name for a field of a column.
    if query.columns is not None and any("." in name for name in names):
        return None
    return RowGroupFiles(dataset, query, decoder) if len(set(names)) == len(names) > 0 else None


def _has_field(schema: pa.Schema, field: pa.Field) -> bool:
    """Whether a file has a column as it is read, which pyarrow.parquet can read."""
    import pyarrow as pa

    i = schema.get_field_index(field.name)
    if i < 0 or not schema.field(i).type.equals(field.type):
        return False
    # pyarrow.parquet cannot join dictionaries within lists and structs of several row groups.
    return pa.types.is_dictionary(field.type) or not _has_dictionary(field.type)


def _has_dictionary(type: pa.DataType) -> bool:
    """Whether a type at any level is dictionary-encoded: each batch may have its own values."""
    import pyarrow as pa

    if isinstance(type, pa.BaseExtensionType):
        return _has_dictionary(type.storage_type)
    if pa.types.is_dictionary(type):
        return True
    return any(_has_dictionary(type.field(i).type) for i in range(type.num_fields))
