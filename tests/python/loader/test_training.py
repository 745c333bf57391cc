"""The same training on one, two and four processes, with a kill and a resume on other numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import training

ROWS = 700

Steps = list[tuple[list[Any], float, dict[str, str]]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(0)
    x = random.standard_normal(ROWS)
    table = pa.table({"id": range(ROWS), "x": x, "y": 3 * x - 1 + random.standard_normal(ROWS) / 9})
    tokens = pa.array([[i] * (1 + i % 5) for i in range(ROWS)], pa.list_(pa.int32()))
    table = table.append_column("tokens", tokens)
    for i in range(3):
        pq.write_table(table[i * 250 : i * 250 + 250], folder / f"{i}.parquet", row_group_size=70)
    return folder


Run = Callable[..., list[int]]


@pytest.fixture(scope="module")
def run(data: Path) -> Iterator[Run]:
    """Trains on `ranks` processes; returns their exit codes."""
    process = subprocess.Popen(
        [sys.executable, training.__file__],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

    def run(folder: Path, kind: str, ranks: int, stop: int = 0, end: str = "stop") -> list[int]:
        meeting = folder / f"meeting-{len(list(folder.iterdir()))}"
        arguments = [str(folder), str(data), kind, str(meeting), stop, end]
        timer = threading.Timer(120, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps([arguments, ranks]) + "\n")
            process.stdin.flush()
            codes: list[int] = json.loads(process.stdout.readline())
        finally:
            timer.cancel()
        return codes

    try:
        yield run
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def read(folder: Path) -> Steps:
    """Rows, loss, and the bytes of each column, of each global batch."""
    steps: Steps = []
    while parts := sorted(folder.glob(f"{len(steps)}-*.json")):
        read = [json.loads(part.read_text()) for part in parts]
        assert all(part["loss"] == read[0]["loss"] for part in read)
        columns = {name: "".join(part["rows"][name] for part in read) for name in read[0]["rows"]}
        ids = [i for part in read for i in part["ids"]]
        steps.append((ids, float.fromhex(read[0]["loss"]), columns))
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "failing rows", "blocks"])
def test_the_training_is_the_same_on_any_number_of_processes(
    run: Run, tmp_path: Path, kind: str
) -> None:
    """Batches, and the losses of all of their rows, are the same to the last bit."""
    alone = tmp_path / "alone"
    alone.mkdir()
    assert run(alone, kind, 1) == [0]
    expected = read(alone)
    if kind != "blocks":
        assert len(expected) == -(-ROWS // training.GLOBAL_BATCH)
        rows = {i for ids, _, _ in expected for i in ids}
        left_out = set(range(ROWS)) - rows
        assert sum(len(ids) for ids, _, _ in expected) == len(rows), "each once"
        assert left_out >= training.BAD if kind == "failing rows" else not left_out
        assert len(left_out) <= len(training.BAD) * training.GLOBAL_BATCH / 4
        assert all(len(columns["x"]) == 2 * 8 * len(ids) for ids, _, columns in expected)
        assert expected[-1][1] < expected[0][1] / 20, "it learns"
    else:
        names = {"tokens", "position_ids", "segment_ids", "cu_seqlens"}
        assert all(set(columns) == names for _, _, columns in expected)
        assert {i for ids, _, _ in expected for block in ids for i in block} == set(range(ROWS))
        assert expected[-1][1] < expected[0][1], "it learns"

    moved = tmp_path / "moved"
    moved.mkdir()
    codes = run(moved, kind, 2, 5, "kill")
    assert codes[1] == -9
    assert codes[0] != 0, "no rank goes on alone"
    assert run(moved, kind, 4, 7) == [0] * 4
    assert run(moved, kind, 1) == [0]
    assert read(moved) == expected
