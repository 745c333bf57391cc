"""Files by their names: paths, globs and directories of Parquet and Arrow IPC files."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Container, Sequence
from copy import copy
from fnmatch import fnmatchcase
from itertools import accumulate, chain, groupby, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl import _core
from arrowdl.loader._sources.base import Source, TableSource, UnitOrder
from arrowdl.loader._sources.dataset import open_dataset
from arrowdl.loader._sources.file_stamps import FileStamps
from arrowdl.loader._sources.private_maps import MappedFile, PrivateRows, map_file

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

_IPC_SUFFIXES = {".arrow", ".ipc", ".feather"}
_STREAM_START = b"\xff\xff\xff\xff"
_OTHER_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}


class Root(NamedTuple):
    """Files below a directory: those named key=value between it and them make columns."""

    base: str
    files: list[str]


def expand_paths(source: Any) -> list[Root] | None:
    """The files that `source` names: a path, a glob, a directory, or several of these."""
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if not isinstance(source, (list, tuple)):
        return None
    if not source:
        raise ValueError(
            f"{source!r} is an empty list: give files, or record batches, in it (glob.glob() gives "
            "an empty list where no file matches; the Loader takes the pattern itself as well)"
        )
    if not all(isinstance(path, (str, os.PathLike)) for path in source):
        return None
    paths = [os.fspath(path) for path in source]
    base = _find_shared_directory([path for path in paths if os.path.isfile(path)])
    roots = [
        Root(base, [_make_absolute(path)]) if os.path.isfile(path) else _expand_path(path)
        for path in paths
    ]
    return [
        Root(base, [file for root in same for file in root.files])
        for base, same in groupby(roots, key=lambda root: root.base)
    ]


def _find_shared_directory(files: Sequence[str]) -> str:
    directories = [os.path.dirname(_make_absolute(file)) for file in files]
    return os.path.commonpath(directories) if directories else ""


def _make_absolute(path: str) -> str:
    """With the directories as they were given: not through os.path.abspath, for "link/.."."""
    return str(Path(path).absolute())


def _expand_path(path: str) -> Root:
    if "://" in path:
        raise ValueError(
            f"{path!r} is an address, and a Loader takes paths: give it a dataset, "
            f'pyarrow.dataset.dataset({path!r}, format="parquet")'
        )
    if os.path.isdir(path):
        base, files = path, _list_directory(path)
        if not files:
            raise FileNotFoundError(f"no file in the directory {path!r} or below it")
    else:
        base, files = _find_base(path), _match(path)
        if not files:
            raise FileNotFoundError(f"no file at {path!r}, and none that it matches as a pattern")
    return Root(_make_absolute(base), sorted(map(_make_absolute, files)))


def _find_base(pattern: str) -> str:
    """The directories of `pattern` before the first with a wildcard."""
    return str(Path(*takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts)))


def _list_directory(path: str, above: tuple[str, ...] = ()) -> list[str]:
    """The files in `path` and below it, through links too, but for those to a directory `above`."""
    real = os.path.realpath(path)
    if real in above:
        return []
    files = []
    for entry in os.scandir(path):
        if _is_hidden(entry.name):
            continue
        if entry.is_dir():
            files += _list_directory(entry.path, (*above, real))
        elif entry.is_file():
            files.append(entry.path)
    return files


def _match(pattern: str) -> list[str]:
    """The files that match, and those in directories that do."""
    base = _find_base(pattern)
    written = [part for part in Path(pattern).parts if _is_hidden(part)]
    found = []
    for path in glob.glob(pattern, recursive=True):
        parts = Path(os.path.relpath(path, base)).parts
        way = list(accumulate(parts, os.path.join, initial=base))
        if _has_marker(parts, written) or _leads_back(way):
            continue
        if os.path.isdir(path):
            found += _list_directory(path, tuple(map(os.path.realpath, way[:-1])))
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _has_marker(parts: Sequence[str], written: Sequence[str]) -> bool:
    """Whether one of `parts` is hidden, and no name that the pattern has `written` out."""
    return any(
        _is_hidden(part) and not any(fnmatchcase(part, name) for name in written) for part in parts
    )


def _leads_back(way: Sequence[str]) -> bool:
    """Whether a link on the way leads to a directory before it: glob follows it 40 times."""
    return any(
        os.path.islink(step) and os.path.realpath(step) in map(os.path.realpath, way[:i])
        for i, step in enumerate(way)
    )


def _is_hidden(name: str) -> bool:
    """By the convention of Spark and others: markers and metadata beside the data."""
    return name.startswith(("_", "."))


def open_paths(
    roots: Sequence[Root], columns: list[str] | None, filter: Any, memory_map: bool
) -> Source:
    """The rows of Parquet files or of Arrow IPC files."""
    paths = [path for root in roots for path in root.files]
    stamps = FileStamps()
    stamps.add_paths(paths)  # before their footers are read
    kinds = {_find_kind(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError(
            "some of the files are Parquet and some Arrow IPC, by their names: make a Loader of "
            "each"
        )
    if kinds == {"ipc"} and memory_map and filter is None and not any(map(_has_partitions, roots)):
        mapped = _map_files(paths)
        if mapped is not None:
            return MappedSource(*mapped, columns, stamps)
    if kinds == {"ipc"}:
        _check_no_streams(paths)
    return open_dataset(_make_dataset(roots, kinds.pop()), columns, filter, memory_map, stamps)


def _has_partitions(root: Root) -> bool:
    directories = {os.path.dirname(file) for file in root.files}
    return any("=" in os.path.relpath(directory, root.base) for directory in directories)


def _check_no_streams(paths: Sequence[str]) -> None:
    for path in paths:
        with open(path, "rb") as file:
            is_stream = file.read(len(_STREAM_START)) == _STREAM_START
        if is_stream:
            raise ValueError(
                f"{path!r} has the stream format of Arrow IPC, and filter=, memory_map=False, "
                "compressed files and columns of key=value directories need the file format: write "
                "it by "
                "pyarrow.ipc.new_file(), or give a table, pyarrow.ipc.open_stream("
                f"pyarrow.memory_map({path!r})).read_all(), with filter() on it"
            )


def _find_kind(path: str) -> str:
    suffix = Path(path).suffix.lower()
    if suffix in _OTHER_SUFFIXES:
        raise ValueError(
            f"{path!r} is neither Parquet nor Arrow IPC, by its name: give a dataset, "
            f'pyarrow.dataset.dataset(..., format="{_OTHER_SUFFIXES[suffix]}")'
        )
    return "ipc" if suffix in _IPC_SUFFIXES else "parquet"


# ---- one schema ---------------------------------------------------------------------------------


def _make_dataset(roots: Sequence[Root], kind: str) -> ds.FileSystemDataset:
    """A dataset with the columns of all files, not of the first alone: nulls where one has not.

    Types are the same in all, but for columns of nothing but nulls: pyarrow would cast silently,
    float64 to float32 as well.
    """
    import pyarrow.dataset as ds

    datasets = [_open_root(root, kind) for root in roots]
    return ds.FileSystemDataset(
        [fragment for dataset in datasets for fragment in dataset.get_fragments()],
        _unify_schemas([found for dataset in datasets for found in _list_schemas(dataset)]),
        datasets[0].format,
        datasets[0].filesystem,
    )


def _open_root(root: Root, kind: str) -> ds.FileSystemDataset:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.fs as fs

    try:
        return ds.dataset(
            root.files, format=kind, partitioning="hive", partition_base_dir=root.base
        )
    except pa.ArrowInvalid:  # which names neither the file, that is the first, nor the column
        format = ds.ParquetFileFormat() if kind == "parquet" else ds.IpcFileFormat()
        _check_names(root.files[0], format.inspect(root.files[0], fs.LocalFileSystem()))
        raise


def _check_names(path: str, schema: pa.Schema) -> None:
    """Raise ValueError where several columns have one name."""
    for name, number in Counter(schema.names).items():
        if number > 1:
            raise ValueError(
                f'{path!r} has {number} columns named "{name}", and a batch, which is a dict, has '
                "one place for them: write it again with other names, or read it into a table "
                "(pyarrow.parquet.ParquetFile(path).read(), pyarrow.ipc.open_file(path).read_all())"
                " and give that, after rename_columns()"
            )


def _list_schemas(dataset: ds.FileSystemDataset) -> list[tuple[str, pa.Schema]]:
    """Of its first file, with the columns of the directories, and of each file."""
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


def _unify_schemas(schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    import pyarrow as pa

    (first, unified), *others = schemas
    for path, schema in schemas:
        _check_names(path, schema)
    for path, schema in others:
        if schema.equals(unified):
            continue
        try:
            unified = pa.unify_schemas([unified, schema])
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise ValueError(
                f"{path!r} has not the types of {first!r} and those after it ({error}): give a "
                "pyarrow dataset with the schema that all are to be read as"
            ) from error
    return unified


# ---- memory-mapped files ------------------------------------------------------------------------


class MappedSource(TableSource):
    """Rows of memory-mapped files, which another process maps again."""

    def __init__(
        self,
        table: pa.Table,
        files: list[MappedFile],
        columns: list[str] | None,
        stamps: FileStamps,
    ) -> None:
        super().__init__(table, columns)
        self._files = files
        self._columns = columns
        self._stamps = stamps
        self._is_cut = False
        self._private_rows: PrivateRows | None = None

    def for_writing(self) -> MappedSource:
        if self._private_rows is None:
            self._load()
            batches = self._table.to_batches()
            self._private_rows = PrivateRows(batches, self._arrays, self._files)
        private = copy(self)
        private.is_shared = False
        return private

    def read_rows(self, start: int, stop: int, order: UnitOrder) -> _core.DeviceStream:
        if self.is_shared or self._private_rows is None or self._is_cut:
            return super().read_rows(start, stop, order)
        arrays = self._private_rows.read(self._find_slices(start, stop))
        return self._check(_core.from_arrow_stream(chain([self._arrays[0][:0]], arrays)))

    def check_unchanged(self) -> None:
        self._stamps.check(may_be_gone=True)  # the memory stays

    def check_read(self) -> None:
        self.check_unchanged()

    def cut_for_shuffle(self) -> TableSource:
        cut = super().cut_for_shuffle()
        cut._is_cut = True  # type: ignore[attr-defined]
        return cut

    def __copy__(self) -> MappedSource:
        """Over the same mapping; pickles are for other processes."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __reduce__(self) -> Any:
        paths = [file.path for file in self._files]
        return _map_again, (paths, self._columns, self._stamps, self._is_cut)


