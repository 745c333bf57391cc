"""Errors of states of another dataset name the files that came, went or changed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._files.file_sample import compare_files, sample_files


def write(folder: Path, rows: dict[str, int]) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, count in rows.items():
        table = pa.table({"id": range(count)})
        if name.endswith(".arrow"):
            pa.feather.write_feather(table, folder / name, compression="uncompressed")
        else:
            pq.write_table(table, folder / name)


def explain(folder: Path, then: dict[str, int], now: dict[str, int], **options: Any) -> str:
    write(folder, then)
    state = arrowdl.Loader(folder, 4, **options).state_dict()
    assert json.loads(json.dumps(state)) == state
    write(folder, now)
    with pytest.raises(ValueError, match="the state is of another dataset") as caught:
        arrowdl.Loader(folder, 4, **options).load_state_dict(state)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_that_came_went_or_changed(tmp_path: Path, kind: str) -> None:
    a, b, c = (f"{name}.{kind}" for name in "abc")
    error = explain(tmp_path, {a: 10, b: 20}, {a: 10, b: 20, c: 5})
    assert f"2 files with 30 rows, and this Loader has 3 files with 35 rows: {c} came" in error
    error = explain(tmp_path, {a: 10, b: 20}, {b: 20})
    assert f"2 files with 30 rows, and this Loader has 1 file with 20 rows: {a} went" in error
    error = explain(tmp_path, {a: 10, b: 20}, {a: 12, c: 20})
    assert f"{b} went; {c} came; {a} (10 rows, here 12) changed" in error


def test_other_columns_of_the_same_files(tmp_path: Path) -> None:
    write(tmp_path, {"a.parquet": 10})
    state = arrowdl.Loader(tmp_path, 4).state_dict()
    pq.write_table(pa.table({"x": range(10)}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="1 file with 10 rows: their row groups, columns, types"):
        arrowdl.Loader(tmp_path, 4).load_state_dict(state)


def test_a_mixture_names_its_files(tmp_path: Path) -> None:
    def mix(rows: int) -> arrowdl.Loader:
        write(tmp_path / "a", {"a.parquet": rows})
        write(tmp_path / "b", {"b.parquet": 20})
        return arrowdl.Loader.mix(
            {name: tmp_path / name for name in "ab"},
            {"a": 1, "b": 1},
            ranks=arrowdl.Ranks(global_batch_size=4, splits=1),
        )

    state = mix(10).state_dict()
    with pytest.raises(ValueError, match=r"a.parquet \(10 rows, here 12\) changed"):
        mix(12).load_state_dict(state)


def test_states_stay_small(tmp_path: Path) -> None:
    write(tmp_path, {f"{i:05}-of-00100.parquet": 1 for i in range(100)})
    assert len(json.dumps(arrowdl.Loader(tmp_path, 4).state_dict())) < 700
    rows = [(f"/data/{'x' * 300}/{'y' * 200}-{i:06}.parquet", 1_000_000) for i in range(10_000)]
    assert len(json.dumps(sample_files(rows))) < 600


@pytest.mark.parametrize("seed", range(30))
def test_no_file_is_named_that_is_on_both_sides(seed: int) -> None:
    draw = random.Random(seed)
    names = [f"part-{i:03}.parquet" for i in range(draw.choice([5, 9, 40]))]
    then = {name: draw.choice([1, 2]) for name in names if draw.random() < 0.8}
    now = {name: draw.choice([1, 2]) for name in names if draw.random() < 0.8}
    text = compare_files(sample_files(then.items()), sample_files(now.items()))
    for name in names:
        part = next((part for part in text.split(": ")[-1].split("; ") if name in part), "")
        if part.endswith("went"):
            assert name in then and name not in now  # noqa: PT018
        elif part.endswith("came"):
            assert name in now and name not in then  # noqa: PT018
        elif part:
            assert then[name] != now[name]


@pytest.mark.parametrize(
    "sample", [None, 3, {}, {"names": 3}, {"names": {"a": "b"}}, {"names": {}, "files": "x"}]
)
def test_damaged_samples_say_nothing(sample: Any) -> None:
    assert compare_files(sample, sample_files([("a", 1)])) == ""


def test_sources_without_files_say_nothing() -> None:
    state = arrowdl.Loader(pa.table({"x": range(10)}), 4).state_dict()
    assert "sample" not in state
    with pytest.raises(ValueError, match=r"would be lost or read twice$"):
        arrowdl.Loader(pa.table({"x": range(11)}), 4).load_state_dict(state)
