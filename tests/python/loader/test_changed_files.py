"""Files that are rewritten while a Loader has them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from helpers.options import group

BEFORE = pa.table({"a": range(100), "b": range(1000, 1100)})
AFTER = pa.table({"a": range(1000, 1100), "b": range(100)})  # as large
SECOND = 10**9


def write(path: Path, table: pa.Table) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=10, compression="none", use_dictionary=False)
        return
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)


def write_over(path: Path) -> None:
    """Size and inode stay; in no test has the clock to go on meanwhile."""
    before = path.stat()
    other = path.with_suffix(f".other{path.suffix}")
    write(other, AFTER)
    with open(path, "r+b") as file:
        file.write(other.read_bytes())
    other.unlink()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + SECOND))
    assert path.stat().st_size == before.st_size


def replace(path: Path) -> None:
    """Size and time stay: as of rsync and tar."""
    before = path.stat()
    other = path.with_suffix(f".other{path.suffix}")
    write(other, AFTER)
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


def append(path: Path) -> None:
    before = path.stat()
    with open(path, "ab") as file:
        file.write(bytes(8))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncate(path: Path) -> None:
    """The pages of a mapped file that are gone are SIGBUS."""
    os.truncate(path, path.stat().st_size // 2)


def read(loader: arrowdl.Loader) -> list[int]:
    return [value for batch in loader for value in batch["a"].tolist()]


SOURCES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "parquet": lambda folder: {"source": folder / "a.parquet"},
    "filtered": lambda folder: {"source": folder / "a.parquet", "filter": ds.field("a") >= 0},
    "mapped": lambda folder: {"source": folder / "a.arrow"},
    "shuffled": lambda folder: {"source": folder / "a.arrow", "shuffle": True},
    "ipc, filtered": lambda folder: {"source": folder / "a.arrow", "filter": ds.field("a") >= 0},
    "not mapped": lambda folder: {"source": folder / "a.arrow", "memory_map": False},
    "dataset": lambda folder: {"source": ds.dataset(folder / "a.parquet")},
    "scan": lambda folder: {"source": ds.dataset(folder / "a.parquet").filter(ds.field("a") >= 0)},
}


def make(kind: str, folder: Path, **more: Any) -> tuple[arrowdl.Loader, Path]:
    for name in ("a.parquet", "a.arrow"):
        write(folder / name, BEFORE)
    arguments = SOURCES[kind](folder)
    suffix = "arrow" if str(arguments["source"]).endswith(".arrow") else "parquet"
    arguments = {"batch_size": 7, "framework": "numpy", **arguments, **more}
    return arrowdl.Loader(**group(**arguments)), folder / f"a.{suffix}"


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (write_over, "another time"),
        (replace, "another file"),
        (append, "bytes before"),
        (truncate, "bytes before"),
    ],
)
def test_a_file_that_changes_between_epochs(
    change: Callable[[Path], None], what: str, kind: str, tmp_path: Path
) -> None:
    loader, path = make(kind, tmp_path)
    copy = b"" if kind == "scan" else pickle.dumps(loader)  # pyarrow pickles no such dataset
    assert sorted(read(loader)) == list(range(100))
    assert sorted(read(loader)) == list(range(100))
    change(path)
    with pytest.raises(OSError, match=f"{path.name}' has changed.*{what}.*make a new Loader"):
        read(loader)
    if copy:
        with pytest.raises(OSError, match=f"{path.name}' has changed.*{what}"):
            read(pickle.loads(copy))
    if change in (write_over, replace):
        again = make(kind, tmp_path)[0]
        assert sorted(read(again)) == list(range(100))


@pytest.mark.parametrize("kind", ["parquet", "mapped"])
def test_worker_processes_compare_as_well(kind: str, tmp_path: Path) -> None:
    loader, path = make(kind, tmp_path, num_workers=1)
    assert sorted(read(loader)) == list(range(100))  # the process stays
    write_over(path)
    with pytest.raises(OSError, match=f"{path.name}' has changed"):
        read(loader)


@pytest.mark.parametrize("kind", SOURCES)
def test_a_file_that_goes(kind: str, tmp_path: Path) -> None:
    loader, path = make(kind, tmp_path)
    path.unlink()
    if kind in ("mapped", "shuffled"):  # the memory stays
        assert sorted(read(loader)) == list(range(100))
        return
    with pytest.raises(FileNotFoundError, match=f"{path.name}'"):
        read(loader)


def test_a_file_that_changes_during_an_epoch(tmp_path: Path) -> None:
    """When it is opened, or at the latest when it has been read."""
    loader, path = make("parquet", tmp_path)
    batches = iter(loader)
    next(batches)
    write_over(path)
    with pytest.raises(OSError, match=r"a\.parquet' has changed"):
        list(batches)


def test_a_file_that_is_cut_short_during_an_epoch(tmp_path: Path) -> None:
    """Where it is not mapped."""
    loader, path = make("not mapped", tmp_path)
    batches = iter(loader)
    next(batches)
    truncate(path)
    with pytest.raises(OSError, match=r"a\.arrow' has changed.*bytes before"):
        list(batches)


def test_the_rest_of_the_files_of_an_epoch(tmp_path: Path) -> None:
    """A unit that is read later, of a file that was as it should be when the epoch began."""
    for i in range(40):
        write(tmp_path / f"{i:02}.arrow", BEFORE)
    loader = arrowdl.Loader(tmp_path, 50, framework="numpy", filter=ds.field("a") >= 0)
    batches = iter(loader)
    next(batches)
    write_over(tmp_path / "39.arrow")
    with pytest.raises(OSError, match=r"39\.arrow' has changed"):
        list(batches)


@pytest.mark.parametrize("is_filtered", [False, True])
def test_a_dataset_that_has_read_the_footers_of_other_files(
    is_filtered: bool, tmp_path: Path
) -> None:
    """Before the Loader was made; its scans keep them."""
    path = tmp_path / "a.parquet"
    write(path, BEFORE)
    dataset = ds.dataset(path)
    assert dataset.to_table()["a"].to_pylist() == list(range(100))
    source = dataset.filter(ds.field("a") >= 0) if is_filtered else dataset
    assert read(arrowdl.Loader(source, 9, framework="numpy")) == list(range(100))
    write(path, BEFORE.select(["b", "a"]))
    with pytest.raises(OSError, match=r"a\.parquet' has changed since the dataset.*a new dataset"):
        arrowdl.Loader(source, 9)


def test_a_dataset_of_a_metadata_file(tmp_path: Path) -> None:
    collected: list[Any] = []
    pq.write_to_dataset(BEFORE, tmp_path, metadata_collector=collected)
    pq.write_metadata(BEFORE.schema, tmp_path / "_metadata", metadata_collector=collected)
    dataset = ds.parquet_dataset(tmp_path / "_metadata")
    assert read(arrowdl.Loader(dataset, 9, framework="numpy")) == list(range(100))


def test_files_of_another_file_system(tmp_path: Path) -> None:
    """By what it says of them, when they are opened."""
    write(tmp_path / "a.parquet", BEFORE)
    other = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    loader = arrowdl.Loader(ds.dataset("a.parquet", filesystem=other), 9, framework="numpy")
    assert read(loader) == list(range(100))
    write_over(tmp_path / "a.parquet")
    with pytest.raises(OSError, match=r"a\.parquet' has changed.*another time"):
        read(loader)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.parquet'"):
        read(loader)


def test_a_copy_of_the_files_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has times and inodes of its own; other sizes are other files."""
    loader, path = make("parquet", tmp_path)
    data = pickle.dumps(loader)
    monkeypatch.setattr("platform.node", lambda: "another")
    path.with_name("b").write_bytes(path.read_bytes())
    path.with_name("b").replace(path)
    assert sorted(read(pickle.loads(data))) == list(range(100))
    append(path)
    with pytest.raises(OSError, match="bytes before"):
        read(pickle.loads(data))


@pytest.mark.parametrize("options", [{}, {"writable": False}, {"shuffle": True}])
def test_a_mapped_file_that_is_overwritten_while_it_is_read(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """Its pages change under the epoch, which says so when it ends."""
    path, other = tmp_path / "a.arrow", tmp_path / "b.arrow"
    write(path, BEFORE)
    write(other, AFTER)
    batches = iter(arrowdl.Loader(path, 10, framework="numpy", **group(**options)))
    next(batches)
    with open(path, "r+b") as file:
        file.write(other.read_bytes())
    os.utime(path, ns=(1, 1))  # some other time, however coarse the clock is
    with pytest.raises(OSError, match=r"a\.arrow' has changed"):
        list(batches)
