"""Tokenizers of other libraries, as values that are compared and sent to other processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from arrowdl import _core
from arrowdl._libraries import is_of, name_class
from arrowdl._lifecycle import in_forked_child

_FUNCTION = 'for other tokenizers give a function of the column, transform_arrow={"text": function}'
_SLOW = (
    "it is one of Python: give AutoTokenizer.from_pretrained(name, use_fast=True), a fast tokenizer"
)
_ADVICE = {
    ("builtins", "str"): "give Tokenizer.from_file(path) or Tokenizer.from_pretrained(name)",
    ("pathlib", "PurePath"): "give Tokenizer.from_file(path)",
    ("tokenizers.implementations", "BaseTokenizer"): (
        "give tokenizers.Tokenizer.from_str(tokenizer.to_str())"
    ),
    ("transformers", "PreTrainedTokenizerBase"): _SLOW,
}

_processes: set[int] = set()  # that have tokenized


def _after_fork_in_child() -> None:
    """Let the library use one thread: it would wait for those of the parent, which are gone."""
    if _processes:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"


in_forked_child(_after_fork_in_child)


class TextTokenizer(Protocol):
    """A tokenizer that does not change."""

    def count_special_tokens(self) -> int:
        """Return how many special tokens it adds to a text."""

    def encode(
        self, texts: list[str], max_length: int | None, *, adds_special_tokens: bool
    ) -> Iterator[list[int]]:
        """Yield the ids of each text, cut to `max_length` with the special tokens."""


@dataclass(frozen=True)
class HuggingFaceTokenizer:
    """A ``tokenizers.Tokenizer`` as it was when `Tokenize` got it, without its padding."""

    json: str = field(repr=False)
    cuts: str  # which end of a long text: "right" or "left"
    encodes_special_tokens: bool  # those in a text, as any other word; no JSON says so
    # by the greatest length
    _opened: dict[int | None, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.json, self.cuts, self.encodes_special_tokens)

    def count_special_tokens(self) -> int:
        """See `TextTokenizer`."""
        return int(self._open(None).num_special_tokens_to_add(False))

    def encode(
        self, texts: list[str], max_length: int | None, *, adds_special_tokens: bool
    ) -> Iterator[list[int]]:
        """See `TextTokenizer`."""
        tokenizer = self._open(max_length)
        _processes.add(os.getpid())
        encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
        for row in encode(texts, add_special_tokens=adds_special_tokens):
            yield row.ids

    def _open(self, max_length: int | None) -> Any:
        """Return a tokenizer that has no other user."""
        from tokenizers import Tokenizer

        if max_length not in self._opened:
            tokenizer = Tokenizer.from_str(self.json)
            tokenizer.encode_special_tokens = self.encodes_special_tokens
            if max_length is not None:
                tokenizer.enable_truncation(max_length, direction=self.cuts)
            self._opened[max_length] = tokenizer
        return self._opened[max_length]


@dataclass(frozen=True)
class TiktokenEncoding:
    """A ``tiktoken.Encoding``, which does not change."""

    name: str
    encoding: Any = field(repr=False, compare=False)  # the name says which it is

    def count_special_tokens(self) -> int:
        """See `TextTokenizer`."""
        return 0

    def encode(
        self, texts: list[str], max_length: int | None, *, adds_special_tokens: bool
    ) -> Iterator[list[int]]:
        """See `TextTokenizer`."""
        for row in self.encoding.encode_ordinary_batch(texts, num_threads=_core.num_threads()):
            yield row[:max_length]


def read_tokenizer(value: Any) -> TextTokenizer:
    """Return a tokenizer that a user gave.

    Raises TypeError if it is not of a library that is supported, and ValueError if it cannot be
    copied.
    """
    if isinstance(value, HuggingFaceTokenizer | TiktokenEncoding):  # of dataclasses.replace
        return value
    if is_of(value, "tokenizers", "Tokenizer"):
        side = (value.truncation or {}).get("direction", "right")
        return HuggingFaceTokenizer(_copy(value).to_str(), side, value.encode_special_tokens)
    if is_of(value, "tiktoken", "Encoding"):
        return TiktokenEncoding(value.name, value)
    backend = getattr(value, "backend_tokenizer", None)
    if is_of(backend, "tokenizers", "Tokenizer"):
        # What the backend says of truncation and special tokens is of the last call.
        copy = _copy(backend)
        copy.no_truncation()
        return HuggingFaceTokenizer(
            copy.to_str(), value.truncation_side, value.split_special_tokens
        )
    advice = [text for names, text in _ADVICE.items() if is_of(value, *names)]
    raise TypeError(
        f"Tokenize.tokenizer is of the type {name_class(value)}: expected a tokenizers.Tokenizer, "
        "a fast tokenizer of transformers (PreTrainedTokenizerFast), or a tiktoken.Encoding; "
        f"{advice[0] if advice else _FUNCTION}"
    )


def _copy(tokenizer: Any) -> Any:
    """Return a copy of a ``tokenizers.Tokenizer``, without padding."""
    from tokenizers import Tokenizer

    try:
        copy = Tokenizer.from_str(tokenizer.to_str())
    except Exception as error:
        raise ValueError(
            f"Tokenize.tokenizer cannot be copied, as worker processes need it ({error}): give a "
            'function of the column, transform_arrow={"text": function}'
        ) from error
    copy.no_padding()
    return copy
