"""How hard the house is to learn: the bounds of what `tools/measure_house.py` measures."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.table import TableSource
from arrowdl.loader._sources.wrapped import WrappedSource

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "python/arrowdl"

BOUNDS = {
    "parameters of Loader": 26,
    "files, classes and functions that are too long": 0,
    "isinstance of kinds in the Loader": 5,
    # Images, audio, text, `inspect`, `bench`, `explain` and the reader of footers took 3,800 lines.
    "lines of the product": 84_600,
    "targets of the Makefile": 25,
    "lines of CMakeLists.txt": 100,
    "bytes of HACKING.md": 12_000,
}


# The files of `_batches` that take what the step before returns.
STEPS = (
    "missing",
    "transform_arrow",
    "pad",
    "to_device",
    "convert",
    "transform",
    "chain",
    "finish",
)


def load_tool() -> Any:
    spec = importlib.util.spec_from_file_location("measure_house", ROOT / "tools/measure_house.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def test_the_house_stays_within_its_bounds() -> None:
    measured = load_tool().measure()
    assert {name: n for name, n in measured.items() if n > BOUNDS[name]} == {}


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"nulls": "fill"}], ids=str)
def test_a_batch_takes_few_functions(options: dict[str, Any], tmp_path: Path) -> None:
    """Count functions of the package between `next` and the tensors of a batch of Parquet."""
    pq = pytest.importorskip("pyarrow.parquet")
    import arrowdl

    pq.write_table(pa.table({"x": [0.5] * 4_000, "y": range(4_000)}), tmp_path / "a.parquet")
    batches = iter(arrowdl.Loader(tmp_path / "a.parquet", 16, framework="numpy", **options))
    for _ in range(5):
        next(batches)
    called: list[str] = []

    def note(frame: Any, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            called.append(f"{path.name}:{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        next(batches)
    finally:
        sys.setprofile(None)
    assert 0 < len(called) <= 15, called


def test_wrappers_forward_all_that_a_source_has() -> None:
    """A name that `IndexedSource` gets later is to be forwarded, or said not to be, here."""
    own = {"map_members", "with_turns_of", "list_members", "check_taken"}  # of the wrapped rows
    names = {name for kind in IndexedSource.__mro__[:-1] for name in vars(kind)}
    public = {name for name in names if not name.startswith("_")} - own
    adopt = ast.parse((PACKAGE / "loader/_sources/wrapped.py").read_text())
    assigned = {
        node.attr
        for node in ast.walk(adopt)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    assert public - set(vars(WrappedSource)) - assigned == set()


def test_wrappers_call_the_source_that_they_wrap() -> None:
    source = TableSource(pa.table({"x": [1, 2, 3]}), None)
    wrapped = WrappedSource(source)
    assert (wrapped.describe(), wrapped.num_rows) == (source.describe(), 3)
    assert pa.table(wrapped.read([0], readers=2)) == pa.table({"x": [1, 2, 3]})


@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_a_batch_knows_no_other(step: str) -> None:
    text = (PACKAGE / f"loader/_batches/{step}.py").read_text()
    others = {f"arrowdl.loader._batches.{name}" for name in (*STEPS, "assemble")}
    imports = {
        node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)
    }
    assert imports & others == set()


def test_every_step_has_its_place_in_the_list() -> None:
    text = (PACKAGE / "loader/_batches/assemble.py").read_text()
    assert [step for step in STEPS if f"loader._batches.{step} import" not in text] == []


def test_hooks_of_the_process_are_in_one_place() -> None:
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "atexit." in (text := path.read_text()) or "register_at_fork(" in text
    }
    assert users == {"_lifecycle.py"}
