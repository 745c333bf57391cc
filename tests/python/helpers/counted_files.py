"""`CountedFiles`: local files as a file system that counts, fails and stops its requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs


class CountedFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """The files below `root`, as over a network.

    Attributes
    ----------
    reads : list of (path, offset, nbytes)
        The reads, in the order of their beginnings.
    asked : int
        How often a file's size and time were asked for.
    before : callable
        Called before each read, with its path, offset and length; may raise or wait.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.reads: list[tuple[str, int, int]] = []
        self.asked = 0
        self.before: Callable[[str, int, int], None] = lambda path, offset, nbytes: None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"root": self.root}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["root"])  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountedFiles) and self.root == other.root

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__

    def read(self, path: str, offset: int, nbytes: int) -> bytes:
        with self._lock:
            self.reads.append((path, offset, nbytes))
        self.before(path, offset, nbytes)
        with (self.root / path).open("rb") as file:
            file.seek(offset)
            return file.read(nbytes)

    def forget(self) -> None:
        with self._lock:
            self.reads.clear()
            self.asked = 0

    def get_type_name(self) -> str:
        return "counted"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        with self._lock:
            self.asked += len(paths)
        return [self._describe(path) for path in paths]

    def _describe(self, path: str) -> fs.FileInfo:
        try:
            found = (self.root / path).stat()
        except FileNotFoundError:
            return fs.FileInfo(path, fs.FileType.NotFound)
        kind = fs.FileType.Directory if (self.root / path).is_dir() else fs.FileType.File
        return fs.FileInfo(path, kind, size=found.st_size, mtime_ns=found.st_mtime_ns)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        found = sorted((self.root / selector.base_dir).rglob("*"))
        return [self._describe(str(path.relative_to(self.root))) for path in found]

    def open_input_file(self, path: str) -> pa.NativeFile:
        if not (self.root / path).is_file():
            raise FileNotFoundError(path)
        return pa.PythonFile(_File(self, path), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def _refuse(self, *arguments: Any) -> Any:
        raise NotImplementedError

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse


class _File:
    closed = False

    def __init__(self, files: CountedFiles, path: str) -> None:
        self._files = files
        self._path = path
        self._position = 0
        self._size = (files.root / path).stat().st_size

    def read(self, nbytes: int = -1) -> bytes:
        count = self._size - self._position if nbytes < 0 else nbytes
        data = self._files.read(self._path, self._position, count)
        self._position += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = (0, self._position, self._size)[whence] + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self.closed = True
