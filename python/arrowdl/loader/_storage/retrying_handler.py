"""`RetryingHandler`: a file system whose listings, opens and reads are tried again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow.fs as fs

from arrowdl.loader._settings.retries import Retries
from arrowdl.loader._storage.handlers import ReadingHandler
from arrowdl.loader._storage.readers import FileEnd, Reader, Stamp
from arrowdl.loader._storage.retry_calls import RetriedError, call_with_retries
from arrowdl.loader._storage.transient import PassingError

T = TypeVar("T")

_LEAST_SECONDS = 1.0
_PAGE_FILES = 1_000  # of a page of a list, of every store


def retry(filesystem: fs.FileSystem, retries: Retries) -> fs.FileSystem:
    """Return a file system that tries again what fails."""
    return fs.PyFileSystem(RetryingHandler(filesystem, retries))


def _list_all(
    get: Callable[[fs.FileSelector], list[fs.FileInfo]], selector: fs.FileSelector
) -> list[fs.FileInfo]:
    """List a directory, twice where the list may lack its last pages."""
    # Clients take an answer of another kind, such as an empty one, for the end of a list. Each page
    # before the last one is full.
    infos = get(selector)
    files = sum(info.type == fs.FileType.File for info in infos)
    if files and files % _PAGE_FILES == 0 and len(get(selector)) != len(infos):
        raise PassingError(f"two lists of {selector.base_dir!r} have different numbers of files")
    return infos


class RetryingHandler(ReadingHandler):
    """Tries again by `Retries`.

    A file that failed to the end is asked for once for as long as the deadline is, and that request
    has a tenth of it: whoever finds out what is wrong with the file, or leaves out its rows, does
    not wait that long for each of them.
    """

    def __init__(self, inner: fs.FileSystem, retries: Retries) -> None:
        super().__init__(inner)
        self.retries = retries
        self._failed: dict[str, tuple[float, str]] = {}  # when a path failed to the end, and how

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_failed": {}}

    def call(self, path: str, what: str, function: Callable[[], T]) -> T:
        """Call `function`, which asks for the file at `path`, as often as it takes."""
        while True:
            retries = self.retries
            failure = self._failed.get(path)
            if failure and time.monotonic() - failure[0] < retries.deadline:
                seconds = max(_LEAST_SECONDS, retries.deadline / 10)
                retries = replace(retries, tries=1, deadline=min(seconds, retries.deadline))
            else:
                failure = None
            try:
                result = call_with_retries(retries, what, function)
            except RetriedError as error:
                if failure is None:
                    self._failed[path] = (time.monotonic(), str(error))
                    raise
                if self._failed.get(path) is failure:
                    raise RetriedError(f"{error}; before that, {failure[1]}") from error.__cause__
                # Another thread was answered, or failed to the end, since.
            else:
                self._failed.pop(path, None)
                return result

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        def ask(path: str) -> fs.FileInfo:
            get = super(RetryingHandler, self).get_file_info
            return self.call(path, f"asking for {path!r}", lambda: get([path])[0])

        return [ask(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        path = selector.base_dir
        get = super().get_file_info_selector
        return self.call(path, f"listing {path!r}", lambda: _list_all(get, selector))

    def open_reader(self, path: str) -> Reader:
        return _RetryingReader(self, path, self.open_once(path))

    def open_once(self, path: str) -> Reader:
        """Open a file, as often as it takes, for reads that are tried once."""
        opening = super().open_reader
        return self.call(path, f"opening {path!r}", lambda: opening(path))

    def open_inner(self, path: str) -> Reader:
        """Open a file of the file system below, once."""
        return super().open_reader(path)

    def read_end(self, path: str, nbytes: int, stamp: Stamp | None = None) -> FileEnd:
        read = super().read_end
        what = f"reading the end of {path!r}"
        return self.call(path, what, lambda: read(path, nbytes, stamp))

    def check_unchanged(self, path: str) -> None:
        check = super().check_unchanged
        self.call(path, f"asking for {path!r}", lambda: check(path))


class _RetryingReader(Reader):
    """Reads again what fails, and opens the file again: its connection may be broken."""

    def __init__(self, handler: RetryingHandler, path: str, reader: Reader) -> None:
        self._handler = handler
        self._path = path
        self._lock = threading.Lock()
        self._reader: Reader | None = reader
        self.stamp = reader.stamp

    def read_at(self, nbytes: int, offset: int) -> Any:
        what = f"reading {nbytes} bytes of {self._path!r} from offset {offset}"
        return self._handler.call(self._path, what, lambda: self._try(nbytes, offset))

    def _try(self, nbytes: int, offset: int) -> Any:
        reader = self._find_reader()
        try:
            return reader.read_at(nbytes, offset)
        except Exception:
            with self._lock:
                if self._reader is reader:
                    self._reader = None
            raise

    def _find_reader(self) -> Reader:
        reader = self._reader
        if reader is None:
            reader = self._handler.open_inner(self._path)
            with self._lock:
                self._reader = reader
        return reader

    def close(self) -> None:
        with self._lock:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
