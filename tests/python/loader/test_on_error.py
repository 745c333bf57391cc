"""`Loader(on_error="skip")`: real faults, and what is left of the epoch."""

from __future__ import annotations

import copy
import errno
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._skip.numbered import NumberedSource
from arrowdl.loader._skip.numbers import MISSING, read_numbers
from arrowdl.loader._skipped import CANNOT_READ, NUMBER, can_skip
from arrowdl.loader._sources.base import IndexedSource
from helpers.faults import flip_value, open_checked, truncate, write_checked
from helpers.options import group
from helpers.ranks import Ranks

Batches = list[dict[str, Any]]
MANY = 10**9
ADVICE = 'on_error="skip" goes on'


def make_table(start: int, rows: int = 100) -> pa.Table:
    ids = pa.array(range(start, start + rows), pa.int64())
    return pa.table({"id": ids, "text": [f"row {i}" for i in range(rows)]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of four row groups of 25 rows, with checksums."""
    for i in range(3):
        write_checked(tmp_path / f"{i}.parquet", make_table(100 * i), 25)
    return tmp_path


def open_skipping(source: Any, batch_size: int = 10, **options: Any) -> arrowdl.Loader:
    options = {"framework": "numpy", "on_error": "skip", "max_skipped_rows": MANY} | options
    return arrowdl.Loader(source, batch_size, **group(**options))


def read(loader: Any) -> list[list[int]]:
    return [batch["id"][: loader.valid_rows].tolist() for batch in loader]


def flatten(steps: list[list[int]]) -> list[int]:
    return [i for step in steps for i in step]


def all_but(*missing: range) -> list[int]:
    return [i for i in range(300) if not any(i in part for part in missing)]


def read_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [
        record.getMessage()
        for record in caplog.records
        if (record.name, record.levelno) == ("arrowdl.loader", logging.WARNING)
    ]
    caplog.clear()
    return found


# ---- what is skipped


def test_the_first_error_is_raised_by_default(folder: Path) -> None:
    flip_value(folder / "1.parquet", 2)
    for options in ({}, {"shuffle": True}, {"num_workers": 1}, {"num_threads": 2}):
        loader = arrowdl.Loader(open_checked(folder), 10, framework="numpy", **group(**options))
        with pytest.raises(OSError, match="CRC checksum verification failed") as caught:
            list(loader)
        assert [note for note in caught.value.__notes__ if ADVICE in note] == [
            f"{ADVICE} without what cannot be read, up to Skip(max_rows=...) (by default a "
            "tenth of the rows), and logs it"
        ]


def test_only_damaged_files_are_said_to_be_skipped(folder: Path) -> None:
    def fail(source: Any, **options: Any) -> str:
        with pytest.raises(Exception) as caught:  # noqa: PT011
            list(arrowdl.Loader(source, 10, **group(**{"framework": "numpy", **options})))
        return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])

    above = ds.field("id") > 20
    cast = ds.field("text").cast(pa.int32()) > 3  # of a text that is not a number
    for filter in (ds.field("no") > 3, ds.field("text") > 3, cast):
        assert ADVICE not in fail(folder, filter=filter)
    assert ADVICE not in fail([*map(str, folder.glob("*")), "missing.parquet"])
    assert ADVICE not in fail(folder, transform=fail_on(35))
    flip_value(folder / "1.parquet", 2)
    counted = fail(open_checked(folder), filter=above)
    assert counted.count(ADVICE) == counted.count(f"{folder}/1.parquet") == 1
    skipping = {"on_error": "skip", "max_skipped_rows": 10}
    for options in ({}, {"filter": above}):
        text = fail(open_checked(folder), **skipping, **options)
        assert "Skip.max_rows=10 allows no more" in text
        assert ADVICE not in text
    mixed = arrowdl.Loader.mix(
        {"a": open_checked(folder)},
        weights={"a": 1},
        framework="numpy",
        **group(global_batch_size=10, **skipping),
    )
    with pytest.raises(OSError, match="CRC checksum") as caught:
        list(mixed)
    assert ADVICE not in str(caught.value.__notes__)
    with pytest.raises(OSError, match="CRC checksum") as caught:
        arrowdl.Loader(open_checked(folder), 10).map_dataset()[160]
    assert ADVICE not in str(caught.value.__notes__), "rows that are asked for cannot be skipped"


@pytest.mark.parametrize("kind", ["parquet", "arrow", "dataset", "decoder"])
@pytest.mark.parametrize(
    "filter",
    [
        ds.field("text").cast(pa.int32()) > 3,
        pc.divide(pc.scalar(1), ds.field("id") - 130) > 0,
        pc.match_substring_regex(ds.field("text"), "("),
    ],
    ids=["cast", "division", "regex"],
)
def test_a_filter_that_fails_is_not_skipped(folder: Path, kind: str, filter: Any) -> None:
    source: Any = folder
    if kind == "arrow":
        source = str(folder / "*.arrow")
        with pa.ipc.new_file(folder / "0.arrow", make_table(0).schema) as writer:
            writer.write_table(make_table(0, 200))
    elif kind == "dataset":
        source = ds.dataset(folder)
    extra = {"decoder": "polars"} if kind == "decoder" else {}
    for options in ({}, {"on_error": "skip", "max_skipped_rows": MANY}):
        with pytest.raises(ValueError, match=r"^filter=.* cannot be evaluated on the rows") as got:
            list(
                arrowdl.Loader(
                    source, 10, framework="numpy", filter=filter, **group(**options, **extra)
                )
            )
        assert str(folder) in str(got.value.__notes__)
        assert ADVICE not in str(got.value.__notes__)
        assert CANNOT_READ not in str(got.value.__notes__)


def test_a_damaged_file_is_skipped_beside_a_filter(folder: Path) -> None:
    flip_value(folder / "1.parquet", 2)
    filter = pc.divide(pc.scalar(1000), ds.field("id") + 1) >= 4
    loader = open_skipping(open_checked(folder), filter=filter)
    assert flatten(read(loader)) == [i for i in all_but(range(150, 175)) if i < 250]


@pytest.mark.parametrize("column", ["id", "text"])
def test_a_type_that_does_not_suit_is_not_skipped(folder: Path, column: str) -> None:
    schema = make_table(0).schema
    place = schema.get_field_index(column)
    source = ds.dataset(folder, schema=schema.set(place, pa.field(column, pa.int8())))
    for options in ({}, {"on_error": "skip", "max_skipped_rows": MANY}, {"columns": [column]}):
        with pytest.raises(ValueError, match=f'"{column}" of .* fit int8') as caught:
            list(arrowdl.Loader(source, 10, framework="numpy", **group(**options)))
        assert ADVICE not in str(getattr(caught.value, "__notes__", ""))
    flip_value(folder / "1.parquet", 2)
    wide = ds.dataset(
        folder,
        schema=schema.set(0, pa.field("id", pa.int32())),
        format=open_checked(folder).format,
    )
    assert flatten(read(open_skipping(wide))) == all_but(range(150, 175))


def overwrite_footer(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-200] + b"\xff" * 192 + data[-8:])


@pytest.mark.parametrize("damage", [truncate, overwrite_footer])
@pytest.mark.parametrize("number", [0, 1])
def test_a_damaged_footer_is_said_to_be_skipped(
    folder: Path, number: int, damage: Callable[[Path], None]
) -> None:
    schema = make_table(0).schema
    damage(folder / f"{number}.parquet")
    for source in (folder, ds.dataset(sorted(map(str, folder.glob("*"))), schema=schema)):
        with pytest.raises((ValueError, OSError), match=r"magic bytes|thrift") as caught:
            arrowdl.Loader(source, 10)
        assert ADVICE in str(caught.value.__notes__)
        assert len(open_skipping(source)) == 20
    with pa.ipc.new_file(folder / "0.arrow", schema) as writer:
        writer.write_table(make_table(0))
    (folder / "1.arrow").write_bytes(b"x" * 40)
    with pytest.raises(ValueError, match="not a whole one") as raised:
        arrowdl.Loader(str(folder / "*.arrow"), 10)
    assert ADVICE in str(raised.value.__notes__)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prefetch": 0},
        {"shuffle": True, "buffer_size": 60},
        {"splits": 5},
        {"splits": 2, "shuffle": True},
        {"pad_last": True},
        {"columns": ["id"]},
        {"transform": dict, "num_threads": 2},
    ],
)
def test_a_row_group_with_a_bad_checksum(
    folder: Path, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    flip_value(folder / "1.parquet", 2)
    loader = open_skipping(open_checked(folder), **options)
    for epoch in range(2):
        steps = read(loader)
        assert len(steps) == len(loader) == 30
        assert sorted(flatten(steps)) == all_but(range(150, 175))
        (message,) = read_messages(caplog)
        path = str(folder / "1.parquet")
        assert message.startswith(f"skipped rows 50 to 74 of {path!r}, row group 2: OSError: ")
        stats = loader.stats()
        assert (stats.rows, stats.skipped_rows) == (275 * (epoch + 1), 25 * (epoch + 1))
        assert len(stats.skipped) == epoch + 1
        entry = stats.skipped[-1]
        assert (entry.path, entry.ranges, entry.row_group) == (path, ((50, 75),), 2)
    assert "50 skipped" in str(stats)


def test_batches_without_a_row_repeat_one(folder: Path) -> None:
    flip_value(folder / "0.parquet", 0)
    loader = open_skipping(open_checked(folder))
    batches = [(loader.valid_rows, batch["id"].tolist()) for batch in loader]
    assert [valid for valid, _ in batches[:4]] == [0, 0, 5, 10]
    assert batches[0] == batches[1]
    assert batches[0][1][0] in all_but(range(25)), "a row that can be read"
    assert batches[2] == (5, [25, 26, 27, 28, 29])
    assert loader.stats().padding_rows == 2


def test_padded_batches_keep_their_shape(folder: Path) -> None:
    flip_value(folder / "0.parquet", 0)
    loader = open_skipping(open_checked(folder), pad_last=True)
    batches = list(loader)
    assert {len(batch["id"]) for batch in batches} == {10}
    own = [batch["id"][batch["valid"]].tolist() for batch in batches]
    assert [len(ids) for ids in own[:4]] == [0, 0, 5, 10]
    assert flatten(own) == all_but(range(25))


def test_a_file_that_is_removed_or_rewritten(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loader = open_skipping(folder)
    assert flatten(read(loader)) == all_but()
    (folder / "0.parquet").unlink()
    write_checked(folder / "2.parquet", make_table(7_000), 50)
    assert flatten(read(loader)) == list(range(100, 200))
    messages = read_messages(caplog)
    assert len(messages) == 8, "each row group"
    assert "0.parquet', row group 0: FileNotFoundError" in messages[0]
    assert "has changed since this Loader was made" in messages[-1]
    assert loader.stats().skipped_rows == 200


def test_a_file_without_a_footer_is_left_out(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sound = arrowdl.Loader(folder, 10, framework="numpy")
    truncate(folder / "1.parquet")
    with pytest.raises((OSError, ValueError)):
        arrowdl.Loader(folder, 10)
    dataset = ds.dataset(sorted(map(str, folder.glob("*"))), schema=make_table(0).schema)
    for source in (folder, dataset):
        loader = open_skipping(source)
        (message,) = read_messages(caplog)
        assert message.startswith(f"skipped all of {str(folder / '1.parquet')!r}: ")
        (entry,) = loader.stats().skipped
        assert (entry.path, entry.ranges) == (str(folder / "1.parquet"), ())
        for other in (loader.map(dict), loader.filter(len).map(dict), copy.copy(loader)):
            assert other.stats().skipped == (entry,), "it lacks the file as well"
        assert read_messages(caplog) == []
        assert len(loader) == 20
        assert flatten(read(loader)) == all_but(range(100, 200))
        with pytest.raises(ValueError, match="another dataset"):
            loader.load_state_dict(sound.state_dict())
    with pytest.raises(OSError, match="1 files and 0 row groups cannot be opened, about 100 rows"):
        arrowdl.Loader(folder, 10, on_error="skip")
    for i in (0, 2):
        truncate(folder / f"{i}.parquet")
    with pytest.raises((OSError, ValueError)):
        open_skipping(folder)


def test_a_row_group_that_cannot_be_counted(folder: Path) -> None:
    flip_value(folder / "1.parquet", 2)
    loader = open_skipping(open_checked(folder), filter=ds.field("id") < 250)
    expected = [i for i in all_but(range(150, 175)) if i < 250]
    assert flatten(read(loader)) == expected
    (entry,) = loader.stats().skipped
    assert (entry.ranges, entry.row_group) == ((), 2)


@pytest.mark.parametrize("codec", ["zstd", "uncompressed"])
def test_arrow_files(tmp_path: Path, codec: str) -> None:
    for i in range(3):
        feather.write_feather(
            make_table(100 * i), tmp_path / f"{i}.arrow", compression=codec, chunksize=25
        )
    with open(tmp_path / "1.arrow", "r+b") as file:
        if codec == "zstd":  # a block in the middle
            data = file.read()
            start = len(data) // 2
            file.seek(start)
            file.write(bytes(byte ^ 0xFF for byte in data[start : start + 64]))
        else:
            file.truncate(1_000)
    loader = open_skipping(tmp_path)
    assert flatten(read(loader)) == all_but(range(100, 200))
    (entry,) = loader.stats().skipped
    assert entry.path == str(tmp_path / "1.arrow")


@pytest.mark.parametrize("column", [0, 2])
def test_dictionary_columns(folder: Path, column: int) -> None:
    for i in range(3):
        kinds = pa.array([f"kind {j % (i + 2)}" for j in range(100)]).dictionary_encode()
        table = make_table(100 * i).append_column("kind", kinds)
        write_checked(folder / f"{i}.parquet", table, 25)
    flip_value(folder / "0.parquet", 0, column)
    for options in ({}, {"shuffle": True, "buffer_size": 90}):
        loader = open_skipping(open_checked(folder), **options)
        codes = {}
        for batch in loader:
            own = slice(loader.valid_rows)
            codes |= dict(zip(batch["id"][own].tolist(), batch["kind"][own].tolist(), strict=True))
        assert sorted(codes) == all_but(range(25))
        values = loader.vocabulary("kind").to_pylist()
        assert all(values[code] == f"kind {i % 100 % (i // 100 + 2)}" for i, code in codes.items())
    with pytest.raises(OSError, match="CRC checksum"):
        list(arrowdl.Loader(open_checked(folder), 10, framework="numpy"))


def test_nested_columns_and_not_null_ones(tmp_path: Path) -> None:
    fields = [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("list", pa.list_(pa.int32())),
        pa.field("struct", pa.struct([("x", pa.float32())])),
    ]
    ids = list(range(100))
    columns = [
        pa.array(ids, pa.int64()),
        pa.array([[i] * (i % 3) for i in ids], pa.list_(pa.int32())),
        pa.array([{"x": i} for i in ids], fields[2].type),
    ]
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    write_checked(tmp_path / "0.parquet", table, 20)
    flip_value(tmp_path / "0.parquet", 1)
    for options in ({}, {"shuffle": True}, {"splits": 2}):
        loader = open_skipping(open_checked(tmp_path), 8, **options)
        found = {}
        for batch in loader:
            values, offsets = batch["list"]
            for row in range(loader.valid_rows):
                own = values[offsets[row] : offsets[row + 1]].tolist()
                found[int(batch["id"][row])] = own, float(batch["struct"]["x"][row])
        assert found == {i: ([i] * (i % 3), i) for i in ids if not 20 <= i < 40}


def test_errors_of_options_and_the_system_are_raised(folder: Path) -> None:
    pq.write_table(
        make_table(300).set_column(1, "text", pa.nulls(100, pa.string())), folder / "3.parquet"
    )
    with pytest.raises(BufferError, match="nulls="):
        list(open_skipping(folder))
    with pytest.raises(ValueError, match="vocabulary"):
        list(open_skipping(folder, columns=["text"], vocabulary={"text": ["row 1"]}))

    def exhaust(batch: Any) -> Any:
        raise MemoryError("no memory")

    def interrupt(batch: Any) -> Any:
        raise KeyboardInterrupt

    for transform, kind in ((exhaust, MemoryError), (interrupt, KeyboardInterrupt)):
        with pytest.raises(kind):
            list(open_skipping(make_table(0), transform=transform))


def test_options_are_checked() -> None:
    table = make_table(0)
    with pytest.raises(ValueError, match="on_error='ignore': expected 'raise' or 'skip'"):
        arrowdl.Loader(table, 10, on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Skip\.max_rows=-1: expected an int of at least 0"):
        arrowdl.Loader(table, 10, on_error=arrowdl.Skip(-1))


def test_a_column_with_the_name_of_the_numbers() -> None:
    table = make_table(0).append_column(NUMBER, pa.array(range(100)))
    assert NUMBER in next(iter(arrowdl.Loader(table.select([NUMBER]), 10)))
    for source in (table, table.to_reader):
        with pytest.raises(ValueError, match=f'in a column "{NUMBER}", and the source has one'):
            next(iter(open_skipping(source)))
    assert flatten(read(open_skipping(table, columns=["id"]))) == list(range(100))


def test_rows_that_a_rank_repeats_are_not_its_own(tmp_path: Path) -> None:
    """The last step of ranks 1 and 2 has row 0, which is damaged and of rank 0."""
    write_checked(tmp_path / "0.parquet", make_table(0), 25)
    flip_value(tmp_path / "0.parquet", 0)
    for splits in (None, 3):
        loaders = [
            open_skipping(open_checked(tmp_path), 33, rank=i, world_size=3, splits=splits)
            for i in range(3)
        ]
        steps = [read(loader) for loader in loaders]
        assert {len(own) for own in steps} == {2}
        assert sorted(flatten([flatten(own) for own in steps])) == list(range(25, 100))
        assert sum(loader.stats().skipped_rows for loader in loaders) == 25


def test_what_may_be_skipped() -> None:
    for error in (OSError("x"), FileNotFoundError(), pa.ArrowInvalid("x"), EOFError(), Foreign()):
        assert can_skip(error), error
    for other in (
        OSError(errno.EMFILE, "x"),
        MemoryError(),
        pa.ArrowMemoryError(),
        ValueError(),
        KeyboardInterrupt(),
    ):
        assert not can_skip(other), other


class Foreign(Exception):
    """An exception of a library that reads files."""


class Short(IndexedSource):
    """A source whose last unit has fewer rows than it should have."""

    decodes_units = True
    column_names = None

    def __init__(self) -> None:
        self.units = [10, 10, 10]

    def read(self, units: Sequence[int], readers: int = 1) -> Any:
        rows = [i for unit in units for i in range(10 * unit, 10 * unit + 10) if i < 27]
        return arrowdl.from_arrow_stream(pa.table({"id": pa.array(rows, pa.int64())}))

    def describe(self) -> str:
        return "short"


def test_a_unit_with_another_number_of_rows() -> None:
    source = NumberedSource(Short(), 0)
    numbers = [i for array in source.read([1, 0, 2]) for i in read_numbers(array.field(NUMBER))]
    assert numbers == [*range(10, 20), *range(10), *(MISSING + i for i in range(20, 30))]
    report = source.report_missing([22])
    assert "another number of rows" in report.entries[0].error


# ---- the budget


def test_a_tenth_of_the_rows_may_be_skipped(folder: Path) -> None:
    flip_value(folder / "0.parquet", 3)
    loader = arrowdl.Loader(open_checked(folder), 10, on_error="skip", framework="numpy")
    assert flatten(read(loader)) == all_but(range(75, 100))
    assert flatten(read(loader)) == all_but(range(75, 100)), "each epoch has its own"
    flip_value(folder / "2.parquet", 1)
    loader = arrowdl.Loader(open_checked(folder), 10, on_error="skip", framework="numpy")
    batches = iter(loader)
    ids: list[int] = []
    with pytest.raises(OSError, match="CRC checksum") as caught:
        ids.extend(i for batch in batches for i in batch["id"][: loader.valid_rows].tolist())
    notes = "\n".join(caught.value.__notes__)
    assert "has skipped 40 rows in this epoch on this rank (2 errors)" in notes
    assert "Skip.max_rows=30 allows no more" in notes
    assert ids == [i for i in all_but(range(75, 100)) if i < 225]
    again = open_skipping(open_checked(folder))
    again.load_state_dict(loader.state_dict())
    assert ids + flatten(read(again)) == all_but(range(75, 100), range(225, 250))


def test_no_row_may_be_skipped(folder: Path) -> None:
    flip_value(folder / "0.parquet", 0)
    loader = open_skipping(open_checked(folder), max_skipped_rows=0)
    with pytest.raises(OSError, match="CRC checksum"):
        next(iter(loader))
    assert loader.state_dict()["stages"] == []


def test_nothing_can_be_read(tmp_path: Path) -> None:
    write_checked(tmp_path / "0.parquet", make_table(0), 50)
    for number in (0, 1):
        flip_value(tmp_path / "0.parquet", number)
    with pytest.raises(OSError, match="CRC checksum") as caught:
        list(open_skipping(open_checked(tmp_path)))
    assert "found no row that can be read" in "\n".join(caught.value.__notes__)


# ---- transforms


def fail_on(*ids: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def transform(batch: dict[str, Any]) -> dict[str, Any]:
        bad = set(ids) & set(batch["id"].tolist())
        if bad:
            raise ZeroDivisionError(f"bad rows {sorted(bad)}")
        batch["id"] += 1_000  # batches may be written to
        return batch

    return transform


def arrow_fail_on(*ids: int) -> Callable[[pa.RecordBatch], dict[str, Any]]:
    def transform(batch: pa.RecordBatch) -> dict[str, Any]:
        if set(ids) & set(batch["id"].to_pylist()):
            raise ZeroDivisionError("bad rows")
        return {"id": np.asarray(batch["id"]) + 1_000}

    return transform


@pytest.mark.parametrize("kind", ["table", "files", "stream", "arrow", "threads", "map", "padded"])
@pytest.mark.parametrize("bad", [[35], [0], [0, 10, 299]])
def test_a_transform_that_raises(
    folder: Path, kind: str, bad: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    tables = [make_table(100 * i) for i in range(3)]
    table = pa.concat_tables(tables)
    source: Any = {"files": folder, "stream": table.to_reader}.get(kind, table)
    options: dict[str, Any] = {"transform": fail_on(*bad)}
    if kind == "arrow":
        options = {"transform_arrow": arrow_fail_on(*bad)}
    loader = open_skipping(source, **options, num_threads=2 * (kind == "threads"))
    if kind == "map":
        loader = open_skipping(source).map(fail_on(*bad))
    if kind == "padded":
        loader = open_skipping(source, **options, pad_last=True)
    steps = [(loader.valid_rows, batch["id"].tolist()) for batch in loader]
    assert len(steps) == 30
    wrong = sorted({i // 10 for i in bad})
    for number, (valid, ids) in enumerate(steps):
        expected = [1_000 + 10 * number + i for i in range(10)]
        assert (ids if number not in wrong else valid) == (expected if number not in wrong else 0)
        assert all(1_000 <= i < 1_300 for i in ids), "another row, transformed once"
        assert len(ids) == (1 if number in wrong and kind != "padded" else 10)
    stats = loader.stats()
    assert (stats.rows, stats.skipped_rows) == (300 - 10 * len(wrong), 10 * len(wrong))
    messages = read_messages(caplog)
    assert len(messages) == len(wrong)
    start = 10 * wrong[0]
    where = "the source" if kind != "files" else repr(str(folder / f"{start // 100}.parquet"))
    rows = f"rows {start % 100} to {start % 100 + 9} of {where}"
    assert messages[0].startswith(f"skipped {rows}: ZeroDivisionError: bad rows")


def test_a_transform_that_always_fails() -> None:
    def fail(batch: Any) -> Any:
        raise ZeroDivisionError("always")

    with pytest.raises(ZeroDivisionError) as caught:
        list(open_skipping(make_table(0), transform=fail))
    assert "found no row for which the transform does not fail" in str(caught.value.__notes__)


def test_a_stream_that_is_read_once_begins_with_a_bad_row() -> None:
    loader = open_skipping(make_table(0).to_reader(), transform=fail_on(3))
    steps = [(loader.valid_rows, batch["id"].tolist()) for batch in loader]
    assert steps[0] == (0, [1_000]), "another row of the same batch"
    assert [valid for valid, _ in steps] == [0] + [10] * 9


def test_rows_of_a_shuffled_batch_are_named(folder: Path) -> None:
    loader = open_skipping(folder, 4, shuffle=True, buffer_size=300, transform=fail_on(250))
    ids = [i - 1_000 for i in flatten(read(loader))]
    found = {
        int(Path(entry.path).stem) * 100 + row
        for entry in loader.stats().skipped
        for start, stop in entry.ranges
        for row in range(start, stop)
    }
    assert len(found) == 4
    assert 250 in found
    assert sorted([*ids, *found]) == all_but()


# ---- ranks, workers, states


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("splits", [None, 4])
def test_ranks_have_as_many_batches(
    folder: Path, ranks: int, workers: int, splits: int | None
) -> None:
    for number in range(4):  # all rows of a rank, of three
        flip_value(folder / "1.parquet", number)
    (folder / "9.parquet").write_bytes(b"")
    dataset = open_checked([str(folder / f"{i}.parquet") for i in (0, 1, 2)])

    def make(**rank: int) -> arrowdl.Loader:
        return open_skipping(dataset, 24 // rank["world_size"], splits=splits, **rank)

    steps, _ = Ranks(make, ranks, workers).read()
    assert sorted(flatten(steps)) == all_but(range(100, 200))
    first, state = Ranks(make, ranks, workers).read(5)
    for other, others in ((1, 0), (4, 2), (2, 0)):
        rest = Ranks(make, other, others)
        rest.load(state)
        read_rest, _ = rest.read()
        assert sorted(flatten(first + read_rest)) == all_but(range(100, 200))
        if splits is not None:
            assert first + read_rest == steps


def test_worker_processes(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    flip_value(folder / "1.parquet", 2)
    options = {"columns": ["id"], "num_workers": 2, "transform": fail_in_worker}
    loader = open_skipping(open_checked(folder), **options)
    loader = loader.filter(is_even)
    with loader:
        steps = read(loader)
        assert len(steps) == 30
        skipped = {*range(150, 175), *range(270, 280)}
        expected = [i for i in range(0, 300, 2) if i not in skipped]
        assert sorted(flatten(steps)) == expected
        stats = loader.stats()
        assert (stats.rows, stats.skipped_rows) == (len(expected), 35)
        assert stats.filtered_rows == 300 - 35 - len(expected)
        messages = read_messages(caplog)
        assert len(messages) == len(stats.skipped) == 2
        assert any("rows 70 to 79" in message for message in messages)
        loader._options.max_skipped_rows = 20  # the training counts, not the workers
        with pytest.raises(OSError, match="CRC checksum") as caught:
            list(loader)
        assert "has skipped 25 rows" in str(caught.value.__notes__)


def fail_in_worker(batch: dict[str, Any]) -> dict[str, Any]:
    if 277 in batch["id"]:
        raise UnpicklableError(277)
    return batch


class UnpicklableError(Exception):
    def __init__(self, row: int) -> None:
        super().__init__(f"row {row} is bad")
        self.rows: Iterator[int] = iter(lambda: row, None)


def is_even(batch: dict[str, Any]) -> Any:
    return batch["id"] % 2 == 0


def test_mixtures(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    flip_value(folder / "0.parquet", 1)
    table = make_table(1_000)
    loader = arrowdl.Loader.mix(
        {"files": open_checked(folder), "table": table},
        ranks=arrowdl.Ranks(global_batch_size=8, splits=4),
        weights={"files": 3, "table": 1},
        stop="all",
        origin="source",
        framework="numpy",
        on_error="skip",
        transform=fail_on(1_040),
    )
    steps = read(loader)
    ids = [i - 1_000 for i in flatten(steps)]
    assert not set(range(25, 50)) & set(ids)
    assert 1_040 not in ids
    stats = loader.stats()
    read_rows = [(entry.path, entry.ranges, entry.row_group) for entry in stats.skipped]
    assert (str(folder / "0.parquet"), ((25, 50),), 1) in read_rows
    assert any(path == "table" and unit is None for path, _, unit in read_rows)
    assert stats.rows + stats.skipped_rows == loader._source.num_rows  # type: ignore[union-attr]
    assert len(steps) == len(loader)
    assert len(read_messages(caplog)) == len(stats.skipped)


def test_a_mixture_names_what_its_loaders_have_left_out(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    truncate(folder / "1.parquet")
    own = open_skipping(folder, columns=["id"])
    assert len(read_messages(caplog)) == 1
    for on_error in ("raise", "skip"):
        mixed = arrowdl.Loader.mix(
            {"own": own, "table": make_table(1_000).select(["id"])},
            ranks=arrowdl.Ranks(global_batch_size=8),
            weights={"own": 1, "table": 1},
            framework="numpy",
            on_error=on_error,
        )
        for loader in (mixed, mixed.map(dict), copy.copy(mixed)):
            assert loader.stats().skipped == own.stats().skipped
            (entry,) = loader.stats().skipped
            assert (entry.path, entry.ranges) == (str(folder / "1.parquet"), ())
        list(mixed)
        assert len(mixed.stats().skipped) == 1
        assert read_messages(caplog) == [], "the Loader has logged it"


def test_a_map_dataset_raises(folder: Path) -> None:
    flip_value(folder / "1.parquet", 2)
    dataset = open_skipping(open_checked(folder)).map_dataset()
    assert dataset[[0, 299]]["id"].tolist() == [0, 299]
    with pytest.raises(OSError, match="CRC checksum"):
        dataset[160]


def test_device_arrays_keep_their_transform_errors() -> None:
    source = [arrowdl.from_arrow(make_table(100 * i).drop_columns("text")) for i in range(3)]
    loader = open_skipping(source, transform=fail_on(35))
    steps = read(loader)
    assert [len(step) for step in steps] == [10] * 3 + [0] + [10] * 26
    assert loader.stats().skipped[0].ranges == ((30, 40),)
