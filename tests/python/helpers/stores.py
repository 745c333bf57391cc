"""A double of an object store: files in memory, requests that are counted and fail on schedule."""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

ROWS = 40  # of a file


def dump(start: int, kind: str = "parquet", rows: int = ROWS, group: int = 10) -> bytes:
    """A file that is larger than the end that is kept."""
    noise = np.random.default_rng(start).bytes(rows * 8_000)
    column = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(8_000), rows, [None, pa.py_buffer(noise)]
    )
    table = pa.table({"id": pa.array(range(start, start + rows)), "noise": column})
    sink = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, sink, row_group_size=group, compression="none")
    else:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=group)
    return sink.getvalue()


PARQUET = {f"b/k={i}/{i}.parquet": dump(i * ROWS) for i in range(3)}
IPC = {f"c/{i}.arrow": dump(i * ROWS, "ipc") for i in range(3)}


class File:
    """An open object, as pyarrow reads one of Python."""

    closed = False

    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store, self._path = store, path
        self._position = 0

    def read(self, nbytes: int = -1) -> bytes:
        data = self._store.files[self._path]
        stop = len(data) if nbytes < 0 else self._position + nbytes
        found = data[self._position : stop]
        found = self._store.ask("read", self._path, found)
        self._position += len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        size = len(self._store.files[self._path])
        self._position = (0, self._position, size)[whence] + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        return len(self._store.files[self._path])

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False


class MemoryStore(fs.FileSystemHandler):
    """Objects by their paths.

    Attributes
    ----------
    requests : Counter of (str, str)
        By kind ("info", "list", "open", "read") and path.
    fault : callable
        Called before each request; what it raises is the answer. It may return how many bytes of
        the answer arrive.
    """

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files: dict[str, bytes] = dict(files or {})
        self.times: dict[str, int] = {}
        self.requests: Counter[tuple[str, str]] = Counter()
        self.fault: Callable[[str, str], int | None] = lambda kind, path: None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"files": self.files, "times": self.times}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["files"])  # type: ignore[misc]
        self.times = state["times"]

    def open(self) -> fs.FileSystem:
        return fs.PyFileSystem(self)

    def count(self, kind: str) -> int:
        with self._lock:
            return sum(number for (own, _), number in self.requests.items() if own == kind)

    def ask(self, kind: str, path: str, data: bytes = b"") -> bytes:
        with self._lock:
            self.requests[kind, path] += 1
        kept = self.fault(kind, path)
        return data if kept is None else data[:kept]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def get_type_name(self) -> str:
        return "memory"

    def normalize_path(self, path: str) -> str:
        return path

    def _describe(self, path: str) -> fs.FileInfo:
        if path in self.files:
            mtime = self.times.get(path, 1) * 10**9
            return fs.FileInfo(path, fs.FileType.File, size=len(self.files[path]), mtime_ns=mtime)
        is_folder = any(name.startswith(f"{path.rstrip('/')}/") for name in self.files)
        return fs.FileInfo(path, fs.FileType.Directory if is_folder else fs.FileType.NotFound)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        for path in paths:
            self.ask("info", path)
        return [self._describe(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        base = selector.base_dir.rstrip("/")
        self.ask("list", base)
        found = {}
        for path in self.files:
            if path.startswith(f"{base}/"):
                names = path[len(base) + 1 :].split("/")
                for depth in range(1, len(names) + 1 if selector.recursive else 2):
                    below = f"{base}/{'/'.join(names[:depth])}"
                    found[below] = self._describe(below)
        return list(found.values())

    def open_input_file(self, path: str) -> pa.NativeFile:
        self.ask("open", path)
        if path not in self.files:
            raise FileNotFoundError(f"no object {path!r}")
        return pa.PythonFile(File(self, path), mode="r")

    open_input_stream = open_input_file

    def _refuse(self, *arguments: Any) -> None:
        raise AssertionError("a Loader writes nothing")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse
