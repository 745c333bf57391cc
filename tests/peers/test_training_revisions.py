"""Loader over revisions and selections of Hugging Face datasets 5.2."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import arrowdl
import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._sources import huggingface
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
