"""arrowdl.Tokenize: columns of text as ids, compared with the library ``tokenizers`` itself."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from arrowdl import Tokenize
from helpers.text import TOKENIZER, make_texts, train
from tokenizers import Tokenizer, implementations, models, pre_tokenizers

TEXTS = make_texts(60, seed=1)
IDS = [row.ids for row in TOKENIZER.encode_batch(TEXTS)]


def strict() -> Any:
    """A tokenizer that knows two words, and raises for others."""
    tokenizer = Tokenizer(models.WordLevel({"to": 0, "be": 1}))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


class TiktokenDouble:
    """An encoding whose ids are those of characters."""

    __module__ = "tiktoken.core"
    name = "characters"

    def encode_ordinary_batch(self, text: list[str], *, num_threads: int) -> list[list[int]]:
        assert num_threads >= 1
        return [[*map(ord, row)] for row in text]


TiktokenDouble.__name__ = "Encoding"


def fast(tokenizer: Any, side: str = "right") -> Any:
    """A double of a ``PreTrainedTokenizerFast``, whose backend is as its last call left it."""
    backend = copy.deepcopy(tokenizer)
    backend.enable_truncation(3)
    backend.enable_padding(length=50)
    backend.encode_special_tokens = True
    return SimpleNamespace(
        backend_tokenizer=backend, truncation_side=side, split_special_tokens=False
    )


# ---- columns


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    ids=str,
)
def test_ids_are_those_of_the_library(kind: Any) -> None:
    column = pa.array(TEXTS, kind)
    result = Tokenize(TOKENIZER)(column)
    assert result.type == pa.list_(pa.int32())
    result.validate(full=True)
    assert result.to_pylist() == IDS
    assert Tokenize(TOKENIZER)(column[7:19]).to_pylist() == IDS[7:19]
    assert Tokenize(TOKENIZER)(pa.chunked_array([column, column])).to_pylist() == IDS * 2
    assert len(Tokenize(TOKENIZER)(column[:0])) == 0


def test_a_dictionary_of_views() -> None:
    values = pa.array(TEXTS[:2], pa.string_view())
    column = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1]), values)
    assert Tokenize(TOKENIZER)(column).to_pylist() == [IDS[1], None, IDS[0], IDS[1]]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.large_string())],
    ids=str,
)
def test_nulls_are_null_rows(kind: Any) -> None:
    column = pa.array([None, TEXTS[0], None, "", TEXTS[1], None], kind)
    expected = [None, IDS[0], None, [1, 2], IDS[1], None]
    result = Tokenize(TOKENIZER)(column)
    result.validate(full=True)
    assert result.to_pylist() == expected
    assert Tokenize(TOKENIZER)(column[2:]).to_pylist() == expected[2:]
    nulls = Tokenize(TOKENIZER)(pa.nulls(3))
    assert (nulls.type, nulls.null_count) == (result.type, 3)


@pytest.mark.parametrize("column", [pa.array([1]), pa.array([b"a"]), pa.array([["a"]])])
def test_other_columns_are_refused(column: pa.Array) -> None:
    with pytest.raises(TypeError, match=r"cannot tokenize a column of .*: it takes strings"):
        Tokenize(TOKENIZER)(column)
    with pytest.raises(TypeError, match=r"takes a column, and got a RecordBatch: give transform_"):
        Tokenize(TOKENIZER)(pa.record_batch({"text": ["to"]}))


def test_an_older_library_has_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenize = Tokenize(TOKENIZER)
    only = SimpleNamespace(encode_batch=TOKENIZER.encode_batch)
    monkeypatch.setattr(type(tokenize.tokenizer), "_open", lambda *_: only)
    assert tokenize(pa.array(TEXTS)).to_pylist() == IDS


# ---- what the tokenizer says


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("length", [2, 3, 8, 1_000])
def test_long_texts_are_cut_as_the_library_does(length: int, adds: bool, side: str) -> None:
    reference = train()
    reference.enable_truncation(length, direction=side)
    expected = [row.ids for row in reference.encode_batch(TEXTS, add_special_tokens=adds)]
    given = train()
    given.enable_truncation(7, direction=side)
    for tokenizer in (given, fast(TOKENIZER, side)):
        tokenize = Tokenize(tokenizer, max_length=length, add_special_tokens=adds)
        assert tokenize(pa.array(TEXTS)).to_pylist() == expected
    assert given.truncation["max_length"] == 7


def test_its_truncation_counts_and_its_padding_does_not() -> None:
    tokenizer = train()
    tokenizer.enable_truncation(5)
    expected = [row.ids for row in tokenizer.encode_batch(TEXTS)]
    tokenizer.enable_padding()
    assert Tokenize(tokenizer)(pa.array(TEXTS)).to_pylist() == expected
    assert tokenizer.padding is not None
    assert Tokenize(fast(tokenizer))(pa.array(TEXTS)).to_pylist() == IDS  # that of its last call


def test_later_changes_do_not_count() -> None:
    tokenizer = train()
    tokenize = Tokenize(tokenizer)
    tokenizer.enable_truncation(3)
    tokenizer.add_tokens(["tobe"])
    assert tokenize(pa.array(TEXTS)).to_pylist() == IDS
    assert tokenize != Tokenize(tokenizer)


@pytest.mark.parametrize("is_text", [False, True])
def test_special_tokens_in_a_text(is_text: bool) -> None:
    tokenizer = train()
    tokenizer.encode_special_tokens = is_text
    expected = tokenizer.encode("[CLS] to").ids
    tokenize = Tokenize(tokenizer)
    for same in (tokenize, pickle.loads(pickle.dumps(tokenize)), replace(tokenize, max_length=99)):
        assert same(pa.array(["[CLS] to"])).to_pylist() == [expected]


def test_an_object_can_be_replaced_and_compared() -> None:
    tokenize = Tokenize(TOKENIZER, max_length=4)
    tokenize(pa.array(TEXTS))
    assert pickle.loads(pickle.dumps(tokenize)) == tokenize == Tokenize(train(), max_length=4)
    assert replace(tokenize, max_length=None)(pa.array(TEXTS)).to_pylist() == IDS
    assert tokenize != Tokenize(TOKENIZER)
    assert len(repr(tokenize)) < 200


def test_a_fast_tokenizer_has_no_state_of_its_last_call() -> None:
    tokenizer = fast(TOKENIZER)
    assert Tokenize(tokenizer) == Tokenize(TOKENIZER)
    tokenizer.split_special_tokens = True
    assert len(Tokenize(tokenizer)(pa.array(["[CLS] to"])).to_pylist()[0]) > 4


def test_tiktoken() -> None:
    column = pa.array(["to", None, "語x!", ""])
    assert Tokenize(TiktokenDouble())(column).to_pylist() == [
        [116, 111],
        None,
        [0x8A9E, 120, 33],
        [],
    ]
    short = Tokenize(TiktokenDouble(), max_length=1)
    assert short(column).to_pylist() == [[116], None, [0x8A9E], []]
    assert short == Tokenize(TiktokenDouble(), max_length=1) != Tokenize(TiktokenDouble())


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("gpt2", "give Tokenizer.from_file(path) or Tokenizer.from_pretrained(name)"),
        (Path("tokenizer.json"), "give Tokenizer.from_file(path)"),
        (str.split, 'give a function of the column, transform_arrow={"text": function}'),
        (None, "expected a tokenizers.Tokenizer, a fast tokenizer of transformers"),
        (implementations.CharBPETokenizer(), "Tokenizer.from_str(tokenizer.to_str())"),
        (
            type("PreTrainedTokenizerBase", (), {"__module__": "transformers.base"})(),
            "give AutoTokenizer.from_pretrained(name, use_fast=True)",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_tokenizers_are_refused(value: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=r"^Tokenize\.tokenizer is of the type ") as caught:
        Tokenize(value)
    assert advice in str(caught.value)


def test_parts_of_python_are_refused() -> None:
    tokenizer = train()
    tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(object())
    with pytest.raises(ValueError, match=r"cannot be copied, as worker processes need it \("):
        Tokenize(tokenizer)


@pytest.mark.parametrize("length", [0, -1, 1.5, True, "8"])
def test_a_length_is_a_positive_integer(length: Any) -> None:
    with pytest.raises(ValueError, match=r"Tokenize\.max_length=.*: expected an int of at least 1"):
        Tokenize(TOKENIZER, max_length=length)


def test_a_length_has_room_for_the_special_tokens() -> None:
    """The library cuts nothing then."""
    with pytest.raises(ValueError, match=r"adds 2 special tokens to each text: give at least 2"):
        Tokenize(TOKENIZER, max_length=1)
    tokenize = Tokenize(TOKENIZER, max_length=1, add_special_tokens=False)
    assert {len(row) for row in tokenize(pa.array(TEXTS)).to_pylist()} == {0, 1}


def test_a_text_that_cannot_be_tokenized_names_its_row() -> None:
    column = pa.array(["to be", "or", None, "be", "not"])
    with pytest.raises(
        ValueError, match=r"^row 1 of the batch \(and 1 more of its rows\): cannot"
    ) as caught:
        Tokenize(strict())(column)
    assert "WordLevel error: Missing [UNK] token" in str(caught.value)
    offsets, data = (pa.py_buffer(data) for data in (b"\0\0\0\0\1\0\0\0\3\0\0\0", b"t\xff\xfe"))
    with pytest.raises(ValueError, match=r"^row 1 of the batch: cannot tokenize the text: Unicode"):
        Tokenize(TOKENIZER)(pa.Array.from_buffers(pa.string(), 2, [None, offsets, data]))
