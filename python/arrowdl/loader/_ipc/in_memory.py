"""Arrow IPC files in memory, as pyarrow's scanner reads them safely.

If a file is not in memory, the scanner reads some columns in tasks that it does not wait for. When
a scan is left early, these tasks crash the process. In memory, it starts no such tasks.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from arrowdl.loader._files.stamps import is_checked, is_local

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

_PART_ROWS = 131_072
_PART_BYTES = 2**25
# A mapping keeps a file descriptor as long as its rows are alive: smaller files are read.
_MAPPED_BYTES = 2**20
# Maps files that are larger than memory. Linux's number: Python has the name since 3.13.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def is_ipc(fragment: ds.Fragment) -> bool:
    """Whether a fragment is an Arrow IPC file."""
    import pyarrow.dataset as ds

    has_file = getattr(fragment, "filesystem", None) is not None
    return has_file and isinstance(fragment.format, ds.IpcFileFormat)


class Part(NamedTuple):
    """Rows of the file at `path`, of about `nbytes` bytes, in the file's order."""

    path: str
    fragment: ds.Fragment
    nbytes: int


def split_file(
    fragment: ds.Fragment,
    columns: Container[str],  # columns to read
    memory_map: bool,  # whether local files are mapped; others are read part by part
) -> Iterator[Part]:
    """Split an IPC file into files in memory."""
    if memory_map and is_local(fragment.filesystem):
        yield _make_part(fragment, _map_file(fragment.path))
    else:
        yield from _read_parts(fragment, columns)


def _map_file(path: str) -> pa.Buffer:
    """Return the bytes of a file; writing to them does not change the file."""
    import pyarrow as pa

    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < _MAPPED_BYTES:
            return pa.py_buffer(bytearray(file.read()))
        if sys.platform == "win32":
            return pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        access = mmap.PROT_READ | mmap.PROT_WRITE
        return pa.py_buffer(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE | _NORESERVE, access))


def _read_parts(fragment: ds.Fragment, columns: Container[str]) -> Iterator[Part]:
    import pyarrow as pa

    with fragment.open() as file:
        schema = pa.ipc.open_file(file).schema
        chosen = [i for i, name in enumerate(schema.names) if name in columns]
        first = [0] if schema.names else []  # without columns, only the rows count
        options = pa.ipc.IpcReadOptions(included_fields=chosen or first)
        if len(chosen) < len(schema.names) or not is_checked(fragment.filesystem):
            yield from _join_batches(fragment, pa.ipc.open_file(file, options=options))
            return
        from arrowdl.loader._storage.fetch_file import open_fetched

        with open_fetched(fragment.filesystem, fragment.path) as fetched:
            yield from _join_batches(fragment, pa.ipc.open_file(fetched, options=options))


def _join_batches(fragment: ds.Fragment, reader: pa.ipc.RecordBatchFileReader) -> Iterator[Part]:
    part: list[pa.RecordBatch] = []
    for i in range(reader.num_record_batches):
        part.append(reader.get_batch(i))
        if _is_full(part):
            yield _make_part(fragment, _write_file(part))
            part = []
    if part:
        yield _make_part(fragment, _write_file(part))


def _is_full(part: Sequence[pa.RecordBatch]) -> bool:
    rows = sum(int(batch.num_rows) for batch in part)
    nbytes = sum(int(batch.nbytes) for batch in part)
    return rows >= _PART_ROWS or nbytes >= _PART_BYTES


def _write_file(batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def _make_part(fragment: ds.Fragment, file: pa.Buffer) -> Part:
    partition = fragment.partition_expression
    part = fragment.format.make_fragment(file, partition_expression=partition)
    return Part(fragment.path, part, file.size)
