"""`cache`: ranges of files are kept on the local disk.

What is kept is the ranges as they are asked for. A Loader asks for the same column chunks in each
epoch, so these are found again; of a file of which few columns are read, few are kept; and neither
the layers above nor those below need to know. Whole files would have to be read before their first
row, and blocks of one size would be read around each range.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Mapping
from typing import Any

import pyarrow.fs as fs

from arrowdl.loader._storage.disk_cache import DiskCache
from arrowdl.loader._storage.fsspec_files import FsspecHandler
from arrowdl.loader._storage.handlers import ReadingHandler, check_unchanged, find_handler
from arrowdl.loader._storage.readers import FileEnd, Reader, Stamp, may_be_rewritten, read_last
from arrowdl.loader._storage.secrets import is_secret
from arrowdl.loader._storage.stores import StoresHandler

# What says which store paths are of; credentials, which change, do not.
_PLACES = ("scheme", "endpoint_override", "endpoint_url", "region", "base_url", "host", "port")
# Names of users are in no error, but distinguish stores.
_USERS = ("user", "username")
_ACCOUNTS = (
    *("account_name", "account_host", "blob_storage_authority"),
    *("project", "repo_id", "endpoint"),
)


def cache(
    # raises an error from ``check_unchanged`` if a file is not the one that was first opened
    filesystem: fs.FileSystem,
    disk_cache: DiskCache,
) -> fs.FileSystem:
    """Return a file system that keeps what is read in a folder.

    A file is known by its path, size, time and ETag when it was first opened: what is kept of
    another version is never returned. A file of which the store tells neither time nor ETag is not
    kept, nor one without ETag that was written just now, or of a store that nothing names: one of
    a handler that somebody else wrote and that cannot be pickled.
    """
    return fs.PyFileSystem(CacheHandler(filesystem, disk_cache))


class CacheHandler(ReadingHandler):
    """Reads ranges from a `DiskCache`, and those that it lacks from the file system below."""

    def __init__(self, inner: fs.FileSystem, disk_cache: DiskCache) -> None:
        super().__init__(inner)
        self.ranges = disk_cache
        self._store = name_store(inner)
        self._stamps: dict[str, Stamp] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CacheHandler):
            return False
        return self.inner == other.inner and self.ranges.folder == other.ranges.folder

    __hash__ = ReadingHandler.__hash__

    def open_reader(self, path: str) -> Reader:
        reader = None
        if path not in self._stamps:
            reader = super().open_reader(path)
            self._stamps[path] = reader.stamp
        return _CachedReader(self, path, self._stamps[path], reader)

    def read_end(self, path: str, nbytes: int, stamp: Stamp | None = None) -> FileEnd:
        """What is cached has the stamp of an open file."""
        return read_last(self.open_reader(path), nbytes)

    def check_unchanged(self, path: str) -> None:
        """Every range was checked when it was read from below."""

    def open_below(self, path: str) -> Reader:
        """Open a file without the cache."""
        return super().open_reader(path)

    def find(self, path: str, nbytes: int, offset: int) -> bytes | None:
        """Return a cached range, or None; do not wait for another reader of it."""
        stamp = self._stamps.get(path)
        key = None if stamp is None else self.make_key(path, stamp)
        return None if key is None else self.ranges.find(_name_range(key, nbytes, offset), nbytes)

    def forget(self, path: str) -> None:
        super().forget(path)
        stamp = self._stamps.get(path)
        key = None if stamp is None else self.make_key(path, stamp)
        if key is not None:
            self.ranges.drop(key)

    def make_key(self, path: str, stamp: Stamp) -> str | None:
        """Return what names this version of a file; None if nothing does."""
        if may_be_rewritten(stamp) or (not self._store and stamp.etag is None):
            return None
        return "\0".join(map(str, (self._store, path, *stamp)))


def find_cache(filesystem: fs.FileSystem) -> CacheHandler | None:
    """Return what keeps the ranges of a file system; None if nothing does."""
    handler = find_handler(filesystem)
    while handler is not None and not isinstance(handler, CacheHandler):
        handler = find_handler(handler.inner)
    return handler


class _CachedReader(Reader):
    def __init__(
        self, handler: CacheHandler, path: str, stamp: Stamp, below: Reader | None
    ) -> None:
        self._handler = handler
        self._path = path
        self.stamp = stamp
        self._below = below
        self._lock = threading.Lock()
        self._key = handler.make_key(path, stamp)

    def read_at(self, nbytes: int, offset: int) -> Any:
        if self.stamp.size is not None:
            nbytes = max(0, min(nbytes, self.stamp.size - offset))
        if self._key is None or not nbytes:
            return self._read_below(nbytes, offset)
        key = _name_range(self._key, nbytes, offset)
        return self._handler.ranges.read(key, nbytes, lambda: self._read_below(nbytes, offset))

    def _read_below(self, nbytes: int, offset: int) -> Any:
        with self._lock:
            if self._below is None:
                self._below = self._handler.open_below(self._path)
        data = self._below.read_at(nbytes, offset)
        check_unchanged(self._handler.inner, self._path)
        return data

    def close(self) -> None:
        below, self._below = self._below, None
        if below is not None:
            below.close()


def _name_range(key: str, nbytes: int, offset: int) -> str:
    return f"{key}\x01{offset}\0{nbytes}"


def name_store(filesystem: fs.FileSystem) -> str:
    """Return what distinguishes a store from others, without credentials; empty if nothing does."""
    if isinstance(filesystem, fs.SubTreeFileSystem):
        below = name_store(filesystem.base_fs)
        return below and f"{filesystem.base_path} {below}"
    if not isinstance(filesystem, fs.PyFileSystem):
        return f"{filesystem.type_name} {_list_options(_find_options(filesystem))}"
    handler = filesystem.handler
    if isinstance(handler, StoresHandler):
        names = [name_store(store.filesystem) for store in handler.stores]
        prefixes = [store.prefix for store in handler.stores]
        return str(list(zip(prefixes, names, strict=True))) if all(names) else ""
    if isinstance(handler, fs.FSSpecHandler):
        return _name_fsspec(handler.fs)
    if isinstance(handler, FsspecHandler):
        return _name_fsspec(handler.filesystem)
    return name_store(handler.inner) if isinstance(handler, ReadingHandler) else _digest(handler)


def _name_fsspec(filesystem: Any) -> str:
    """Return the class and the options of a file system of fsspec, and of those within it."""
    if not hasattr(filesystem, "storage_options"):  # its methods are fsspec's, its class is not
        return _digest(filesystem)
    values = [*getattr(filesystem, "storage_args", ()), filesystem.storage_options]
    names = [_name_value(value) for value in values]
    return f"{_name_class(filesystem)} {names}" if all(names) else ""


def _name_value(value: Any) -> str:
    """Return what distinguishes an option, without secrets; empty if nothing does."""
    if isinstance(value, (str, int, float, type(None))):
        return repr(value)
    if hasattr(value, "storage_options"):
        return _name_fsspec(value)
    if isinstance(value, (list, tuple)):
        names = [_name_value(part) for part in value]
    elif isinstance(value, Mapping):
        chosen = [name for name in value if str(name) in _USERS or not is_secret(str(name))]
        parts = [(str(name), _name_value(value[name])) for name in chosen]
        names = [part and f"{name}={part}" for name, part in sorted(parts)]
    else:
        return _digest(value)
    return str(names) if all(names) else ""


def _digest(value: Any) -> str:
    """Return the class and the state of what somebody else wrote; empty if it has no pickle."""
    try:
        state = pickle.dumps(value)
    except Exception:  # whatever its class raises
        return ""
    return f"{_name_class(value)} {hashlib.blake2b(state, digest_size=20).hexdigest()}"


def _name_class(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _find_options(filesystem: fs.FileSystem) -> dict[str, Any]:
    """Return the options that pyarrow pickles a file system with."""
    _, arguments, *_ = filesystem.__reduce__()
    return next((argument for argument in arguments if isinstance(argument, dict)), {})


def _list_options(options: dict[str, Any]) -> list[tuple[str, str]]:
    chosen = (name for name in (*_PLACES, *_ACCOUNTS) if options.get(name))
    return [(name, str(options[name])) for name in chosen]
