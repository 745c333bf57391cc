"""Opening sources: file objects, home directories, other files beside data, schemas."""

from __future__ import annotations

import contextlib
import http.server
import io
import os
import pickle
import tempfile
import threading
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._progress import OpeningLine
from arrowdl.loader._storage.threads import map_in_threads
from helpers.options import group
from helpers.processes import run_python
from helpers.stores import MemoryStore

TABLE = pa.table({"id": range(10), "x": [i / 2 for i in range(10)]})


def write(path: Path, table: pa.Table = TABLE) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    if path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(table, path, row_group_size=4)
    return path


def read(source: Any, name: str = "id", **options: Any) -> list[Any]:
    loader = arrowdl.Loader(source, 4, **group(**{"framework": "numpy", **options}))
    return [value for batch in loader for value in batch[name].tolist()]


# ---- file objects


FILE_OBJECTS: dict[str, Callable[[Path], Any]] = {
    "open": lambda path: open(path, "rb"),  # noqa: SIM115
    "BytesIO": lambda path: io.BytesIO(path.read_bytes()),
    "OSFile": lambda path: pa.OSFile(str(path)),
    "memory_map": lambda path: pa.memory_map(str(path)),
    "BufferReader": lambda path: pa.BufferReader(path.read_bytes()),
    "list": lambda path: [io.BytesIO(path.read_bytes())],
}


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [
        (kind, suffix)
        for kind in FILE_OBJECTS
        for suffix in ("parquet", "arrow", "arrows")
        if (kind, suffix) != ("open", "arrows")  # no filter of stream files that are mapped
    ],
)
def test_a_file_object_is_read_as_its_file(kind: str, suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a.{suffix}")
    with contextlib.ExitStack() as stack:
        made = FILE_OBJECTS[kind](path)
        for file in made if isinstance(made, list) else [made]:
            stack.enter_context(contextlib.closing(file))
            file.read(3)  # the position does not matter
        loader = arrowdl.Loader(made, 4, framework="numpy", columns=["id"], shuffle=True)
        assert sorted(i for batch in loader for i in batch["id"].tolist()) == list(range(10))
        assert read(made, columns=["id"], filter=ds.field("x") > 3) == [7, 8, 9]
        with pytest.raises(ValueError, match='columns: "z" is not one column'):
            read(made, columns=["z"])
    assert sorted(i for batch in loader for i in batch["id"].tolist()) == list(range(10))
    assert len(list(pickle.loads(pickle.dumps(loader)))) == 3


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        (".arrows", "arrows"),
        (".ARROWS", "arrows"),
        (".arrow", "arrows"),
        (".bin", "arrows"),
        (".bin", "arrow"),
        ("", "arrow"),
        ("", "parquet"),
        (".snappy", "parquet"),
    ],
)
def test_endings_and_contents(tmp_path: Path, ending: str, content: str) -> None:
    write(tmp_path / f"b.{content}").rename(tmp_path / f"a{ending}")
    for options in ({}, {"shuffle": True}):
        assert sorted(read(tmp_path, columns=["id"], **options)) == list(range(10))
        assert sorted(read(tmp_path / f"a{ending}", columns=["id"], **options)) == list(range(10))
    store = MemoryStore({f"d/a{ending}": (tmp_path / f"a{ending}").read_bytes()})
    if content != "arrows":
        assert read("d", columns=["id"], filesystem=store.open()) == list(range(10))
        return
    with pytest.raises(ValueError, match=r"give a function that makes its stream"):
        read("d", columns=["id"], filesystem=store.open())


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"a,b\n1,2\n", ""),
        (b"\x1f\x8b\x08\0\0\0\0", "as gzip does"),
        (b"Obj\x01avro.schema", "as Avro does"),
        (b"FEA1\0\0\0\0", "as Feather of version 1 does"),
    ],
)
def test_a_file_of_another_format(tmp_path: Path, start: bytes, what: str) -> None:
    (tmp_path / "x.dat").write_bytes(start)
    write(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=f"x.dat' starts with .*{what}.*its streams") as caught:
        read(tmp_path)
    assert "(.arrows)" in str(caught.value)
    loader = arrowdl.Loader(
        tmp_path, 10, framework="numpy", columns=["id"], on_error=arrowdl.Skip(100)
    )
    assert [i for batch in loader for i in batch["id"].tolist()] == list(range(10))
    store = MemoryStore({own.name: own.read_bytes() for own in tmp_path.iterdir()})
    with pytest.raises(ValueError, match=r"x\.dat' starts with"):
        read(["x.dat", "a.parquet"], filesystem=store.open())


