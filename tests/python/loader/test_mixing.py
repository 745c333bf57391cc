"""How well a shuffle mixes sorted rows: the spread of the means of its batches."""

from __future__ import annotations

import itertools
import logging
import math
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._epoch.lanes import Lanes, arrange_units
from arrowdl.loader._epoch.lengths import LengthsSource
from arrowdl.loader._epoch.read import EpochRows
from arrowdl.loader._epoch.sharding import Span, locate_sequence
from arrowdl.loader._sources.base import IndexedSource, UnitOrder
from arrowdl.loader._sources.table import TableSource
from helpers.options import group
from helpers.random_cases import choose_examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

ROWS, BATCH = 400_000, 256
EVEN = 1.2  # times the spread of a permutation: of 1,500 batches it is known to 2 %


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Nine floats, of which the first one is sorted: 14 MB."""
    draw = np.random.default_rng(0)
    columns = {f"c{i}": draw.random(ROWS, dtype=np.float32) for i in range(8)}
    return pa.table({"x": np.linspace(0, 1, ROWS, dtype=np.float32), **columns})


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixing")
    pl.from_arrow(table).write_parquet(folder / "polars.parquet")  # type: ignore[union-attr]
    table.to_pandas().to_parquet(folder / "pandas.parquet")
    os.mkdir(folder / "forty")
    for i in range(40):
        pq.write_table(table.slice(i * 10_000, 10_000), folder / "forty" / f"{i:02}.parquet")
    with pa.ipc.new_file(folder / "mapped.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=50_000)
    column = table.select(["x"])
    for units in (4, 8, 16, 40, 200):
        pq.write_table(column, folder / f"{units} units.parquet", row_group_size=ROWS // units)
    return folder


def measure(batches: list[Any], spread: float = 1 / math.sqrt(12)) -> float:
    """Return the spread of means over that of a permutation of values of a uniform spread."""
    means = [batch.mean(dtype=np.float64) for batch in batches if len(batch) == BATCH]
    permuted = spread * math.sqrt((ROWS - BATCH) / (ROWS - 1) / BATCH)
    return float(np.std(means) / permuted)


def read(source: Any, **options: Any) -> list[Any]:
    size: dict[str, Any] = {} if "global_batch_size" in options else {"batch_size": BATCH}
    loader = arrowdl.Loader(
        source, framework="numpy", **group(**size, shuffle=True, seed=1, **options)
    )
    batches = [batch["x"] for batch in loader]
    assert np.array_equal(np.sort(np.concatenate(batches)), np.linspace(0, 1, ROWS, dtype="f4"))
    return batches


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few row groups are read in lanes, as if they were too large for the memory of a buffer."""
    monkeypatch.setattr("arrowdl.loader._buffer.BUFFER_BYTES", 0)


@pytest.mark.parametrize("name", ["polars.parquet", "pandas.parquet", "forty", "mapped.arrow", ""])
@pytest.mark.parametrize("splits", [None, 8])
def test_rows_that_fit_the_buffer_are_mixed_as_by_a_permutation(
    name: str, splits: int | None, folder: Path, table: pa.Table
) -> None:
    source: Any = folder / name if name else table
    options = {} if splits is None else {"global_batch_size": BATCH, "splits": splits}
    assert 0.8 < measure(read(source, **options)) < EVEN


@pytest.mark.parametrize("name", ["pandas.parquet", "forty", ""])
def test_each_rank_gets_rows_from_everywhere(name: str, folder: Path, table: pa.Table) -> None:
    loader = arrowdl.Loader(
        folder / name if name else table,
        ranks=arrowdl.Ranks(3, 8, global_batch_size=8 * BATCH),
        framework="numpy",
        shuffle=True,
    )
    assert 0.8 < measure([batch["x"] for batch in loader]) < EVEN


def test_a_stream_that_fits_is_permuted(table: pa.Table) -> None:
    assert 0.8 < measure(read(table.to_reader)) < EVEN


