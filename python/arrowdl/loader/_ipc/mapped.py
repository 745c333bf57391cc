"""`MappedSource`: rows of memory-mapped Arrow IPC files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl import _core
from arrowdl.loader._files.locate import describe_missing
from arrowdl.loader._files.stamps import FileStamps
from arrowdl.loader._ipc.private_maps import MappedFile, PrivateRows, map_file
from arrowdl.loader._parquet.scans import naming_files
from arrowdl.loader._schema.fields import has_column
from arrowdl.loader._schema.unify import choose_read, join_tables, unify_schemas
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._sources.base import UnitOrder
from arrowdl.loader._sources.files import SourceFiles
from arrowdl.loader._sources.table import ChunkSource, TableSource
from arrowdl.loader._storage.readers import Stamp

if TYPE_CHECKING:
    import pyarrow as pa


class MappedSource(TableSource):
    """Rows of memory-mapped files; a pickle maps the files again."""

    def __init__(self, mapped: Mapped, columns: list[str] | None, stamps: FileStamps) -> None:
        super().__init__(mapped.table, columns)
        self._schema = mapped.schema
        self._schemas = mapped.schemas
        self._files = mapped.files
        starts = list(accumulate(mapped.rows[:-1], initial=0))
        self._file_starts = starts
        self._starts = _core.read_row_numbers(starts, starts[-1] + 1)
        self._columns, self._dtype = columns, mapped.dtype
        self._stamps = stamps
        self._buffer_rows: int | None = None  # of the shuffle that it is cut for
        self._private_rows: PrivateRows | None = None

    def _find_file(self, batch: pa.RecordBatch) -> str:
        buffers = [buffer for column in batch.columns for buffer in column.buffers() if buffer]
        for file in self._files:
            if any(0 <= buffer.address - file.address < file.size for buffer in buffers):
                return file.path
        return ""

    @property
    def files(self) -> MappedFiles:
        files, starts, schemas = self._files, self._file_starts, self._schemas
        refusal = self.refuse_plan()
        return MappedFiles(files, [*starts, self._total], schemas, self._stamps, refusal)

    def for_writing(self) -> MappedSource:
        if self._private_rows is None:
            self._load()
            batches = self._table.to_batches()
            self._private_rows = PrivateRows(batches, self._arrays, self._files)
        private = copy(self)
        private.is_shared = False
        return private

    def read_rows(
        self, start: int, stop: int, order: UnitOrder, readers: int = 1
    ) -> _core.DeviceStream:
        if self.is_shared or self._private_rows is None or self._buffer_rows is not None:
            return super().read_rows(start, stop, order, readers)
        arrays = self._private_rows.read(self._find_slices(start, stop))
        return self._check(_core.from_arrow_stream(chain([self._arrays[0][:0]], arrays)))

    def check_unchanged(self) -> None:
        self._stamps.check(may_be_gone=True)  # the mapping stays valid

    def check_read(self) -> None:
        self.check_unchanged()

    def check_taken(self, numbers: _core.DeviceArray) -> None:
        files = self._files
        if len(files) > 1:
            parts, _ = _core.group_rows(numbers, self._starts)
            files = [files[i] for i in parts]
        changed = [file.path for file in files if not self._stamps.is_same(file.path)]
        if changed:
            self._stamps.check(changed, may_be_gone=True)

    def cut_for_shuffle(self, rows: int) -> ChunkSource:
        cut = super().cut_for_shuffle(rows)
        cut._buffer_rows = rows  # type: ignore[attr-defined]
        return cut

    def __copy__(self) -> MappedSource:
        """Copy over the same mapping, unlike a pickle."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __reduce__(self) -> Any:
        paths = [file.path for file in self._files]
        options = (self._columns, self._dtype, self._stamps, self.vocabulary, self._buffer_rows)
        return _map_again, (paths, *options)


class MappedFiles(SourceFiles):
    """The files of a `MappedSource`."""

    def __init__(
        self,
        files: Sequence[MappedFile],
        starts: Sequence[int],  # first rows, and the number of all rows
        schemas: Sequence[tuple[str, pa.Schema]],
        stamps: FileStamps,
        refusal: str,
    ) -> None:
        super().__init__(refusal)
        self._files = files
        self._starts = starts
        self._schemas = schemas
        self._stamps = stamps

    def count(self) -> int:
        return len(self._files)

    def list_stamps(self) -> list[Stamp]:
        return [self._stamps.find(file.path) for file in self._files]

    def list_rows(self) -> Iterator[tuple[str, int]]:
        for file, (start, stop) in zip(self._files, pairwise(self._starts), strict=True):
            yield file.path, stop - start

    def find_nulls(self, column: str) -> str:
        return describe_missing(
            [path for path, schema in self._schemas if not has_column(column, schema)]
        )

    def locate_row(self, row: int) -> tuple[str, int]:
        file = bisect_right(self._starts, row) - 1
        return self._files[file].path, row - self._starts[file]


def _map_again(
    paths: list[str],
    columns: list[str] | None,
    dtype: Any,
    stamps: FileStamps,
    vocabulary: Vocabulary,
    buffer_rows: int | None,
) -> ChunkSource:
    stamps.check()
    mapped = map_files(paths, columns, dtype)
    if mapped is None:
        raise ValueError(f"{paths} were compressed after the Loader was made: make a new Loader")
    source = MappedSource(mapped, columns, stamps)
    source.use_vocabulary(vocabulary)
    return source if buffer_rows is None else source.cut_for_shuffle(buffer_rows)


class Mapped(NamedTuple):
    """Mapped files."""

    # the rows, in the mapped memory, without columns that differ between files and are not read
    table: pa.Table
    schema: pa.Schema  # all columns
    files: list[MappedFile]
    schemas: list[tuple[str, pa.Schema]]  # path and schema of each file
    rows: list[int]  # rows of each file
    dtype: Any


def map_files(paths: list[str], columns: list[str] | None, dtype: Any = None) -> Mapped | None:
    """Map IPC files of which `columns` are read; None if one is compressed.

    Raises ValueError if the files have different types in a column that is read.
    """

    tables = []
    files = []
    for path in paths:
        with naming_files([path]):
            mapped, file = map_file(path)
            files.append(file)
            reader = _open(path, mapped)
            is_file = hasattr(reader, "num_record_batches") and reader.num_record_batches > 0
            if is_file and not _is_in(reader.get_batch(0), mapped):
                return None
            tables.append(reader.read_all())
    schemas = [(path, t.schema) for path, t in zip(paths, tables, strict=True)]
    unified = unify_schemas(schemas, choose_read(columns, None), dtype=dtype)
    table = join_tables(zip(map(repr, paths), tables, strict=True), unified)
    rows = [table.num_rows for table in tables]
    return Mapped(table, unified.schema, files, schemas, rows, dtype)


def _open(path: str, mapped: pa.MemoryMappedFile) -> Any:
    """Open the file or the stream format."""
    import pyarrow as pa

    try:
        return pa.ipc.open_file(mapped)
    except pa.ArrowInvalid as error:
        try:
            return pa.ipc.open_stream(mapped)
        except pa.ArrowInvalid:
            raise ValueError(
                f"{path!r} is not an Arrow IPC file, or not a whole one ({error}): write it again, "
                "or leave it out of the Loader's paths"
            ) from error


def _is_in(batch: pa.RecordBatch, mapped: pa.MemoryMappedFile) -> bool:
    mapped.seek(0)
    whole = mapped.read_buffer()
    return all(
        whole.address <= buffer.address < whole.address + whole.size
        for column in batch.columns
        for buffer in column.buffers()
        if buffer is not None and buffer.size > 0
    )
