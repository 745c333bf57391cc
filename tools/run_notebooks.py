"""Runs the notebooks of examples/ as Jupyter does, and writes what their cells print into them.

python tools/run_notebooks.py
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "examples/notebooks"

Outputs = list[dict[str, Any]]


def run_cell(source: str, names: dict[str, object], number: int) -> Outputs:
    """Run a cell; return what it prints, and the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(ast.unparse(last), names)
    outputs: Outputs = []
    if text := printed.getvalue():
        lines = text.splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        result = {"data": data, "execution_count": number, "metadata": {}}
        outputs.append({**result, "output_type": "execute_result"})
    return outputs


def run_notebook(book: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the outputs of a run in the current folder, where it makes files."""
    names: dict[str, object] = {"__name__": "__main__"}
    cells, number = [], 0
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            outputs = run_cell("".join(cell["source"]), names, number)
            cell = {**cell, "execution_count": number, "outputs": outputs}
        cells.append(cell)
    return {**book, "cells": cells}


def main() -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        book = json.loads(path.read_text(encoding="utf-8"))
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                book = run_notebook(book)
            finally:
                os.chdir(before)
        text = json.dumps(book, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
