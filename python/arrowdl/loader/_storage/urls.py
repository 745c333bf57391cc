"""URLs as stores: pyarrow's own file systems where it has them, fsspec's for the rest."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from arrowdl.loader._storage.secrets import Secrets, find_secrets, hide_query

if TYPE_CHECKING:
    import pyarrow.fs as fs

    from arrowdl.loader._storage.stores import Store

_WEB = ("http", "https")
# Names and values. A "?" may also be of a pattern: "k=?/l=1".
_QUERY = re.compile(r"[A-Za-z_][\w.-]*=[^&]*(?:&[A-Za-z_][\w.-]*=[^&]*)*")
# The start of a password that has a slash, and is not a port.
_HALF_LOGIN = re.compile(r"[^@\[\]]*:(?!\d*$)[^@\[\]]*")
# What s3fs, boto and others call the options of pyarrow's S3FileSystem.
_S3_NAMES = {
    "key": "access_key",
    "secret": "secret_key",
    "token": "session_token",
    "anon": "anonymous",
    "endpoint_url": "endpoint_override",
    "aws_access_key_id": "access_key",
    "aws_secret_access_key": "secret_key",
    "aws_session_token": "session_token",
    "aws_region": "region",
    "region_name": "region",
}
_GCS_NAMES = {"token": "access_token", "anon": "anonymous", "project": "project_id"}
_S3_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
# Google's client tries again by itself for 15 minutes otherwise. It waits a second before each try,
# so this is one try: the Loader tries again itself.
_GCS_LIMIT = timedelta(seconds=0.2)


class Url(NamedTuple):
    """The parts of a URL."""

    scheme: str
    login: str  # "user:password", or empty
    host: str  # the bucket, with the port or the account
    path: str  # begins with a slash, or is empty
    query: str


def is_url(path: str) -> bool:
    """Whether a path has a scheme other than that of local files."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.replace("+", "").isalnum() and scheme != "file"


def split_url(url: str) -> Url:
    """Split a URL. A "?" of a pattern stays in the path: a query has names and values."""
    scheme, _, rest = url.partition("://")
    query = ""
    if scheme in _WEB or _QUERY.fullmatch(rest.partition("?")[2]):
        rest, _, query = rest.partition("?")
    authority, slash, path = rest.partition("/")
    if "@" in path and _HALF_LOGIN.fullmatch(authority):  # as keys of S3 are pasted
        more, _, after = path.partition("@")
        host, slash, path = after.partition("/")
        authority = f"{authority}/{more}@{host}"
    login, _, host = authority.rpartition("@")
    if login and ":" not in login and scheme not in _WEB:  # abfss://container@account
        login, host = "", authority
    return Url(scheme.lower(), login, host, slash + path, query)


def describe_url(url: str, with_query: bool = True) -> str:
    """Return a URL without its secrets, and with or without the rest of its query."""
    parts = split_url(url)
    query = hide_query(parts.query)[0] if with_query else ""
    return f"{parts.scheme}://{parts.host}{parts.path}{f'?{query}' if query else ''}"


def find_url_secrets(url: str) -> Secrets:
    """Return the secrets of a URL: the login, and parameters such as those of a signature."""
    parts = split_url(url)
    login = [part for part in parts.login.split(":") if part]
    values = [parts.login, *login, *map(unquote, login), *hide_query(parts.query)[1]]
    return Secrets([*values, parts.query] if hide_query(parts.query)[1] else values)


def open_store(
    url: str,
    options: Mapping[str, Any],  # of the file system
) -> Store:
    """Make the file system that has a URL.

    Raises ValueError if the file system does not take an option. Raises ImportError if a library is
    missing.
    """
    from arrowdl.loader._storage.stores import Store

    parts = split_url(url)
    if parts.scheme in _BUCKETS and not parts.host:
        raise ValueError(f"{describe_url(url)!r} names no bucket: {parts.scheme}://bucket/key")
    secrets = find_url_secrets(url) | Secrets(find_secrets(options))
    make = _PYARROW.get(parts.scheme)
    prefix = f"{parts.scheme}://{parts.host}"
    filesystem = None if make is None else secrets.guard(lambda: make(parts, dict(options)))
    if filesystem is not None:
        if make in _OF_BUCKETS:
            cut = len(parts.scheme) + len("://")
        else:
            cut = len(prefix) + (make is _open_azure)  # whose paths begin without a slash
        return Store(prefix, filesystem, cut, secrets)
    filesystem = secrets.guard(lambda: _open_fsspec(url, parts, dict(options)))
    return Store(prefix, filesystem, 0 if parts.scheme in _WEB else None, secrets)


def _open_s3(parts: Url, options: dict[str, Any]) -> fs.FileSystem | None:
    try:
        from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, resolve_s3_region
    except ImportError:  # a build of pyarrow without it
        return None
    chosen = {**_read_query(parts), **_rename(options, _S3_NAMES)}
    if parts.login:
        key, _, secret = parts.login.partition(":")
        chosen = {"access_key": unquote(key), "secret_key": unquote(secret), **chosen}
    # pyarrow reads the variables too, but then asks for the bucket as a part of the host's name.
    endpoint = chosen.get("endpoint_override") or _find_set(*_S3_ENDPOINTS)
    if endpoint:
        chosen["endpoint_override"] = endpoint
    if isinstance(endpoint, str) and "://" in endpoint:
        scheme, _, chosen["endpoint_override"] = endpoint.partition("://")
        chosen.setdefault("scheme", scheme)
    if not (endpoint or chosen.get("region") or _find_set("AWS_REGION", "AWS_DEFAULT_REGION")):
        _make(S3FileSystem, {**chosen, "region": "us-east-1"})  # a wrong option needs no request
        chosen["region"] = resolve_s3_region(parts.host)
    # The Loader tries again itself.
    chosen.setdefault("retry_strategy", AwsStandardS3RetryStrategy(max_attempts=1))
    return _make(S3FileSystem, chosen)


