"""`Storage(cache=..., cache_bytes=...)`: what was read over a network is read once."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import arrowdl
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._storage import footers
from arrowdl.loader._storage.cached import name_store
from arrowdl.loader._storage.disk_cache import DiskCache
from fsspec.implementations.memory import MemoryFileSystem
from helpers.counted_files import CountedFiles
from helpers.options import group
from helpers.random_cases import choose_examples
from helpers.stores import MemoryStore, dump

ROWS = 1_000
NAMES = ["a.parquet", "b.parquet"]


def write(path: Path, start: int, rows: int = ROWS) -> None:
    table = pa.table({"id": range(start, start + rows), "x": [i / 7 for i in range(rows)]})
    pq.write_table(table, path, row_group_size=100)


@pytest.fixture(autouse=True)
def read_rows_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are smaller than the ends that are kept in memory, which would have all rows."""
    monkeypatch.setattr(footers, "_END_BYTES", 64)


@pytest.fixture
def files(tmp_path: Path) -> CountedFiles:
    root = tmp_path / "store"
    root.mkdir()
    for number, name in enumerate(NAMES):
        write(root / name, number * ROWS)
    return CountedFiles(root)


@pytest.fixture
def cache(tmp_path: Path) -> dict[str, Any]:
    return {"cache": tmp_path / "cache", "cache_bytes": 10**7}


def make_loader(files: CountedFiles, **options: Any) -> arrowdl.Loader:
    dataset = ds.dataset(NAMES, filesystem=fs.PyFileSystem(files))
    return arrowdl.Loader(dataset, 100, framework="numpy", **group(**options))


def read_ids(batches: Any) -> list[int]:
    return [int(value) for batch in batches for value in batch["id"]]


def test_second_epoch_asks_the_store_for_nothing(
    files: CountedFiles, cache: dict[str, Any]
) -> None:
    loader = make_loader(files, shuffle=True, buffer_size=300, **cache)
    first = read_ids(loader)
    assert sorted(first) == list(range(2 * ROWS))
    files.forget()
    second = read_ids(loader)
    assert sorted(second) == sorted(first)
    assert second != first
    assert (files.reads, files.asked) == ([], 0)
    again = pickle.loads(pickle.dumps(loader._pipeline.source))  # as workers get it
    assert sum(map(len, again.read(range(len(again.units))))) == 2 * ROWS


def test_second_loader_reads_footers_and_rows_from_the_cache(
    files: CountedFiles, cache: dict[str, Any]
) -> None:
    read_ids(make_loader(files, columns=["id"], **cache))
    dataset = ds.dataset(NAMES, filesystem=fs.PyFileSystem(files))  # reads a footer itself
    files.forget()
    loader = arrowdl.Loader(dataset, 100, framework="numpy", columns=["id"], **group(**cache))
    assert read_ids(loader) == list(range(2 * ROWS))
    assert files.reads == []


def test_by_url_and_path(files: CountedFiles, cache: dict[str, Any]) -> None:
    filesystem = fs.PyFileSystem(files)
    loader = arrowdl.Loader(NAMES, 100, framework="numpy", **group(filesystem=filesystem, **cache))
    assert read_ids(loader) == list(range(2 * ROWS))
    files.forget()
    assert read_ids(loader) == list(range(2 * ROWS))
    assert files.reads == []
    mixed = arrowdl.Loader.mix(
        {name: name for name in NAMES},
        weights=dict.fromkeys(NAMES, 1),
        framework="numpy",
        **group(global_batch_size=100, filesystem=filesystem, **cache),
    )
    assert sorted(read_ids(mixed)) == list(range(2 * ROWS))
    assert files.reads == []


