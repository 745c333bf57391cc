"""The examples run, and say what they promise."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"

SAYS = {
    "duckdb_torch": ["known minutes: [10.0, 20.0, 40.0, 50.0]", "NULL │      30.0"],
    "embeddings_jax": ["batches: (256, 64) compiled: 1", "of 10000 right", "learned: True"],
    "embeddings_torch": ["'embedding': ((256, 64), torch.float32)", "learned: True"],
    "images_torch": ["pixels (32, 3, 32, 32)", "learned: True"],
    "language_model_torch": [
        "40 steps, blocks 9",
        "a step of two ranks is that of one: True",
        "learned: True",
    ],
    "polars_torch": [
        "[[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]]",
        "city: [1, 0, 1]",
        "array[f32",
    ],
    "pyarrow_jax": ["totals: [4.0, 0.0, 4.0]", "[0.0, 0.0]", "bfloat16 (3, 4)"],
    "pyarrow_numpy": ["zero-copy: True", "writeable: False", "masked: [1.0, None, 3.0]"],
    "pyarrow_torch": ["(3, 2) torch.float32 zero-copy: True", "valid: [True, False, True]"],
    "predict_table": [
        "20000 rows: id, score, embedding",
        "DuckDB: 7922 above 0.5, embeddings of FLOAT[8]",
        "the same: True",
        "polars: True",
    ],
    "recommender_torch": [
        "{'clicks': 256, 'ratings': 0} then {'clicks': 128, 'ratings': 128}",
        "a step of two ranks is that of one: True",
        "learned: True",
    ],
    "tabular_jax": ["120 batches of (250, 3)", "weights: [1.5, -2.0, 0.5]"],
    "tabular_torch": ["10000 rows, stopped, 20000 more after resuming", "learned: True"],
    "tokens_torch": ["nested: True", "learned: True"],
}


def test_every_example_is_tested() -> None:
    in_peers = {"predict_ray", "predict_spark", "tabular_lightning", "tabular_ray", "object_store"}
    elsewhere = {"train_ddp", "train_ddp_data", "flights"}  # test_training_program, below
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*SAYS, *in_peers, *elsewhere}


@pytest.mark.parametrize("name", SAYS)
def test_example(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    if "main" in names:  # it makes files
        names["main"](tmp_path)
    output = capsys.readouterr().out
    for text in SAYS[name]:
        assert text in output


# ---------------------------------------------------------------------------
# Notebooks

NOTEBOOKS = {
    "data_engineer": [
        "{'price': tensor([5., 6., 7.], dtype=torch.float64), 'items': tensor([0., 2., 3.]",
        "[(100000, 100000, True)]",
        "Array(Float32, shape=(4,))",
    ],
    "library_author": [
        "True",
        "[[1, 2], [1.0, 1.0, 1.0]]",
        "[True, True]",
        "['copy=True always copies.']",
    ],
    "trainer": [
        "{'features': (500, 2), 'target': (500,)}",
        "epoch 3: 30000 rows",
        "(10000, 20000, 30000)",
        "learned: True",
    ],
}


def read_cells(path: Path) -> list[tuple[str, str]]:
    """The kind and the text of each cell."""
    cells = json.loads(path.read_text())["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]


def test_every_notebook_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("notebooks/*")} == set(NOTEBOOKS)


@pytest.fixture(scope="module")
def run_notebook() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The function of `tools/run_notebooks.py`, which writes the outputs."""
    return runpy.run_path(str(ROOT / "tools/run_notebooks.py"))["run_notebook"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_has_the_outputs_of_a_run(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_notebook: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """If they differ on purpose: `python tools/run_notebooks.py`."""
    monkeypatch.chdir(tmp_path)  # it makes files
    book = json.loads((EXAMPLES / f"notebooks/{name}.ipynb").read_text())
    assert run_notebook(book) == book
    outputs = [output for cell in book["cells"] for output in cell.get("outputs", [])]
    shown = "".join("".join(o.get("text") or o["data"]["text/plain"]) for o in outputs)
    for text in NOTEBOOKS[name]:
        assert text in shown


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_as_jupyter_writes_it(name: str) -> None:
    """As format 4.5 says; and of Markdown it has what docs/notebooks.py shows."""
    path = EXAMPLES / f"notebooks/{name}.ipynb"
    book = json.loads(path.read_text())
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    texts = [source for kind, source in read_cells(path) if kind == "markdown"]
    title = f"\n{texts[0].splitlines()[0].removeprefix('# ')}\n---"
    assert title in (ROOT / "docs/examples.rst").read_text()
    prose = re.sub(r"`[^`\n]+`", "", texts[0].partition("\n")[2] + "".join(texts[1:]))
    assert not re.search(r"[#*_\[\]`<>|]", prose), "docs/notebooks.py shows no other Markdown"


# ---------------------------------------------------------------------------
# The demo


@pytest.mark.slow
def test_flights(tmp_path: Path) -> None:
    """The demo, with one epoch. It needs the packages of requirements/demo.txt."""
    command = [sys.executable, str(EXAMPLES / "flights.py"), "--epochs=1", "--folder", "out"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    assert "336,776 flights, " in done.stdout
    assert "!=" not in done.stdout, "a step that should be zero-copy was not"
    assert done.stdout.count(" zero-copy ") >= 7
    assert "<arrowdl.Loader of " in done.stdout
    assert done.stdout.endswith("  plot: out/flights.png\n")
    assert (tmp_path / "out/flights.png").stat().st_size > 20_000
