"""`FileStamps`: whether files have changed since their footers were read."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, TypeVar, cast

from arrowdl.loader._files.footers import Footers, Stamp, check_footer
from arrowdl.loader._storage.readers import Stamp as StoredStamp
from arrowdl.loader._storage.readers import is_other_time
from arrowdl.loader._storage.retry_calls import RetriedError
from arrowdl.loader._storage.threads import FILES_AT_ONCE, map_in_threads
from arrowdl.loader._storage.transient import FileChangedError

T = TypeVar("T")


class FileStamps:
    """Size, time of change and, on the local file system, inode of files before they are read.

    If a file is rewritten under its name, what is known of it (its rows, the offsets of its
    columns) is wrong, and reading it would silently return wrong values.
    """

    def __init__(self) -> None:
        self._machine = platform.node()
        self._filesystems: dict[str, Any] = {}  # None for the local one
        self._stamps: dict[str, Stamp | None] = {}  # None for a file that did not exist
        self._checked: dict[str, Any] = {}  # file systems that compare files themselves
        self._footers = Footers()  # with the stamps of local files

    def add_paths(self, paths: Iterable[str]) -> None:
        """Add files of the local file system."""
        self._add(dict.fromkeys(paths))

    def add_footers(self, footers: Footers) -> None:
        """Add local files with the stamps that they had when their footers were read."""
        self._footers = footers

    def add_fragments(self, fragments: Iterable[Any]) -> bool:
        """Add the files of a pyarrow dataset; return whether one of them is new."""
        stamps = {
            fragment.path: fragment.filesystem
            for fragment in fragments
            if getattr(fragment, "filesystem", None) is not None
        }
        self._checked.update((path, stamp) for path, stamp in stamps.items() if is_checked(stamp))
        return self._add(
            {
                path: None if is_local(stamp) else stamp
                for path, stamp in stamps.items()
                if path not in self._checked
            }
        )

    def _add(self, filesystems: dict[str, Any]) -> bool:
        self._filesystems = {**filesystems, **self._filesystems}
        stamps, read = self._stamps, self._footers.places
        new = [path for path in filesystems if path not in stamps and path not in read]
        self._stamps.update(zip(new, self._take(new), strict=True))
        return bool(new)

    def _find(self, path: str) -> Stamp | None:
        place = self._footers.places.get(path)
        return self._stamps.get(path) if place is None else self._footers.take_stamp(place)

    def find(self, path: str) -> StoredStamp:
        """Return the stamp of a file, for a plan."""
        if path in self._checked:
            return cast("StoredStamp", self._checked[path].handler.find_stamp(path))
        stamp = self._find(path) or Stamp(None, None)
        return StoredStamp(stamp.size, stamp.mtime_ns)

    def compare(self, planned: Mapping[str, StoredStamp]) -> None:
        """Raise OSError if a file is not the one of a plan; a store compares its own ones."""
        for path, stamp in planned.items():
            is_known = path in self._stamps or path in self._footers.places
            if path in self._checked or not is_known:
                continue
            now = self.find(path)
            if now.size is None:
                raise FileNotFoundError(f"{path!r}, which the plan has, is gone: make a new one")
            if now.size != stamp.size or is_other_time(stamp.mtime, now.mtime):
                raise FileChangedError(
                    f"{path!r} has changed since the plan was made: make a new one"
                )

    def get_size(self, path: str) -> int:
        """Return the bytes of a file, 0 if unknown."""
        stamp = self._find(path)
        return (stamp.size or 0) if stamp else 0

    def is_same(self, path: str) -> bool:
        """Whether a local file certainly has its stamp; if not, ask `check`."""
        try:
            stat = os.stat(path)
        except OSError:
            return False
        return self._find(path) == (stat.st_size, stat.st_mtime_ns, stat.st_ino)

    def check(
        self,
        # by default the files on the local file system, since others cost a request each
        paths: Iterable[str] | None = None,
        *,
        may_be_gone: bool = False,  # whether a removed file is accepted, as for one that is mapped
    ) -> None:
        """Compare files with their stamps.

        Raises FileNotFoundError if a file was removed. Raises OSError if a file has changed.
        """
        if paths is None:
            local = [path for path in self._stamps if self._is_local(path)]
            paths = [*self._footers.list_changed(), *local]
        chosen = [
            path
            for path in dict.fromkeys(paths)
            if not (self._is_local(path) and self.is_same(path)) and self._find(path) is not None
        ]
        for path, now in zip(chosen, self._take(chosen), strict=True):
            before = self._find(path)
            assert before is not None
            if now is None:
                if not may_be_gone:
                    raise FileNotFoundError(
                        f"{path!r} was removed after this Loader was made: make a new Loader of "
                        "the files that exist"
                    )
            elif changes := self._list_changes(before, now):
                raise OSError(
                    f"{path!r} has changed since this Loader was made ({', '.join(changes)}), so "
                    "that its rows are no longer where the Loader expects them: make a new Loader, "
                    "and write new files under new names while a training reads"
                )

    def guard(
        self,
        paths: Sequence[str],
        batches: Iterator[T],
        *,
        is_checked: bool = False,  # whether each of `batches` comes after its files were checked
    ) -> Iterator[T]:
        """Yield `batches` of the files at `paths`, the last one after the files were checked again.

        If reading fails because a file has changed, the OSError that says so is raised instead.
        """
        local = [path for path in paths if self._is_local(path) and path not in self._checked]
        before: list[T] = []
        try:
            if is_checked:
                yield from batches
                return
            self.check(local)
            for batch in batches:
                yield from before
                before = [batch]
                del batch
        except RetriedError:
            raise
        except Exception as error:
            self.check(local)
            self._check_remote(paths, error)
            raise
        self.check(local)
        self._check_remote(paths)
        yield from before

    def _check_remote(self, paths: Sequence[str], error: Exception | None = None) -> None:
        """Compare files of stores; after an error, only a change is raised in its place."""
        for path in dict.fromkeys(paths):
            if path not in self._checked:
                continue
            try:
                self._checked[path].handler.check_unchanged(path)
            except Exception as failure:
                if error is None or isinstance(failure, FileChangedError):
                    raise

    def _is_local(self, path: str) -> bool:
        return self._filesystems.get(path) is None

    def _take(self, paths: Sequence[str]) -> list[Stamp | None]:
        requests = [path for path in paths if not self._is_local(path)]
        if len(requests) <= 1:
            return [_take_stamp(self._filesystems.get(path), path) for path in paths]
        return map_in_threads(
            lambda path: _take_stamp(self._filesystems.get(path), path), paths, FILES_AT_ONCE
        )

    def _list_changes(self, before: Stamp, now: Stamp) -> list[str]:
        changes = []
        if _differ(before.size, now.size):
            changes.append(f"{before.size} bytes before, {now.size} now")
        if platform.node() != self._machine:  # it may be another copy of the file
            return changes
        if _differ(before.mtime_ns, now.mtime_ns):
            changes.append("written at another time")
        if _differ(before.inode, now.inode):
            changes.append("another file of the same name")
        return changes


def is_checked(filesystem: Any) -> bool:
    """Whether a file system compares its files itself, whenever one is opened."""
    return hasattr(getattr(filesystem, "handler", None), "check_unchanged")


def check_footers(fragments: Iterable[Any]) -> None:
    """Raise OSError if a local file's Parquet footer differs from the one that the dataset read.

    A dataset reads footers when it is scanned, which may be before the Loader is made.
    """
    import pyarrow.dataset as ds

    for fragment in fragments:
        if not (isinstance(fragment, ds.ParquetFileFragment) and is_local(fragment.filesystem)):
            continue
        if not has_footer(fragment) or is_of_metadata_file(fragment):
            continue
        if not copy(fragment).metadata.equals(fragment.metadata):
            text = "has changed since the dataset read its footer: make a new dataset"
            raise OSError(f"{fragment.path!r} {text}")


def has_footer(fragment: Any) -> bool:
    """Whether a fragment of a Parquet file has read its footer."""
    *_, groups = fragment.__reduce__()[1]
    return groups is not None


def check_fragment(fragment: Any) -> None:
    """Raise OSError for a Parquet file whose columns pyarrow cannot show; see `check_footer`."""
    if not hasattr(fragment, "ensure_complete_metadata"):
        return
    if not is_local(fragment.filesystem):
        return  # a store would be asked for each footer twice
    import pyarrow as pa
    import pyarrow.parquet as pq

    is_known, metadata = has_footer(fragment), fragment.metadata
    with fragment.open() as file:
        is_plain = check_footer(repr(fragment.path), file, fragment)
        current = pq.read_metadata(file) if is_known and is_plain else metadata
    if current.equals(metadata):
        return
    # It is from a metadata file, maybe. pyarrow ends the process where it writes an encrypted one.
    try:
        current.append_row_groups(metadata)
    except RuntimeError as error:
        text = "has changed since the dataset read it, or is damaged: make a new dataset"
        raise OSError(f"the footer of {fragment.path!r} {text}") from error
    current.write_metadata_file(sink := pa.BufferOutputStream())
    check_footer(repr(fragment.path), pa.BufferReader(sink.getvalue()))


def is_of_metadata_file(fragment: Any) -> bool:
    """Whether a fragment's footer comes from a separate metadata file."""
    import pyarrow.dataset as ds

    if not (isinstance(fragment, ds.ParquetFileFragment) and has_footer(fragment)):
        return False
    check_fragment(fragment)
    return names_file(fragment.metadata)


