"""Arrow IPC files as pyarrow's scanner reads them safely: as memory.

Of a file that is not memory the scanner reads some of the columns (which those of a filter count to
twice) by tasks that nobody waits for, and that crash the process where the scan has been left. Of
memory it reads what is asked for.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl.loader._sources.file_stamps import is_local

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

_PART_ROWS = 131_072
_PART_BYTES = 2**25
# A mapping takes a file descriptor for as long as there are rows in it: smaller files are read.
_MAPPED_BYTES = 2**20
# So that a file larger than the memory can be mapped. Linux's number: Python 3.13 has the name.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def is_ipc(fragment: ds.Fragment) -> bool:
    """Whether it is a file of Arrow IPC."""
    import pyarrow.dataset as ds

    has_file = getattr(fragment, "filesystem", None) is not None
    return has_file and isinstance(fragment.format, ds.IpcFileFormat)


class Part(NamedTuple):
    """Rows of the file at `path`, in that order, of about `nbytes`."""

    path: str
    fragment: ds.Fragment
    nbytes: int


def split_file(fragment: ds.Fragment, columns: Container[str], memory_map: bool) -> Iterator[Part]:
    """The rows of an IPC file, as files in memory.

    Parameters
    ----------
    fragment : Fragment
    columns : container of str
        That are needed, of those there are.
    memory_map : bool
        Whether files on the local file system are mapped; others are read part by part.
    """
    if memory_map and is_local(fragment.filesystem):
        yield _make_part(fragment, _map_file(fragment.path))
    else:
        yield from _read_parts(fragment, columns)


def _map_file(path: str) -> pa.Buffer:
    """Its bytes, which whoever gets rows of them may write to: the file stays as it is."""
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
        first = [0] if schema.names else []  # of no columns, the rows are counted
        options = pa.ipc.IpcReadOptions(included_fields=chosen or first)
        reader = pa.ipc.open_file(file, options=options)
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


def find_columns(names: Sequence[str], columns: Sequence[str] | None, filter: Any) -> set[str]:
    """Those of `names` that a scan of `columns` needs, and perhaps more."""
    text = "" if filter is None else str(filter)
    if columns is None or "FieldPath(" in text:  # by position
        return set(names)
    return {name for name in names if name in columns or (text and name in text)}
