"""`WholeFiles`: reads whole files by their paths and URLs, each by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from arrowdl.loader._storage.access import Access, find_store_path, wrap_store
from arrowdl.loader._storage.urls import describe_url, find_url_secrets, is_url, split_url

if TYPE_CHECKING:
    from arrowdl.loader._storage.stores import Store

_WEB = ("http", "https")


class WholeFiles:
    """Reads files of columns, which may be millions: it keeps the stores, and nothing of a file.

    Several threads may read at the same time.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._stores: dict[tuple[str, ...], Store] = {}
        self._lock = threading.Lock()

    def are_remote(self, paths: Iterable[str]) -> bool:
        """Whether the time of a read is mostly waiting for another machine."""
        if self._access.filesystem is not None:
            return self._access.is_remote(())
        return any(map(is_url, paths))

    def read(self, path: str) -> bytes:
        """Return the bytes of a file."""
        if not self._access.is_remote([path]):
            if path.startswith("file://"):
                path = url2pathname(urlsplit(path).path)
            with open(path, "rb") as file:
                return file.read()
        from arrowdl.loader._storage.handlers import open_reader

        store, store_path = self._find(path)
        filesystem = self._access.add_layers([store], {})
        with closing(open_reader(filesystem, store_path)) as reader:
            return bytes(reader.read_at(reader.size, 0)) if reader.size else b""

    def _find(self, path: str) -> tuple[Store, str]:
        """Return a store that has a path, with the secrets of its URL, and its path there."""
        if self._access.filesystem is not None:
            store = replace(self._open((), path), signed={})
            return store, find_store_path(store, path)
        parts = split_url(path)
        is_web = parts.scheme in _WEB
        key = (parts.scheme, parts.host, parts.login, "" if is_web else parts.query)
        opened = self._open(key, path)
        secrets = opened.secrets | find_url_secrets(path)
        if not is_web:
            return replace(opened, secrets=secrets), describe_url(path, False)
        clean = describe_url(path)
        return replace(opened, secrets=secrets, signed={clean: path}), clean

    def _open(self, key: tuple[str, ...], path: str) -> Store:
        from arrowdl.loader._storage.fsspec_files import FsspecHandler

        with self._lock:  # the others would open the same one
            if key not in self._stores:
                filesystem = self._access.filesystem
                store = (
                    self._access.make_store(path) if filesystem is None else wrap_store(filesystem)
                )
                handler = getattr(store.filesystem, "handler", None)
                if isinstance(handler, FsspecHandler):
                    handler.reads_whole = True
                self._stores[key] = store
            return self._stores[key]


def describe_path(path: str) -> str:
    """Return a path, or a URL without its secrets."""
    return describe_url(path) if is_url(path) else path
