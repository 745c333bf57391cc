"""What the README and the documentation show is run."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import arrowdl
import arrowdl.ray
import pytest
from arrowdl import debug

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(ROOT.glob("docs/**/*.rst"))
MARKDOWN = [*ROOT.glob("*.md"), *ROOT.glob("cpp/**/*.md"), *ROOT.glob("python/*.md")]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# ---------------------------------------------------------------------------
# README


def test_readme_runs() -> None:
    """All Python blocks as one program. A comment after a line that is a value is that value."""
    names: dict[str, Any] = {}
    checked = 0
    for block in blocks(ROOT / "README.md", "python"):
        lines = block.splitlines()
        for node in ast.parse(block).body:
            source = ast.unparse(node)
            if not isinstance(node, ast.Expr):
                exec(source, names)
                continue
            value = eval(source, names)
            _, _, shown = lines[node.end_lineno - 1].partition("  # ")
            if shown.startswith(("True", "False", "array(", "<")):
                shown = re.sub(r"(: |, read-only).*", "", shown)
                pattern = re.escape(shown).replace(r"\.\.\.", ".*")
                assert re.fullmatch(pattern, repr(value)), (repr(value), shown)
                checked += 1
    assert checked >= 4


def test_commands_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in MARKDOWN:
        named = set(re.findall(r"\bmake ([a-z-]+)", "\n".join(blocks(path, "sh"))))
        assert named <= targets, relative(path)
    assert {"demo", "test"} <= set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text()))


@pytest.mark.parametrize("path", MARKDOWN, ids=relative)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        if target != "benchmarks/results":  # made by `make bench`
            assert (ROOT / target).exists(), target


@pytest.mark.parametrize("path", MARKDOWN, ids=relative)
def test_files_that_are_named_exist(path: Path) -> None:
    for name in re.findall(r"`((?:cpp|python|tests|tools|cmake|docs)/[\w./]+)`", path.read_text()):
        assert (ROOT / name).exists(), name


# ---------------------------------------------------------------------------
# docs/


@pytest.mark.parametrize("path", PAGES, ids=relative)
def test_page_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_FMT_STR_LEN", "80")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=flags)
    assert failed == 0, "see the captured output"


def test_pages_hold_no_other_python() -> None:
    """`>>>` is checked, code-block:: python is not: the documentation has the former alone."""
    assert [relative(path) for path in PAGES if "code-block:: python" in path.read_text()] == []


def test_examples_are_on_their_page() -> None:
    pages = "\n".join(path.read_text() for path in PAGES)
    examples = [*ROOT.glob("examples/*.py"), *ROOT.glob("examples/**/*.cpp")]
    examples += ROOT.glob("examples/notebooks/*")
    assert [path.name for path in examples if f"/{relative(path)}\n" not in pages] == []


def test_reference_has_all_names() -> None:
    pages = [ROOT / "docs/api.rst", *ROOT.glob("docs/settings/*.rst")]
    text = "\n".join(page.read_text() for page in pages)
    documented = set(re.findall(r"\.\. auto(?:function|class|data):: ([\w.]+)", text))
    public = {name for name in arrowdl.__all__ if name != "__version__"}
    of_modules = {f"arrowdl.debug.{name}" for name in debug.__all__} | {
        "arrowdl.loader.BatchSchema",
        "arrowdl.loader.Explanation",
        "arrowdl.loader.FilePlan",
        "arrowdl.loader.MapDataset",
        "arrowdl.loader.Skipped",
        "arrowdl.loader.Stats",
        "arrowdl.loader.TensorSpec",
        "arrowdl._config.Config",
    }
    of_modules |= {f"arrowdl.c_data.{name}" for name in arrowdl.c_data.__all__}
    of_modules |= {f"arrowdl.ray.{name}" for name in arrowdl.ray.__all__}
    of_modules |= {f"arrowdl.testing.{name}" for name in arrowdl.testing.__all__}
    assert documented == public | of_modules


# ---------------------------------------------------------------------------
# Docstrings


def public_functions() -> list[str]:
    return [name for name in arrowdl.__all__ if inspect.isroutine(getattr(arrowdl, name))]


@pytest.mark.parametrize("name", public_functions())
def test_docstring_is_numpydoc(name: str) -> None:
    function = getattr(arrowdl, name)
    text = inspect.getdoc(function)
    assert text is not None
    summary, *_ = text.split("\n\n")
    assert summary.endswith("."), summary
    parameters = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.M | re.S)
    documented = re.findall(r"^(\w+) :", parameters[1] if parameters else "", re.M)
    assert documented == list(inspect.signature(function).parameters)
    assert all(len(line) <= 100 for line in text.splitlines()), "too wide for help()"


@pytest.mark.parametrize("kind", [arrowdl.DeviceArray, arrowdl.Schema, arrowdl.Device])
def test_members_are_documented(kind: type) -> None:
    assert kind.__doc__
    public = [name for name in vars(kind) if not name.startswith("_")]
    assert [name for name in public if not getattr(vars(kind)[name], "__doc__", None)] == []


def test_module_is_documented() -> None:
    assert isinstance(arrowdl, ModuleType)
    assert textwrap.dedent(arrowdl.__doc__ or "").startswith("Arrow and DLPack")