def _map_again(
    paths: list[str], columns: list[str] | None, stamps: FileStamps, is_cut: bool
) -> TableSource:
    stamps.check()
    mapped = _map_files(paths)
    if mapped is None:
        raise ValueError(f"{paths} have been compressed since the Loader was made")
    source = MappedSource(*mapped, columns, stamps)
    return source.cut_for_shuffle() if is_cut else source


def _map_files(paths: list[str]) -> tuple[pa.Table, list[MappedFile]] | None:
    """The memory-mapped rows of IPC files, or None where they are compressed."""
    import pyarrow as pa

    tables = []
    files = []
    for path in paths:
        mapped, file = map_file(path)
        files.append(file)
        try:
            reader = pa.ipc.open_file(mapped)
            if reader.num_record_batches and not _lies_in(reader.get_batch(0), mapped):
                return None
        except pa.ArrowInvalid:
            reader = pa.ipc.open_stream(mapped)
        tables.append(reader.read_all())
    schema = _unify_schemas([(path, t.schema) for path, t in zip(paths, tables, strict=True)])
    empty = schema.empty_table()
    return pa.concat_tables([empty, *tables], promote_options="default"), files


def _lies_in(batch: pa.RecordBatch, mapped: pa.MemoryMappedFile) -> bool:
    mapped.seek(0)
    whole = mapped.read_buffer()
    return all(
        whole.address <= buffer.address < whole.address + whole.size
        for column in batch.columns
        for buffer in column.buffers()
        if buffer is not None and buffer.size > 0
    )
