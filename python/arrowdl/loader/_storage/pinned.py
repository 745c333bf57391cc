"""`pin`: a file that is not the one that was listed, or first opened, is an error."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.fs as fs

from arrowdl.loader._storage.handlers import ReadingHandler
from arrowdl.loader._storage.readers import (
    SECOND,
    FileEnd,
    Reader,
    Stamp,
    list_changes,
    may_be_rewritten,
)
from arrowdl.loader._storage.transient import (
    FileChangedError,
    OtherVersionError,
    ShortReadError,
)


def pin(
    filesystem: fs.FileSystem,
    stamps: Mapping[str, Stamp],  # what a listing, or a plan, said of files
) -> fs.FileSystem:
    """Return a file system whose files have to stay as they are known, or first opened."""
    return fs.PyFileSystem(PinningHandler(filesystem, stamps))


class PinningHandler(ReadingHandler):
    """Compares each file that is opened with its stamp; a listing adds stamps."""

    def __init__(self, inner: fs.FileSystem, stamps: Mapping[str, Stamp]) -> None:
        super().__init__(inner)
        self.stamps = dict(stamps)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._note(info) for info in super().get_file_info(paths)]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        return [self._note(info) for info in super().get_file_info_selector(selector)]

    def _note(self, info: fs.FileInfo) -> fs.FileInfo:
        if info.type == fs.FileType.File and info.path not in self.stamps:
            self.stamps[info.path] = Stamp(info.size, info.mtime_ns)
        return info

    def open_reader(self, path: str) -> Reader:
        reader = super().open_reader(path)
        stamp = self._check(path, reader.stamp)
        assert stamp.size is not None
        return _WholeReader(reader, path, stamp, self)

    def read_end(self, path: str, nbytes: int, stamp: Stamp | None = None) -> FileEnd:
        """A file that the listing tells from all others of its name is read without an opening."""
        listed = self.find_stamp(path)
        is_sure = None not in listed[:2] and not may_be_rewritten(listed)
        try:
            now, data = super().read_end(path, nbytes, listed if is_sure else None)
        except (FileNotFoundError, OtherVersionError):
            self.check_unchanged(path)
            raise
        if not data.endswith(b"PAR1"):  # it was cut, or is another file
            self.check_unchanged(path)
        return self._check(path, now), data

    def find_stamp(self, path: str) -> Stamp:
        return self.stamps.get(path, Stamp(None))

    def add_etag(self, path: str, etag: str | None) -> None:
        self.stamps[path] = self.find_stamp(path)._replace(etag=etag)

    def check_unchanged(self, path: str) -> None:
        if path in self.stamps:
            reader = super().open_reader(path)
            reader.close()
            self._check(path, reader.stamp)

    def _check(self, path: str, now: Stamp) -> Stamp:
        before = self.stamps.get(path)
        if before is not None and (changes := list_changes(before, now)):
            raise FileChangedError(
                f"{path!r} has changed since it was listed ({', '.join(changes)}), so that its "
                "rows are no longer where the Loader expects them: make a new Loader (and a new "
                "plan), and write new files under new names while a training reads"
            )
        merged = now if before is None else _fill(before, now)
        self.stamps[path] = merged
        return merged


def _fill(before: Stamp, now: Stamp) -> Stamp:
    """Add what was unknown before."""
    is_rough = before.mtime is None or (not before.mtime % SECOND and (now.mtime or 0) % SECOND)
    return Stamp(
        now.size if before.size is None else before.size,
        now.mtime if is_rough else before.mtime,
        before.etag or now.etag,
    )


class _WholeReader(Reader):
    """Raises if a store returns fewer bytes than the file has."""

    def __init__(self, reader: Reader, path: str, stamp: Stamp, handler: PinningHandler) -> None:
        self._reader = reader
        self._path = path
        self.stamp = stamp
        self._handler = handler

    def read_at(self, nbytes: int, offset: int) -> object:
        expected = max(0, min(nbytes, self.size - offset))
        try:
            data = self._reader.read_at(nbytes, offset)
        # The object, or its generation, was rewritten; or it is the answer of one of several
        # replicas.
        except (FileNotFoundError, OtherVersionError):
            self._handler.check_unchanged(self._path)
            raise
        if len(data) != expected:
            raise ShortReadError(
                f"{len(data)} bytes of {self._path!r} arrived, from offset {offset}, where it has "
                f"{expected}"
            )
        return data

    def close(self) -> None:
        self._reader.close()
