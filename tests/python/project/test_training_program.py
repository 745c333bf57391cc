"""examples/train_ddp.py: a run on two ranks that is killed, and goes on with one and with three."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
HELPERS = ROOT / "tests/python"
ROWS = 700  # 14 steps of 48 rows, and one of 28
STEPS = 15
SAVED = 10  # the step of the checkpoint
KILLED = 12

# The epoch and the rows of each step on all ranks: those of rank 0 first.
Steps = list[tuple[int, list[int]]]


class Run(NamedTuple):
    train: Steps
    test: Steps
    printed: str
    scalars: str  # what TensorBoard gets
    codes: list[int]


def read_steps(folder: Path, split: str, ranks: int) -> Steps:
    files = [(folder / f"{split}-{rank}.jsonl") for rank in range(ranks)]
    lines = [file.read_text().splitlines() if file.exists() else [] for file in files]
    steps = zip(*([json.loads(line) for line in of_rank] for of_rank in lines), strict=False)
    return [(step[0][0], [row for _, rows in step for row in rows]) for step in steps]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The whole run on one rank, the killed one on two, and its rest on one and on three."""
    folder = tmp_path_factory.mktemp("train_ddp")
    make = runpy.run_path(str(ROOT / "examples/train_ddp_data.py"))["main"]
    make(folder / "killed", ROWS, 100)
    shutil.copytree(folder / "killed", folder / "whole")
    done = {}
    command = [sys.executable, str(HELPERS / "helpers/train_ddp.py")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HELPERS), *sys.path])}
    with subprocess.Popen(
        command, text=True, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdin
        assert program.stdout
        for name, ranks, stop in (
            ("whole", 1, None),
            ("killed", 2, KILLED),
            ("one", 1, None),
            ("three", 3, None),
        ):
            if not (folder / name).exists():
                shutil.copytree(folder / "killed", folder / name)
            rows = folder / f"rows of {name}"
            rows.mkdir()
            epochs = 3 if name in ("whole", "one") else 1
            arguments = [ranks, str(folder / name), epochs, str(rows), stop]
            print(json.dumps(arguments), file=program.stdin, flush=True)
            codes = json.loads(program.stdout.readline())
            train, test = (read_steps(rows, split, ranks) for split in ("train", "test"))
            printed = (rows / "0.out").read_text()
            done[name] = Run(train, test, printed, (rows / "scalars").read_text(), codes)
            if name != "killed":
                assert codes == [0] * ranks, (rows / "0.err").read_text()
        program.stdin.close()
    return done


def test_a_run_that_is_killed_stops_on_all_ranks(runs: dict[str, Run]) -> None:
    killed = runs["killed"]
    assert killed.codes[1] == -9
    assert killed.codes[0] != 0
    assert len(killed.train) == KILLED + 1
    assert not killed.test
    assert killed.printed.count("\n") == 1
    assert killed.printed.startswith(f"step {SAVED}, train: loss 0.")


@pytest.mark.parametrize("name", ["one", "three"])
def test_a_resumed_epoch_has_each_row_once(runs: dict[str, Run], name: str) -> None:
    rest = [rows for epoch, rows in runs[name].train if epoch == 0]
    steps = [rows for _, rows in runs["killed"].train[:SAVED]] + rest
    assert sorted(row for rows in steps for row in rows) == list(range(ROWS))
    assert len(steps) == STEPS


@pytest.mark.parametrize("name", ["killed", "one", "three"])
def test_a_step_has_the_rows_of_that_of_one_rank(runs: dict[str, Run], name: str) -> None:
    first = 0 if name == "killed" else SAVED
    steps = runs[name].train
    assert steps == runs["whole"].train[first : first + len(steps)]


@pytest.mark.parametrize("name", ["whole", "one", "three"])
def test_a_validation_counts_each_row_once(runs: dict[str, Run], name: str) -> None:
    epochs = {epoch for epoch, _ in runs[name].test}
    for epoch in epochs:
        rows = [row for number, step in runs[name].test if number == epoch for row in step]
        assert sorted(rows) == list(range(100))
    assert len(epochs) == runs[name].printed.count(", test: ")
    assert runs[name].printed.count(" of 100 right") == len(epochs)


@pytest.mark.parametrize("name", ["whole", "one"])
def test_the_model_learns(runs: dict[str, Run], name: str) -> None:
    last = runs[name].printed.splitlines()[-1]
    assert last.startswith(f"step {3 * STEPS}, test: loss ")
    assert int(last.split()[-4]) > 90, last


def test_the_program_fits_the_guide() -> None:
    lines = (ROOT / "examples/train_ddp.py").read_text().splitlines()
    assert 80 <= len(lines) <= 100


def test_tensorboard_gets_losses(runs: dict[str, Run]) -> None:
    assert runs["three"].scalars == f"loss/test True {STEPS}\n"
    assert runs["killed"].scalars == f"loss/train True {SAVED}\n"
    assert "pip install tensorboard" in (ROOT / "examples/train_ddp.py").read_text()