def names_file(metadata: Any) -> bool:
    """Whether a footer names the file of its row groups: it comes from a separate metadata file."""
    if not metadata.num_row_groups or not metadata.num_columns:
        return False
    return bool(metadata.row_group(0).column(0).file_path)


def is_local(filesystem: Any) -> bool:
    """Whether a pyarrow file system is the local one, with absolute paths."""
    return type(filesystem).__name__ == "LocalFileSystem"


def _take_stamp(filesystem: Any, path: str) -> Stamp | None:
    """Return the stamp of a file, or None if it does not exist."""
    if filesystem is None:
        try:
            stat = os.stat(path)
        except FileNotFoundError:
            return None
        return Stamp(stat.st_size, stat.st_mtime_ns, stat.st_ino or None)
    try:
        info = _ask(filesystem, path)
    except NotImplementedError:
        return Stamp(None, None)
    return None if info.type.name == "NotFound" else Stamp(info.size, info.mtime_ns)


def _ask(filesystem: Any, path: str) -> Any:
    """Return what a file system knows of a file; of fsspec's times, pyarrow reads "mtime" only."""
    handler: Any = getattr(filesystem, "handler", None)
    if type(handler).__name__ != "FSSpecHandler":
        return filesystem.get_file_info(path)
    from arrowdl.loader._storage.fsspec_files import FsspecHandler

    (info,) = FsspecHandler(handler.fs).get_file_info([path])
    return info


def _differ(before: int | None, now: int | None) -> bool:
    return None not in (before, now) and before != now
