"""Codes of dictionary columns: one table for all files, ranks, workers and epochs."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from helpers.options import group
from torch.utils.data import DataLoader

# Each file begins with other words than the one before.
WORDS = [["b", "a", "b", None, "c"], ["c", "z", "z"], ["a", None, "y", "b"]]
ALL = [word for words in WORDS for word in words]
TABLE = ["b", "a", "c", "z", "y"]  # in the order of their first appearance


def make_tables() -> list[pa.Table]:
    tables = []
    first = 0
    for words in WORDS:
        ids = range(first, first + len(words))
        tables.append(pa.table({"id": ids, "k": pa.array(words).dictionary_encode(), "s": words}))
        first += len(words)
    return tables


def write(folder: Path, kind: str) -> Any:
    for i, table in enumerate(make_tables()):
        if kind == "parquet":
            pq.write_table(table, folder / f"{i}.parquet", row_group_size=2)
        else:
            path = str(folder / f"{i}.arrow")
            pyarrow.feather.write_feather(table, path, compression="uncompressed")
    if kind == "dataset":
        return ds.dataset(str(folder), format="ipc")
    return str(folder)


def load(source: Any, rows: int = 3, **options: Any) -> arrowdl.Loader:
    return arrowdl.Loader(
        source,
        rows,
        columns=["id", "k"],
        framework="numpy",
        nulls={"k": "mask"},
        **group(**options),
    )


def decode(batches: Any, values: list[str]) -> dict[int, str | None]:
    found: dict[int, str | None] = {}
    for batch in batches:
        codes, mask = batch["k"]
        for i, code, is_valid in zip(batch["id"], codes.tolist(), mask.tolist(), strict=True):
            found[int(i)] = values[code] if is_valid else None
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"num_workers": 2},
        {"prefetch": 0, "shuffle": True, "buffer_size": 2},
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "ipc", "dataset"])
def test_one_table_for_all_files(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    loader = load(write(tmp_path, kind), **options)
    assert decode(loader, TABLE) == dict(enumerate(ALL))
    assert loader.vocabulary("k").to_pylist() == TABLE
    assert decode(loader, TABLE) == dict(enumerate(ALL)), "in the next epoch"


def test_the_same_table_on_each_rank_and_after_a_resume(tmp_path: Path) -> None:
    source = write(tmp_path, "parquet")
    found: dict[int, str | None] = {}
    for rank in (2, 0, 1):
        found |= decode(load(source, rank=rank, world_size=3), TABLE)
    assert found == dict(enumerate(ALL))
    loader = load(source, shuffle=True)
    first = next(iter(loader))
    resumed = load(source, 2, shuffle=True)
    resumed.load_state_dict(loader.state_dict())
    assert decode([first], TABLE) | decode(resumed, TABLE) == dict(enumerate(ALL))


def test_the_same_table_in_other_processes(tmp_path: Path) -> None:
    loader = load(write(tmp_path, "parquet"))
    dataset = loader.torch_dataset()
    batches = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert decode(batches, TABLE) == dict(enumerate(ALL))
    again = pickle.loads(pickle.dumps(loader))
    assert again._source.reader.codes._tables.tables["k"].to_pylist() == TABLE
    assert decode(copy.copy(again), TABLE) == dict(enumerate(ALL))


def test_a_filter_reads_the_dictionaries_of_its_files(tmp_path: Path) -> None:
    for split, table in zip(("train", "train", "test"), make_tables(), strict=True):
        folder = tmp_path / f"split={split}"
        folder.mkdir(exist_ok=True)
        pq.write_table(table, folder / f"{table['id'][0]}.parquet")
    loader = load(str(tmp_path), filter=ds.field("split") == "train")
    assert loader.vocabulary("k").to_pylist() == TABLE[:4]
    other = load(
        str(tmp_path),
        filter=ds.field("split") == "test",
        vocabulary={"k": [*loader.vocabulary("k").to_pylist(), "y"]},
    )
    assert decode(other, TABLE) == {i: ALL[i] for i in range(8, 12)}


def test_dictionaries_that_are_prefixes_keep_their_codes(tmp_path: Path) -> None:
    """Also values that no row has."""
    values = pa.array(["x", "y", "z"])
    for i in range(2):
        codes = pa.DictionaryArray.from_arrays(pa.array([1], pa.int8()), values[: 2 + i])
        path = str(tmp_path / f"{i}.arrow")
        pyarrow.feather.write_feather(pa.table({"k": codes}), path, compression="uncompressed")
    loader = arrowdl.Loader(ds.dataset(str(tmp_path), format="ipc"), 1)
    assert [batch["k"].tolist() for batch in loader] == [[1], [1]]
    assert loader.vocabulary("k").to_pylist() == ["x", "y", "z"]


def test_more_values_than_the_codes_of_one_file_can_count(tmp_path: Path) -> None:
    words = [[f"{part}-{i}" for i in range(100)] for part in range(2)]
    for i, values in enumerate(words):
        codes = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), values)
        path = str(tmp_path / f"{i}.arrow")
        pyarrow.feather.write_feather(pa.table({"k": codes}), path, compression="uncompressed")
    loader = arrowdl.Loader(ds.dataset(str(tmp_path), format="ipc"), 100)
    assert [batch["k"].tolist() for batch in loader] == [list(range(100)), list(range(100, 200))]


# ---- vocabulary=


@pytest.mark.parametrize("kind", ["parquet", "ipc", "dataset", "table", "stream"])
def test_values_of_the_user(kind: str, tmp_path: Path) -> None:
    values = sorted(TABLE)
    tables = make_tables()
    source: Any
    if kind == "table":
        source = pa.concat_tables(tables)
    elif kind == "stream":
        source = [batch for table in tables for batch in table.to_batches()]
    else:
        source = write(tmp_path, kind)
    vocabulary = {"k": values, "s": [*reversed(values)]}
    loader = arrowdl.Loader(source, 4, nulls={"k": "mask", "s": "mask"}, vocabulary=vocabulary)
    assert decode(loader, values) == dict(enumerate(ALL))
    for batch in loader:
        codes, mask = batch["s"]
        assert codes[mask].tolist() == [4 - code for code in batch["k"][0][mask].tolist()]
    assert loader.vocabulary("k").to_pylist() == values


@pytest.mark.parametrize("column", ["k", "s"])
@pytest.mark.parametrize("kind", ["parquet", "ipc", "dataset"])
def test_a_value_that_is_not_listed(kind: str, column: str, tmp_path: Path) -> None:
    source = write(tmp_path, kind)
    match = f"column \"{column}\" has the value 'z' in .*1.(parquet|arrow)', which its vocabulary"
    with pytest.raises(ValueError, match=match):
        list(arrowdl.Loader(source, 4, nulls="fill", vocabulary={column: ["a", "b", "c", "y"]}))


def test_numbers_as_codes() -> None:
    table = pa.table({"x": pa.array([30, 10, 30], pa.int16())})
    loader = arrowdl.Loader(table, 3, vocabulary={"x": [10, 20, 30]}, dtype={"x": "int64"})
    assert next(iter(loader))["x"].tolist() == [2, 0, 2]
    with pytest.raises(ValueError, match=r"is of list<.*, and its vocabulary of string"):
        arrowdl.Loader(pa.table({"x": [[1]]}), 3, vocabulary={"x": ["a"]})


# ---- vocabulary()


def test_the_values_of_other_sources() -> None:
    table = pa.concat_tables(make_tables())
    assert arrowdl.Loader(table, 3).vocabulary("k").to_pylist() == TABLE
    batches = table.unify_dictionaries().to_batches()
    assert arrowdl.Loader(lambda: iter(batches), 3).vocabulary("k").to_pylist() == TABLE
    once = arrowdl.Loader(iter(batches), 3, nulls="fill", ragged="offsets")
    with pytest.raises(RuntimeError, match="is known when the first batch"):
        once.vocabulary("k")
    next(iter(once))
    assert once.vocabulary("k").to_pylist() == TABLE


@pytest.mark.parametrize("column", ["id", "missing"])
def test_a_column_without_codes(column: str, tmp_path: Path) -> None:
    for source in (make_tables()[0], write(tmp_path, "parquet"), lambda: make_tables()[0]):
        with pytest.raises(ValueError, match=f'"{column}" is not a dictionary column'):
            arrowdl.Loader(source, 3).vocabulary(column)