def test_an_ending_is_looked_at_once(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    store = MemoryStore({f"d/{i}.x": data for i in range(50)})
    looked = MemoryStore({f"d/{i}.parquet": data for i in range(50)})
    for own in (store, looked):
        arrowdl.Loader("d", 10, storage=arrowdl.Storage(filesystem=own.open()))
    assert store.count("read") <= looked.count("read") + 1


def test_file_objects_of_several_files(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.parquet"), write(tmp_path / "b.arrow", TABLE.select(["id"]))
    data = [io.BytesIO(first.read_bytes()), io.BytesIO(second.read_bytes())]
    assert read(data, columns=["id"]) == [*range(10), *range(10)]
    with open(first, "rb") as file:
        assert read([file, file]) == [*range(10), *range(10)]


def test_a_temporary_file_that_was_not_flushed() -> None:
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        pq.write_table(TABLE, file)
        assert read(file) == list(range(10))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (io.BytesIO(b"a,b\n1,2\n"), "neither Parquet nor Arrow IPC: it starts with b'a,b"),
        (io.BytesIO(b""), "neither Parquet nor Arrow IPC"),
        (io.StringIO("PAR1"), 'is in text mode: open it with mode "rb"'),
    ],
)
def test_a_file_object_of_something_else(file: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        arrowdl.Loader(file, 4)


def test_a_damaged_file_object_is_named() -> None:
    with pytest.raises(pa.ArrowInvalid) as caught:
        arrowdl.Loader(io.BytesIO(b"PAR1, and no more"), 4)
    assert "<_io.BytesIO object" in caught.value.__notes__[-1]


# ---- URLs and paths


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *args: Any) -> None:
            """Quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def test_a_response_of_the_web_is_read_into_memory(server: str, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    with urllib.request.urlopen(f"{server}/a.parquet") as response:
        assert read(response) == list(range(10))


def test_a_url_of_a_local_file_is_its_path(tmp_path: Path) -> None:
    path = write(tmp_path / "with a space.parquet")
    assert read(path.as_uri()) == list(range(10))


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "data/a.parquet")
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("~/data", "~/data/*.parquet", Path("~/data/a.parquet")):
        assert read(given) == list(range(10))
    with pytest.raises(FileNotFoundError, match=f"no file at '{tmp_path}/nothing'"):
        read("~/nothing")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write(tmp_path / "here/~/a.parquet", TABLE.slice(0, 3))
    assert read("~/a.parquet") == [0, 1, 2]


# ---- other files beside data


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ""])
def test_a_readme_beside_the_data_is_skipped_with_a_warning(suffix: str, tmp_path: Path) -> None:
    write(tmp_path / f"part-0{suffix}")
    for name in ("README.md", "dataset_info.json", "LICENSE"):
        (tmp_path / name).write_text("# text")
    for given in (str(tmp_path), f"{tmp_path}/*"):
        with pytest.warns(UserWarning, match="skips .*LICENSE' and 2 other files") as caught:
            assert read(given) == list(range(10))
        assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(f"{tmp_path}/part*") == list(range(10))


def test_data_by_its_content_is_not_skipped(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet").rename(tmp_path / "a.txt")
    write(tmp_path / "b.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(tmp_path) == [*range(10), *range(10)]


@pytest.mark.parametrize("name", ["README.md", "b.csv", "b.bin"])
def test_a_file_that_is_not_skipped_is_named_in_the_error(name: str, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    path = tmp_path / name
    path.write_text("x,y,z and more text")
    given = [tmp_path / "a.parquet", path] if name == "README.md" else tmp_path
    with pytest.raises(ValueError, match=f"'{path}'"):
        read(given)


# ---- sources that are almost right


class DatasetDict(dict[str, Any]):
    """As that of Hugging Face."""


DatasetDict.__module__ = "datasets.dataset_dict"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")
@pytest.mark.parametrize("name", ["b.parquet", "b.arrow", "b"])
def test_a_pipe_is_no_file(name: str, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    pipe = tmp_path / name
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR)  # without an end to write, opening it would wait
    try:
        os.write(end, b"PAR1PAR1")
        assert read(str(tmp_path / "*")) == read(str(tmp_path)) == list(range(10))
        with pytest.raises(FileNotFoundError, match="no file at "):
            read(str(pipe))
    finally:
        os.close(end)


def test_a_near_miss_is_told_what_to_give(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    for source, advice in (
        (DatasetDict(train=TABLE, test=TABLE), r"splits 'train', 'test'.*dataset\['train'\]"),
        (pq.ParquetFile(path), r"the path.*file.read\(\)"),
        (pq.ParquetDataset(path), r"pyarrow.dataset.dataset\(source.files\)"),
        (path.read_bytes(), r"io.BytesIO\(data\)"),
        ({"x": [1, 2]}, r"pyarrow.table\(columns\)"),
        ([str(path), TABLE], r"a list has paths, or record batches and tables: Loader\.mix"),
        ([1, 2], r"a list has paths, or record batches and tables"),
        (3.5, "give paths, a pyarrow dataset, a table or frame, a file object"),
    ):
        with pytest.raises(
            TypeError, match=rf"cannot read [\w.]*{type(source).__name__}: .*{advice}"
        ):
            arrowdl.Loader(source, 4)


# ---- columns that are not read


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("memory_map", [True, False])
def test_types_that_differ_in_a_column_that_is_not_read(
    memory_map: bool, suffix: str, tmp_path: Path
) -> None:
    drifting = [pa.array([1, 2]), pa.array(["a", "b"]), pa.array([[1], [2]])]
    for i, z in enumerate(drifting):
        write(tmp_path / f"{i}{suffix}", pa.table({"id": [2 * i, 2 * i + 1], "z": z, "y": [i, i]}))
    options: dict[str, Any] = {"memory_map": memory_map}
    for columns in (["id"], ["y", "id"]):
        assert read(tmp_path, columns=columns, **options) == [0, 1, 2, 3, 4, 5]
        assert read(tmp_path, columns=columns, num_workers=1, **options) == [0, 1, 2, 3, 4, 5]
    assert read(tmp_path, columns=["id"], filter=ds.field("y") > 0, **options) == [2, 3, 4, 5]
    for needing in ({}, {"columns": ["id", "z"]}, {"columns": ["id"], "filter": ds.field("z") > 1}):
        with pytest.raises(ValueError, match=rf'1{suffix}.*"z" is string and int64.*columns='):
            read(tmp_path, **needing, **options)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_state_does_not_depend_on_the_columns(suffix: str, tmp_path: Path) -> None:
    for i in range(3):
        write(tmp_path / f"{i}{suffix}")
    (first, second) = (arrowdl.Loader(tmp_path, 4, columns=columns) for columns in (None, ["x"]))
    next(iter(first))
    second.load_state_dict(first.state_dict())


# ---- footers


FILESYSTEM = """
import os, signal, sys, tempfile, threading
import arrowdl
import pyarrow as pa, pyarrow.dataset as ds, pyarrow.fs, pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

