"""Loader over revisions and selections of Hugging Face datasets 5.2."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import arrowdl
import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._libraries import huggingface
from helpers.cloud_servers import HUB_TOKEN, run_hub
from helpers.tables import check_epochs, check_versions, make_loader, read_ids, read_rows


def load(path: Path, commit: str, start: int) -> Any:
    """Return a dataset with the cache files that load_dataset() has for a revision."""
    folder = path / "user___rows/default/0.0.0" / (commit * 40)
    if not folder.exists():
        table = pa.table({"id": range(start, start + 50), "text": ["a"] * 50})
        pq.write_table(table, path / "rows.parquet")
        cache = str(path / f"cache{commit}")
        made = datasets.load_dataset(
            "parquet", data_files=str(path / "rows.parquet"), split="train", cache_dir=cache
        )
        (found,) = made.cache_files
        folder.parent.mkdir(parents=True, exist_ok=True)
        Path(found["filename"]).parent.rename(folder)
    (file,) = folder.glob("*.arrow")
    return datasets.Dataset.from_file(str(file), split=datasets.Split.TRAIN)


@pytest.mark.parametrize("select", [False, True])
def test_a_state_names_the_revision(tmp_path: Path, select: bool) -> None:
    def make(commit: str, start: int) -> Any:
        made = load(tmp_path, commit, start)
        return made.select(range(49, -1, -1)) if select else made

    check_versions(
        lambda: make("a", 0), lambda: make("b", 1), f"revision {'a' * 40}", f"revision {'b' * 40}"
    )
    state = make_loader(make("a", 0)).state_dict()
    assert state["snapshot"].startswith("Hugging Face dataset 'user/rows' (default, train), rev")
    assert "snapshot" not in make_loader(datasets.Dataset.from_dict({"id": [1]})).state_dict()


LOAD = """
import json, sys
import arrowdl, datasets

datasets.disable_progress_bars()
for revision in sys.argv[1:]:
    dataset = datasets.load_dataset("user/name", split="train", revision=revision)
    for chosen in (dataset, dataset.select([1, 0])):
        loader = arrowdl.Loader(chosen, 2, framework="numpy")
        state = loader.state_dict()
        print(json.dumps([state["snapshot"], next(iter(loader))["id"].tolist()]))
"""


def test_load_dataset_downloads_the_revision_that_the_state_names(tmp_path: Path) -> None:
    """The library's own client, of a double of the Hub on the loopback."""

    def dump(start: int) -> bytes:
        sink = io.BytesIO()
        pq.write_table(pa.table({"id": range(start, start + 50)}), sink)
        return sink.getvalue()

    with run_hub("user/name", {"data/train.parquet": dump(0)}) as hub:
        hub.commit("a", {"data/train.parquet": dump(100)}, "v1")
        own = {"HF_ENDPOINT": hub.address, "HF_TOKEN": HUB_TOKEN, "HF_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", LOAD, "main", "v1"],
            env={**os.environ, **own, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    name = "Hugging Face dataset 'user/name' (default, train), revision "
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        [name + "0" * 40, [0, 1]],
        [name + "0" * 40, [1, 0]],
        [name + "a" * 40, [100, 101]],
        [name + "a" * 40, [101, 100]],
    ]


@pytest.mark.parametrize("kind", ["shuffle", "select", "filter"])
def test_selected_rows_are_read_in_any_order(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface, "_UNIT_ROWS", 16)
    dataset = datasets.Dataset.from_dict(
        {"id": range(100), "pair": [{"a": i} for i in range(100)], "name": ["x", "y"] * 50}
    )
    source = {
        "shuffle": lambda: dataset.shuffle(seed=4),
        "select": lambda: dataset.select([5, 3, 99, 0, *range(20, 60)]),
        "filter": lambda: dataset.filter(lambda row: row["id"] % 3 == 0),
    }[kind]()
    assert read_rows(source) == list(source)
    expected = [row["id"] for row in source]
    assert read_ids(make_loader(source)) == expected
    check_epochs(source, expected)
    rows = read_rows(source, ["pair.a", "id"])
    assert rows == [{"pair.a": i, "id": i} for i in expected]
    assert read_ids(pickle.loads(pickle.dumps(make_loader(source)))) == expected
    codes = arrowdl.Loader(
        source, 200, columns=["id", "name"], framework="numpy", vocabulary={"name": ["y", "x"]}
    )
    batch = next(iter(codes))
    assert batch["name"].tolist() == [1 - i % 2 for i in batch["id"].tolist()]
