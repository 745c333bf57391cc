"""File systems of fsspec under pyarrow's interface: each read is one request for a range."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from inspect import iscoroutinefunction
from typing import Any
from urllib.parse import unquote

import pyarrow.fs as fs

from arrowdl.loader._storage.handlers import ReadingHandler, to_nanoseconds
from arrowdl.loader._storage.readers import FileEnd, Reader, Stamp, list_changes, read_last
from arrowdl.loader._storage.steps_up import has_step_up
from arrowdl.loader._storage.time_limit import find_time_left, note_progress
from arrowdl.loader._storage.transient import (
    OtherVersionError,
    ShortReadError,
    find_status,
    is_transient,
)

_ETAGS = ("ETag", "etag", "e_tag", "md5Hash", "content_md5", "sha256", "blob_id")
_MOST_SLASHES = 64
_GRACE_SECONDS = 1.0
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "created")


class FsspecHandler(ReadingHandler):
    """Reads a file system of fsspec.

    pyarrow's own handler opens files with fsspec's read-ahead of whole blocks, and they are read by
    one thread at a time; ``cat_file`` asks for the range alone.
    """

    reads_whole = False  # files whose size the server does not tell, in place of an error

    def __init__(self, filesystem: Any) -> None:
        super().__init__(fs.PyFileSystem(fs.FSSpecHandler(filesystem)))
        self.filesystem = filesystem
        self._etags: dict[str, str | None] = {}  # of files that were listed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FsspecHandler) and self.filesystem == other.filesystem

    __hash__ = ReadingHandler.__hash__

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._ask(path) for path in paths]

    def _ask(self, path: str) -> fs.FileInfo:
        try:
            info = self._find(path)
        except FileNotFoundError as error:
            if is_transient(error):
                raise
            return fs.FileInfo(path, fs.FileType.NotFound)
        return _make_info(path, info)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self.filesystem.invalidate_cache(selector.base_dir)
        if "http" in self.filesystem.protocol:
            entries = self._find_links(selector.base_dir, recursive=selector.recursive)
        else:
            depth = {} if selector.recursive else {"maxdepth": 1}  # which adlfs does not know
            find = self.filesystem.find
            entries = _call(find, selector.base_dir, withdirs=True, detail=True, **depth)
        self._etags.update((path, _read_stamp(info).etag) for path, info in entries.items())
        base = selector.base_dir.strip("/")
        infos = [
            _make_info(path, info) for path, info in entries.items() if path.strip("/") != base
        ]
        if not infos and not selector.allow_not_found and not self.filesystem.exists(base):
            raise FileNotFoundError(selector.base_dir)
        return infos

    def find_listed_etag(self, path: str) -> str | None:
        return self._etags.get(path)

    def _find_links(self, page: str, *, recursive: bool) -> dict[str, Any]:
        """List what pages of links name, for fsspec's folders, which have no slash at their end."""
        entries: dict[str, Any] = {}
        pages = [page]
        note_progress(lambda: f"{len(entries)} links were found, and {len(pages)} pages were left")
        while pages:
            page = pages.pop()
            if page.count("/") > _MOST_SLASHES:
                raise ValueError(f"{page!r}: the server names folders without end")
            try:
                links = _call(self.filesystem.ls, page, detail=True)
            except FileNotFoundError as error:
                if is_transient(error):
                    raise
                continue
            for link in links:
                name = _place(page, link["name"])
                if name is None or name in entries:
                    continue
                entries[name] = link | {"name": name}
                if recursive and name.endswith("/"):
                    pages.append(name)
        return entries

    def _find(self, path: str) -> dict[str, Any]:
        self.filesystem.invalidate_cache(self.filesystem._parent(path))  # of listings: it is old
        try:
            return dict(_call(self.filesystem.info, path))
        except FileNotFoundError as error:  # fsspec says so of every failure on the web
            status = None if error.__cause__ is None else find_status(error.__cause__)
            if status not in (401, 403):
                raise
            raise PermissionError(f"{path!r} was refused, HTTP status {status}") from error

    def open_reader(self, path: str) -> Reader:
        info = self._find(path)
        if info.get("size") is None and self.reads_whole:
            return _WholeReader(self.filesystem, path, info)
        if info.get("size") is None:
            raise ValueError(
                f"{path!r} has no known size, and Parquet is read from its end: the server has to "
                "tell Content-Length and serve ranges; download the file, or read it into memory, "
                "arrowdl.Loader(urllib.request.urlopen(url), ...)"
            )
        return self._make_reader(path, _read_stamp(info))

    def _make_reader(self, path: str, stamp: Stamp) -> Reader:
        kind = _WebReader if _is_of_web(self.filesystem) else _FsspecReader
        return kind(self.filesystem, path, stamp)

    def read_end(self, path: str, nbytes: int, stamp: Stamp | None = None) -> FileEnd:
        reader = self.open_reader(path) if stamp is None else self._make_reader(path, stamp)
        return read_last(reader, nbytes)

    def check_unchanged(self, path: str) -> None:
        """The layer above compares stamps."""


class _FsspecReader(Reader):
    def __init__(self, filesystem: Any, path: str, stamp: Stamp) -> None:
        self._filesystem = filesystem
        self._path = path
        self.stamp = stamp

    def read_at(self, nbytes: int, offset: int) -> bytes:
        size = self.size
        stop = min(size, offset + nbytes)
        if stop <= offset:
            return b""
        data = self._ask(offset, stop)
        if len(data) == size > stop - offset:  # the server sent the whole file
            data = data[offset:stop]
        return bytes(data)

    def _ask(self, start: int, stop: int) -> bytes | memoryview:
        data = _call(self._filesystem.cat_file, self._path, start=start, end=stop)
        try:
            return memoryview(data).cast("B")
        except TypeError:
            raise TypeError(
                f"{type(self._filesystem).__name__}.cat_file() returned {type(data).__name__} for "
                f"{self._path!r}: it has to return bytes"
            ) from None


