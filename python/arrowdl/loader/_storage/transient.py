"""Which errors of a file system may pass: the one list of what is tried again."""

from __future__ import annotations

import errno
import re

# Built-in types. FileNotFoundError, PermissionError and other answers of the store are final.
_TYPES: tuple[type[BaseException], ...] = (TimeoutError, ConnectionError, EOFError)
_ERRNOS = {
    *(errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT),
    *(errno.EAGAIN, errno.EINTR, errno.EIO, errno.EBUSY, errno.ENETDOWN, errno.ENETUNREACH),
    *(errno.ENETRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH),
}
# HTTP: time-out, too early, too many requests, errors of the server, of gateways and Cloudflare.
_STATUSES = {408, 425, 429, 500, 502, 503, 504, 509, 520, 521, 522, 523, 524, 529, 530}
# By module and name: none of these libraries is imported for it.
_CLASSES = {
    "http.client.IncompleteRead",
    "http.client.RemoteDisconnected",
    "http.client.BadStatusLine",
    "urllib3.exceptions.ProtocolError",
    "urllib3.exceptions.TimeoutError",
    "requests.exceptions.ConnectionError",
    "requests.exceptions.Timeout",
    "requests.exceptions.ChunkedEncodingError",
    "aiohttp.client_exceptions.ClientConnectionError",
    "aiohttp.client_exceptions.ClientPayloadError",
    "aiohttp.http_exceptions.TransferEncodingError",
    "asyncio.exceptions.TimeoutError",
    "fsspec.exceptions.FSTimeoutError",
    "botocore.exceptions.ConnectionError",
    "botocore.exceptions.HTTPClientError",
    "botocore.exceptions.ResponseStreamingError",
    "botocore.exceptions.IncompleteReadError",
    "azure.core.exceptions.ServiceRequestError",
    "azure.core.exceptions.ServiceResponseError",
    "httpx.TransportError",
    "httpcore.NetworkError",
    "httpcore.TimeoutException",
    "socket.gaierror",
    "ssl.SSLEOFError",
    "ssl.SSLZeroReturnError",
}
# In the texts of pyarrow's OSErrors, by AWS's, Google's and Azure's clients.
_WORDS = re.compile(
    r"AWS Error (?:NETWORK_CONNECTION|INTERNAL_FAILURE|SERVICE_UNAVAILABLE|SLOW_DOWN|THROTTLING"
    r"|REQUEST_TIMEOUT|REQUEST_EXPIRED|REQUEST_TIME_TOO_SKEWED|CLIENT_SIGNING_FAILURE_RETRY)\b"
    r"|curlCode: \d+"
    r"|SlowDown|RequestTimeout|InternalError|ServiceUnavailable"
    r"|\b(?:UNAVAILABLE|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED|kUnavailable|kDeadlineExceeded)\b"
    r"|Connection reset|Connection refused|timed out|Timeout was reached|Could not resolve host"
    r"|truncated"
    r"|\bXML_ERROR_"  # of a listing that is cut short
)
_STATUS = re.compile(
    r"(?:HTTP status|HTTP response code|status code|status=)\D{0,3}(\d{3})\b", re.I
)
# Errors of Rust's object_store, which Delta Lake uses: with a status, or about the connection.
_OBJECT_STORE = re.compile(r"Generic \w+ error\b")
_STATUS_LINE = re.compile(r"[\sm:](\d{3}) [A-Z][A-Za-z]+\b")
_FINAL = re.compile(r"AWS Error (?:ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH)")
# Answers of S3 to HEAD, which have no text.
_REFUSED = re.compile(r"AWS Error (?:ACCESS_DENIED|UNKNOWN \(HTTP status (?:301|400|403)\))")


class FileChangedError(OSError):
    """A file is not the one that was listed."""


class ShortReadError(OSError):
    """A file system returned fewer bytes than the file has."""


class OtherVersionError(OSError):
    """An answer is of another version of the file than that which was opened."""


class PassingError(OSError):
    """An error that may pass, without the secrets of the one that it stands for."""


def is_transient(
    error: BaseException,  # of a file system: pyarrow's, fsspec's, or one that Python wrote
) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, FileChangedError) or not isinstance(error, Exception):
        return False
    if isinstance(error, FileNotFoundError):  # fsspec says so of every failure on the web
        return error.__cause__ is not None and is_transient(error.__cause__)
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    if isinstance(error, (ShortReadError, OtherVersionError, PassingError, *_TYPES)) or (
        kinds & _CLASSES
    ):
        return True
    status = find_status(error)
    if status is not None:
        return status in _STATUSES
    if isinstance(reason := getattr(error, "reason", None), Exception):  # of urllib's URLError
        return is_transient(reason)
    if not isinstance(error, OSError):
        return False
    if error.errno is not None:
        return error.errno in _ERRNOS
    text = str(error)
    if _FINAL.search(text):
        return False
    is_of_object_store = _OBJECT_STORE.match(text) is not None
    if match := _STATUS.search(text) or (is_of_object_store and _STATUS_LINE.search(text)):
        return int(match[1]) in _STATUSES
    if is_of_object_store:
        return True
    return type(error) is OSError and bool(_WORDS.search(text))


def find_status(error: BaseException) -> int | None:
    """Return the HTTP status that the client of a web server attached to its error."""
    response = getattr(error, "response", None)
    names = ("status", "status_code", "code")  # aiohttp warns of those after the first
    candidates = [getattr(error, next((name for name in names if hasattr(error, name)), ""), None)]
    if isinstance(response, dict):  # botocore
        candidates.append(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    else:
        candidates.append(getattr(response, "status_code", None))
    for status in candidates:
        if isinstance(status, str) and status.isdecimal():
            status = int(status)
        if isinstance(status, int) and 100 <= status < 600:
            return status
    return None


def find_advice(error: BaseException) -> str:
    """Return what may be wrong where the store says no more than a status; empty otherwise."""
    if isinstance(error, OSError) and _REFUSED.search(str(error)):
        return (
            "the store refused the request without a reason, as it does if credentials are wrong "
            "or have expired, if they may not read this, if the region is another one, or if the "
            "clock of this machine is minutes off"
        )
    return ""
