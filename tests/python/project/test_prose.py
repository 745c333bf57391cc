"""The lint of prose finds each of its phrases, and leaves plain sentences alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def lint() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lint_prose", ROOT / "tools/lint_prose.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    return module


ODD = [
    "a float that is no number",
    "these are no rows",
    "// This is\n  // no tensor.",
    "A mask is none.",
    "both are none",
    "Of a stream, each rank reads all rows.",
    '"""That of the file."""',
    "# Those of the rank.",
    "As of pyarrow.",
    "so that who waits gets it",
    "what nobody reads",
    "Nobody waits.",
    "it begins anew",
    "rows of none of them, or of none",
    "after so many seconds",
    "read by no thread",
]
PLAIN = [
    "There is no number, and where there are\nno rows, there is none.",
    "It is no longer a tensor, and is no larger than before.",
    "It is not a stream. Of course, the caller who waits knows.",
    "the result has none; this is None, and `is_none` is not",
    'user="nobody"',
    "who reads? Renewed, a Software of the Oftener",
    "the number of rows, none of which is read by now",
]


@pytest.mark.parametrize("text", ODD)
def test_odd_phrases_are_found(lint: ModuleType, text: str) -> None:
    assert [message for _, message in lint.find_phrases(text)]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_sentences_are_not(lint: ModuleType, text: str) -> None:
    assert list(lint.find_phrases(text)) == []


def test_each_phrase_is_shown_here(lint: ModuleType) -> None:
    for phrase in lint.PHRASES:
        assert any(lint.compile_phrase(phrase).search(text) for text in ODD), phrase


def test_the_line_and_what_to_write(lint: ModuleType) -> None:
    ((line, message),) = lint.find_phrases("one\ntwo starts\nanew\n")
    assert (line, message) == (3, '"anew": write "again", or what happens: "is rewritten"')


def test_docstrings_of_private_functions(lint: ModuleType) -> None:
    text = 'def {}():\n    """Read.\n\n    {}\n    """\n'
    more = "\n\nRaises\n    ------\n    ValueError\n        It is wrong."
    assert len(list(lint.find_long_docstrings(text.format("_read", "It reads.")))) == 1
    assert len(list(lint.find_long_docstrings(text.format("_read", more)))) == 1
    assert list(lint.find_long_docstrings(text.format("read", more))) == []
    assert list(lint.find_long_docstrings(text.format("__init__", more))) == []
    assert list(lint.find_long_docstrings('def _read():\n    """Read."""\n')) == []


def test_sections_are_for_what_users_call(lint: ModuleType) -> None:
    docstring = '"""Read.\n\n        Raises\n        ------\n        """'
    text = f"class {{}}:\n    def read():\n        {docstring}"
    assert list(lint.find_long_docstrings(text.format("Loader"), {"Loader"})) == []
    assert len(list(lint.find_long_docstrings(text.format("Steps"), {"Loader"}))) == 1
    assert {"Loader", "from_arrow", "ShardLoader", "EpochReader"} <= lint.list_public()