opening = None

class Filesystem(LocalFileSystem):
    def open(self, path, *args, **kwargs):
        if opening:
            opening(path)
        return super().open(path, *args, **kwargs)

filesystem = pa.fs.PyFileSystem(pa.fs.FSSpecHandler(Filesystem()))
folder = tempfile.TemporaryDirectory()
paths = [f"{folder.name}/{i:02}.parquet" for i in range(40)]
for path in paths:
    pq.write_table(pa.table({"x": range(4)}), path, row_group_size=2)
dataset = ds.dataset(paths, filesystem=filesystem)

def end():
    sys.stdout.flush()
    folder.cleanup()
    os._exit(0)  # pyarrow's threads close files, for which they would wait for the interpreter
"""

TOGETHER = """
barrier = threading.Barrier(8, timeout=60)  # 40 files are 5 times 8
def opening(path):
    barrier.wait()
loader = arrowdl.Loader(dataset, 4, framework="numpy")
opening = None
print(sum(len(batch["x"]) for batch in loader))

# The first of several errors, whatever ends first.
later = threading.Event()
def opening(path):
    if path.endswith("07.parquet"):
        later.set()
        raise OSError("seven")
    if path.endswith("03.parquet"):
        later.wait()
        raise OSError("three")
try:
    arrowdl.Loader(ds.dataset(paths, filesystem=filesystem), 4)