def test_ipc_files(tmp_path: Path, cache: dict[str, Any]) -> None:
    files = CountedFiles(tmp_path)
    table = pa.table({"id": range(ROWS)})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    dataset = ds.dataset(["a.arrow"], filesystem=fs.PyFileSystem(files), format="ipc")
    loader = arrowdl.Loader(dataset, 100, framework="numpy", **group(**cache))
    assert read_ids(loader) == list(range(ROWS))
    files.forget()
    assert read_ids(loader) == list(range(ROWS))
    assert files.reads == []


def test_changed_file_is_never_served_stale(files: CountedFiles, cache: dict[str, Any]) -> None:
    before = make_loader(files, **cache)
    assert read_ids(before) == list(range(2 * ROWS))
    write(files.root / "b.parquet", 5_000)
    os.utime(files.root / "b.parquet", (9, 9))
    assert read_ids(before) == list(range(2 * ROWS))  # wholly of the version that it was made for
    after = make_loader(files, **cache)
    assert read_ids(after) == [*range(ROWS), *range(5_000, 5_000 + ROWS)]
    for path in (cache["cache"]).glob("*.range"):
        path.unlink()
    with pytest.raises(OSError, match=r"b.parquet.*changed"):
        read_ids(before)
    files.forget()
    assert read_ids(after)[ROWS] == 5_000  # nothing of the new file was kept as of the old one


def test_bytes_of_a_file_that_changes_while_it_is_read_are_not_kept(
    files: CountedFiles, cache: dict[str, Any]
) -> None:
    loader = make_loader(files, **cache)
    kept = list(cache["cache"].glob("*.range"))

    def change(path: str, offset: int, nbytes: int) -> None:
        os.utime(files.root / path, (9, 9))

    files.before = change
    with pytest.raises(OSError, match="changed"):
        read_ids(loader)
    assert list(cache["cache"].glob("*.range")) == kept


