"""Folders with files beside their data: caches, metadata, tables."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.stores import MemoryStore

Open = Callable[[Path, str], arrowdl.Loader]


def open_local(folder: Path, path: str) -> arrowdl.Loader:
    return arrowdl.Loader(folder / path, 10, framework="numpy")


def open_remote(folder: Path, path: str) -> arrowdl.Loader:
    files = {
        own.relative_to(folder).as_posix(): own.read_bytes()
        for own in folder.rglob("*")
        if own.is_file()
    }
    # Stream files are mapped where they are local.
    store = MemoryStore({name: _to_file(name, data) for name, data in files.items()})
    return arrowdl.Loader(
        path, 10, framework="numpy", storage=arrowdl.Storage(filesystem=store.open())
    )


def _to_file(name: str, data: bytes) -> bytes:
    if not name.endswith(".arrow"):
        return data
    table = pa.ipc.open_stream(data).read_all()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@pytest.fixture(params=[open_local, open_remote], ids=["local", "remote"])
def load(request: pytest.FixtureRequest) -> Open:
    found: Open = request.param
    return found


def read(loader: arrowdl.Loader, column: str = "id") -> list[int]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [i for batch in loader for i in batch[column][: loader.valid_rows].tolist()]


def write(path: Path, start: int, rows: int = 10, name: str = "id") -> None:
    """Write a Parquet file, or a stream of Arrow as Hugging Face's datasets does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({name: pa.array(range(start, start + rows), pa.int64())})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def save_dataset(folder: Path, files: list[str], **state: Any) -> None:
    """Write what save_to_disk() of Hugging Face's datasets 5.2 writes, and what map() adds."""
    for i, name in enumerate(files):
        write(folder / name, 10 * i)
    write(folder / "cache-599f019ee61e70aa.arrow", 0)
    write(folder / "cache-613b37b9308c4829_00000_of_00002.arrow", 0, name="indices")
    (folder / "dataset_info.json").write_text("{}")
    listed = {"_data_files": [{"filename": name} for name in files], "_split": None, **state}
    (folder / "state.json").write_text(json.dumps(listed))


