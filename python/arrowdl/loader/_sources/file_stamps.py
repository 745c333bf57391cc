"""`FileStamps`: whether files are still those whose footers were read."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

# Of a file system that is not local, each a request.
_REQUESTS_AT_ONCE = 16


class Stamp(NamedTuple):
    """What tells a file from another one under its name; None for what nobody knows."""

    size: int | None
    mtime_ns: int | None
    inode: int | None = None


class FileStamps:
    """Sizes, times and, on the local file system, inodes of files from before they were read.

    What is known of a file (its rows, where its columns lie) is wrong of one that is written anew
    under the same name, and reading it gives other values without any error.
    """

    def __init__(self) -> None:
        self._machine = platform.node()
        self._filesystems: dict[str, Any] = {}  # None for the local one
        self._stamps: dict[str, Stamp | None] = {}  # None for a file that there was not

    def add_paths(self, paths: Iterable[str]) -> None:
        """Files on the local file system."""
        self._add(dict.fromkeys(paths))

    def add_fragments(self, fragments: Iterable[Any]) -> bool:
        """Those of a pyarrow dataset that are files; whether there is one that was not known."""
        return self._add(
            {
                fragment.path: None if is_local(fragment.filesystem) else fragment.filesystem
                for fragment in fragments
                if getattr(fragment, "filesystem", None) is not None
            }
        )

    def _add(self, filesystems: dict[str, Any]) -> bool:
        self._filesystems = {**filesystems, **self._filesystems}
        new = [path for path in filesystems if path not in self._stamps]
        self._stamps.update(zip(new, self._take(new), strict=True))
        return bool(new)

    def get_size(self, path: str) -> int:
        """Bytes of a file, 0 where nobody knows."""
        stamp = self._stamps.get(path)
        return (stamp.size or 0) if stamp else 0

    def check(self, paths: Iterable[str] | None = None, *, may_be_gone: bool = False) -> None:
        """Compare files with what they were.

        Parameters
        ----------
        paths : iterable of str, optional
            By default those on the local file system: the others cost a request each.
        may_be_gone : bool
            Whether a file that has lost its name is as good: one that is mapped is.

        Raises
        ------
        OSError
            A file has changed; FileNotFoundError where it is gone.
        """
        known = [path for path in self._stamps if self._is_local(path)] if paths is None else paths
        chosen = [path for path in dict.fromkeys(known) if self._stamps.get(path) is not None]
        for path, now in zip(chosen, self._take(chosen), strict=True):
            before = self._stamps[path]
            assert before is not None
            if now is None:
                if not may_be_gone:
                    raise FileNotFoundError(
                        f"{path!r} is gone since this Loader was made: make a new one of the files "
                        "that there are"
                    )
            elif changes := self._list_changes(before, now):
                raise OSError(
                    f"{path!r} has changed since this Loader was made ({', '.join(changes)}), and "
                    "what is known of it, its rows and where they lie, is of the file before: make "
                    "a new Loader. Files that are being read are replaced under other names"
                )

    def guard(self, paths: Sequence[str], batches: Iterator[T]) -> Iterator[T]:
        """What is read of `paths`: the last of it when they have been checked after the reading.

        An error may be of a change, which is raised then.
        """
        local = [path for path in paths if self._is_local(path)]
        self.check(local)
        before: list[T] = []
        try:
            for batch in batches:
                yield from before
                before = [batch]
                del batch
        except Exception:
            self.check(local)
            raise
        self.check(local)
        yield from before

    def _is_local(self, path: str) -> bool:
        return self._filesystems.get(path) is None

    def _take(self, paths: Sequence[str]) -> list[Stamp | None]:
        requests = [path for path in paths if not self._is_local(path)]
        if len(requests) <= 1:
            return [_take_stamp(self._filesystems[path], path) for path in paths]
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            return list(pool.map(_take_stamp, map(self._filesystems.get, paths), paths))

    def _list_changes(self, before: Stamp, now: Stamp) -> list[str]:
        changes = []
        if _differ(before.size, now.size):
            changes.append(f"{before.size} bytes before, {now.size} now")
        if platform.node() != self._machine:  # another copy of the file, as it may be
            return changes
        if _differ(before.mtime_ns, now.mtime_ns):
            changes.append("written at another time")
        if _differ(before.inode, now.inode):
            changes.append("another file of the same name")
        return changes


def check_footers(fragments: Iterable[Any]) -> None:
    """Raise OSError where a dataset has read Parquet footers, and a local file has another one now.

    A scan of the dataset, before the Loader was made, has read them.
    """
    import pyarrow.dataset as ds

    for fragment in fragments:
        if not (isinstance(fragment, ds.ParquetFileFragment) and is_local(fragment.filesystem)):
            continue
        *_, groups = fragment.__reduce__()[1]
        if groups is None or _is_of_metadata_file(fragment):
            continue
        if not copy(fragment).metadata.equals(fragment.metadata):
            raise OSError(
                f"{fragment.path!r} has changed since the dataset read its footer, by which it "
                "would be read: make a new dataset"
            )


def _is_of_metadata_file(fragment: Any) -> bool:
    """Whether what it knows is from a file beside the data."""
    metadata = fragment.metadata
    if not metadata.num_row_groups or not metadata.num_columns:
        return False
    return bool(metadata.row_group(0).column(0).file_path)


def is_local(filesystem: Any) -> bool:
    """Whether a file system of pyarrow's is that of the machine, by whole paths."""
    return type(filesystem).__name__ == "LocalFileSystem"


def _take_stamp(filesystem: Any, path: str) -> Stamp | None:
    """None where there is no such file."""
    if filesystem is None:
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        return Stamp(found.st_size, found.st_mtime_ns, found.st_ino or None)
    try:
        info = filesystem.get_file_info(path)
    except NotImplementedError:
        return Stamp(None, None)
    return None if info.type.name == "NotFound" else Stamp(info.size, info.mtime_ns)


def _differ(before: int | None, now: int | None) -> bool:
    return None not in (before, now) and before != now
