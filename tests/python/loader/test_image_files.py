"""Columns of paths and URLs: images that the Loader's storage reads."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import arrowdl
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._storage.access import Access
from arrowdl.loader._storage.whole_files import WholeFiles
from fsspec.implementations.memory import MemoryFileSystem
from helpers.images import draw, encode
from helpers.stores import MemoryStore
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

ROWS = 12
DATA = [encode(draw(i), "JPEG") for i in range(ROWS)]
IMAGE = arrowdl.Image((9, 8), backend="pillow")
EXPECTED = arrowdl.to_numpy(IMAGE(pa.array(DATA)))
QUICK = arrowdl.Retries(4, first_wait=0.001)


def dump(paths: list[str]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": range(len(paths)), "image": paths}), file)
    return file.getvalue()


def make_store() -> MemoryStore:
    """A store with images, and a file that has their paths."""
    paths = [f"b/{i}.jpg" for i in range(ROWS)]
    return MemoryStore({"b/rows.parquet": dump(paths), **dict(zip(paths, DATA, strict=True))})


def load(source: Any, **options: Any) -> arrowdl.Loader:
    given = {"framework": "numpy", "transform_arrow": {"image": IMAGE}, **options}
    return arrowdl.Loader(source, 4, **given)


def read(loader: arrowdl.Loader) -> dict[int, np.ndarray]:
    pixels = {}
    for batch in loader:
        for i in range(loader.valid_rows):
            pixels[int(batch["id"][i])] = batch["image"][i]
    return pixels


def check(pixels: dict[int, np.ndarray], *missing: int) -> None:
    assert list(pixels) == [i for i in range(ROWS) if i not in missing]
    for i, own in pixels.items():
        np.testing.assert_array_equal(own, EXPECTED[i])


def test_local_paths_and_urls_of_files(tmp_path: Path) -> None:
    paths = []
    for i, data in enumerate(DATA):
        path = tmp_path / f"image {i}.jpg"
        path.write_bytes(data)
        paths.append(path.as_uri() if i % 2 else str(path))
    check(read(load(pa.table({"id": range(ROWS), "image": paths}))))


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("0.jpg").write_bytes(DATA[0])
    check(read(load(pa.table({"id": [0], "image": ["0.jpg"]}))), *range(1, ROWS))


def test_urls_of_fsspec(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    for i, data in enumerate(DATA):
        memory.pipe(f"/images-of-test/{i}.jpg", data)
    table = pa.table(
        {"id": range(ROWS), "image": [f"memory://images-of-test/{i}.jpg" for i in range(ROWS)]}
    )
    check(read(load(table)))
    check(read(load(table, transform_arrow={"image": arrowdl.Image((9, 8), threads=1)})))
    pq.write_table(table, tmp_path / "rows.parquet")
    check(read(load(tmp_path / "rows.parquet", shuffle=False, prefetch=0)))
    dataset = load(table).map_dataset()
    np.testing.assert_array_equal(dataset[[5, 2]]["image"], EXPECTED[[5, 2]])


@pytest.mark.parametrize("kind", ["store", "fsspec", "local", "folder"])
def test_paths_of_a_file_system_that_is_given(kind: str, tmp_path: Path) -> None:
    store = make_store()
    memory = fsspec.filesystem("memory")
    for path, data in store.files.items():
        memory.pipe(f"/{path}", data)
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    if kind == "local":
        paths = [str(tmp_path / f"b/{i}.jpg") for i in range(ROWS)]
        (tmp_path / "b/rows.parquet").write_bytes(dump(paths))
    filesystem = {
        "store": store.open(),
        "fsspec": memory,
        "local": LocalFileSystem(),
        "folder": SubTreeFileSystem(str(tmp_path), LocalFileSystem()),
    }[kind]
    path = str(tmp_path / "b/rows.parquet") if kind == "local" else "b/rows.parquet"
    check(read(load(path, storage=arrowdl.Storage(filesystem=filesystem))))


def test_structs_with_paths_of_a_store() -> None:
    store = make_store()
    rows = [
        {"bytes": None, "path": f"b/{i}.jpg"} if i % 2 else {"bytes": DATA[i], "path": "x.jpg"}
        for i in range(ROWS)
    ]
    file = io.BytesIO()
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"id": range(ROWS), "image": pa.array(rows, kind)}), file)
    store.files["b/rows.parquet"] = file.getvalue()
    check(read(load("b/rows.parquet", storage=arrowdl.Storage(filesystem=store.open()))))
    assert not any("x.jpg" in path for _, path in store.requests)


def test_what_may_pass_is_tried_again() -> None:
    store = make_store()
    failures = {f"b/{i}.jpg": 2 for i in (1, 6)}

    def fail(kind: str, path: str) -> None:
        if kind == "read" and failures.get(path, 0):
            failures[path] -= 1
            raise ConnectionResetError("broken")

    store.fault = fail
    storage = arrowdl.Storage(filesystem=store.open(), retries=QUICK)
    check(read(load("b/rows.parquet", storage=storage)))
    assert not any(failures.values())


@pytest.mark.parametrize("workers", [0, 1])
def test_files_that_are_not_there_are_skipped(workers: int) -> None:
    store = make_store()
    del store.files["b/3.jpg"], store.files["b/8.jpg"]
    storage = arrowdl.Storage(filesystem=store.open(), retries=QUICK)
    loader = load("b/rows.parquet", storage=storage, on_error=arrowdl.Skip(5), num_workers=workers)
    with loader:
        check(read(loader), 3, 8)
        entries = sorted(loader.stats().skipped, key=lambda entry: entry.ranges)
    assert [entry.ranges for entry in entries] == [((3, 4),), ((8, 9),)]
    assert "cannot decode the image 'b/3.jpg': FileNotFoundError" in entries[0].error
    with pytest.raises(ValueError, match=r"row 3 of the batch: cannot decode the image 'b/3.jpg'"):
        list(load("b/rows.parquet", storage=storage))


def test_a_cache_keeps_images(tmp_path: Path) -> None:
    store = make_store()
    storage = arrowdl.Storage(
        filesystem=store.open(), cache=str(tmp_path), cache_bytes=10_000_000, retries=QUICK
    )
    loader = load("b/rows.parquet", storage=storage)
    check(read(loader))
    reads = store.count("read")
    check(read(loader))
    assert store.count("read") == reads


def test_a_mixture_reads_images_by_its_storage() -> None:
    store = make_store()
    storage = arrowdl.Storage(filesystem=store.open())
    loader = arrowdl.Loader.mix(
        {"a": "b/rows.parquet"},
        {"a": 1},
        ranks=arrowdl.Ranks(0, 1, global_batch_size=4, splits=1),
        framework="numpy",
        storage=storage,
        transform_arrow={"image": IMAGE},
    )
    check(read(loader))


def test_secrets_are_in_no_error() -> None:
    url = "https://user:pw123@localhost:9/a.jpg?X-Amz-Signature=sig456&size=3"
    table = pa.table({"id": [0], "image": [url]})
    loader = load(table, storage=arrowdl.Storage(retries=arrowdl.Retries(1, deadline=5)))
    with pytest.raises(
        ValueError, match=r"cannot decode the image 'https://localhost:9/a.jpg"
    ) as error:
        list(loader)
    text = f"{error.value} {error.value.__notes__}"
    assert "pw123" not in text
    assert "sig456" not in text


def test_a_chain_of_file_systems_is_an_error_of_its_row() -> None:
    table = pa.table({"id": [0, 1], "image": ["zip://a.jpg::https://host/b.zip", "no.jpg"]})
    with pytest.raises(ValueError, match=r"row 0 .* 1 more .*: 'zip://.*' is a chain of file"):
        list(load(table))


@pytest.mark.parametrize("kind", ["table", "stream", "mixture"])
def test_rows_in_memory_with_paths_in_a_store(kind: str) -> None:
    storage = arrowdl.Storage(filesystem=make_store().open())
    table = pa.table({"id": range(ROWS), "image": [f"b/{i}.jpg" for i in range(ROWS)]})
    if kind == "mixture":
        loader = arrowdl.Loader.mix(
            {"a": table},
            {"a": 1},
            ranks=arrowdl.Ranks(global_batch_size=4),
            framework="numpy",
            transform_arrow={"image": IMAGE},
            storage=storage,
        )
        check(dict(sorted(read(loader).items())))
        return
    source = table if kind == "table" else lambda: iter(table.to_batches(5))
    check(read(load(source, storage=storage)))
    with pytest.raises(ValueError, match="unless transform_arrow= reads the files of a column"):
        load(source, storage=storage, transform_arrow=None)


class Unsized(MemoryFileSystem):
    """A server that does not tell sizes."""

    protocol = "unsized"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        return {**super().info(path, **options), "size": None}


def test_files_whose_size_is_not_told() -> None:
    memory = Unsized()
    for i, data in enumerate(DATA):
        memory.pipe(f"/{i}.jpg", data)
    memory.pipe("/rows.parquet", dump([f"{i}.jpg" for i in range(ROWS)]))
    storage = arrowdl.Storage(filesystem=memory, retries=QUICK)
    table = pa.table({"id": range(ROWS), "image": [f"{i}.jpg" for i in range(ROWS)]})
    check(read(load(table, storage=storage)))
    with pytest.raises(ValueError, match="has no known size"):  # it is not read as a whole
        load("rows.parquet", storage=storage)


class Watched(MemoryFileSystem):
    """A store that calls a function before each file is read."""

    protocol = "watched"
    store: ClassVar[dict[str, Any]] = {}
    cachable = False

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self._call = call

    def cat_file(self, path: str, **options: Any) -> Any:
        self._call()
        return super().cat_file(path, **options)


def read_watched(call: Callable[[], None], batch_size: int, threads: int) -> None:
    memory = Watched(call)
    for i, data in enumerate(DATA):
        memory.pipe(f"/{i}.jpg", data)
    storage = arrowdl.Storage(filesystem=memory, retries=arrowdl.Retries(1))
    table = pa.table({"id": range(8), "image": [f"{i}.jpg" for i in range(8)]})
    step = {"image": arrowdl.Image((9, 8), backend="pillow", threads=threads)}
    options: dict[str, Any] = {"framework": "numpy", "storage": storage, "transform_arrow": step}
    check(read(arrowdl.Loader(table, batch_size, **options)), *range(8, ROWS))


def test_two_batches_are_made_at_a_time() -> None:
    barrier = threading.Barrier(2)
    read_watched(lambda: barrier.wait(30) and None, batch_size=1, threads=2)


@pytest.mark.parametrize("threads", [1, 3])
def test_two_batches_use_the_threads_that_are_named(threads: int) -> None:
    lock, running, most = threading.Lock(), [0], [0]
    both = threading.Event()

    def call() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if running[0] == threads:
                both.set()
        both.wait(30)
        time.sleep(0.01)  # in which another thread would begin
        with lock:
            running[0] -= 1

    read_watched(call, batch_size=4, threads=threads)
    assert most[0] == threads


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_comes_after_the_batches_before(prefetch: int) -> None:
    def make_batches() -> Any:
        for start in range(0, 8, 4):
            images = pa.array(DATA[start : start + 4])
            yield pa.record_batch({"id": pa.array(range(start, start + 4)), "image": images})
        raise KeyError("the source ended")

    batches = iter(load(make_batches, prefetch=prefetch))
    ids = [next(batches)["id"].tolist() for _ in range(2)]
    assert ids == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(KeyError, match="the source ended"):
        next(batches)
    table = pa.table({"id": range(ROWS), "image": [*DATA[:9], b"none", *DATA[10:]]})
    batches = iter(load(table, prefetch=prefetch))
    assert [next(batches)["id"].tolist() for _ in range(2)] == ids
    with pytest.raises(ValueError, match="row 1 of the batch"):
        next(batches)


def test_stores_are_opened_once_and_keep_nothing_of_files() -> None:
    opened: list[str] = []

    class Counted(Access):
        def make_store(self, url: str) -> Any:
            opened.append(url)
            return super().make_store(url)

    memory = fsspec.filesystem("memory")
    for i in range(50):
        memory.pipe(f"/kept-of-test/{i}", b"%d" % i)
    files = WholeFiles(Counted())
    barrier = threading.Barrier(4)

    def read_all() -> None:
        barrier.wait(60)
        for i in range(50):
            assert files.read(f"memory://kept-of-test/{i}") == b"%d" % i

    threads = [threading.Thread(target=read_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1
    (store,) = files._stores.values()
    assert not store.signed
    assert not store.revisions
