"""`Tokenize`: text as ids, for ``Loader(transform_arrow={"text": Tokenize(tokenizer)})``."""

from __future__ import annotations

from array import array
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from arrowdl.loader._checks import require_bool, require_int
from arrowdl.loader._column_arrays import is_string, unwrap_column
from arrowdl.loader._settings.value_object import value_object
from arrowdl.loader._skipped import RowsError, describe
from arrowdl.loader._text.libraries import read_tokenizer

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_IDS = 2**31 - 1  # of lists with offsets of 32 bits


@value_object
@dataclass(frozen=True, slots=True)
class Tokenize:
    """Tokenize a column of text, for ``Loader(transform_arrow={"text": Tokenize(tokenizer)})``.

    Rows become lists of ids, int32. `Pack`, `Tokens` and `Buckets` that name the column count and
    pack these. The Loader pads them, or does not, as `ragged` says:
    ``ragged=Padded(pad_id)`` gives padded ids with the length of each row. A null stays null: see
    `nulls` of the Loader.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer, transformers.PreTrainedTokenizerFast or tiktoken.Encoding
        It is copied: later changes do not count, and it is never changed. Its own padding does not
        count, and its own truncation only if it is a ``tokenizers.Tokenizer``.
    max_length : int, optional
        Ids of a row, with the special tokens. Longer texts are cut, at the end or, if the tokenizer
        truncates on the left, at the beginning.
    add_special_tokens : bool
        Whether the tokenizer adds its special tokens, such as "[CLS]" or "<s>". tiktoken has none
        to add, and takes those in a text as plain text.

    Raises
    ------
    TypeError, ValueError
        The tokenizer is of another library, or cannot be copied. `max_length` is not a positive
        integer, or has no room for the special tokens.

    Notes
    -----
    The library tokenizes a batch in its own threads. In worker processes it uses one, unless the
    environment variable ``TOKENIZERS_PARALLELISM`` says otherwise; in forked processes always.

    A BPE model with dropout draws other numbers in each run.
    """

    tokenizer: Any
    _: KW_ONLY
    max_length: int | None = None
    add_special_tokens: bool = True

    returns_new_memory = is_parallel = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokenizer", read_tokenizer(self.tokenizer))
        adds = require_bool("Tokenize.add_special_tokens", self.add_special_tokens)
        object.__setattr__(self, "add_special_tokens", adds)
        if self.max_length is None:
            return
        length = require_int("Tokenize.max_length", self.max_length, 1, _MOST_IDS)
        object.__setattr__(self, "max_length", length)
        special = self.tokenizer.count_special_tokens() if adds else 0
        if length < special:
            raise ValueError(
                f"Tokenize.max_length={length}: the tokenizer adds {special} special tokens to "
                f"each text: give at least {special}, or add_special_tokens=False"
            )

    def __call__(self, column: pa.Array) -> pa.ListArray:
        """Tokenize the texts of a column.

        Parameters
        ----------
        column : pyarrow.Array
            Strings, or a dictionary of strings.

        Returns
        -------
        pyarrow.ListArray
            A list of int32 for each row.

        Raises
        ------
        TypeError
            The column has no strings.
        ValueError
            A text cannot be tokenized, or the ids of all are too many for one array.
        """
        import pyarrow as pa

        texts = unwrap_column(column, "Tokenize", "text")
        if pa.types.is_null(texts.type):
            return pa.nulls(len(texts), pa.list_(pa.int32()))
        if not is_string(texts.type):
            raise TypeError(
                f"arrowdl.Tokenize cannot tokenize a column of {texts.type}: it takes strings"
            )
        try:
            ids, lengths = self._encode(texts)
        except MemoryError:
            raise
        except Exception:
            if error := self._find_error(texts):
                raise error from None
            raise
        return _join(texts.is_valid(), ids, lengths)

    def _encode(self, texts: pa.Array) -> tuple[array[int], array[int]]:
        """Return the ids of all texts, and the length of each that is not null."""
        ids, lengths = array("i"), array("i")
        adds = self.add_special_tokens
        strings = [text for text in texts.to_pylist() if text is not None]
        for row in self.tokenizer.encode(strings, self.max_length, adds_special_tokens=adds):
            ids.fromlist(row)
            lengths.append(len(row))
        return ids, lengths

    def _find_error(self, texts: pa.Array) -> RowsError | None:
        """Return the errors of single rows, with the ids of the others."""
        import pyarrow as pa

        ids, lengths, good = array("i"), array("i"), array("i")
        errors: dict[int, Exception] = {}
        for row in range(len(texts)):
            try:
                own_ids, own_lengths = self._encode(texts[row : row + 1])
            except Exception as error:
                errors[row] = ValueError(f"cannot tokenize the text: {describe(error)}")
            else:
                ids.extend(own_ids)
                lengths.extend(own_lengths)
                good.append(row)
        valid = texts.is_valid().take(pa.array(good, pa.int32()))
        return RowsError(errors, partial(_join, valid, ids, lengths)) if errors else None


def _join(valid: pa.BooleanArray, ids: array[int], lengths: array[int]) -> pa.ListArray:
    """Return lists of ids, from all ids and the length of each row that is not null."""
    import numpy as np
    import pyarrow as pa

    if len(ids) > _MOST_IDS:
        raise ValueError(
            f"the texts of a batch have {len(ids)} ids together, and lists of Arrow at most "
            f"{_MOST_IDS}: give a smaller batch_size"
        )
    is_valid: Any = valid.to_numpy(zero_copy_only=False)
    offsets: Any = np.zeros(len(is_valid) + 1, np.int32)
    offsets[1:][is_valid] = lengths
    return pa.ListArray.from_arrays(
        pa.array(np.cumsum(offsets, dtype=np.int32)),
        pa.array(np.frombuffer(ids, np.int32)),
        mask=None if is_valid.all() else pa.array(~is_valid),
    )
