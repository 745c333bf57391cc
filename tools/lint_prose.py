"""Finds prose that readers have to decode: odd phrases, and docstrings longer than is useful.

python tools/lint_prose.py          all tracked files; exit status 1 if one has such prose
python tools/lint_prose.py PATH...  these files or folders
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Set
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENDINGS = (".py", ".pyi", ".cpp", ".hpp", ".cu", ".cuh", ".md", ".rst", ".sh", ".toml", ".ipynb")
SHOWN = ("tools/lint_prose.py", "tests/python/project/test_prose.py")  # they quote the phrases

# The end of a line, in a comment too, is a space between words.
_SPACE = r"(?:[ \t]+|[ \t]*\n[ \t]*(?:#|//[/!]?)?[ \t]*)"
_MORE = (
    r"(?:more|less|worse|other|better|fewer|later|earlier|longer|shorter|larger|smaller|bigger"
    r"|faster|slower|older|newer|higher|lower|wider|nearer|closer|further|cheaper|easier|safer)\b"
)
_NO = 'write "is not a ...", "must be a ...", or "there is no ..."'
_NONE = 'write "is not one", or name the thing'
_SUBJECT = "begin with the subject: what is of it?"
_WHO_ALONE = "|".join(
    f"(?<={before} who)" for before in ('[,.:;/#"]', "that", "for", "from", "of", "by")
)
_WHO = "name who it is: the caller, the rank, the worker"

# An underscore is a space between words. Each phrase begins with plain letters, and looks behind
# them afterwards: re finds such letters ten times as fast.
PHRASES = {
    rf"is(?<!\wis)(?<![Hh]ere.is)_no_(?!{_MORE})[A-Za-z{{]": _NO,
    rf"are(?<!\ware)(?<![Hh]ere.are)_no_(?!{_MORE})[A-Za-z{{]": _NO,
    r"is(?<!\wis)(?<![Hh]ere.is)_none\b": _NONE,
    r"are(?<!\ware)(?<![Hh]ere.are)_none\b": _NONE,
    r"Of(?<!\wOf)_(?!course\b)": _SUBJECT,
    r"That_of\b": _SUBJECT,
    r"Those_of\b": _SUBJECT,
    r"As_of_": _SUBJECT,
    rf"who(?:{_WHO_ALONE})_(?:reads|waits|asks|still)\b": _WHO,
    r"nobody(?<!\wnobody)(?<![\"']nobody)\b": 'name who does not: "no caller", "no thread"',
    r"Nobody(?<!\wNobody)\b": 'name who does not: "no caller", "no thread"',
    r"anew(?<!\wanew)\b": 'write "again", or what happens: "is rewritten"',
    r"of(?<!\wof)(?<!\"of)_none\b": 'write "of no ...", or "none of the ..."',
    r"so(?<!\wso)_many\b": 'write "that many", or what the number is',
    r"by(?<!\wby)_no\b": 'write "not by ..."',
}
# A private function whose docstring may have paragraphs: in tests and tools, only then ast looks.
_PERHAPS_LONG = re.compile(r'def _[^_"][^"]*"""(?:[^"]|"(?!""))*?\n\n')
_SECTION = re.compile(r"^ *-{3,}$", re.MULTILINE)
# What users call without its name in an `__all__`.
CALLED = {"AdaptedReader", "Buffer", "Config", "DataFrame", "EpochReader"}


def compile_phrase(phrase: str) -> re.Pattern[str]:
    """Compile a key of PHRASES."""
    return re.compile(phrase.replace("_", _SPACE))


_MENDS = [(compile_phrase(phrase), mend) for phrase, mend in PHRASES.items()]


def find_phrases(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each odd phrase of a text, with what to write instead."""
    for phrase, mend in _MENDS:
        for match in phrase.finditer(text):
            shown = " ".join(word for word in match[0].split() if word.isalpha())
            yield text.count("\n", 0, match.start()) + 1, f'"{shown}": {mend}'


def find_long_docstrings(text: str, public: Set[str] | None = None) -> Iterator[tuple[int, str]]:
    """Yield the line of each docstring that is too long for a function that users do not call.

    Private functions have one sentence. With `public`, the names that users call, other functions
    and classes have no numpydoc sections.
    """
    is_plain = not (_PERHAPS_LONG.search(text) or (public and _SECTION.search(text)))
    waiting: list[tuple[ast.AST, bool]] = [] if is_plain else [(ast.parse(text), False)]
    while waiting:
        node, is_called = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            is_called |= public is None or node.name in public
            docstring = ast.get_docstring(node) or ""
            is_private = re.match("_[^_]", node.name) and not isinstance(node, ast.ClassDef)
            if is_private and "\n\n" in docstring:
                yield node.lineno, f"{node.name}() is private: say in one sentence what it does"
            elif not is_called and _SECTION.search(docstring):
                yield node.lineno, f"users do not call {node.name}: comment its parameters instead"
        waiting += [(child, is_called) for child in ast.iter_child_nodes(node)]


def list_public() -> set[str]:
    """List the names in each `__all__` of the package, and `CALLED`."""
    texts = [path.read_text() for path in (ROOT / "python/arrowdl").rglob("*.py")]
    listed = [re.findall(r"^__all__ = \[(.*?)\]", text, re.MULTILINE | re.DOTALL) for text in texts]
    return CALLED | {name for names in listed for name in re.findall(r"\w+", "".join(names))}


def lint(path: Path, public: Set[str]) -> Iterator[str]:
    """Yield what is wrong with the prose of a file, with its place."""
    text, name = path.read_text(), path.relative_to(ROOT).as_posix()
    found = list(find_phrases(text))
    if path.suffix == ".py":
        found += find_long_docstrings(text, public if name.startswith("python/") else None)
    for line, message in sorted(found):
        yield f"{name}:{line}: {message}"


def list_files(names: list[str]) -> list[Path]:
    """List the tracked files of prose and source, of `names` if there are any."""
    command = ["git", "-C", str(ROOT), "ls-files", "--", *names]
    files = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    files = [name for name in files if name.endswith(ENDINGS) and name not in SHOWN]
    return [ROOT / name for name in files]


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    paths, public = list_files(sys.argv[1:]), list_public()
    lines = [line for path in paths if path.exists() for line in lint(path, public)]
    print(*lines, sep="\n", end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