@pytest.mark.parametrize("units", [8, 16, 40, 200])
@pytest.mark.parametrize("rows", [2_000, 30_000, 150_000])
@pytest.mark.parametrize("splits", [None, 8])
@pytest.mark.usefixtures("lanes")
def test_a_smaller_buffer_gets_rows_of_several_row_groups(
    units: int, rows: int, splits: int | None, folder: Path
) -> None:
    options = {} if splits is None else {"global_batch_size": BATCH, "splits": splits}
    path = folder / f"{units} units.parquet"
    # For eight lanes without a buffer, 1.22 is the bound: 256 / 8**3 more than the square of 1.
    assert measure(read(path, buffer_size=rows, **options)) < (1.35 if rows == 2_000 else EVEN)


@pytest.mark.parametrize("units", [1, 3, 5, 12, 20, 33])
@pytest.mark.parametrize("splits", [None, 2, 8])
@pytest.mark.usefixtures("lanes")
def test_any_number_of_row_groups_is_mixed(units: int, splits: int | None, tmp_path: Path) -> None:
    """Also those that the lanes or the sequences do not divide, and of several sizes."""
    options = {} if splits is None else {"global_batch_size": BATCH, "splits": splits}
    x = pa.table({"x": np.linspace(0, 1, ROWS, dtype=np.float32)})
    pq.write_table(x, tmp_path / "even.parquet", row_group_size=-(-ROWS // units))
    draw = random.Random(units)
    cuts = sorted({0, ROWS, *(draw.randrange(ROWS) for _ in range(units - 1))})
    with pq.ParquetWriter(tmp_path / "uneven.parquet", x.schema) as writer:
        for start, stop in itertools.pairwise(cuts):
            writer.write_table(x[start:stop], row_group_size=ROWS)
    for name in ("even.parquet", "uneven.parquet"):
        for rows in (2_000, 100_000):
            assert measure(read(tmp_path / name, buffer_size=rows, **options)) < 1.35


@pytest.mark.parametrize("rows", [1_000, 65_536])
def test_a_table_that_does_not_fit_is_mixed_in_small_blocks(rows: int, table: pa.Table) -> None:
    assert measure(read(table, buffer_size=rows)) < EVEN


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=3), min_size=1, max_size=9),
    st.integers(1, 50),
    st.randoms(use_true_random=False),
)
@example(sizes=[[]], rows=1, draw=random.Random(0))
@settings(max_examples=choose_examples(60, 2_000))
def test_random_spans_of_lanes(sizes: list[list[int]], rows: int, draw: random.Random) -> None:
    """Any span is that part of the whole, and lanes take turns by their share."""
    ends = [0, *itertools.accumulate(size for lane in sizes for size in lane)]
    spans = iter(draw.sample([Span(*pair) for pair in itertools.pairwise(ends)], k=len(ends) - 1))
    source = make_source([draw.randint(0, 9) for _ in range(ends[-1])], ends[-1])
    order = UnitOrder(source, range(len(source.units)))
    lanes = Lanes(source, order, [[next(spans) for _ in lane] for lane in sizes], rows)
    whole = list_ids(lanes.read(0, ends[-1]))
    assert sorted(whole) == list(range(ends[-1]))
    for _ in range(4):
        start, stop = sorted((draw.randint(0, ends[-1]), draw.randint(0, ends[-1])))
        assert list_ids(lanes.read(start, stop)) == whole[start:stop]


@given(
    st.lists(st.integers(0, 9), max_size=200),
    st.integers(1, 12),
    st.integers(1, 16),
    st.integers(0, 2**64 - 1),
)
@settings(max_examples=choose_examples(200, 2_000))
def test_random_arrangements_have_each_row_once(
    units: list[int], sequences: int, most: int, seed: int
) -> None:
    order, found = arrange_units(make_source(units), seed, sequences, most)
    assert sorted(order.units) == [unit for unit, rows in enumerate(units) if rows]
    sizes = [sum(len(span) for lane in lanes for span in lane) for lanes in found]
    cuts = [locate_sequence(i, sequences, sum(units)) for i in range(sequences)]
    assert sizes == list(map(len, cuts))
    rows = sorted((span.start, span.stop) for own in found for lane in own for span in lane)
    ends = [0, *(stop for _, stop in rows)]
    assert all(start == end < stop for (start, stop), end in zip(rows, ends, strict=False))
    assert ends[-1] == sum(units)


