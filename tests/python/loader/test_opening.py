"""Opening sources: file objects, URLs, home directories, other files beside data, schemas."""

from __future__ import annotations

import contextlib
import http.server
import io
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
    loader = arrowdl.Loader(source, 4, **{"framework": "numpy", **options})
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


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows"])
@pytest.mark.parametrize("kind", FILE_OBJECTS)
def test_a_file_object_is_read_as_its_file(kind: str, suffix: str, tmp_path: Path) -> None:
    if suffix == "arrows" and kind == "open":
        pytest.skip("paths have the suffix of their format")
    path = write(tmp_path / f"a.{suffix}")
    with contextlib.ExitStack() as stack:
        made = FILE_OBJECTS[kind](path)
        for file in made if isinstance(made, list) else [made]:
            stack.enter_context(contextlib.closing(file))
            file.read(3)  # the position is no matter
        loader = arrowdl.Loader(made, 4, framework="numpy", columns=["id"], shuffle=True)
        assert sorted(i for batch in loader for i in batch["id"].tolist()) == list(range(10))
        assert read(made, columns=["id"], filter=ds.field("x") > 3) == [7, 8, 9]
        with pytest.raises(ValueError, match='columns: "z" is not one column'):
            read(made, columns=["z"])
    assert sorted(i for batch in loader for i in batch["id"].tolist()) == list(range(10))
    assert len(list(pickle.loads(pickle.dumps(loader)))) == 3


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


@pytest.mark.parametrize("scheme", ["s3", "gs", "abfs", "hf", "hdfs"])
def test_a_url_of_pyarrow_is_sent_to_pyarrow(scheme: str) -> None:
    with pytest.raises(ValueError, match=rf"a URL.*pyarrow.dataset.dataset\('{scheme}://b/x'"):
        arrowdl.Loader(f"{scheme}://b/x", 4)


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


def test_a_url_of_the_web_is_sent_to_what_works(server: str, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    url = f"{server}/a.parquet"
    with pytest.raises(ValueError, match=r"arrowdl.Loader\(urllib.request.urlopen\('http://1"):
        arrowdl.Loader(url, 4)
    with urllib.request.urlopen(url) as response:
        assert read(response) == list(range(10))


def test_a_url_of_fsspec_is_sent_to_what_works() -> None:
    import fsspec

    filesystem = fsspec.filesystem("memory")
    with filesystem.open("bucket/a.parquet", "wb") as file:
        pq.write_table(TABLE, file)
    with pytest.raises(ValueError, match="a URL") as caught:
        arrowdl.Loader("memory://bucket/a.parquet", 4)
    advice = str(caught.value).split("give it a dataset, ")[1]
    assert advice.startswith(
        "pyarrow.dataset.dataset('bucket/a.parquet', filesystem=fsspec.filesys"
    )
    assert read(eval(advice, {"pyarrow": pa, "fsspec": fsspec})) == list(range(10))


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


def test_a_near_miss_is_told_what_to_give(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    for source, advice in (
        (DatasetDict(train=TABLE, test=TABLE), r"splits 'train', 'test'.*dataset\['train'\]"),
        (pq.ParquetFile(path), r"the path.*file.read\(\)"),
        (pq.ParquetDataset(path), r"pyarrow.dataset.dataset\(source.files\)"),
        (path.read_bytes(), r"io.BytesIO\(data\)"),
        ({"x": [1, 2]}, r"pyarrow.table\(columns\)"),
        (3.5, "give paths, a pyarrow dataset, a table or frame, a file object"),
    ):
        with pytest.raises(TypeError, match=f"cannot read {type(source).__name__}: .*{advice}"):
            arrowdl.Loader(source, 4)