except OSError as error:
    print(error, "03.parquet" in error.__notes__[-1])
end()
"""

INTERRUPT = """
started = []
gate = threading.Event()
def opening(path):
    started.append(path)
    if len(started) == 2:
        os.kill(os.getpid(), signal.SIGINT)
    gate.wait()
try:
    arrowdl.Loader(dataset, 4)
except KeyboardInterrupt:
    print("interrupted")
gate.set()
for thread in threading.enumerate():
    if thread.name == "arrowdl-open":
        thread.join(60)
print(len(started) <= 16)  # those that were running
end()
"""


AHEAD = """
loader = arrowdl.Loader(dataset, 4, framework="numpy")
for options in ({}, {"shuffle": True}):
    loader = arrowdl.Loader(dataset, 4, framework="numpy", **options)
    barrier = threading.Barrier(6, timeout=60)
    opened = []
    def opening(path):
        opened.append(path)
        if len(opened) <= 6:
            barrier.wait()
    print(sum(len(batch["x"]) for batch in loader))
    opening = None
end()
"""


def test_files_of_a_slow_file_system_are_opened_ahead() -> None:
    """pyarrow opens those of one scan one after another, if the file system is in Python."""
    assert run_python(FILESYSTEM + AHEAD).splitlines() == ["160", "160"]


def test_several_threads_read_footers() -> None:
    assert run_python(FILESYSTEM + TOGETHER).splitlines() == ["160", "three True"]


def test_reading_footers_can_be_interrupted() -> None:
    assert run_python(FILESYSTEM + INTERRUPT).splitlines() == ["interrupted", "True"]


def test_calls_in_threads_have_the_order_of_their_items() -> None:
    shown: list[int] = []
    assert map_in_threads(lambda i: -i, range(100), 4, shown.append) == [-i for i in range(100)]
    assert shown == list(range(1, 101))
    assert map_in_threads(str, [], 4) == []


def test_no_call_begins_after_an_error() -> None:
    gate = threading.Event()
    begun: list[threading.Thread] = []

    def fail(i: int) -> None:
        begun.append(threading.current_thread())
        if i:
            gate.wait()
        raise TimeoutError(f"call {i}")

    with pytest.raises(TimeoutError, match="call 0"):
        map_in_threads(fail, range(100), 1)
    gate.set()
    begun[0].join()
    assert len(begun) <= 2


def test_a_system_without_room_for_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def start_one(thread: threading.Thread) -> None:
        if started:
            gate.set()
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    assert map_in_threads(lambda i: gate.wait() and i, [1, 2, 3], 4) == [1, 2, 3]
    with pytest.raises(RuntimeError, match="can't start"):
        map_in_threads(str, [1], 4)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("out", [Terminal(), io.StringIO()])
def test_a_line_shows_where_opening_takes_seconds(out: io.StringIO) -> None:
    times = iter([0.0, 1.0, 2.5, 2.5, 2.6, 5.0, 5.0, 6.0, 6.0])
    line = OpeningLine("reads the footers", 100, out, lambda: next(times))
    for done in (1, 2, 3, 50, 100):
        line(done)
    shown = ["arrowdl.Loader reads the footers: 2 of 100 files"]
    if out.isatty():
        shown.append("arrowdl.Loader reads the footers: 50 of 100 files")
    shown.append("arrowdl.Loader reads the footers: 100 of 100 files")
    expected = "".join(f"\r{text}" for text in shown) + "\n"
    assert out.getvalue() == (expected if out.isatty() else "".join(f"{text}\n" for text in shown))


def test_no_line_shows_where_opening_is_fast() -> None:
    out = io.StringIO()
    line = OpeningLine("reads the footers", 2, out, lambda: 0.0)
    line(1)
    line(2)
    assert out.getvalue() == ""
