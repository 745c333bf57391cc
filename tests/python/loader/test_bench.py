"""``python -m arrowdl bench``: each contender alone, the command as a whole, and its plot."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.__main__ import main
from arrowdl._commands import bench_command
from arrowdl._commands.contender import CONTENDERS, Result, Task, measure

ROWS = 3_000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "half": pa.array([None if i % 9 == 0 else i for i in range(ROWS)], pa.int16()),
        "flag": [i % 2 == 0 for i in range(ROWS)],
        "pair": pa.array([[1.0, 2.0]] * ROWS, pa.list_(pa.float32(), 2)),
        "city": ["Amsterdam"] * ROWS,
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench")
    for name in ("a", "b"):
        pq.write_table(TABLE, path / f"{name}.parquet", row_group_size=1_000)
    return path


def run(who: str, folder: Path, seconds: float = 60.0, **options: Any) -> Result:
    options = {"batch_size": 500, "framework": "numpy", "nulls": "fill"} | options
    return measure(Task(who, [str(folder)], None, options, seconds))


@pytest.mark.parametrize("who", CONTENDERS)
@pytest.mark.parametrize("columns", [None, ["id", "pair"]])
def test_a_contender_reads_all_rows(who: str, columns: list[str] | None, folder: Path) -> None:
    result = run(who, folder, columns=columns)
    assert (result.name, result.problem) == (who, "")
    assert result.rows == 2 * ROWS
    assert result.batches == (6 if who == "pyarrow scan" else 12)
    if columns:
        assert result.bytes >= 2 * ROWS * 12
    assert result.first_batch_seconds is not None
    assert result.first_batch_seconds > 0
    assert result.rates["rows"] == 2 * ROWS / result.seconds


def test_notes_say_what_bounds_and_what_is_left_out(folder: Path) -> None:
    assert "columns=" in run("Loader", folder).note
    assert run("torch DataLoader", folder).note == "these columns stay Arrow arrays: city"


def test_a_pass_ends_after_its_seconds(folder: Path) -> None:
    assert run("Loader", folder, seconds=0.0).batches == 1


def test_mapped_files_are_scanned(tmp_path: Path) -> None:
    with pa.ipc.new_file(tmp_path / "a.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    for who in ("Loader", "pyarrow scan"):
        assert run(who, tmp_path).rows == ROWS


def test_the_command_prints_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--seconds", "5", "--framework", "numpy", "--nulls", "fill", "--columns", "id,flag"]
    only = ["--only", "Loader", "--only", "pyarrow scan"]
    assert main(["bench", str(folder), "--shuffle", *options, *only]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[-1] == "beside the Loader"
    assert lines[1].startswith("Loader ")
    assert lines[1].endswith("1.00")
    assert lines[2].startswith("pyarrow scan ")
    assert lines[4].startswith("Loader: ")


def test_the_command_prints_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--only", "Loader", "--framework", "numpy"]
    assert main(["bench", str(folder), "--json", "--columns", "id", *only]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["options"] == {"batch_size": 1024, "columns": ["id"], "framework": "numpy"}
    (result,) = report["results"]
    assert (result["name"], result["rows"]) == ("Loader", 2 * ROWS)
    assert result["peak_bytes"] >= 0


def test_what_cannot_be_read_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["bench", str(tmp_path / "missing"), "--only", "Loader"]) == 1
    assert "Loader: FileNotFoundError: " in capsys.readouterr().out
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    with pytest.raises(SystemExit) as caught:
        main(["bench", str(tmp_path), "--plot", "a.png"])
    assert caught.value.code == 2
    assert "--plot needs matplotlib: pip install matplotlib" in capsys.readouterr().err


def test_the_plot_is_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = [Result(name, rates={"rows": 1_000.0}) for name in CONTENDERS]
    bench_command._plot(results, str(tmp_path / "a.png"))
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
