"""`ReadingHandler`: a file system of ours under ``pyarrow.fs.PyFileSystem``, never written to.

Each concern (retries, checks of changed files) is a function from file system to file system, whose
handler wraps that of the one below. Between handlers of ours, files are `Reader` objects, which
read several ranges at a time; pyarrow gets a file that reads one.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.fs as fs

from arrowdl.loader._storage.marked_reads import MarkedRead
from arrowdl.loader._storage.readers import FileEnd, Reader, Stamp, make_native_file, read_last
from arrowdl.loader._storage.time_limit import note_progress
from arrowdl.loader._storage.transient import PassingError


class ReadingHandler(fs.FileSystemHandler):  # type: ignore[misc]
    """A file system over another one; a subclass overrides what it does otherwise."""

    def __init__(self, inner: fs.FileSystem) -> None:
        self.inner = inner

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__

    def open_reader(self, path: str) -> Reader:
        """Open a file."""
        return open_reader(self.inner, path)

    def read_end(self, path: str, nbytes: int, stamp: Stamp | None = None) -> FileEnd:
        """Read the last bytes of a Parquet file, or its footer; with a `stamp`, by one request."""
        return read_end(self.inner, path, nbytes, stamp)

    def check_unchanged(self, path: str) -> None:
        """Raise OSError if a file is no longer the one that was opened first."""
        check_unchanged(self.inner, path)

    def forget(self, path: str) -> None:
        """Drop what is kept of a file, which cannot be decoded."""
        if (handler := find_handler(self.inner)) is not None:
            handler.forget(path)

    def find_stamp(self, path: str) -> Stamp:
        """Return what is known of a file."""
        handler = find_handler(self.inner)
        return Stamp(None) if handler is None else handler.find_stamp(path)

    def find_listed_etag(self, path: str) -> str | None:
        """Return the ETag that a list told of a file."""
        handler = find_handler(self.inner)
        return None if handler is None else handler.find_listed_etag(path)

    def add_etag(self, path: str, etag: str | None) -> None:
        """Note the ETag that a list told of a file."""
        if (handler := find_handler(self.inner)) is not None:
            handler.add_etag(path, etag)

    def get_type_name(self) -> str:
        return str(self.inner.type_name)

    def normalize_path(self, path: str) -> str:
        return str(self.inner.normalize_path(path))

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return ask_for_files(self.inner, paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        return list_files(self.inner, selector)

    def open_input_file(self, path: str) -> pa.NativeFile:
        return make_native_file(self.open_reader(path))

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def _refuse(self, *arguments: Any) -> NoReturn:
        raise NotImplementedError("a Loader reads its files, and writes none")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse


def find_handler(filesystem: Any) -> ReadingHandler | None:
    """Return the handler of a file system of ours; None for another one."""
    handler = getattr(filesystem, "handler", None)
    return handler if isinstance(handler, ReadingHandler) else None


def open_reader(filesystem: fs.FileSystem, path: str) -> Reader:
    """Open a file of any file system of pyarrow."""
    handler = find_handler(filesystem)
    if handler is not None:
        return handler.open_reader(path)
    kind = _GcsReader if _find_base(filesystem).type_name == "gcs" else _NativeReader
    return kind(filesystem, path)


def read_end(
    filesystem: fs.FileSystem, path: str, nbytes: int, stamp: Stamp | None = None
) -> FileEnd:
    """Read the end of a file of any file system of pyarrow, as of `ReadingHandler`."""
    handler = find_handler(filesystem)
    if handler is not None:
        return handler.read_end(path, nbytes, stamp)
    if stamp is not None and filesystem.type_name == "s3":
        return _read_s3_footer(filesystem, path, nbytes, stamp)
    return read_last(open_reader(filesystem, path), nbytes)


def _read_s3_footer(filesystem: Any, path: str, nbytes: int, stamp: Stamp) -> FileEnd:
    """Read the footer of a Parquet file by a fragment: a file asks for its size first."""
    import pyarrow.dataset as ds

    def refuse(config: object) -> NoReturn:  # pyarrow ends the process where it writes the footer
        raise OSError(f"columns of {path!r} are encrypted: give a dataset that has the keys")

    if not hasattr(ds, "ParquetDecryptionConfig"):  # pyarrow was built without encryption
        return read_last(open_reader(filesystem, path), nbytes)
    import pyarrow.parquet.encryption as pe

    keys = pe.CryptoFactory(refuse), pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
    options = ds.ParquetFragmentScanOptions(decryption_config=ds.ParquetDecryptionConfig(*keys))
    format = ds.ParquetFileFormat(default_fragment_scan_options=options)
    metadata = format.make_fragment(path, filesystem, file_size=stamp.size).metadata
    metadata.write_metadata_file(sink := pa.BufferOutputStream())
    end = sink.getvalue().to_pybytes()[len(b"PAR1") :]
    if len(end) != metadata.serialized_size + 8:  # pyarrow does not write it as the file has it
        return read_last(open_reader(filesystem, path), nbytes)
    return stamp, end


def _find_base(filesystem: fs.FileSystem) -> fs.FileSystem:
    while isinstance(filesystem, fs.SubTreeFileSystem):
        filesystem = filesystem.base_fs
    return filesystem


def ask_for_files(filesystem: fs.FileSystem, paths: list[str]) -> list[fs.FileInfo]:
    """Return what a file system of pyarrow says of files, as `list_files` does."""
    if isinstance(filesystem, fs.PyFileSystem):
        return list(filesystem.handler.get_file_info(paths))
    return list(filesystem.get_file_info(paths))


def list_files(filesystem: fs.FileSystem, selector: fs.FileSelector) -> list[fs.FileInfo]:
    """List a directory of a file system of pyarrow.

    One in Python is called as it is: with pyarrow between, a thread that is in it when the program
    ends would abort.
    """
    if isinstance(filesystem, fs.PyFileSystem):
        return list(filesystem.handler.get_file_info_selector(selector))
    return list(filesystem.get_file_info(selector))


def check_unchanged(filesystem: Any, path: str) -> None:
    """Raise OSError if a file of a file system of ours has changed since it was first opened."""
    handler = find_handler(filesystem)
    if handler is not None:
        handler.check_unchanged(path)


class _NativeReader(Reader):
    """A file of a file system of pyarrow's own."""

    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        self._file = filesystem.open_input_file(path)
        size = self._file.size()
        told = {name.lower(): text.decode() for name, text in self._file.metadata().items()}
        mtime, etag = _read_time(told.get("last-modified")), told.get("etag")
        if mtime is None and etag is None:
            (info,) = ask_for_files(filesystem, [path])
            size = size if info.size is None else info.size
            mtime = info.mtime_ns
        self.stamp = Stamp(size, mtime, etag)
        self._is_python = isinstance(_find_base(filesystem), fs.PyFileSystem)

    def read_at(self, nbytes: int, offset: int) -> Any:
        if self._is_python:  # whose length is what has arrived
            return bytes(self._file.read_at(nbytes, offset))
        return _read(self._file, nbytes, offset, self.stamp)

    def close(self) -> None:
        self._file.close()


