"""Footers that are well-formed, and whose columns pyarrow cannot show: it would end the process."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl._commands.inspection import inspect_source
from arrowdl.loader._storage import handlers
from arrowdl.loader._storage.readers import Stamp

FILES, ROWS = 3, 10
# A column is required by the schema, and its histogram has a number for nulls; a codec of no name.
CHANGES = {
    "histogram": (b"\x25\x02\x18\x02id", b"\x25\x00\x18\x02id"),
    "codec": (b"\x19\x18\x02id\x15\x02", b"\x19\x18\x02id\x15\x20"),
}
WRITES_HISTOGRAMS = int(pa.__version__.split(".")[0]) >= 19
GREAT = ds.field("id") >= 0


@pytest.fixture(params=CHANGES)
def damage(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    if request.param == "histogram" and not WRITES_HISTOGRAMS:
        pytest.skip("pyarrow writes no histograms")
    before, after = CHANGES[request.param]

    def change(path: Path) -> None:
        status, data = path.stat(), path.read_bytes()
        assert data.count(before) == 1
        path.write_bytes(data.replace(before, after))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return change


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "files" / f"{i}.parquet" for i in range(FILES)]
    paths[0].parent.mkdir()
    for i, path in enumerate(paths):
        ids = range(ROWS * i, ROWS * (i + 1))
        pq.write_table(pa.table({"x": ids, "id": ids}), path)
    return paths


def read(source: Any, **options: Any) -> list[int]:
    with arrowdl.Loader(source, 4, framework="numpy", columns=["id"], **options) as loader:
        return [int(i) for batch in loader for i in batch["id"][: loader.valid_rows]]


def open_known(folder: Path) -> ds.Dataset:
    dataset = ds.dataset(folder)
    dataset.count_rows()
    return dataset


def open_several(folder: Path) -> ds.Dataset:
    return ds.dataset([ds.dataset(path) for path in sorted(folder.iterdir())])


def open_keys(folder: Path) -> Path:
    for path in folder.iterdir():
        (folder / f"x={path.stem}").mkdir()
        path.rename(folder / f"x={path.stem}" / path.name)
    return folder


WAYS: dict[str, Callable[[Path], Any]] = {
    "paths": str,
    "dataset": ds.dataset,
    "dataset that has read the footers": open_known,
    "dataset of several": open_several,
    "folders that are a column": open_keys,
    "file objects": lambda folder: [io.BytesIO(p.read_bytes()) for p in sorted(folder.iterdir())],
}


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"filter": GREAT}], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_the_file_is_named(
    paths: list[Path], damage: Callable[[Path], None], way: str, options: Any
) -> None:
    damage(paths[1])
    name = "BytesIO" if way == "file objects" else r"1\.parquet"
    with pytest.raises(OSError, match=f"footer of .*{name}.* is damaged"):
        read(WAYS[way](paths[0].parent), **options)


@pytest.mark.parametrize("way", ["paths", "dataset", "folders that are a column"])
def test_the_file_is_skipped(paths: list[Path], damage: Callable[[Path], None], way: str) -> None:
    damage(paths[1])
    ids = read(WAYS[way](paths[0].parent), on_error=arrowdl.Skip(ROWS))
    assert ids == [*range(ROWS), *range(2 * ROWS, 3 * ROWS)]


def test_inspect_names_the_file(paths: list[Path], damage: Callable[[Path], None]) -> None:
    damage(paths[1])
    with pytest.raises(OSError, match=r"footer of .*1\.parquet.* is damaged"):
        inspect_source(str(paths[0].parent), "numpy")


@pytest.mark.parametrize("options", [{}, {"filter": GREAT}], ids=str)
def test_a_file_of_a_plan_is_named(
    paths: list[Path], damage: Callable[[Path], None], options: Any
) -> None:
    folder = str(paths[0].parent)
    plan = arrowdl.Loader(folder, 4, columns=["id"]).plan()
    damage(paths[1])
    with pytest.raises(OSError, match=r"footer of .*1\.parquet.* is damaged"):
        read(folder, storage=arrowdl.Storage(plan=plan), **options)


def test_a_metadata_file_is_checked(paths: list[Path], damage: Callable[[Path], None]) -> None:
    whole = paths[1].read_bytes()
    damage(paths[1])
    metadata = pq.read_metadata(paths[1])
    metadata.set_file_path("1.parquet")
    metadata.write_metadata_file(paths[0].with_name("_metadata"))
    paths[1].write_bytes(whole)
    dataset = ds.parquet_dataset(paths[0].with_name("_metadata"))
    with pytest.raises(OSError, match=r"footer of .*1\.parquet.* is damaged"):
        read(dataset)


@pytest.mark.parametrize("size", [0, 7, 8, 500])
@pytest.mark.parametrize("options", [{}, {"filter": GREAT}], ids=str)
def test_a_file_that_was_cut_is_named(paths: list[Path], size: int, options: Any) -> None:
    dataset = open_known(paths[0].parent)
    paths[1].write_bytes(paths[1].read_bytes()[:size])
    with pytest.raises(OSError, match=r"1\.parquet"):
        read(dataset, **options)


@pytest.mark.parametrize(
    ("before", "after"), [(b"\x18\x02id", b"\x18\x02\xffd"), (b"/////", b"????/")]
)
def test_an_error_of_pyarrow_names_the_file(paths: list[Path], before: bytes, after: bytes) -> None:
    paths[1].write_bytes(paths[1].read_bytes().replace(before, after))
    with pytest.raises((OSError, ValueError), match=r"1\.parquet"):
        read(paths[0].parent)


@pytest.fixture
def encrypted(tmp_path: Path) -> tuple[Path, ds.ParquetFileFormat]:
    """A file whose footer can be read without keys, and what reads it with them."""
    encryption = pytest.importorskip("pyarrow.parquet.encryption")
    pytest.importorskip("pyarrow._dataset_parquet_encryption")

    class Client(encryption.KmsClient):  # type: ignore[misc, name-defined]
        def wrap_key(self, key: bytes, name: str) -> bytes:
            return base64.b64encode(key)

        def unwrap_key(self, key: bytes, name: str) -> bytes:
            return base64.b64decode(key)

    factory = encryption.CryptoFactory(lambda config: Client())
    connection = encryption.KmsConnectionConfig()
    chosen = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["id"]}, plaintext_footer=True
    )
    table = pa.table({"id": range(ROWS), "x": range(ROWS)})
    properties = factory.file_encryption_properties(connection, chosen)
    with pq.ParquetWriter(
        tmp_path / "a.parquet", table.schema, encryption_properties=properties
    ) as writer:
        writer.write_table(table)
    keys = ds.ParquetDecryptionConfig(factory, connection, encryption.DecryptionConfiguration())
    options = ds.ParquetFragmentScanOptions(decryption_config=keys)
    return tmp_path / "a.parquet", ds.ParquetFileFormat(default_fragment_scan_options=options)


@pytest.mark.parametrize("make", [str, ds.dataset])
def test_encrypted_columns_need_keys(
    encrypted: tuple[Path, ds.ParquetFileFormat], make: Callable[[Path], Any]
) -> None:
    path, format = encrypted
    with pytest.raises(OSError, match="Cannot decrypt"):
        read(make(path))
    with pytest.raises(OSError, match="columns are encrypted"):
        read(io.BytesIO(path.read_bytes()))
    dataset = ds.dataset(path, format=format)
    assert read(dataset) == list(range(ROWS))
    assert [fragment.metadata.num_rows for fragment in dataset.get_fragments()] == [ROWS]
    assert read(dataset) == list(range(ROWS))


@pytest.mark.parametrize("is_several", [False, True])
def test_an_encrypted_file_that_is_written_again(
    encrypted: tuple[Path, ds.ParquetFileFormat], is_several: bool
) -> None:
    path, _ = encrypted
    dataset = ds.dataset(path)
    dataset.count_rows()
    pq.write_table(pa.table({"id": range(ROWS), "x": range(ROWS)}), path)
    with pytest.raises(OSError, match=r"footer of .*a\.parquet.* is damaged, or"):
        read(ds.dataset([dataset]) if is_several else dataset)


def test_an_encrypted_object_of_s3_is_refused(
    encrypted: tuple[Path, ds.ParquetFileFormat],
) -> None:
    path, _ = encrypted
    with pytest.raises(OSError, match=r"columns of .*a\.parquet.* are encrypted"):
        handlers._read_s3_footer(fs.LocalFileSystem(), str(path), 300, Stamp(path.stat().st_size))
