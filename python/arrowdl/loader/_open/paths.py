"""Parquet and Arrow IPC files, given by their paths, as a source."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._files.find_local import Root, check_named, expand_paths, list_ends, list_paths
from arrowdl.loader._files.find_remote import expand_urls, open_filesystem
from arrowdl.loader._files.folder_keys import add_keys, find_keys, note_differences
from arrowdl.loader._files.footers import Footers, read_footers
from arrowdl.loader._files.stamps import FileStamps
from arrowdl.loader._files.stored_footers import read_stored_footers
from arrowdl.loader._ipc.mapped import MappedSource, map_files
from arrowdl.loader._parquet.int96 import explain_int96, make_parquet_format
from arrowdl.loader._parquet.network import find_footers
from arrowdl.loader._parquet.open_dataset import open_files
from arrowdl.loader._schema.unify import (
    check_names,
    choose_read,
    list_schemas,
    read_schema,
    unify_schemas,
)
from arrowdl.loader._skipped import Skipped, can_skip, describe, detach, opening
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.request import Request
from arrowdl.loader._storage.threads import FILES_AT_ONCE, map_in_threads

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_KINDS = {
    **dict.fromkeys((".parquet", ".pq", ".parq"), "parquet"),
    **dict.fromkeys((".arrow", ".arrows", ".ipc", ".feather"), "ipc"),
}
_STREAM_START = b"\xff\xff\xff\xff"
_START = 6  # bytes that tell a format
_OTHER_STARTS = {
    **{b"ORC": "ORC", b"Obj\x01": "Avro", b"FEA1": "Feather of version 1", b"\x89HDF": "HDF5"},
    **{b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK": "a zip file", b"BZh": "bzip2"},
}
_OTHER_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}


def open_paths(source: Any, request: Request) -> Source:
    """Open Parquet files or Arrow IPC files by their paths, URLs or patterns.

    Raises ValueError if the files have several formats, or one that is not supported;
    FileNotFoundError if no file matches; OSError if a local file has changed since a plan was made
    (other files are compared when they are read).
    """
    paths = list_paths(source) or []
    is_remote = request.storage.is_remote(paths)
    if request.plan is not None:
        return _open_planned(paths, request, request.plan, is_remote=is_remote)
    roots = (expand_urls(paths, request.storage) if is_remote else expand_paths(source)) or []
    skipped = request.skipped
    try:
        return _open_all(roots, request)
    except (OSError, ValueError):
        readable = None if skipped is None else _drop_damaged(roots, request.memory_map, skipped)
        if not readable:
            raise
    return _open_all(readable, request)


def _open_planned(paths: list[str], request: Request, plan: FilePlan, *, is_remote: bool) -> Source:
    """Open the files of a plan, in the stores that `paths` name."""
    import pyarrow.dataset as ds
    import pyarrow.fs as fs

    plan.check_source("", "paths or URLs")
    plan.check(request.columns, request.filter)
    planned_stamps = {file.path: file.stamp for file in plan.files}
    stamps, filesystem = FileStamps(), None
    if is_remote:
        filesystem = open_filesystem(paths, request.storage, planned_stamps, plan.revisions)
        if plan.format == "parquet":
            filesystem = _fetch_ahead(filesystem)
    else:
        check_named(planned_stamps, paths)
        stamps.add_paths(planned_stamps)
    format = make_parquet_format() if plan.format == "parquet" else ds.IpcFileFormat()
    local = fs.LocalFileSystem()
    dataset = ds.FileSystemDataset([], plan.schema, format, filesystem or local)
    return open_files(dataset, request, stamps)


def _drop_damaged(
    roots: Sequence[Root], memory_map: bool, left_out: list[Skipped]
) -> list[Root] | None:
    """Open each file alone; return those that can be opened, None if all or none can be."""
    count = len(left_out)
    filesystem = roots[0].filesystem

    def find_error(path: str) -> Exception | None:
        try:
            root = Root(os.path.dirname(path), [path], filesystem)
            _open_all([root], Request(memory_map=memory_map))
        except (OSError, ValueError) as error:
            cause = error.__cause__
            if can_skip(error) or (cause is not None and can_skip(cause)):
                return detach(error)
            raise
        return None

    readable = []
    for root in roots:
        errors = map_in_threads(find_error, root.files, FILES_AT_ONCE)
        results = list(zip(root.files, errors, strict=True))
        left_out += [Skipped(path, (), describe(error)) for path, error in results if error]
        if files := [path for path, error in results if error is None]:
            readable.append(Root(root.base, files, filesystem))
    return readable if len(left_out) > count else None


def _open_all(roots: Sequence[Root], request: Request) -> Source:
    columns, filter, skipped = request.columns, request.filter, request.skipped
    paths = [path for root in roots for path in root.files]
    stamps = FileStamps()
    footers = Footers()
    filesystem = roots[0].filesystem  # one for all
    with opening(skipped):
        kinds = _find_kinds(paths, filesystem)
    if len(kinds) > 1:
        raise ValueError(
            "some of the files are Parquet and some Arrow IPC: make one Loader for each format"
        )
    if filesystem is not None and kinds == {"parquet"}:
        filesystem = _fetch_ahead(filesystem)  # now: fragments that are moved lose their footers
        roots = [root._replace(filesystem=filesystem) for root in roots]
        footers = read_stored_footers(find_footers(filesystem), paths)
    if filesystem is None and kinds == {"parquet"}:
        footers = read_footers(paths)
        stamps.add_footers(footers)
    if filesystem is None and not footers.are_all:
        stamps.add_paths(paths)  # before their footers are read
    may_map = request.memory_map and filesystem is None and filter is None
    if kinds == {"ipc"} and may_map and not any(map(_has_partitions, roots)):
        with opening(skipped):
            mapped = map_files(paths, columns, request.dtype)
        if mapped is not None:
            return MappedSource(mapped, columns, stamps)
    if kinds == {"ipc"}:
        _check_no_streams(paths, filesystem)
    schemas = zip(footers.paths, footers.schemas, strict=True)
    alike = {path: schema for path, schema in schemas if schema}
    is_local = footers.are_all and filesystem is None
    is_plain = is_local and filter is None and not any(map(_has_partitions, roots))
    if is_plain:  # the columns are those of the first one of the files that are alike
        first = [set({alike[file]: file for file in root.files[::-1]}.values()) for root in roots]
        roots = [
            root._replace(files=[file for file in root.files if file in names])
            for root, names in zip(roots, first, strict=True)
        ]
    with opening(skipped):
        dataset = _make_dataset(roots, kinds.pop(), request, alike)
    if is_plain:  # the row groups are those of `footers`
        dataset = type(dataset)([], dataset.schema, dataset.format, dataset.filesystem)
    return open_files(dataset, request, stamps, footers)


def _fetch_ahead(filesystem: Any) -> Any:
    from arrowdl.loader._storage.fetch_handler import fetch_ahead

    return fetch_ahead(filesystem)


def _has_partitions(root: Root) -> bool:
    if "=" not in "".join(root.files):
        return False
    directories = {os.path.dirname(file) for file in root.files}
    return any("=" in os.path.relpath(directory, root.base) for directory in directories)


def _check_no_streams(paths: Sequence[str], filesystem: Any) -> None:
    def is_stream(path: str) -> bool:
        return _read_start(path, filesystem).startswith(_STREAM_START)

    for path, is_stream_file in zip(
        paths, map_in_threads(is_stream, paths, FILES_AT_ONCE), strict=True
    ):
        if is_stream_file and filesystem is not None:
            raise ValueError(
                f"{path!r} has the stream format of Arrow IPC, which has no index of its batches: "
                "write it with pyarrow.ipc.new_file(), or give a function that makes its stream, "
                "lambda: pyarrow.ipc.open_stream(filesystem.open_input_stream(path))"
            )
        if is_stream_file:
            raise ValueError(
                f"{path!r} has the stream format of Arrow IPC, and filter=, "
                "Storage.memory_map=False, compression and columns of key=value directories need "
                "the file format: write it with pyarrow.ipc.new_file(), or give the Loader a "
                f"table, pyarrow.ipc.open_stream(pyarrow.memory_map({path!r})).read_all(), which "
                "has a filter() of its own"
            )


def _find_kinds(paths: Sequence[str], filesystem: Any) -> set[str]:
    """Return the formats of files; raise ValueError for one that is not supported."""
    # The ending names the format. For each other ending, the first file is opened.
    suffixes = {os.path.splitext(end)[1].lower() for end in list_ends(paths)}
    first: dict[str, str] = {}
    for path in paths if suffixes - _KINDS.keys() else ():
        first.setdefault(os.path.splitext(path)[1].lower(), path)
    for suffix in first.keys() & _OTHER_SUFFIXES.keys():
        raise ValueError(
            f"{first[suffix]!r} is neither Parquet nor Arrow IPC, by its name: give the Loader a "
            f'dataset, pyarrow.dataset.dataset(..., format="{_OTHER_SUFFIXES[suffix]}"); or leave '
            "it out, by a pattern such as '*.parquet'"
        )
    unknown = [path for suffix, path in first.items() if suffix not in _KINDS]
    starts = map_in_threads(lambda path: _read_start(path, filesystem), unknown, FILES_AT_ONCE)
    kinds = {_KINDS[suffix] for suffix in suffixes if suffix in _KINDS}
    return kinds | {_recognize(*pair) for pair in zip(unknown, starts, strict=True)}


def _read_start(path: str, filesystem: Any) -> bytes:
    if filesystem is not None:
        with filesystem.open_input_file(path) as file:
            return bytes(file.read(_START))
    with open(path, "rb") as local:
        return local.read(_START)


def _recognize(path: str, start: bytes) -> str:
    """Return the format of a file that starts with `start`."""
    if not start or start.startswith((b"PAR1", b"PARE")):  # of an empty one, pyarrow says so
        return "parquet"
    if start == b"ARROW1" or start.startswith(_STREAM_START):
        return "ipc"
    import pyarrow as pa

    what = next((name for magic, name in _OTHER_STARTS.items() if start.startswith(magic)), "")
    raise ValueError(
        f"{path!r} starts with {start!r}{what and f', as {what} does'}: the Loader reads files of "
        "Parquet (.parquet), of Arrow IPC (.arrow, .ipc, .feather) and its streams (.arrows). "
        "Leave others out, by a pattern such as '*.parquet', or give what reads them: a pyarrow "
        "dataset, or a function that makes an Arrow stream"
    ) from pa.ArrowInvalid(f"{path!r} is of no known format")


def _make_dataset(
    roots: Sequence[Root],
    kind: str,
    request: Request,
    alike: Mapping[str, bytes],  # as of `list_schemas`
) -> ds.FileSystemDataset:
    """Make a dataset with the columns of all files; a column that a file lacks is null there."""
    import pyarrow.dataset as ds

    # A column that is read has the same type in all files, or is all null in some: pyarrow would
    # cast without a word, also float64 to float32.
    is_read = choose_read(request.columns, request.filter)
    datasets = [_open_root(root, kind, is_read) for root in roots]
    schemas = [schema for dataset in datasets for schema in list_schemas(dataset, alike)]
    for dataset in datasets:
        note_differences(dataset)
    fragments = [fragment for dataset in datasets for fragment in dataset.get_fragments()]
    footers = ((file.path, file.metadata.schema) for file in fragments if kind == "parquet")
    return ds.FileSystemDataset(
        fragments,
        unify_schemas(schemas, is_read, partial(explain_int96, footers), request.dtype).schema,
        datasets[0].format,
        datasets[0].filesystem,
    )


def _open_root(root: Root, kind: str, is_read: Callable[[str], bool]) -> ds.FileSystemDataset:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.fs as fs

    format = make_parquet_format() if kind == "parquet" else ds.IpcFileFormat()
    make = partial(
        ds.dataset,
        root.files,
        filesystem=root.filesystem,
        format=format,
        partition_base_dir=root.base,
    )
    try:
        if not root.filesystem and not _has_partitions(root):
            return _list_files(root, format)
        return make(partitioning="hive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Columns of one name, or a key of the folders that is a column. pyarrow names no file.
        filesystem = root.filesystem or fs.LocalFileSystem()
        _, schema = read_schema(format.make_fragment(root.files[0], filesystem))
        schema = check_names(root.files[0], schema, is_read)
        keys = find_keys(root, make, schema)
        schema = add_keys(schema, keys)
        return make(schema=schema, partitioning=ds.HivePartitioning(keys))


def _list_files(root: Root, format: ds.FileFormat) -> ds.FileSystemDataset:
    """Make a dataset as pyarrow does, which asks the local file system once more for each file."""
    import pyarrow.dataset as ds
    import pyarrow.fs as fs

    local = fs.LocalFileSystem()
    schema = format.inspect(root.files[0], local)
    fragments = [format.make_fragment(path, local) for path in root.files]
    return ds.FileSystemDataset(fragments, schema, format, local)
