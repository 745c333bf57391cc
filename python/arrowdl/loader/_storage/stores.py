"""`StoresHandler`: several stores as one file system, whose paths are URLs without secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.fs as fs

from arrowdl.loader._storage.handlers import (
    ReadingHandler,
    ask_for_files,
    list_files,
    open_reader,
    read_end,
)
from arrowdl.loader._storage.readers import FileEnd, Reader, Stamp
from arrowdl.loader._storage.secrets import Secrets


@dataclass
class Store:
    """A file system, and the URLs that it has."""

    prefix: str  # what its URLs begin with, "s3://bucket" for example; empty for all others
    filesystem: fs.FileSystem = field(repr=False)
    cut: int | None = 0  # characters of a URL before the file system's own path. None: fsspec knows
    secrets: Secrets = field(default_factory=Secrets)
    # paths of the file system with secrets in them, by those without
    signed: dict[str, str] = field(default_factory=dict, repr=False)
    # of Hugging Face's Hub: commits by "datasets/user/name@branch", as its URLs name them
    revisions: dict[str, str] = field(default_factory=dict)

    def has(self, path: str) -> bool:
        """Whether a path is of this store."""
        end = path[len(self.prefix) :]
        return path.startswith(self.prefix) and (not self.prefix or end[:1] in ("", "/"))

    def to_inner_path(self, path: str) -> str:
        """Return the file system's own path."""
        if path in self.signed:
            return self.signed[path]
        if self.cut is None:
            return str(self.filesystem.handler.filesystem._strip_protocol(path))
        return path[self.cut :]

    def to_url(self, inner_path: str, asked: str) -> str:
        """Return the URL of the file system's own path, which was found below the URL `asked`."""
        above = self.to_inner_path(asked).strip("/")
        below = inner_path.strip("/").removeprefix(above).lstrip("/")
        return f"{asked.rstrip('/')}/{below}"


class StoresHandler(ReadingHandler):
    """Sends each path to the store whose prefix it has; its errors have no secrets."""

    def __init__(self, stores: Sequence[Store]) -> None:
        super().__init__(stores[0].filesystem)
        self.stores = sorted(stores, key=lambda store: len(store.prefix), reverse=True)

    def __repr__(self) -> str:
        return f"<stores of {[store.prefix for store in self.stores]}>"

    def get_type_name(self) -> str:
        return "arrowdl"

    def _find(self, path: str) -> Store:
        for store in self.stores:
            if store.has(path):
                return store
        raise ValueError(
            f"{path!r} is in none of the stores of this Loader, {[s.prefix for s in self.stores]}"
        )

    def normalize_path(self, path: str) -> str:
        self._find(path)
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._ask(path) for path in paths]

    def _ask(self, path: str) -> fs.FileInfo:
        store = self._find(path)
        inner_path = store.to_inner_path(path)
        (info,) = store.secrets.guard(lambda: ask_for_files(store.filesystem, [inner_path]))
        return _rename(info, path)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        store = self._find(selector.base_dir)
        inner = fs.FileSelector(
            store.to_inner_path(selector.base_dir),
            allow_not_found=selector.allow_not_found,
            recursive=selector.recursive,
        )
        infos = store.secrets.guard(lambda: list_files(store.filesystem, inner))
        return [_rename(info, store.to_url(info.path, selector.base_dir)) for info in infos]

    def open_reader(self, path: str) -> Reader:
        store = self._find(path)
        inner_path = store.to_inner_path(path)
        reader = store.secrets.guard(lambda: open_reader(store.filesystem, inner_path))
        return _CleanReader(reader, store.secrets)

    def read_end(self, path: str, nbytes: int, stamp: Stamp | None = None) -> FileEnd:
        store = self._find(path)
        inner_path = store.to_inner_path(path)
        return store.secrets.guard(lambda: read_end(store.filesystem, inner_path, nbytes, stamp))

    def find_listed_etag(self, path: str) -> str | None:
        store = self._find(path)
        return ReadingHandler(store.filesystem).find_listed_etag(store.to_inner_path(path))

    def check_unchanged(self, path: str) -> None:
        """The layer above compares stamps."""


class _CleanReader(Reader):
    def __init__(self, reader: Reader, secrets: Secrets) -> None:
        self._reader = reader
        self.stamp = reader.stamp
        self._secrets = secrets

    def read_at(self, nbytes: int, offset: int) -> Any:
        return self._secrets.guard(lambda: self._reader.read_at(nbytes, offset))

    def close(self) -> None:
        self._secrets.guard(self._reader.close)


def _rename(info: fs.FileInfo, path: str) -> fs.FileInfo:
    return fs.FileInfo(path, info.type, mtime_ns=info.mtime_ns, size=info.size)
