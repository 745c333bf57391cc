"""Writes the docstrings of arrowdl._core into its stub, for editors, which cannot read the module.

    stub_docstrings.py [--check]

The docstrings are in cpp/bindings. They replace those of the stub; the rest of the stub stays. With
--check nothing is written, and the exit status is 1 if the stub would change.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MethodWrapperType, ModuleType, WrapperDescriptorType
from typing import Any

STUB = Path(__file__).resolve().parents[1] / "python/arrowdl/_core.pyi"
INDENT = "    "
PYBIND_SIGNATURE = re.compile(r"\A\w+\(.*\) -> .*\n*")


def main() -> int:
    from arrowdl import _core

    old = STUB.read_text()
    new = write_docstrings(old, _core)
    if "--check" in sys.argv[1:]:
        return int(new != old)
    STUB.write_text(new)
    return 0


def write_docstrings(stub: str, module: ModuleType) -> str:
    """Return `stub` with the docstrings of the classes and functions of `module`."""
    lines = stub.splitlines()
    # From the last to the first, so that line numbers stay true.
    for node, depth, text in reversed(list(_find_definitions(ast.parse(stub), module))):
        _replace_docstring(lines, node, INDENT * (depth + 1), text)
    ruff = [sys.executable, "-m", "ruff", "format", "-", "--stdin-filename", str(STUB)]
    formatted = subprocess.run(
        ruff, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
    )
    return formatted.stdout


Definition = ast.ClassDef | ast.FunctionDef


def _find_definitions(
    body: ast.Module | ast.ClassDef, owner: Any, depth: int = 0
) -> Iterator[tuple[Definition, int, str]]:
    """Find classes and functions in order, with their runtime docstrings (empty: none).

    Of overloads, the first has the docstring.
    """
    seen = set()
    for node in body.body:
        if not isinstance(node, Definition):
            continue
        member = inspect.getattr_static(owner, node.name, None)
        text = "" if node.name in seen else _read_docstring(member)
        seen.add(node.name)
        yield node, depth, text
        if isinstance(node, ast.ClassDef):
            yield from _find_definitions(node, member, depth + 1)


def _read_docstring(member: Any) -> str:
    if isinstance(member, staticmethod):
        member = member.__func__
    # Python's own text for slots, such as "Return hash(self)."
    if isinstance(member, WrapperDescriptorType | MethodWrapperType):
        return ""
    text = inspect.cleandoc(getattr(member, "__doc__", None) or "")
    return text if isinstance(member, type) else PYBIND_SIGNATURE.sub("", text, count=1)


def _replace_docstring(lines: list[str], node: Definition, indent: str, text: str) -> None:
    """Replace the docstring of `node`, or its body ``...``, in the lines of the stub."""
    quoted = _quote(text, indent) if text else []
    first = node.body[0]
    decorators = first.decorator_list if isinstance(first, Definition) else []
    start = min(line.lineno for line in (first, *decorators)) - 1
    end = first.end_lineno or first.lineno
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    if is_docstring and first.value.value is not ...:  # type: ignore[attr-defined]
        is_body = len(node.body) == 1
        header = start - 1
        del lines[start:end]
        if is_body and not quoted:
            lines[header] += " ..."
        lines[start:start] = quoted
    elif quoted and isinstance(node, ast.FunctionDef):
        lines[start] = lines[start].removesuffix(" ...")
        lines[end:end] = quoted
    elif quoted:
        lines[start:start] = quoted


def _quote(text: str, indent: str) -> list[str]:
    prefix = "r" if "\\" in text else ""
    body = [f"{indent}{line}" if line else "" for line in text.split("\n")]
    body[0] = f'{indent}{prefix}"""{text.split(chr(10))[0]}'
    if len(body) == 1 and not text.endswith('"'):
        return [body[0] + '"""']
    return [*body, f'{indent}"""']


if __name__ == "__main__":
    sys.exit(main())