def test_a_saved_dataset_without_what_is_cached(tmp_path: Path, load: Open) -> None:
    save_dataset(tmp_path / "a", ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"])
    for path in ("a", "a/*.arrow", "a/*"):
        assert read(load(tmp_path, path)) == list(range(20)), path
    assert read(load(tmp_path, "a/cache-5*.arrow")) == list(range(10)), "it is named"


def test_its_files_are_in_the_order_of_its_list(tmp_path: Path, load: Open) -> None:
    save_dataset(tmp_path / "d" / "a", ["data-2.arrow", "data-10.arrow", "data-1.arrow"])
    write(tmp_path / "d" / "a.b" / "x.arrow", 40)
    write(tmp_path / "d" / "a" / "b" / "x.arrow", 30)
    assert read(load(tmp_path, "d/a")) == [*range(30, 40), *range(30)]
    assert read(load(tmp_path, "d/**/*.arrow")) == [*range(40, 50), *range(30, 40), *range(30)]


def test_a_list_that_cannot_be_read(tmp_path: Path, load: Open) -> None:
    save_dataset(tmp_path / "a", ["data-1.arrow"])
    state = tmp_path / "a" / "state.json"
    (tmp_path / "b.arrow").write_bytes((tmp_path / "a" / "data-1.arrow").read_bytes())
    for name in ("data-2.arrow", "../b.arrow"):
        state.write_text(json.dumps({"_data_files": [{"filename": name}]}))
        with pytest.raises(FileNotFoundError, match=r"which its state\.json lists"):
            load(tmp_path, "a")
    for found in ([7], 7, [{}], None, {}, [], "ab", [{"filename": 7}], [{"filename": None}]):
        state.write_text(json.dumps({"_data_files": found}))
        with pytest.raises(ValueError, match=r"the state\.json of '.*a' has no list of files"):
            load(tmp_path, "a")
    state.write_text(json.dumps({"_data_files": [{"filename": "data-1.arrow"}] * 2}))
    with pytest.raises(ValueError, match=r"the state\.json of '.*a' lists a file twice"):
        load(tmp_path, "a/*.arrow")


TORN = [b"", b'{"_data_files": [{"fi', b"\xff\xfe", b"[]", b"7", b"null", b"[" * 100_000]


@pytest.mark.parametrize("data", TORN, ids=range(len(TORN)))
def test_what_says_the_layout_is_torn(tmp_path: Path, load: Open, data: bytes) -> None:
    save_dataset(tmp_path / "a", ["data-00000-of-00001.arrow"])
    (tmp_path / "a" / "state.json").write_bytes(data)
    for path in ("a", "a/*.arrow", "a/*"):
        with pytest.raises(ValueError, match=r"^the state\.json of '.*a' is not (JSON|an object)"):
            load(tmp_path, path)
    (tmp_path / "a" / "dataset_info.json").unlink()
    with pytest.raises(ValueError, match=r"^the state\.json of '.*a' is not (JSON|an object)"):
        load(tmp_path, "a")
    for name in ("dataset_info.json", "dataset_dict.json"):
        folder = tmp_path / name[:-5]
        write(folder / "x-train.arrow", 0)
        write(folder / "x-test.arrow", 10)
        for found in (data, b'{"splits": 7}', b'{"splits": [7]}', b'{"splits": "train"}'):
            (folder / name).write_bytes(found)
            with pytest.raises(ValueError, match=rf"^the {name} of '.*{name[:-5]}' (is not|names)"):
                load(tmp_path, folder.name)
    write(tmp_path / "b" / "x.arrow", 0)
    (tmp_path / "b" / "state.json").write_bytes(data)  # of a training, for example
    assert read(load(tmp_path, "b/*.arrow")) == list(range(10))


def test_old_indices_are_refused(tmp_path: Path, load: Open) -> None:
    save_dataset(tmp_path / "a", ["x.arrow"], _indices_data_files=[{"filename": "indices.arrow"}])
    with pytest.raises(ValueError, match=r"has an indices mapping.*flatten_indices"):
        load(tmp_path, "a")


def test_a_dict_of_datasets_is_refused(tmp_path: Path, load: Open) -> None:
    for split in ("train", "test"):
        save_dataset(tmp_path / "a" / split, ["data-00000-of-00001.arrow"])
    (tmp_path / "a" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(ValueError, match=r"the splits 'train', 'test': give .*a/train'"):
        load(tmp_path, "a")
    assert read(load(tmp_path, "a/train")) == list(range(10))


def test_a_cache_of_several_splits_is_refused(tmp_path: Path, load: Open) -> None:
    folder = tmp_path / "a"
    for name in ("x-train.arrow", "x-test-00000-of-00002.arrow", "x-test-00001-of-00002.arrow"):
        write(folder / name, 0)
    write(folder / "cache-599f019ee61e70aa.arrow", 0)
    (folder / "dataset_info.json").write_text('{"splits": {"train": {}, "test": {}}}')
    with pytest.raises(ValueError, match=r"give a pattern for one, .*a/\*-train\*\.arrow'"):
        load(tmp_path, "a")
    assert read(load(tmp_path, "a/*-train*.arrow")) == list(range(10))


TABLES = {
    "Delta Lake": "_delta_log/00000000000000000000.json",
    "Iceberg": "metadata/v1.metadata.json",
    "Hudi": ".hoodie/hoodie.properties",
    "Lance": "_versions/1.manifest",
    "a stream of Spark": "_spark_metadata/0",
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_no_folder_of_files(tmp_path: Path, load: Open, kind: str) -> None:
    write(tmp_path / "a" / "t" / "data" / "k=1" / "x.parquet", 0)
    write(tmp_path / "a" / "t" / "y.parquet", 10)
    marker = tmp_path / "a" / "t" / TABLES[kind]
    marker.parent.mkdir()
    marker.write_text("{}")
    for path in ("a/t", "a", "a/t/", "a/t/*.parquet", "a/*", "a/**/*.parquet"):
        with pytest.raises(ValueError, match=rf"a/t' is .*{kind}.* or give the list of its files"):
            load(tmp_path, path)
    assert read(load(tmp_path, "a/t/y.parquet")) == list(range(10, 20))


PARTS_OF_TABLES = [
    *("t/data", "t/data/k=1", "t/data/k=1/j=2", "t/data/k=1/j=*", "t/data/k=*", "t/data/k=?"),
    *("t/data/k=*/*", "t/data/*/j=2/*.parquet", "t/data/**/*.parquet", "t/data/k=1/j=2/x.par*"),
    *("t/k=1", "t/k=*", "t/k=*/*.parquet", "t/k=1/*.parquet", "t/k=[12]", "t/k=1/**/*.parquet"),
    *("*/k=*", "*/k=*/*.parquet", "*/data/k=*", "t/*/*.parquet", "t/*/"),
]


@pytest.mark.parametrize("kind", sorted(TABLES.keys() - {"Lance"}))
def test_a_part_of_a_table_is_refused_alike(tmp_path: Path, load: Open, kind: str) -> None:
    write(tmp_path / "a" / "t" / "data" / "k=1" / "j=2" / "x.parquet", 0)
    write(tmp_path / "a" / "t" / "k=1" / "x.parquet", 0)
    marker = tmp_path / "a" / "t" / TABLES[kind]
    marker.parent.mkdir()
    marker.write_text("{}")
    for path in PARTS_OF_TABLES:
        with pytest.raises(ValueError, match=rf"a/t' is .*{kind}"):
            load(tmp_path, f"a/{path}")
    assert read(load(tmp_path, "a/t/k=1/x.parquet")) == list(range(10)), "it is named"


def test_a_partition_of_hudi_has_a_file_that_says_so(tmp_path: Path, load: Open) -> None:
    write(tmp_path / "a" / "t" / "2026" / "01" / "x.parquet", 0)
    (tmp_path / "a" / "t" / "2026" / "01" / ".hoodie_partition_metadata").write_text("{}")
    for path in ("a/t/2026/01", "a/t/2026/*", "a/t/2026/01/*", "a/t"):
        with pytest.raises(ValueError, match=r"01' is a table of Hudi"):
            load(tmp_path, path)


def test_the_folders_above_need_not_be_seen(tmp_path: Path) -> None:
    write(tmp_path / "a" / "t" / "data" / "k=1" / "x.parquet", 0)
    data = (tmp_path / "a" / "t" / "data" / "k=1" / "x.parquet").read_bytes()
    store = MemoryStore({"a/t/data/k=1/x.parquet": data, "a/t/plain/x.parquet": data})

    def refuse(kind: str, path: str) -> None:
        if not path.startswith(("a/t/data", "a/t/plain")):
            raise PermissionError(f"you may not see {path}")

    store.fault = refuse
    for path in ("a/t/data/k=1", "a/t/data", "a/t/data/k=*", "a/t/data/*/*.parquet"):
        loader = arrowdl.Loader(
            path, 10, framework="numpy", storage=arrowdl.Storage(filesystem=store.open())
        )
        assert read(loader) == list(range(10))
    store.requests.clear()
    arrowdl.Loader(
        "a/t/plain/*.parquet",
        10,
        framework="numpy",
        storage=arrowdl.Storage(filesystem=store.open()),
    )
    assert {path for _, path in store.requests} == {"a/t/plain", "a/t/plain/x.parquet"}


def test_a_clone_of_the_hub_is_refused(tmp_path: Path, load: Open) -> None:
    for path in ("blobs/0f", "snapshots/c/x.parquet"):
        write(tmp_path / "a" / "x.parquet", 0)
        (tmp_path / "a" / path).parent.mkdir(parents=True)
        (tmp_path / "a" / "x.parquet").rename(tmp_path / "a" / path)
    (tmp_path / "a" / "refs").mkdir()
    (tmp_path / "a" / "refs" / "main").write_text("c")
    with pytest.raises(ValueError, match="give one of its snapshots"):
        load(tmp_path, "a")
    assert read(load(tmp_path, "a/snapshots/c")) == list(range(10))


def test_what_engines_leave_beside_data(tmp_path: Path, load: Open) -> None:
    write(tmp_path / "a" / "k=1" / "x.parquet", 0)
    for name in (
        "_SUCCESS",
        "_metadata",
        "_common_metadata",
        ".x.parquet.crc",
        "_temporary/0/_temporary/attempt/x.parquet",
        ".ipynb_checkpoints/x-checkpoint.parquet",
        ".hive-staging_hive_2026-01-01/-ext-10000/x.parquet",
        "k=1/_SUCCESS",
        "k=1_$folder$",
    ):
        path = tmp_path / "a" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    for path in ("a", "a/*"):
        assert read(load(tmp_path, path)) == list(range(10))
