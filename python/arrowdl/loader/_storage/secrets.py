"""`Secrets`: what must be in no error, log or state, taken out of texts and exceptions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus, unquote

from arrowdl.loader._storage.transient import PassingError, is_transient

T = TypeVar("T")

_SHOWN = "***"
# Parameters of signed URLs, and others that are passwords by their names.
_PARAMETER = (
    r"sig|signature|x-amz-[\w-]+|x-goog-[\w-]+|awsaccesskeyid|googleaccessid|policy|key-pair-id"
    r"|[\w-]*(?:token|secret|password|passwd|passphrase|credential|access_?key|api_?key"
    r"|account_?key|private_?key|encryption_?key|encryption_customer_?key|sse_customer_?key"
    r"|master_?key|sas_?key|connection_?string|access_?signature)[\w-]*"
    r"|pwd|auth|jwt"
)
_SIGNED = re.compile(rf"(?i)([?&;])({_PARAMETER})=([^&\s'\"<>)\]]+)")
_LOGIN = re.compile(r"([A-Za-z][\w+.-]*://)[^\s/@'\"]*:[^\s/@'\"]*@")
_IN_CONNECTION = re.compile(r"(?i)\b((?:account|shared_?access)_?(?:key|signature))=([^;\s'\"]+)")
_HEADER = re.compile(
    r"(?i)(authorization\W{1,4})((?:bearer|basic|aws4-hmac-sha256)?\s*[^\s'\"},]+)"
)
_NAME = re.compile(rf"(?i)^(?:{_PARAMETER}|key|pass|user|username|authorization|cookie|sas)$")
_PLAIN_HEADER = re.compile(
    r"(?i)(?:accept|content|if|cache|sec)-|(?:accept|user-agent|host|range|connection)$"
)
_ESCAPE = re.compile("%[0-9A-F]{2}")
# Shorter ones would hide half of every text.
_SHORTEST = 4


class Secrets:
    """Texts that are hidden, and what looks like a secret by its place in a URL."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values for form in _list_forms(value)}
        chosen = [form for form in forms if len(form) >= _SHORTEST]
        self._values = sorted(chosen, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"<{len(self._values)} secrets>"

    def __or__(self, other: Secrets) -> Secrets:
        return Secrets([*self._values, *other._values])

    def hide(self, text: str) -> str:
        """Return `text` without the secrets."""
        for value in self._values:
            text = text.replace(value, _SHOWN)
        text = _SIGNED.sub(rf"\1\2={_SHOWN}", text)
        text = _IN_CONNECTION.sub(rf"\1={_SHOWN}", text)
        text = _LOGIN.sub(rf"\1{_SHOWN}@", text)
        return _HEADER.sub(rf"\1{_SHOWN}", text)

    def guard(self, function: Callable[[], T]) -> T:
        """Call `function`; its errors have no secrets."""
        try:
            return function()
        except Exception as error:
            clean = self.clean(error)
            if clean is error:
                raise
        raise clean  # here, so that it is not chained to the one with secrets

    def clean(self, error: Exception) -> Exception:
        """Return `error`, or an exception with its text if that or what it is chained to has one.

        The exception has the same type if it is a built-in one, otherwise it is an OSError: others
        keep requests, URLs and headers in their attributes. It may pass if `error` may.
        """
        text = _describe_chain(error)
        if self.hide(text) == text:
            return error
        clean_copy = self._copy(error)
        if is_transient(error) and not is_transient(clean_copy):
            return PassingError(f"{type(error).__name__}: {clean_copy}")
        return clean_copy

    def _copy(self, error: Exception) -> Exception:
        shown = self.hide(str(error))
        kind = type(error)
        if kind.__module__ != "builtins":
            return OSError(f"{kind.__name__}: {shown}")
        if isinstance(error, OSError) and error.errno is not None:
            return kind(error.errno, self.hide(str(error.strerror)), *_list_names(self, error))
        try:
            return kind(shown)
        except TypeError:  # one of several arguments, as UnicodeDecodeError
            return OSError(f"{kind.__name__}: {shown}")


def _list_forms(value: str) -> list[str]:
    """Return a secret as it may be written in URLs: "+" and "/" of keys are escaped, or not."""
    escaped = [quote(value, safe=""), quote(value), quote_plus(value), quote_plus(value, safe="/")]
    lower = [_ESCAPE.sub(lambda match: match[0].lower(), form) for form in escaped]
    return [value, unquote(value), *escaped, *lower]


def _list_names(secrets: Secrets, error: OSError) -> list[str]:
    return [] if error.filename is None else [secrets.hide(str(error.filename))]


def _describe_chain(error: BaseException) -> str:
    """Return the texts of an error, its attributes and those that it is chained to."""
    texts: list[str] = []
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        current = left.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        left += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]
        texts += [str(current), repr(current.args), repr(vars(current))]
        texts += getattr(current, "__notes__", ())
    return "\n".join(texts)


def is_secret(name: str) -> bool:
    """Whether an option or a parameter is a secret, by its name."""
    return _NAME.match(name) is not None


def find_secrets(options: Mapping[str, Any]) -> list[str]:
    """Return the texts of options that are secrets by their names, also in mappings within."""
    texts: list[str] = []
    for name, value in options.items():
        if re.match(r"(?i)headers$", str(name)):
            texts += _find_in_headers(value)
        elif is_secret(str(name)):
            texts += _list_texts(value)
        elif isinstance(value, Mapping):
            texts += find_secrets(value)
    return texts


def _find_in_headers(headers: Any) -> list[str]:
    """Return the values of headers, of a mapping or of pairs, but those that are not secrets."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    if not isinstance(pairs, Iterable):
        return []
    texts = []
    for name, *values in (pair for pair in pairs if isinstance(pair, (tuple, list))):
        if not _PLAIN_HEADER.match(str(name)):
            texts += _list_texts(values)
    return texts


def _list_texts(value: Any) -> list[str]:
    """Return the texts of a secret and within it."""
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _list_texts(part)]
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _list_texts(part)]
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, (bool, type(None))) or not isinstance(value, (str, int)):
        return []
    text = str(value)
    parts = text.split()[1:]  # "Bearer ..." of a header
    return [text, *parts, *(match[2] for match in _IN_CONNECTION.finditer(text))]


def hide_query(query: str) -> tuple[str, list[str]]:
    """Return the parameters of a URL that are not secrets, and the values of those that are."""
    shown, hidden = [], []
    for item in query.split("&") if query else ():
        name, _, value = item.partition("=")
        if is_secret(unquote(name)):
            hidden.append(value)
        else:
            shown.append(item)
    return "&".join(shown), hidden