class _WholeReader(_FsspecReader):
    """Reads a file when it is opened."""

    def __init__(self, filesystem: Any, path: str, info: dict[str, Any]) -> None:
        self._data = bytes(_call(filesystem.cat_file, path))
        super().__init__(filesystem, path, _read_stamp({**info, "size": len(self._data)}))

    def _ask(self, start: int, stop: int) -> bytes:
        return self._data[start:stop]


def _place(page: str, link: str) -> str | None:
    """Return the URL of a link below its page; None if it sorts the page, or leaves its folder."""
    scheme, _, above = page.rstrip("/").partition("://")
    address = link.partition("://")[2]
    if not address.startswith(f"{above}/"):
        return None
    name = address[len(above) :]
    if "?" in name or has_step_up(unquote(name)):  # "?C=M;O=A" sorts
        return None
    return f"{scheme}://{above}{name}"


class _WebReader(_FsspecReader):
    """Reads what HTTPFileSystem reads, and looks at what the answers say of the range and the file.

    Replicas of a server may have different versions of a file, and some servers send other bytes
    than those that are asked for, as many as these: ``cat_file`` returns them.
    """

    def _ask(self, start: int, stop: int) -> bytes:
        from fsspec.asyn import sync

        parts: list[bytes] = []
        note_progress(lambda: f"{sum(map(len, parts))} of {stop - start} bytes had arrived")
        sync(self._filesystem.loop, self._get, start, stop, parts, **_limit())
        return b"".join(parts)

    async def _get(self, start: int, stop: int, parts: list[bytes]) -> None:
        web = self._filesystem
        options = dict(web.kwargs)
        headers = {"Accept-Encoding": "identity", **options.pop("headers", {})}
        headers["Range"] = f"bytes={start}-{stop - 1}"
        session = await web.set_session()
        async with session.get(web.encode_url(self._path), headers=headers, **options) as answer:
            web._raise_not_found_for_status(answer, self._path)
            expected = self._check(answer, start, stop)
            async for part in answer.content.iter_any():
                parts.append(part)
        arrived = sum(map(len, parts))
        if arrived != expected:
            raise ShortReadError(f"the answer had {arrived} bytes, of {expected}")

    def _check(self, answer: Any, start: int, stop: int) -> int | None:
        """Compare what an answer says of itself with what was asked for; return how long it is."""
        expected: int | None = stop - start
        size = None
        told = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
        if told is not None:
            size = None if told[3] == "*" else int(told[3])
            if (int(told[1]), int(told[2])) != (start, stop - 1):
                raise ShortReadError(f"the answer had bytes {told[1]} to {told[2]}")
        elif answer.status == 200:  # the whole file
            expected = self.stamp.size
            if "Content-Encoding" not in answer.headers and "Content-Length" in answer.headers:
                size = int(answer.headers["Content-Length"])
        elif answer.status != 206:
            raise ShortReadError(f"the answer had no bytes, and status {answer.status}")
        names = {name: answer.headers.get(name) for name in ("ETag", "Last-Modified")}
        changes = list_changes(self.stamp, _read_stamp({**names, "size": size}))
        if changes:
            raise OtherVersionError(f"the answer is of another file: {', '.join(changes)}")
        return expected


def _is_of_web(filesystem: Any) -> bool:
    """Whether a file system is fsspec's of the web, with its own ``cat_file``."""
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(filesystem).__mro__}
    method = getattr(type(filesystem), "_cat_file", None)
    return (
        "fsspec.implementations.http.HTTPFileSystem" in names
        and getattr(method, "__module__", "") == "fsspec.implementations.http"
        and not filesystem.asynchronous
    )


def _call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a method of fsspec; one that is a coroutine below is cancelled when the time is over."""
    if iscoroutinefunction(getattr(function, "__wrapped__", None)):
        options.update(_limit())
    return function(*arguments, **options)


def _limit() -> dict[str, float]:
    """Return the timeout that ends a coroutine when no thread waits for it any more."""
    left = find_time_left()
    return {} if left is None else {"timeout": left + _GRACE_SECONDS}


def _make_info(path: str, info: dict[str, Any]) -> fs.FileInfo:
    kinds = {"file": fs.FileType.File, "directory": fs.FileType.Directory}
    kind = kinds.get(info.get("type", ""), fs.FileType.Unknown)
    size = info.get("size") if kind == fs.FileType.File else None
    mtime = _read_stamp(info).mtime
    return fs.FileInfo(path, kind, size=size, mtime_ns=mtime)


def _read_stamp(info: dict[str, Any]) -> Stamp:
    times = (_read_time(info[name]) for name in _TIMES if info.get(name) is not None)
    etags = (str(info[name]) for name in _ETAGS if info.get(name) is not None)
    return Stamp(info.get("size"), next(times, None), next(etags, None))


def _read_time(time: Any) -> int | None:
    """Return nanoseconds since 1970."""
    if isinstance(time, (int, float)):
        return round(time * 10**6) * 1000  # as exact as a float is
    if isinstance(time, str):
        for parse in (datetime.fromisoformat, parsedate_to_datetime):
            try:
                time = parse(time)
                break
            except ValueError:
                continue
    if not isinstance(time, datetime):
        return None
    return to_nanoseconds(time)
