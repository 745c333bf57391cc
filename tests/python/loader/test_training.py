"""The same training on one, two and four processes, with a kill and a resume on other numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import training

ROWS = 700

Steps = list[tuple[list[Any], float]]


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


def run(
    folder: Path, data: Path, kind: str, ranks: int, stop: int = 0, end: str = "stop"
) -> list[int]:
    """Train on `ranks` processes; return their exit codes."""
    meeting = folder / f"meeting-{len(list(folder.iterdir()))}"
    arguments = [str(folder), str(data), kind, str(meeting), str(stop), end]
    processes = [
        subprocess.Popen(
            [sys.executable, training.__file__, *arguments],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"},
            stderr=subprocess.DEVNULL if end == "kill" else None,
        )
        for rank in range(ranks)
    ]
    try:
        return [process.wait(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()


def read(folder: Path) -> Steps:
    """Rows and loss of each global batch."""
    steps: Steps = []
    while parts := sorted(folder.glob(f"{len(steps)}-*.json")):
        read = [json.loads(part.read_text()) for part in parts]
        assert all(part["loss"] == read[0]["loss"] for part in read)
        steps.append(([i for part in read for i in part["ids"]], read[0]["loss"]))
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "blocks"])
def test_the_training_is_the_same_on_any_number_of_processes(
    data: Path, tmp_path: Path, kind: str
) -> None:
    """The batches to the last bit; sums of several ranks are rounded in another order."""
    alone = tmp_path / "alone"
    alone.mkdir()
    assert run(alone, data, kind, 1) == [0]
    expected = read(alone)
    if kind == "rows":
        assert len(expected) == -(-ROWS // training.GLOBAL_BATCH)
        assert sorted(i for ids, _ in expected for i in ids) == list(range(ROWS))
        assert expected[-1][1] < expected[0][1] / 20, "it learns"
    else:
        assert {i for ids, _ in expected for block in ids for i in block} == set(range(ROWS))
        assert expected[-1][1] < expected[0][1], "it learns"

    moved = tmp_path / "moved"
    moved.mkdir()
    codes = run(moved, data, kind, 2, 5, "kill")
    assert codes[1] == -9
    assert codes[0] != 0, "no rank goes on alone"
    assert run(moved, data, kind, 4, 7) == [0] * 4
    assert run(moved, data, kind, 1) == [0]
    found = read(moved)
    assert [ids for ids, _ in found] == [ids for ids, _ in expected]
    assert [loss for _, loss in found] == pytest.approx([loss for _, loss in expected], rel=1e-12)