@pytest.mark.parametrize("sequences", [1, 2, 8])
def test_lanes_are_in_all_parts_of_the_source_at_any_time(sequences: int) -> None:
    """A row of each lane, at any time: their mean is near that of all rows."""
    units = [random.Random(i).choice([30, 100, 100]) for i in range(50)]
    source, total = make_source(units), sum(units)
    for seed in range(20):
        order, found = arrange_units(source, seed << 58, sequences)
        starts = [0, *itertools.accumulate(units)]
        rows = [row for unit in order.units for row in range(starts[unit], starts[unit + 1])]
        lanes = [
            [rows[i] for span in lane for i in range(span.start, span.stop)]
            for own in found
            for lane in own
        ]
        assert len(lanes) == (16 if sequences == 8 else 12)
        for time in range(20):
            at = [lane[time * len(lane) // 20] / total for lane in lanes]
            assert abs(sum(at) / len(at) - 0.5) < 0.07  # by chance 0.08 would be one deviation
            assert max(sorted(at)[1:], default=1) > 0.8 > 0.2 > min(at)


def make_source(units: list[int], rows: int | None = None) -> IndexedSource:
    """Return rows with the numbers from 0, in units of these sizes; another for what is left."""
    if rows is not None:
        ends = [min(rows, end) for end in itertools.accumulate(units, initial=0)] + [rows]
        units = [stop - start for start, stop in itertools.pairwise(ends)]
    source = TableSource(pa.table({"id": pa.array(range(sum(units)), pa.int64())}), None)
    starts = [0, *itertools.accumulate(units)]

    def read(chosen: Sequence[int], readers: int = 1) -> Any:
        table = source._table
        parts = [table[starts[unit] : starts[unit + 1]] for unit in chosen]
        return arrowdl.from_arrow_stream(pa.concat_tables([table[:0], *parts]))

    source.units, source.read = units, read  # type: ignore[method-assign]
    return source


def list_ids(stream: Any) -> list[int]:
    return [i for array in stream for i in pa.array(array.field("id")).to_pylist()]


def test_turns_of_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lanes of 16 and 8 rows, six rows at a time: four of the one and two of the other."""
    monkeypatch.setattr("arrowdl.loader._epoch.lanes._LEAST_ROWS", 1)
    source = make_source([16, 8])
    order = UnitOrder(source, [0, 1])
    lanes = Lanes(source, order, [[Span(0, 16)], [Span(16, 24)]], 6)
    read = list_ids(lanes.read(0, 24))
    assert read[:12] == [0, 1, 2, 3, 16, 17, 4, 5, 6, 7, 18, 19]
    lanes = Lanes(source, order, [[Span(4, 16), Span(0, 4)], [Span(22, 24), Span(16, 22)]], 6)
    assert list_ids(lanes.read(0, 6)) == [4, 5, 6, 7, 22, 23]


@pytest.mark.parametrize("source", ["file", "table"])
def test_packed_rows_that_fit_the_buffer_are_permuted_whatever_splits_is(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sequences are parts of one permutation, which a process makes once."""
    documents, length = 40_000, 4
    tokens = pa.array(np.repeat(np.arange(documents), length), pa.int64())
    offsets = pa.array(np.arange(0, (documents + 1) * length, length), pa.int32())
    rows = pa.table({"tokens": pa.ListArray.from_arrays(offsets, tokens)})
    pq.write_table(rows, tmp_path / "a.parquet")
    reads, read = [], EpochRows.read

    def note(self: EpochRows, span: Span, readers: int = 1) -> Any:
        if not isinstance(self._source, LengthsSource):
            reads.append(len(span))
        return read(self, span, readers)

    monkeypatch.setattr(EpochRows, "read", note)
    loader = arrowdl.Loader(
        rows if source == "table" else tmp_path / "a.parquet",
        ranks=arrowdl.Ranks(global_batch_size=64, splits=8),
        framework="numpy",
        shuffle=True,
        batching=arrowdl.Pack("tokens", 64, add=[]),
    )
    batches = [batch["tokens"] for batch in loader]
    ids = np.concatenate([batch.ravel() for batch in batches])
    assert np.array_equal(np.sort(ids), np.repeat(np.arange(documents), length))
    means = [batch.mean() for batch in batches if len(batch) == 64]
    permuted = documents * math.sqrt(1 / 12 / (64 * 16))
    assert 0.5 < np.std(means) / permuted < 1.5  # of 39 batches
    assert reads == [documents]


@pytest.mark.usefixtures("lanes")
def test_epochs_begin_elsewhere_in_few_row_groups(folder: Path) -> None:
    path = folder / "4 units.parquet"
    loader = arrowdl.Loader(path, BATCH, framework="numpy", shuffle=arrowdl.Shuffle(BATCH))
    begins = []
    for epoch in range(3):
        loader.set_epoch(epoch)
        begins.append(set(next(iter(loader))["x"].tolist()))
    assert not begins[0] & begins[1] & begins[2]


def count_decodes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the row groups that pyarrow begins to decode."""
    decoded: list[int] = []
    iterate, read_whole = pq.ParquetFile.iter_batches, pq.ParquetFile.read_row_group
    read_several = pq.ParquetFile.read_row_groups

    def iter_batches(self: Any, rows: int, groups: list[int], *args: Any, **options: Any) -> Any:
        decoded.extend(groups)
        return iterate(self, rows, groups, *args, **options)

    def read_row_group(self: Any, group: int, *args: Any, **options: Any) -> Any:
        decoded.append(group)
        return read_whole(self, group, *args, **options)

    def read_row_groups(self: Any, groups: list[int], *args: Any, **options: Any) -> Any:
        decoded.extend(groups)
        return read_several(self, groups, *args, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", read_row_group)
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", read_row_groups)
    return decoded


@pytest.mark.parametrize(("units", "splits"), [(1, None), (4, None), (12, None), (1, 8), (3, 4)])
@pytest.mark.parametrize("ranks", [1, 2])
def test_few_row_groups_that_fit_are_decoded_once_by_each_rank(
    units: int, splits: int | None, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever number of rows the buffer has: lanes would decode each several times."""
    rows = 6_000
    table = pa.table({"x": np.arange(rows)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=rows // units)
    decoded = count_decodes(monkeypatch)
    seen = []
    for rank in range(ranks):
        size = {"batch_size": 8} if splits is None else {"global_batch_size": 16}
        ranked = group(rank=rank, world_size=ranks, splits=splits, **size)
        options = {**ranked, "shuffle": arrowdl.Shuffle(100), "framework": "numpy"}
        loader = arrowdl.Loader(tmp_path, **options, seed=1)
        seen += [x for batch in loader for x in batch["x"][: loader.valid_rows].tolist()]
        state = loader.state_dict()
        assert state["buffer_size"] == rows
    assert sorted(seen) == list(range(rows))
    assert sorted(decoded) == sorted(ranks * list(range(units)))


def test_images_with_dictionaries_are_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They fit the default buffer; `benchmarks.loader.walls` has such a file."""
    images = pa.array([os.urandom(20_000) for _ in range(1_000)], pa.binary())
    pq.write_table(pa.table({"image": images}), tmp_path / "a.parquet", row_group_size=250)
    decoded = count_decodes(monkeypatch)
    loader = arrowdl.Loader(tmp_path, 64, shuffle=True, framework="numpy", ragged="offsets")
    assert sum(len(batch["image"][1]) - 1 for batch in loader) == 1_000
    assert sorted(decoded) == [0, 1, 2, 3]


def test_a_small_buffer_decodes_few_of_many_files_before_the_first_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A permutation needs all files; the parts of a small buffer begin with the first ones."""
    for i in range(300):
        pq.write_table(pa.table({"x": range(i * 100, i * 100 + 100)}), tmp_path / f"{i:03}.parquet")
    decoded = count_decodes(monkeypatch)
    counts = []
    for size in ("auto", 600):
        loader = arrowdl.Loader(tmp_path, 64, shuffle=arrowdl.Shuffle(size), prefetch=0)
        batches = iter(loader)
        seen = next(batches)["x"].tolist()
        counts.append(len(decoded))
        seen += [x for batch in batches for x in batch["x"].tolist()]
        assert sorted(seen) == list(range(30_000))
        assert len(decoded) == 300
        decoded.clear()
    assert counts[0] == 300
    assert counts[1] <= 12 * 5  # a part decodes one file, and four more ahead


@pytest.mark.parametrize("units", [13, 40])
def test_many_row_groups_keep_a_small_buffer(units: int, tmp_path: Path) -> None:
    table = pa.table({"x": range(4_000)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=-(-4_000 // units))
    assert find_rows(tmp_path, buffer_size=100) == 100
    assert find_rows(tmp_path, buffer_size=100, splits=8) == 100
    assert find_rows(table, buffer_size=100) == 100


# ---- the number of rows that fit


def find_rows(source: Any, **options: Any) -> int:
    rows = arrowdl.Loader(source, 8, **group(shuffle=True, **options)).state_dict()["buffer_size"]
    assert isinstance(rows, int)
    return rows


def test_the_buffer_has_as_many_rows_as_fit(folder: Path, table: pa.Table) -> None:
    """36 bytes a row, and 8 for its place in the order: of the number, three bits are kept."""
    expected = 5 << 20
    assert expected <= 2**28 / 44 < 6 << 20
    for source in (folder / "polars.parquet", folder / "pandas.parquet", folder / "forty", table):
        assert find_rows(source) == expected
    assert find_rows(folder / "mapped.arrow") == expected
    assert find_rows(folder / "mapped.arrow", memory_map=False) == expected
    assert find_rows(folder / "polars.parquet", decoder="polars") == expected
    assert find_rows(table, columns=["x"]) == 5 << 22
    plan = arrowdl.Loader(folder / "forty", 8).plan()
    assert find_rows(folder / "forty", plan=plan) == expected


def test_encoded_values_count_as_they_are_in_memory(tmp_path: Path) -> None:
    """A Parquet file has the number of a value in a dictionary, of a few bits."""
    rows = 20_000
    table = pa.table(
        {
            "text": ["a" * 1_000, "b" * 1_000] * (rows // 2),
            "tokens": pa.array([[1] * 500] * rows, pa.list_(pa.int64())),
            "label": pa.array([7] * rows, pa.int64()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    assert os.path.getsize(tmp_path / "a.parquet") < 100_000
    plan = arrowdl.Loader(tmp_path, 8).plan()
    plan.save(tmp_path / "plan")
    for options in ({}, {"plan": plan}, {"plan": tmp_path / "plan"}):
        assert find_rows(tmp_path / "a.parquet", **options) == find_rows(table) == 3 << 14
    assert find_rows(tmp_path / "a.parquet", columns=["label"]) == 1 << 24


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("rows", [100, 1_000])
@pytest.mark.parametrize("share_of_nulls", [0, 0.2])
def test_dictionaries_of_different_values_count_once(
    share_of_nulls: float, rows: int, version: str, tmp_path: Path
) -> None:
    """As pyarrow writes images: the bits of the numbers say how many values there are."""
    draw = random.Random(1)
    images = [
        None if draw.random() < share_of_nulls else draw.randbytes(10_000) for _ in range(rows)
    ]
    for different in (rows, rows // 10):
        values = images[:different] * (rows // different)
        draw.shuffle(values)
        table = pa.table({"image": pa.array(values, pa.binary())})
        pq.write_table(table, tmp_path / "a.parquet", data_page_version=version)
        chunk = pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(0)
        assert chunk.has_dictionary_page
        assert not chunk.statistics.has_min_max
        expected = find_rows(table)
        assert expected / 4 <= find_rows(tmp_path / "a.parquet") <= expected * 3


@pytest.mark.parametrize("write_statistics", [True, False])
@pytest.mark.parametrize("length", [10, 1_000])
def test_dictionaries_of_short_ends_count_as_most_values(
    length: int, write_statistics: bool, tmp_path: Path
) -> None:
    """The least text is empty, and the greatest one short: statistics say nothing of the others."""
    values = ["", *["m" * length + str(i) for i in range(60)], "z"]
    draw = random.Random(1)
    table = pa.table({"text": pa.array([draw.choice(values) for _ in range(50_000)])})
    pq.write_table(table, tmp_path / "a.parquet", write_statistics=write_statistics)
    expected = find_rows(table)
    assert expected / 4 <= find_rows(tmp_path / "a.parquet") <= expected * 3


def test_wide_rows_are_few(tmp_path: Path) -> None:
    image = pa.array([os.urandom(1 << 20) for _ in range(3)] * 100, pa.large_binary())
    table = pa.table({"image": image.dictionary_encode()})
    assert find_rows(table) > 1 << 20  # a number each
    wide = pa.table({"image": image})
    assert find_rows(wide) == 224
    pq.write_table(wide, tmp_path / "a.parquet", row_group_size=50)
    assert find_rows(tmp_path) < 1_000
    pq.write_table(wide, tmp_path / "a.parquet", row_group_size=50, use_dictionary=False)
    assert find_rows(tmp_path) == 56  # a quarter of the budget, of which lanes hold the rest
    pq.write_table(wide, tmp_path / "a.parquet", row_group_size=4, use_dictionary=False)
    assert find_rows(tmp_path) == 192
    loader = arrowdl.Loader(tmp_path, 8, shuffle=True, framework="numpy", ragged="offsets")
    assert sum(len(batch["image"][1]) - 1 for batch in loader) == 300


def test_a_number_of_rows_stays_one(table: pa.Table) -> None:
    assert find_rows(table, buffer_size=1_234) == 1_234
    for size in (0, "all", 1.5, None):
        with pytest.raises(ValueError, match="buffer_size="):
            arrowdl.Shuffle(size)  # type: ignore[arg-type]


def test_a_mixture_shares_the_buffer(table: pa.Table) -> None:
    wide = pa.table({"x": table["x"], "y": table["c0"]})
    narrow = wide.slice(0, 1_000)
    loader = arrowdl.Loader.mix(
        {"a": wide, "b": narrow},
        weights={"a": 1, "b": 1},
        shuffle=True,
        ranks=arrowdl.Ranks(global_batch_size=8),
    )
    members = loader._source.members  # type: ignore[union-attr]
    rows = loader.state_dict()["buffer_size"]
    assert rows == 1 << 24
    assert [member.buffer_size for member in members] == [rows // 2] * 2


def test_the_windows_of_buckets_stay_small(table: pa.Table) -> None:
    lengths = pa.table({"n": pa.array(range(100_000), pa.int32())})
    for shuffle in (False, True):
        loader = arrowdl.Loader(lengths, 8, batching=arrowdl.Buckets("n"), shuffle=shuffle)
        assert loader.state_dict()["steps"]["window"] == 65_536
    wide = pa.table({"n": ["a" * 100_000] * 100})
    loader = arrowdl.Loader(wide, 8, batching=arrowdl.Buckets("n"))
    assert 1_000 < loader.state_dict()["steps"]["window"] < 4_000


# ---- states


def test_a_state_keeps_its_number_of_rows(folder: Path) -> None:
    """The columns that are read decide on what fits, and not on the rows of an epoch."""
    path = folder / "forty"
    saved = arrowdl.Loader(path, 100, framework="numpy", shuffle=arrowdl.Shuffle(70_000))
    expected = [batch["x"].tolist() for batch in saved]
    saved.set_epoch(0)
    batches = iter(saved)
    for _ in range(1_000):
        next(batches)
    state = saved.state_dict()
    loader = arrowdl.Loader(path, 100, framework="numpy", shuffle=True, columns=["x"])
    before = loader.state_dict()
    loader.load_state_dict(state)
    assert [batch["x"].tolist() for batch in loader] == expected[1_000:]
    assert loader.state_dict()["buffer_size"] == 70_000
    loader.load_state_dict(before)
    assert loader.state_dict() == before
    with pytest.raises(ValueError, match="another seed"):
        loader.load_state_dict({**state, "seed": 9})
    assert loader.state_dict() == before, "a state that is refused changes nothing"
    with pytest.raises(ValueError, match=r"another Shuffle\.buffer_size \(5242880, here 70000\)"):
        saved.load_state_dict(arrowdl.Loader(path, 100, shuffle=True).state_dict())


def test_a_state_of_a_mixture_keeps_its_number_of_rows(table: pa.Table) -> None:
    def make(**options: Any) -> arrowdl.Loader:
        sources = {"a": table.select(["x"]), "b": table.slice(0, 999).select(["x"])}
        weights = {"a": 3, "b": 1}
        return arrowdl.Loader.mix(
            sources,
            weights=weights,
            framework="numpy",
            **group(global_batch_size=96, shuffle=True, **options),
        )

    saved = make(buffer_size=5_000)
    batches = iter(saved)
    for _ in range(7):
        next(batches)
    state = saved.state_dict()
    expected = [next(batches)["x"].tolist() for _ in range(4)]
    loader = make()
    loader.load_state_dict(state)
    resumed = iter(loader)
    assert [next(resumed)["x"].tolist() for _ in range(4)] == expected


def test_a_stream_that_fits_has_states(table: pa.Table) -> None:
    def make(**options: Any) -> arrowdl.Loader:
        batches = pa.RecordBatchReader.from_batches
        made = table.select(["x"]).slice(0, 5_000)
        return arrowdl.Loader(
            lambda: batches(made.schema, made.to_batches(max_chunksize=chunk)),
            50,
            framework="numpy",
            **group(shuffle=True, **options),
        )

    chunk = 7
    loader = make()
    batches = iter(loader)
    begin = [next(batches)["x"].tolist() for _ in range(3)]
    state = loader.state_dict()
    assert state["buffer_size"] == 0, "the first rows decide"
    rest = [batch["x"].tolist() for batch in batches]
    read = [value for batch in begin + rest for value in batch]
    assert sorted(read) == table["x"][:5_000].to_pylist()
    chunk = 4_000
    resumed = make()
    resumed.load_state_dict(state)
    assert [batch["x"].tolist() for batch in resumed] == rest
    with pytest.raises(ValueError, match=r"\('auto', here 9\)"):
        make(buffer_size=9).load_state_dict(state)


def test_a_stream_of_wide_rows_holds_few() -> None:
    made = []

    def open() -> Any:
        def list_batches() -> Iterator[pa.RecordBatch]:
            for i in range(400):
                made.append(i)
                yield pa.record_batch([pa.array([bytes(1 << 20)])], names=["image"])

        return pa.RecordBatchReader.from_batches(pa.schema({"image": pa.binary()}), list_batches())

    loader = arrowdl.Loader(open, 4, shuffle=True, framework="numpy", ragged="offsets", prefetch=0)
    next(iter(loader))
    assert len(made) <= 225


# ---- what is logged


def test_a_buffer_that_is_too_small_is_logged(
    folder: Path, table: pa.Table, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "arrowdl.loader")
    loader = arrowdl.Loader(folder / "40 units.parquet", 8, shuffle=arrowdl.Shuffle(50_000))
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    text = record.getMessage()
    assert "has 50000 of 400000 rows" in text
    assert "rows of 12 of 40 row groups" in text
    assert "shuffle=Shuffle(400000) mixes all" in text
    next(iter(loader))
    loader.map(len)
    assert len(caplog.records) == 1
    caplog.clear()
    arrowdl.Loader(folder / "40 units.parquet", 8, shuffle=True)
    arrowdl.Loader(folder / "40 units.parquet", 8)
    arrowdl.Loader(table, 8, shuffle=True)
    assert not caplog.records


def test_a_few_row_groups_that_do_not_fit_are_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arrowdl.loader._sources.row_bytes.BUFFER_BYTES", 2**20)
    for units, count in ((40, 0), (4, 1)):
        caplog.clear()
        arrowdl.Loader(folder / f"{units} units.parquet", 8, shuffle=True)
        assert len(caplog.records) == count
    assert "(what fits into 256 MiB)" in caplog.text
    caplog.clear()
    arrowdl.Loader.mix(
        {"a": folder / "4 units.parquet"},
        weights={"a": 1},
        shuffle=True,
        ranks=arrowdl.Ranks(global_batch_size=8),
    )
    assert 'rows of "a"' in caplog.text


def test_a_packed_rank_gets_rows_from_everywhere() -> None:
    """Sequences divide the buffer of blocks: a table that it holds as a whole is cut for that."""
    rows = 40_000
    tokens = pa.ListArray.from_arrays(
        pa.array(range(rows + 1), pa.int32()), pa.array(range(rows), pa.int64())
    )
    loader = arrowdl.Loader(
        pa.table({"tok": tokens}),
        batching=arrowdl.Pack("tok", 8),
        ranks=arrowdl.Ranks(2, 8, global_batch_size=64, splits=8),
        framework="numpy",
        shuffle=arrowdl.Shuffle(rows),
    )
    seen = np.concatenate([np.asarray(batch["tok"]).ravel() for batch in loader])
    assert seen.min() < rows * 0.1
    assert seen.max() > rows * 0.9


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("splits", [None, 2])
def test_states_of_buckets_move_to_the_size_of_auto(
    shuffle: bool, splits: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arrowdl.loader._options.options._BUCKET_ROWS", 100)
    lists = [[1] * (i * 7 % 23 + 1) for i in range(600)]
    table = pa.table({"id": range(600), "tokens": pa.array(lists, pa.list_(pa.int32()))})

    def make(size: Any) -> arrowdl.Loader:
        options: dict[str, Any] = {"seed": 3, "bucket_by": "tokens", "ragged": "padded"}
        options |= {"shuffle": shuffle, "splits": splits, "columns": ["id", "tokens"]}
        return arrowdl.Loader(table, 20, framework="numpy", **group(buffer_size=size, **options))

    def read(loader: arrowdl.Loader) -> list[list[int]]:
        return [batch["id"].tolist() for batch in loader]

    largest = make("auto").state_dict()["buffer_size"]
    resumed = make("auto")
    for size in (60, "auto", 300, largest, "auto", largest):
        loader = make(size)
        iterator = iter(loader)
        for _ in range(7):
            next(iterator)
        state = loader.state_dict()
        left = [batch["id"].tolist() for batch in iterator]
        resumed.load_state_dict(state)
        assert read(resumed) == left, size
        for other in {60, 300, largest} - {size}:
            with pytest.raises(ValueError, match=r'window=.*"auto" takes those'):
                make(other).load_state_dict(state)


@pytest.mark.parametrize("rows", [2**26, 2**26 + 1, 2**15 - 1])
def test_a_long_table_is_cut_into_no_more_blocks(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time to the first batch and the memory for an order do not grow with the rows."""
    zeros = pa.Array.from_buffers(pa.uint8(), rows, [None, pa.py_buffer(bytes(rows))])
    source = TableSource(pa.table({"x": zeros}), None).cut_for_shuffle(1_000)
    assert len(source.units) <= 2**14
    assert sum(source.units) == rows

    sliced: list[int] = []
    find_slices = source._find_slices

    def note(start: int, stop: int) -> Iterator[tuple[int, slice]]:
        sliced.append(start)
        return find_slices(start, stop)

    monkeypatch.setattr(source, "_find_slices", note)
    stream = source.read(range(len(source.units)))
    assert len(next(stream)) == source.units[0]
    assert sliced == [0]
