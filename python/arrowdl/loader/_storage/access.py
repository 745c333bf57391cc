"""`Access`: how a Loader gets to its files, beyond the local file system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from arrowdl.loader._settings.retries import Retries
from arrowdl.loader._settings.storage import is_of_fsspec
from arrowdl.loader._storage.disk_cache import DiskCache
from arrowdl.loader._storage.readers import Stamp
from arrowdl.loader._storage.retry_calls import RetriedError, call_with_retries
from arrowdl.loader._storage.secrets import Secrets, find_secrets
from arrowdl.loader._storage.time_limit import count_late
from arrowdl.loader._storage.urls import (
    SCHEMES,
    describe_url,
    find_url_secrets,
    is_url,
    open_store,
    split_url,
)

if TYPE_CHECKING:
    import pyarrow.fs as fs

    from arrowdl.loader._storage.stores import Store

_WAITS = (
    "a request to S3 goes on after its deadline, and pyarrow opens no other file system of S3 "
    "until it ends: start the program again, or give Storage(filesystem=) one that is open"
)
_TWICE = "two URLs are {!r} without their signatures: give each file once, with one of them"


@dataclass(frozen=True)
class Access:
    """How files are reached."""

    filesystem: Any = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    retries: Retries | None = None
    cache: DiskCache | None = None

    @property
    def is_given(self) -> bool:
        """Whether the caller chose a file system or its options."""
        return self.filesystem is not None or self.storage_options is not None

    def is_remote(self, paths: Iterable[str]) -> bool:
        """Whether one of `paths` is not on the local file system."""
        if self.filesystem is not None:
            return not _is_local(self.filesystem)
        for path in paths:
            if "::" in path and "://" in path:
                raise ValueError(
                    f"{describe_url(path)!r} is a chain of file systems: make the outer one, "
                    "filesystem, path = fsspec.url_to_fs(url), and give Loader(path, "
                    "storage=Storage(filesystem=filesystem))"
                )
        return any(map(is_url, paths))

    def open(
        self,
        paths: Sequence[str],  # URLs, and local paths beside them; of `filesystem`, its own paths
        planned_stamps: Mapping[str, Stamp] | None = None,  # what a plan says of files
        revisions: Mapping[str, str] | None = None,  # see the plan
    ) -> tuple[fs.FileSystem, list[str]]:
        """Make the file system that has `paths`; return it, and the paths there, without secrets.

        Raises ValueError if a path names another revision than that of the files of the plan.
        """
        from arrowdl.loader._storage.footers import keep_footers
        from arrowdl.loader._storage.revisions import check_revisions, pin_revisions

        if self.filesystem is not None:
            store = wrap_store(self.filesystem)
            stores, store_paths = [store], [find_store_path(store, path) for path in paths]
        else:
            stores, store_paths = self._open_stores(paths)
        retries = self.retries or Retries()
        if planned_stamps is None:
            store_paths = pin_revisions(stores, store_paths, retries)
        else:  # a plan has the commits
            check_revisions(stores, store_paths, planned_stamps, revisions or {}, retries)
        return keep_footers(self.add_layers(stores, planned_stamps or {})), store_paths

    def wrap(
        self,
        filesystem: fs.FileSystem,
        secrets: Iterable[str] = (),  # that its errors must not have
        planned_stamps: Mapping[str, Stamp] | None = None,  # as in `open`
        *,
        has_footers: bool = True,  # whether files have footers, which are kept
    ) -> fs.FileSystem:
        """Return a file system of a dataset or a table, with the same paths, as `open` does."""
        from arrowdl.loader._storage.footers import keep_footers

        store = wrap_store(filesystem)
        store.secrets |= Secrets(secrets)
        layered = self.add_layers([store], planned_stamps or {})
        return keep_footers(layered) if has_footers else layered

    def add_layers(self, stores: list[Store], planned_stamps: Mapping[str, Stamp]) -> fs.FileSystem:
        """Compare files, try again what fails, and keep what is read."""
        import pyarrow.fs as fs

        from arrowdl.loader._storage.cached import cache
        from arrowdl.loader._storage.pinned import pin
        from arrowdl.loader._storage.retrying_handler import retry
        from arrowdl.loader._storage.stores import StoresHandler

        filesystem = pin(fs.PyFileSystem(StoresHandler(stores)), planned_stamps)
        filesystem = retry(filesystem, self.retries or Retries())
        return filesystem if self.cache is None else cache(filesystem, self.cache)

    def _open_stores(self, paths: Sequence[str]) -> tuple[list[Store], list[str]]:
        from pyarrow.fs import LocalFileSystem

        from arrowdl.loader._storage.stores import Store

        stores: dict[str, Store] = {}
        keys: dict[str, tuple[str, str]] = {}
        store_paths = []
        for path in paths:
            if not is_url(path):
                stores.setdefault("", Store("", LocalFileSystem()))
                store_paths.append(path)
                continue
            parts = split_url(path)
            is_web = parts.scheme in ("http", "https")
            prefix = f"{parts.scheme}://{parts.host}"
            key = parts.login, "" if is_web else parts.query
            if keys.setdefault(prefix, key) != key:
                raise ValueError(
                    f"two URLs of {prefix!r} have different logins or options: make a Loader of "
                    "each, and mix them with Loader.mix, or give Storage.filesystem"
                )
            if prefix not in stores:
                stores[prefix] = self.make_store(path)
            stores[prefix].secrets |= find_url_secrets(path)
            store_paths.append(_name(stores[prefix], path) if is_web else describe_url(path, False))
        return list(stores.values()), store_paths

    def make_store(self, url: str) -> Store:
        """Open the file system that has a URL."""
        scheme = split_url(url).scheme
        options = self.storage_options or {}
        nested = [name for name, value in options.items() if isinstance(value, Mapping)]
        if (
            nested
            and len(nested) == len(options)
            and (scheme in options or all(name in SCHEMES for name in options))
        ):
            options = options.get(scheme, {})
        what = f"opening the file system of {describe_url(url)!r}"
        retries, open_it = self.retries or Retries(), lambda: open_store(url, options)
        try:
            return call_with_retries(retries, what, open_it)
        except RetriedError as error:
            if scheme == "s3" and count_late() > 1:  # this one, and another
                error.add_note(_WAITS)
            raise


def _name(store: Store, url: str) -> str:
    """Return a URL of the web without its secrets, and note the one with them."""
    clean = describe_url(url)
    if store.signed.setdefault(clean, url) != url:
        raise ValueError(_TWICE.format(clean))
    return clean


def find_store_path(store: Store, path: str) -> str:
    """Return the path, in a file system that was given, of a path or URL, without its secrets."""
    if not is_url(path):
        return path
    secret_path, clean = _strip_scheme(store, path), _strip_scheme(store, describe_url(path))
    store.secrets |= find_url_secrets(path)
    if store.signed.setdefault(clean, secret_path) != secret_path:
        raise ValueError(_TWICE.format(clean))
    return clean


def _strip_scheme(store: Store, url: str) -> str:
    handler = getattr(store.filesystem, "handler", None)
    strip = getattr(getattr(handler, "filesystem", None), "_strip_protocol", None)
    return url.partition("://")[2] if strip is None else str(strip(url))


def wrap_store(filesystem: Any) -> Store:
    """Return a store of a file system object, whose paths are its own."""
    import pyarrow.fs as fs

    from arrowdl.loader._storage.fsspec_files import FsspecHandler
    from arrowdl.loader._storage.stores import Store

    if isinstance(filesystem, fs.PyFileSystem) and isinstance(filesystem.handler, fs.FSSpecHandler):
        filesystem = filesystem.handler.fs
    if isinstance(filesystem, fs.FileSystem):
        return Store("", filesystem)
    if not is_of_fsspec(filesystem):
        raise TypeError(
            f"Storage.filesystem={type(filesystem).__name__}: give a file system of pyarrow.fs or "
            "fsspec"
        )
    secrets = Secrets(find_secrets(getattr(filesystem, "storage_options", None) or {}))
    return Store("", fs.PyFileSystem(FsspecHandler(filesystem)), secrets=secrets)


def _is_local(filesystem: Any) -> bool:
    return type(filesystem).__name__ == "LocalFileSystem" and type(
        filesystem
    ).__module__.startswith("pyarrow")
