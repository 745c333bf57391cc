"""Folders of tables and of Hugging Face datasets 5.2, given to the Loader by their paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pytest

TABLE = pa.table({"id": pa.array(range(30), pa.int64())})


def read(source: Any, **options: Any) -> list[int]:
    loader = arrowdl.Loader(source, 7, framework="numpy", **options)
    return [i for batch in loader for i in batch["id"][: loader.valid_rows].tolist()]


def test_a_saved_dataset_is_read_as_it_is_loaded(tmp_path: Path) -> None:
    import datasets

    made = datasets.Dataset(TABLE).shuffle(seed=3)
    made.save_to_disk(str(tmp_path / "a"), num_shards=3)
    saved = datasets.load_from_disk(str(tmp_path / "a"))
    saved.map(lambda row: {"id": row["id"] + 100})
    saved.filter(lambda row: row["id"] % 2 == 0)
    saved.sort("id").select([4, 2])
    names = {own.name for own in (tmp_path / "a").iterdir()}
    assert len([name for name in names if name.startswith("cache-")]) >= 3
    expected = list(saved["id"])
    for path in (tmp_path / "a", tmp_path / "a" / "*.arrow"):
        assert read(path) == expected
    mapped = datasets.load_from_disk(str(tmp_path / "a"))
    mapped.map(lambda row: {"id": row["id"] + 200}, num_proc=2)
    assert read(tmp_path / "a") == expected


def test_a_dict_of_datasets_is_refused(tmp_path: Path) -> None:
    import datasets

    made = datasets.Dataset(TABLE)
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(str(tmp_path / "a"))
    with pytest.raises(ValueError, match="the splits 'train', 'test'"):
        read(tmp_path / "a")
    assert read(tmp_path / "a" / "test") == list(range(30))


def test_the_cache_of_downloads_has_splits(tmp_path: Path) -> None:
    import datasets
    import pyarrow.parquet as pq

    pq.write_table(TABLE, tmp_path / "x.parquet")
    files = {name: str(tmp_path / "x.parquet") for name in ("train", "test")}
    made = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))
    made["train"].filter(lambda row: row["id"] < 5)
    folder = Path(made["train"].cache_files[0]["filename"]).parent
    with pytest.raises(ValueError, match="the splits 'train', 'test'"):
        read(folder)
    assert read(folder / "*-train*.arrow") == list(range(30))


def test_a_delta_table_is_no_folder(tmp_path: Path) -> None:
    from deltalake import DeltaTable, write_deltalake

    path = str(tmp_path / "a")
    write_deltalake(path, TABLE)
    DeltaTable(path).delete("id % 2 = 0")
    with pytest.raises(ValueError, match=r"give deltalake\.DeltaTable\('.*/a'\)"):
        read(path)
    assert sorted(read(DeltaTable(path))) == list(range(1, 30, 2))
    assert len(read([str(own) for own in Path(path).glob("*.parquet")])) == 45


def test_an_iceberg_table_is_no_folder(tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import StaticTable

    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    catalog = SqlCatalog("local", uri=uri, warehouse=warehouse)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=TABLE.schema)
    table.append(TABLE)
    table.delete("id >= 10")
    path = Path(table.location().removeprefix("file://"))
    for below in (path, path / "data", path.parent):
        with pytest.raises(ValueError, match=r"is a table of Iceberg.*StaticTable"):
            read(below)
    found = StaticTable.from_metadata(table.metadata_location)
    assert sorted(read(found)) == list(range(10))


def test_a_lance_dataset_is_no_folder(tmp_path: Path) -> None:
    import lance

    made = lance.write_dataset(TABLE, str(tmp_path / "a.lance"))
    with pytest.raises(ValueError, match=r"give lance\.dataset\('.*/a\.lance'\)"):
        read(tmp_path / "a.lance")
    assert read(made) == list(range(30))


def test_the_rows_of_a_lance_dataset_are_counted(tmp_path: Path) -> None:
    import lance

    made = lance.write_dataset(TABLE, str(tmp_path / "a.lance"), max_rows_per_file=10)
    loader = arrowdl.Loader(made, 7, framework="numpy")
    source: Any = loader._source
    source.parts[1] = source.parts[1]._replace(rows=15)
    source.units[1] = 15
    with pytest.raises(OSError, match=r"\(fragment 1\)', rows 0 to 14, has 10 rows"):
        list(loader)
