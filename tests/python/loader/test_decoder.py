"""decoder="polars": the same batches, decoded by polars where it can."""

from __future__ import annotations

import multiprocessing
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._parquet import polars_decoder
from helpers.options import group

polars = pytest.importorskip("polars")

NUMBERS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64(), pa.bool_()),
]
ROWS, GROUP = 2_500, 1_000


def make_numbers(rows: int, has_nulls: bool) -> dict[str, pa.Array]:
    random = np.random.default_rng(3)
    columns = {}
    for type in NUMBERS:
        if pa.types.is_boolean(type):
            values: Any = random.random(rows) < 0.5
        elif pa.types.is_floating(type):
            values = random.standard_normal(rows)
            values[:4] = np.nan, np.inf, -np.inf, -0.0
        else:
            limits = np.iinfo(type.to_pandas_dtype())
            values = random.integers(limits.min, limits.max, rows, type.to_pandas_dtype(), True)
        mask = random.random(rows) < 0.3 if has_nulls else None
        columns[str(type)] = pa.array(values, pa.float64() if pa.types.is_floating(type) else type)
        columns[str(type)] = columns[str(type)].cast(type)
        if mask is not None:
            columns[str(type)] = pa.array(columns[str(type)].to_numpy(False), type, mask=mask)
    return columns


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the row groups that polars decoded, however small they are."""
    monkeypatch.setattr(polars_decoder, "_FEWEST_VALUES", 1)
    monkeypatch.setattr(polars_decoder, "_VALUES_OF_FOOTER", 0)
    paths: list[str] = []
    read = polars_decoder.PolarsDecoder.read

    def note(self: Any, path: str, start: int, rows: int) -> Any:
        found = read(self, path, start, rows)
        if found is not None:
            paths.append(path)
        return found

    monkeypatch.setattr(polars_decoder.PolarsDecoder, "read", note)
    return paths


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=GROUP, **options)
    return path


def read(source: Any, decoder: Any, batch_size: int = 300, **options: Any) -> list[dict[str, Any]]:
    options = {"framework": "numpy", **options}
    return list(arrowdl.Loader(source, batch_size, **group(decoder=decoder, **options)))


def assert_same(source: Any, **options: Any) -> None:
    made = read(source, "polars", **options)
    expected = read(source, "pyarrow", **options)
    assert len(made) == len(expected) > 0
    for ours, theirs in zip(made, expected, strict=True):
        assert list(ours) == list(theirs)
        for name, value in theirs.items():
            pairs = zip(_list_arrays(ours[name]), _list_arrays(value), strict=True)
            for own, other in pairs:
                np.testing.assert_array_equal(own, other)
                assert own.dtype == other.dtype


def _list_arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    return [part for part in (value if isinstance(value, tuple) else (value,)) if part is not None]


@pytest.mark.parametrize("has_nulls", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"shuffle": True, "buffer_size": 700, "splits": 4, "world_size": 2, "rank": 1},
        {"columns": ["bool", "float"], "drop_last": True},
        {"stack": {"x": ["float", "double"]}, "dtype": {"x": "float64"}},
    ],
)
def test_batches_are_those_of_pyarrow(
    options: dict[str, Any], has_nulls: bool, tmp_path: Path, decoded: list[str]
) -> None:
    path = write(tmp_path / "x.parquet", make_numbers(ROWS, has_nulls))
    nulls = {"nulls": "fill"} if has_nulls else {}
    assert_same(path, **options, **nulls)
    assert decoded


@pytest.mark.parametrize(
    "options",
    [
        {"data_page_version": "2.0"},
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "none", "use_dictionary": False, "data_page_size": 500},
        {"use_dictionary": False, "column_encoding": {"int32": "DELTA_BINARY_PACKED"}},
        {"use_dictionary": False, "column_encoding": {"float": "BYTE_STREAM_SPLIT"}},
        {"write_page_index": True, "write_statistics": False},
    ],
)
def test_encodings(options: dict[str, Any], tmp_path: Path, decoded: list[str]) -> None:
    columns = make_numbers(ROWS, has_nulls=True)
    path = write(tmp_path / "x.parquet", columns, **options)
    assert_same(path, nulls="fill")
    assert_same(path, nulls="nan", columns=["float", "double"])
    assert decoded


def test_pyarrow_decodes_other_columns(tmp_path: Path, decoded: list[str]) -> None:
    random = np.random.default_rng(5)
    texts = [f"row {i % 7}" for i in range(ROWS)]
    columns = {
        "text": pa.array(texts),
        "x": random.random(ROWS, np.float32),
        "word": pa.array(texts).dictionary_encode(),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(random.random(ROWS * 3)), 3),
        "half": random.random(ROWS).astype(np.float16),
        "when": pa.array(np.arange(ROWS), pa.timestamp("us")),
        "y": random.integers(0, 9, ROWS),
    }
    path = write(tmp_path / "x.parquet", columns)
    assert_same(path, columns=["vector", "x", "half", "y", "word"], shuffle=True)
    assert_same(path, ragged="offsets", columns=["y", "text", "when"])
    assert decoded


@pytest.mark.parametrize("name", ["a[1]*?.parquet", "key=5/x.parquet", "ä b#%.parquet"])
def test_names_of_files_are_no_patterns(name: str, tmp_path: Path, decoded: list[str]) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    write(path, {"x": np.arange(ROWS)})
    assert_same(ds.dataset(str(path)))
    assert set(decoded) == {str(path)}


def test_several_files_and_a_resume(tmp_path: Path, decoded: list[str]) -> None:
    paths = [
        write(tmp_path / f"{i}.parquet", {"x": np.arange(i * ROWS, (i + 1) * ROWS)})
        for i in range(3)
    ]
    loader = arrowdl.Loader(
        paths, 64, storage=arrowdl.Storage(decoder="polars"), shuffle=True, framework="numpy"
    )
    batches = iter(loader)
    first = [next(batches)["x"] for _ in range(20)]
    state = loader.state_dict()
    # States do not depend on the decoder.
    other = arrowdl.Loader(paths, 64, shuffle=True, framework="numpy")
    other.load_state_dict(state)
    rest = [batch["x"] for batch in other]
    assert sorted(np.concatenate(first + rest)) == list(range(3 * ROWS))
    np.testing.assert_array_equal(np.concatenate([b["x"] for b in batches]), np.concatenate(rest))
    assert len(set(decoded)) == 3


def test_what_a_training_writes_changes_no_file(tmp_path: Path, decoded: list[str]) -> None:
    options = {"use_dictionary": False, "compression": "none"}
    path = write(tmp_path / "x.parquet", {"x": np.arange(ROWS)}, **options)
    before = path.read_bytes()
    for shuffle in (False, True):
        for _ in range(2):
            loader = arrowdl.Loader(
                path,
                100,
                storage=arrowdl.Storage(decoder="polars"),
                shuffle=shuffle,
                framework="numpy",
                columns=["x"],
            )
            seen = []
            for batch in loader:
                seen += batch["x"].tolist()
                batch["x"][:] = -1
            assert sorted(seen) == list(range(ROWS))
    assert path.read_bytes() == before
    assert decoded


def test_a_file_that_changes_is_an_error(tmp_path: Path, decoded: list[str]) -> None:
    path = write(tmp_path / "x.parquet", {"x": np.arange(ROWS)})
    loader = arrowdl.Loader(
        path, 100, storage=arrowdl.Storage(decoder="polars"), framework="numpy", prefetch=0
    )
    list(loader)
    write(path, {"x": np.arange(ROWS) + 7, "y": np.arange(ROWS)})
    with pytest.raises(OSError, match=r"x\.parquet. has changed"):
        list(loader)


def test_a_file_that_changes_while_polars_opens_it_is_an_error(
    tmp_path: Path, decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.parquet", {"x": np.arange(ROWS)})
    read_first = polars_decoder.PolarsDecoder.read

    def replace_first(self: Any, *arguments: Any) -> Any:
        other = write(tmp_path / "new", {"x": np.arange(ROWS) + 7})
        other.replace(path)
        return read_first(self, *arguments)

    monkeypatch.setattr(polars_decoder.PolarsDecoder, "read", replace_first)
    batches = iter(
        arrowdl.Loader(path, GROUP, storage=arrowdl.Storage(decoder="polars"), framework="numpy")
    )
    with pytest.raises(OSError, match=r"x\.parquet. has changed"):
        next(batches)
    assert decoded


def test_damage_is_told_as_pyarrow_tells_it(tmp_path: Path, decoded: list[str]) -> None:
    path = write(tmp_path / "x.parquet", {"x": np.random.default_rng(1).random(ROWS)})
    group = pq.ParquetFile(path).metadata.row_group(1).column(0)
    data = bytearray(path.read_bytes())
    start = group.dictionary_page_offset or group.data_page_offset
    data[start : start + 200] = b"\xff" * 200
    path.write_bytes(data)
    errors = []
    for decoder in ("pyarrow", "polars"):
        with pytest.raises(OSError, match=r"x\.parquet|page|corrupt") as caught:
            read(path, decoder)
        errors.append((str(caught.value), caught.value.__notes__))
    assert errors[0] == errors[1]
    assert_same(path, on_error="skip", max_skipped_rows=GROUP)


def test_workers_decode_too(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", {"x": np.arange(ROWS)})
    loader = arrowdl.Loader(
        path, 100, storage=arrowdl.Storage(decoder="polars"), num_workers=1, framework="numpy"
    )
    with loader:
        assert sorted(np.concatenate([batch["x"] for batch in loader])) == list(range(ROWS))


def _read_in_child(loader: Any, queue: Any) -> None:
    queue.put([int(batch["x"].sum()) for batch in loader])


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning", "ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_decodes_by_pyarrow(tmp_path: Path, decoded: list[str]) -> None:
    path = write(tmp_path / "x.parquet", {"x": np.arange(ROWS)})
    loader = arrowdl.Loader(path, 500, storage=arrowdl.Storage(decoder="polars"), framework="numpy")
    expected = [int(batch["x"].sum()) for batch in loader]  # polars has threads now
    assert decoded
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_read_in_child, args=(loader, queue))
    child.start()
    try:
        assert queue.get(timeout=60) == expected
    finally:
        child.kill()
        child.join()


def test_small_and_huge_row_groups_are_pyarrows(
    tmp_path: Path, decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.parquet", {"x": np.arange(ROWS)})
    monkeypatch.setattr(polars_decoder, "_FEWEST_VALUES", 800)
    assert_same(path)
    assert len(decoded) == 2  # the last of three row groups has 500 rows
    monkeypatch.setattr(polars_decoder, "_MOST_BYTES", 1_000)
    assert_same(path)
    assert len(decoded) == 2
    monkeypatch.undo()
    assert_same(path)
    assert len(decoded) == 2


def test_a_filter_is_pyarrows(tmp_path: Path, decoded: list[str]) -> None:
    path = write(tmp_path / "x.parquet", {"x": np.arange(ROWS)})
    assert_same(path, filter=ds.field("x") > 1_200)
    assert not decoded


def test_names_of_columns_are_no_patterns(tmp_path: Path, decoded: list[str]) -> None:
    columns = {name: np.arange(ROWS) + i for i, name in enumerate(["*", "^x1$", "x1", "é \n"])}
    path = write(tmp_path / "x.parquet", {**columns, "text": ["a"] * ROWS})
    assert_same(path, columns=["*"])
    assert_same(path, columns=["^x1$", "x1"])
    assert_same(path, columns=["é \n", "*", "x1"])
    assert decoded


def test_masks_and_what_they_leave(tmp_path: Path, decoded: list[str]) -> None:
    path = write(tmp_path / "x.parquet", make_numbers(ROWS, has_nulls=True))
    made, expected = (read(path, decoder, nulls="mask") for decoder in ("polars", "pyarrow"))
    for ours, theirs in zip(made, expected, strict=True):
        for name, (values, valid) in theirs.items():
            np.testing.assert_array_equal(ours[name][1], valid)
            np.testing.assert_array_equal(ours[name][0][valid], values[valid])
    assert decoded


def test_a_failure_of_polars_is_logged_once(
    tmp_path: Path,
    decoded: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise TypeError("scan_parquet() got an unexpected keyword argument")

    path = write(tmp_path / "x.parquet", {"x": np.arange(ROWS)})
    monkeypatch.setattr(polars, "scan_parquet", fail)
    assert_same(path)
    assert not decoded
    (record,) = caplog.records
    assert "pyarrow decodes what polars cannot, such as rows of" in record.getMessage()
    assert "unexpected keyword argument" in record.getMessage()


def test_the_users_engine_is_not_asked(tmp_path: Path, decoded: list[str]) -> None:
    path = write(tmp_path / "x.parquet", {"x": np.arange(ROWS)})
    with polars.Config():
        polars.Config.set_engine_affinity("gpu")
        assert_same(path)
    assert decoded


def test_memory_of_polars_is_of_one_array(tmp_path: Path) -> None:
    """A shuffle permutes rows in it, and a training writes to it."""
    columns = {"x": np.arange(ROWS), "y": np.zeros(ROWS), "z": np.zeros(ROWS, np.int32)}
    options = {"use_dictionary": False, "compression": "none"}
    path = write(tmp_path / "x.parquet", columns, **options)
    decoder = polars_decoder.PolarsDecoder(pq.read_schema(path))
    read_twice = [decoder.read(str(path), GROUP, GROUP) for _ in range(2)]
    buffers = [
        column.chunk(0).buffers()[1]
        for found in read_twice
        if found is not None
        for column in found.values()
    ]
    ranges = sorted((buffer.address, buffer.address + buffer.size) for buffer in buffers)
    assert len(ranges) == 6
    assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
    if not Path("/proc/self/maps").exists():
        return
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access, _, _, inode = line.split()[:5]
        first, last = (int(number, 16) for number in span.split("-"))
        if any(first < end and start < last for start, end in ranges):
            assert (access, inode) == ("rw-p", "0")


def test_sources_without_parquet_files_are_refused(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2, 3]})
    path = tmp_path / "x.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    sources = [table, path, lambda: table.to_reader(), ds.dataset(path, format="ipc")]
    for source in sources:
        with pytest.raises(
            ValueError, match=r'Storage\.decoder="polars" decodes Parquet files, and this'
        ):
            arrowdl.Loader(source, 1, storage=arrowdl.Storage(decoder="polars"))


@pytest.mark.parametrize("decoder", ["duckdb", None, True])
def test_other_decoders_are_refused(decoder: Any) -> None:
    message = f"Storage.decoder={decoder!r}: expected 'pyarrow' or 'polars'"
    with pytest.raises(ValueError, match=re.escape(message)):
        arrowdl.Loader(pa.table({"x": [1]}), 1, storage=arrowdl.Storage(decoder=decoder))


def test_without_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.parquet", {"x": np.arange(10)})
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="pip install polars"):
        arrowdl.Loader(path, 1, storage=arrowdl.Storage(decoder="polars"))