@pytest.mark.parametrize("kind", ["pages", "footer", "ipc"])
def test_what_cannot_be_decoded_is_not_kept(
    tmp_path: Path, files: CountedFiles, cache: dict[str, Any], kind: str
) -> None:
    """The store answers with other bytes, once."""
    path = files.root / "a.parquet"
    if kind == "ipc":
        path = files.root / "a.arrow"
        table = pa.table({"id": range(ROWS)})
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    good = path.read_bytes()
    os.utime(path, (9, 9))
    place = {"pages": (4, 200), "footer": (len(good) - 60, 40), "ipc": (len(good) // 2, 1_200)}
    begin, length = place[kind]

    def serve(data: bytes) -> None:
        path.write_bytes(data)
        os.utime(path, (9, 9))

    def read() -> list[int]:
        form = "ipc" if kind == "ipc" else "parquet"
        dataset = ds.dataset([path.name], filesystem=fs.PyFileSystem(files), format=form)
        if kind == "footer":
            serve(bad)
        return read_ids(arrowdl.Loader(dataset, 100, framework="numpy", **group(**cache)))

    bad = good[:begin] + b"\xff" * length + good[begin + length :]
    serve(good if kind == "footer" else bad)
    with pytest.raises(Exception, match=r"a\.(parquet|arrow)|Parquet|Thrift|[Ii]nvalid"):
        read()
    serve(good)
    bad = good
    assert read() == list(range(ROWS))
    files.forget()
    assert read() == list(range(ROWS))


@pytest.mark.parametrize("end", [64, 2**16])
def test_what_only_checksums_show_is_not_kept(
    files: CountedFiles, cache: dict[str, Any], monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    """The store answers with a value of another version, once."""
    monkeypatch.setattr(footers, "_END_BYTES", end)
    path = files.root / "a.parquet"
    ids = np.arange(300)
    plain: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    pq.write_table(pa.table({"id": ids}), path, write_page_checksum=True, **plain)
    good = path.read_bytes()
    bad = good.replace(ids[100:103].tobytes(), ids[[100, 200, 102]].tobytes())
    for data in (bad, good):
        path.write_bytes(data)
        os.utime(path, (9, 9))
        dataset = ds.dataset(["a.parquet"], filesystem=fs.PyFileSystem(files))
        loader = arrowdl.Loader(dataset, 100, framework="numpy", **group(**cache))
        if data is bad:
            first = loader
            with pytest.raises(OSError, match="CRC") as caught:
                read_ids(loader)
            told = caught.value.__notes__[0]
            assert told.startswith("arrowdl.Loader cannot read 'a.parquet', row group 0")
    assert read_ids(first) == read_ids(loader) == ids.tolist()


def test_stays_within_its_bytes(files: CountedFiles, cache: dict[str, Any]) -> None:
    loader = make_loader(files, **(cache | {"cache_bytes": 5_000}))
    for _ in range(2):
        assert read_ids(loader) == list(range(2 * ROWS))
        assert sum(path.stat().st_size for path in cache["cache"].iterdir()) <= 5_000


def test_file_without_time_or_etag_is_not_kept(
    files: CountedFiles, cache: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe(self: CountedFiles, path: str) -> fs.FileInfo:
        return fs.FileInfo(path, fs.FileType.File, size=(self.root / path).stat().st_size)

    monkeypatch.setattr(CountedFiles, "_describe", describe)
    assert read_ids(make_loader(files, **cache)) == list(range(2 * ROWS))
    assert not cache["cache"].exists()


def test_local_files_are_not_kept(files: CountedFiles, cache: dict[str, Any]) -> None:
    paths = [files.root / name for name in NAMES]
    loader = arrowdl.Loader(paths, 100, framework="numpy", **group(**cache))
    assert read_ids(loader) == list(range(2 * ROWS))
    assert not cache["cache"].exists()


def test_stores_have_names_without_credentials() -> None:
    def name(**options: Any) -> str:
        return name_store(fs.S3FileSystem(region="eu-central-1", **options))

    signed = name(access_key="AKIA", secret_key="hidden", endpoint_override="host:9000")
    assert "hidden" not in signed
    assert "AKIA" not in signed
    assert signed != name(endpoint_override="host:9001", anonymous=True)
    assert signed == name(endpoint_override="host:9000", anonymous=True)


def test_stores_of_one_cache_stay_apart(cache: dict[str, Any]) -> None:
    """Files with the same path, size and time in two stores."""

    def read(filesystem: Any, **options: Any) -> list[int]:
        loader = arrowdl.Loader(
            "b/a.parquet",
            40,
            framework="numpy",
            columns=["id"],
            **group(filesystem=filesystem, **options, **cache),
        )
        return read_ids(loader)

    for start in (0, 100):
        store = MemoryStore({"b/a.parquet": dump(start)})
        assert read(store.open()) == list(range(start, start + 40))

    class Account(MemoryFileSystem):  # type: ignore[misc]
        """Files of an account. The time is that of all files."""

        store: dict[str, Any] = {}  # noqa: RUF012

        def __init__(self, account: str) -> None:
            super().__init__(account=account)
            self.account = account

        def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
            return super().info(f"/{self.account}/{path}", **kwargs) | {"created": 1_000_000.5}

        def cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> Any:
            return super().cat_file(f"/{self.account}/{path}", start, end, **kwargs)

    for name, start in (("x", 200), ("y", 300)):
        MemoryFileSystem.pipe_file(account := Account(name), f"/{name}/b/a.parquet", dump(start))
        assert read(account) == list(range(start, start + 40))


def test_names_of_stores_of_fsspec() -> None:
    def name(**options: Any) -> str:
        made = fsspec.filesystem("memory", skip_instance_cache=True, **options)
        return name_store(fs.PyFileSystem(fs.FSSpecHandler(made)))

    assert name(account="x", token="hidden") == name(account="x", token="other")
    assert name(account="x") != name(account="y")
    for values in (["x"], {"host": "x"}, range(1), fsspec.filesystem("file"), 1, None):
        assert name(of=values) == name(of=values)
        assert name(of=values) != name(of="y")
    assert name(user="x") != name(user="y")
    assert name(client_kwargs={"host": "x"}) != name(client_kwargs={"host": "y"})
    assert name(of=lambda: None) == ""  # only files with ETags are kept
    assert "hidden" not in name(token="hidden")


def test_of_a_store_without_a_name_only_files_with_etags_are_kept(
    files: CountedFiles, cache: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: CountedFiles) -> Any:
        raise TypeError("it has a lock")

    monkeypatch.setattr(CountedFiles, "__getstate__", refuse)
    assert name_store(fs.PyFileSystem(files)) == ""
    assert read_ids(make_loader(files, **cache)) == list(range(2 * ROWS))
    assert not cache["cache"].exists()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"cache": "x"}, ValueError, "give both"),
        ({"cache_bytes": 5}, ValueError, "give both"),
        ({"cache": 5, "cache_bytes": 5}, TypeError, "path of a folder"),
        ({"cache": "s3://x", "cache_bytes": 5}, TypeError, "on a local disk"),
        ({"cache": "x", "cache_bytes": 0}, ValueError, "at least 1"),
        ({"cache": "x", "cache_bytes": 1.5}, ValueError, "expected an int"),
    ],
)
def test_options(options: dict[str, Any], error: type[Exception], text: str) -> None:
    table = pa.table({"id": [1]})
    with pytest.raises(error, match=text):
        arrowdl.Loader(table, 1, **group(**options))
    with pytest.raises(error, match=text):
        arrowdl.Loader.mix({"a": table}, weights={"a": 1}, **group(global_batch_size=1, **options))