def _read(file: pa.NativeFile, nbytes: int, offset: int, stamp: Stamp) -> pa.Buffer:
    if stamp.size is not None:
        nbytes = min(nbytes, stamp.size - offset)
    read = MarkedRead(file, max(0, nbytes), offset)
    note_progress(lambda: f"some {read.count()} of {nbytes} bytes had arrived")
    return read.read()


class _GcsReader(Reader):
    """A file of Google Cloud Storage, opened when it is read.

    pyarrow's file of it asks for the whole object before it does anything else, and holds the
    interpreter meanwhile: once for each file that is read, and not whenever one is asked for.
    """

    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        info = filesystem.get_file_info(path)
        if info.type != fs.FileType.File:
            raise FileNotFoundError(f"no object {path!r}")
        self.stamp = Stamp(info.size, info.mtime_ns)
        self._open = partial(filesystem.open_input_file, path)
        self._lock = threading.Lock()
        self._file: pa.NativeFile | None = None

    def read_at(self, nbytes: int, offset: int) -> pa.Buffer:
        with self._lock:
            if self._file is None:
                self._file = self._open()
        try:
            return _read(self._file, nbytes, offset, self.stamp)
        except ValueError as error:  # "I/O operation on closed file": that request failed
            raise PassingError(f"the client of Google Cloud Storage failed: {error}") from error

    def close(self) -> None:
        """Drop the file: closing it may ask the store again."""
        self._file = None


def to_nanoseconds(time: datetime) -> int:
    """Return the nanoseconds since 1970; of a time without a zone, in UTC."""
    passed = (time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime.fromtimestamp(0, UTC)
    return passed // timedelta(microseconds=1) * 1000


def _read_time(text: str | None) -> int | None:
    """Return the nanoseconds since 1970 of a date of HTTP or of ISO 8601."""
    if not text:
        return None
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            return to_nanoseconds(parse(text))
        except ValueError:
            continue
    return None
