"""Measures how hard the house is to learn: sizes of classes, functions and files, and kinds asked.

python tools/measure_house.py          what the bounds of tests/python/project/test_house.py hold
python tools/measure_house.py --list   also each class, function and file that is over its bound
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python/arrowdl"
FILE_LINES, CLASS_LINES, CLASS_METHODS, FUNCTION_LINES = 450, 300, 20, 60
KINDS = re.compile(r"(Source|Epoch|Mixture|Stream)$")
_PRODUCT = ("python/arrowdl", "cpp/src", "cpp/include", "cpp/bindings")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def parse_package() -> dict[Path, ast.Module]:
    """Return the syntax tree of each module, by its path from the root."""
    return {
        path.relative_to(ROOT): ast.parse(path.read_text())
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def count_parameters(trees: dict[Path, ast.Module]) -> int:
    """Count the parameters of `Loader`, without `self`."""
    tree = trees[Path("python/arrowdl/loader/_loader.py")]
    (loader,) = (node for node in tree.body if _is_class(node, "Loader"))
    assert isinstance(loader, ast.ClassDef)
    (init,) = (node for node in loader.body if isinstance(node, _FUNCTIONS) and _is_init(node))
    arguments = init.args
    return len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs) - 1


def list_long(trees: dict[Path, ast.Module]) -> list[str]:
    """List the files, classes and functions that are over their bounds, docstrings included."""
    return [line for path, tree in trees.items() for line in _list_long(path, tree)]


def list_kind_tests(trees: dict[Path, ast.Module]) -> list[str]:
    """List the places of the Loader that ask by ``isinstance`` of which kind a source is."""
    return [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in trees.items()
        if path.is_relative_to("python/arrowdl/loader")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _asks_kind(node)
    ]


def count_lines() -> int:
    """Count the lines of the Python package, the core, its headers and the bindings."""
    names = subprocess.run(
        ["git", "ls-files", *_PRODUCT], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    files = [ROOT / name for name in names if Path(name).suffix in {".py", ".pyi", ".hpp", ".cpp"}]
    return sum(len(path.read_bytes().splitlines()) for path in files if path.is_file())


def count_targets() -> int:
    """Count the targets of the Makefile that people or CI call."""
    text = (ROOT / "Makefile").read_text()
    return len(
        {name for line in re.findall(r"^\.PHONY: (.*)", text, re.M) for name in line.split()}
    )


def measure() -> dict[str, int]:
    """Return each number by its name."""
    trees = parse_package()
    return {
        "parameters of Loader": count_parameters(trees),
        "files, classes and functions that are too long": len(list_long(trees)),
        "isinstance of kinds in the Loader": len(list_kind_tests(trees)),
        "lines of the product": count_lines(),
        "targets of the Makefile": count_targets(),
        "lines of CMakeLists.txt": len((ROOT / "CMakeLists.txt").read_text().splitlines()),
        "bytes of HACKING.md": len((ROOT / "HACKING.md").read_bytes()),
    }


def _list_long(path: Path, tree: ast.Module) -> Iterator[str]:
    lines = _count(tree.body[0], tree.body[-1]) if tree.body else 0
    if lines > FILE_LINES:
        yield f"{path}: {lines} lines"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(one, _FUNCTIONS) for one in node.body)
            if _count(node) > CLASS_LINES or methods > CLASS_METHODS:
                yield f"{path}: class {node.name} has {_count(node)} lines, {methods} methods"
        elif isinstance(node, _FUNCTIONS) and _count_code(node) > FUNCTION_LINES:
            yield f"{path}: {node.name} has {_count_code(node)} lines"


def _count(first: ast.AST, last: ast.AST | None = None) -> int:
    end = (last or first).end_lineno  # type: ignore[attr-defined]
    return int(end - first.lineno + 1)  # type: ignore[attr-defined]


def _count_code(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without those of its docstring."""
    has_text = ast.get_docstring(node) is not None
    return _count(node) - (_count(node.body[0]) if has_text else 0)


def _asks_kind(call: ast.Call) -> bool:
    if not (isinstance(call.func, ast.Name) and call.func.id == "isinstance"):
        return False
    kinds = call.args[1]
    names = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    return any(isinstance(name, ast.Name) and KINDS.search(name.id) for name in names)


def _is_class(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.ClassDef) and node.name == name


def _is_init(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return node.name == "__init__"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="what is over its bound")
    arguments = parser.parse_args()
    for name, number in measure().items():
        print(f"{number:>8,}  {name}")
    if arguments.list:
        trees = parse_package()
        print(*list_long(trees), *list_kind_tests(trees), sep="\n")


if __name__ == "__main__":
    main()