# A rank of a training over a cache that has room for a third of the rows.
RANK = """
import sys, time
from pathlib import Path
import arrowdl
import pyarrow.fs as fs
store, folder, room = sys.argv[1:]
loader = arrowdl.Loader(
    ["0.parquet", "1.parquet", "2.parquet"],
    16,
    framework="numpy",
    shuffle=True,
    storage=arrowdl.Storage(
        filesystem=fs.SubTreeFileSystem(store, fs.LocalFileSystem()),
        cache=folder,
        cache_bytes=int(room),
    ),
)
while True:
    ids = []
    for batch in loader:
        ids += batch["id"].tolist()
        time.sleep(0.02)
    assert sorted(ids) == list(range(120))
    print("epoch", flush=True)
"""


def test_ranks_that_are_killed_leave_the_cache_within_its_bound(tmp_path: Path) -> None:
    """Each at another moment of an epoch; the others go on with the right rows."""
    store, folder, room = tmp_path / "store", tmp_path / "cache", 350_000
    store.mkdir()
    for i in range(3):
        (store / f"{i}.parquet").write_bytes(dump(i * 40))
        os.utime(store / f"{i}.parquet", (10**9, 10**9))

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", RANK, store, folder, str(room)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    ranks = [start(), start()]
    cache = DiskCache(folder, room)
    draw, sizes = random.Random(0), []

    def measure(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with cache._room.locked():
                sizes.append(sum(path.stat().st_size for path in folder.iterdir()))
            time.sleep(0.005)

    try:
        for _ in range(choose_examples(2, 20)):
            assert ranks[0].stdout is not None
            assert ranks[0].stdout.readline() == "epoch\n"
            measure(draw.random() / 3)
            ranks[0].kill()
            ranks[0].communicate()
            measure(0.05)
            ranks = [ranks[1], start()]
        assert all(rank.poll() is None for rank in ranks)
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    measure(0)
    assert room // 2 < max(sizes) <= room
    loader = arrowdl.Loader(
        [f"{i}.parquet" for i in range(3)],
        16,
        framework="numpy",
        storage=arrowdl.Storage(
            filesystem=fs.SubTreeFileSystem(str(store), fs.LocalFileSystem()),
            cache=folder,
            cache_bytes=room,
        ),
    )
    assert read_ids(loader) == list(range(120))
    assert not list(folder.glob("*.part"))