def _find_set(*names: str) -> str:
    """Return the first variable of the environment that is set."""
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _open_gcs(parts: Url, options: dict[str, Any]) -> fs.FileSystem | None:
    try:
        from pyarrow.fs import GcsFileSystem
    except ImportError:
        return None
    chosen = {"retry_time_limit": _GCS_LIMIT, **_read_query(parts), **_rename(options, _GCS_NAMES)}
    return _make(GcsFileSystem, chosen)


def _open_azure(parts: Url, options: dict[str, Any]) -> fs.FileSystem | None:
    try:
        from pyarrow.fs import AzureFileSystem, SubTreeFileSystem
    except ImportError:
        return None
    chosen = {**_read_query(parts), **options}
    if "connection_string" in chosen or not ("account_name" in chosen or "@" in parts.host):
        return None  # fsspec's adlfs has these
    container, _, account = parts.host.partition("@")
    if account:
        chosen.setdefault("account_name", account.partition(".")[0])
    return SubTreeFileSystem(container, _make(AzureFileSystem, chosen))


def _open_hdfs(parts: Url, options: dict[str, Any]) -> fs.FileSystem | None:
    from pyarrow.fs import HadoopFileSystem

    host, _, port = parts.host.partition(":")
    chosen: dict[str, Any] = {"host": host or "default", **_read_query(parts), **options}
    if port:
        chosen.setdefault("port", int(port))
    return _make(HadoopFileSystem, chosen)


_Make = Callable[[Url, dict[str, Any]], "fs.FileSystem | None"]
_PYARROW: dict[str, _Make] = {
    "s3": _open_s3,
    "s3a": _open_s3,
    "s3n": _open_s3,
    "gs": _open_gcs,
    "gcs": _open_gcs,
    "abfs": _open_azure,
    "abfss": _open_azure,
    "az": _open_azure,
    "hdfs": _open_hdfs,
    "viewfs": _open_hdfs,
}
_BUCKETS = [scheme for scheme, make in _PYARROW.items() if make is not _open_hdfs]
_OF_BUCKETS = (_open_s3, _open_gcs)  # their paths begin with the bucket
# Whose options may be those of each scheme.
SCHEMES = {*_PYARROW, *_WEB, "hf", "memory", "ftp", "sftp", "github", "oss", "webhdfs", "adl"}


def _make(kind: type[Any], options: Mapping[str, Any]) -> Any:
    try:
        return kind(**options)
    except TypeError as error:
        names = ", ".join(sorted(options))
        raise ValueError(
            f"pyarrow's {kind.__name__} does not take one of Storage.options {names} ({error}): "
            f"see pyarrow.fs.{kind.__name__}, or make a file system yourself, for "
            "Storage.filesystem. "
            'The text after "?" in a URL has options, too'
        ) from None


def _rename(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in options.items()}


def _read_query(parts: Url) -> dict[str, Any]:
    values: dict[str, Any] = dict(parse_qsl(parts.query))
    words = {"true": True, "false": False}
    return {name: words.get(str(value).lower(), value) for name, value in values.items()}


def _open_fsspec(url: str, parts: Url, options: dict[str, Any]) -> fs.FileSystem:
    import pyarrow.fs as fs

    try:
        import fsspec
    except ImportError:
        raise ImportError(
            f"{describe_url(url)!r}: pyarrow has no file system for {parts.scheme}://, and fsspec "
            "is not installed, which may have one: pip install fsspec"
        ) from None
    from arrowdl.loader._storage.fsspec_files import FsspecHandler

    try:
        kind = fsspec.get_filesystem_class(parts.scheme)
    except (ImportError, ValueError) as error:  # an unknown protocol, or a missing library
        raise type(error)(f"{describe_url(url)!r}: {error}") from None
    url_options = {} if parts.scheme in _WEB else kind._get_kwargs_from_urls(url)
    if parts.scheme in _WEB:
        options = _limit_waiting(options)
    filesystem = fsspec.filesystem(
        parts.scheme,
        **{"skip_instance_cache": True, "use_listings_cache": False, **url_options, **options},
    )
    _try_once(filesystem)
    return fs.PyFileSystem(FsspecHandler(filesystem))


def _try_once(filesystem: Any) -> None:
    """Turn off the tries of Azure's client, each of which waits for 15 seconds and more."""
    config = getattr(getattr(filesystem, "service_client", None), "_config", None)
    policy: Any = getattr(config, "retry_policy", None)
    if getattr(policy, "total_retries", None):
        policy.total_retries = 0


def _limit_waiting(options: dict[str, Any]) -> dict[str, Any]:
    """Add time-outs of a connection and of each read: aiohttp would wait for five minutes."""
    import aiohttp

    waits = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=30)
    client = {"timeout": waits, **options.get("client_kwargs", {})}
    return {**options, "client_kwargs": client}
