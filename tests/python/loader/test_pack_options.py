"""Packed blocks: their columns, what it refuses, its states, what is read, streams and workers."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._parquet.dataset import DatasetSource
from arrowdl.loader._sources.table import TableSource
from helpers.options import group

LISTS = [[11, 12, 13], [21, 22], [31, 32, 33, 34, 35], [], [41]]
TABLE = pa.table(
    {
        "tokens": pa.array(LISTS, pa.list_(pa.int32())),
        "labels": pa.array([[n + 1 for n in own] for own in LISTS], pa.list_(pa.int64())),
        "source": pa.array([0, None, 2, 3, 4], pa.int8()),
    }
)
PACK = arrowdl.Pack("tokens", 4)


def make_loader(source: Any = TABLE, batch_size: int = 2, **options: Any) -> arrowdl.Loader:
    options = {"framework": "numpy", "rank": 0, "world_size": 1, "pack": PACK} | options
    return arrowdl.Loader(source, batch_size, **group(**options))


def read_blocks(loader: arrowdl.Loader, count: int | None = None) -> list[list[int]]:
    batches = itertools.islice(loader, count)
    return [block for b in batches for block in b["tokens"][: loader.valid_rows].tolist()]


def make_documents(rows: int) -> pa.Table:
    lengths = [(7 * i) % 23 for i in range(rows)]
    ends = list(itertools.accumulate(lengths, initial=1))
    tokens = [list(range(a, b)) for a, b in itertools.pairwise(ends)]
    return pa.table({"tokens": pa.array(tokens, pa.list_(pa.int32())), "id": range(rows)})


def test_columns() -> None:
    pack = arrowdl.Pack("tokens", 4, pad_value={"labels": -100})
    loader = make_loader(pack=pack, nulls={"source": "fill"}, ragged={"cu_seqlens": "padded"})
    first, second = loader
    assert list(first) == [
        "tokens", "labels", "source", "position_ids", "segment_ids", "cu_seqlens",
    ]  # fmt: skip
    assert first["tokens"].tolist() == [[11, 12, 13, 21], [22, 31, 32, 33]]
    assert second["labels"].tolist() == [[35, 36, 42, -100]]
    assert second["labels"].dtype == np.int64
    assert [column.tolist() for column in first["source"]] == [[0, 0, 0, 2], [0, 2, 4]]
    assert first["position_ids"].tolist() == [[0, 1, 2, 0], [0, 0, 1, 2]]
    assert second["segment_ids"].tolist() == [[1, 1, 2, 0]]
    assert first["cu_seqlens"][0].tolist() == [[0, 3, 4], [0, 1, 4]]
    assert len(loader) == 2
    assert loader.stats().rows == 3
    assert repr(loader) == (
        "<arrowdl.Loader of 5 rows, packed into blocks of 4, batches of 2 for numpy, in order, "
        "epoch 1, rank 0 of 1>"
    )


def test_columns_that_are_chosen() -> None:
    pack = arrowdl.Pack("tokens", 4, aligned=[], add=[])
    (batch, _) = make_loader(pack=pack, columns=["labels", "tokens"], ragged={"labels": "offsets"})
    assert list(batch) == ["labels", "tokens"]


def test_fixed_size_lists() -> None:
    tokens = pa.array([[1, 2, 3], [4, 5, 6]], pa.list_(pa.int16(), 3))
    loader = make_loader(pa.table({"tokens": tokens}))
    assert read_blocks(loader) == [[1, 2, 3, 4], [5, 6, 0, 0]]


def test_other_options_see_blocks() -> None:
    seen = []

    def look(rows: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(rows["tokens"].type)
        return rows.select(["tokens"])

    loader = make_loader(transform_arrow=look, pad_last=True, columns=["tokens"])
    assert [batch["valid"].tolist() for batch in loader] == [[True, True], [True, False]]
    assert seen == [pa.list_(pa.int32(), 4)] * 2


def test_ranks_without_blocks_repeat_one() -> None:
    tokens = TABLE.select(["tokens"])
    ranks = [make_loader(tokens, 1, rank=i, world_size=4) for i in range(4)]
    read = []
    for rank in ranks:
        (batch,) = rank
        read.append((batch["tokens"].tolist(), rank.valid_rows))
    assert [valid for _, valid in read] == [1, 1, 1, 0]
    assert sorted(tokens[0][0] for tokens, valid in read if valid) == [11, 22, 34]


WRONG = {
    "no pack": ({"pack": "tokens"}, TypeError, r"batching='tokens': expected arrowdl\.Pack\("),
    "stack": ({"stack": {"x": ["source"]}}, ValueError, "leave stack= out"),
    "no column": ({"columns": ["labels"]}, ValueError, r'names "tokens", .* \[\'labels\'\]'),
    "no list": ({"pack": arrowdl.Pack("source", 4)}, TypeError, '"source" is of'),
    "padding": (
        {"pack": arrowdl.Pack("tokens", 4, pad_value={"x": 1})}, ValueError, "\"x\"|'x'",
    ),
    "nulls of a column": ({"nulls": {"text": "fill"}}, ValueError, '"text", .*"position_ids"|text'),
    "mask": (
        {"pad_last": True, "source": TABLE.rename_columns(["tokens", "labels", "valid"])},
        ValueError,
        'adds a column "valid"',
    ),
    "added column": (
        {"source": TABLE.rename_columns(["tokens", "labels", "cu_seqlens"])},
        ValueError,
        'has a column "cu_seqlens" already',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_when_it_is_given(name: str) -> None:
    options, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        make_loader(**options)


def test_resume_from_is_refused() -> None:
    with pytest.raises(ValueError, match="resumes by its own state"):
        arrowdl.Pack("tokens", 4, add=["resume_from"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"column": 3}, TypeError, "column=3: give the name of a column"),
        ({"length": 4.5}, ValueError, "length=4.5: expected an int of at least 1 and .*"),
        ({"buffer_size": "8"}, ValueError, "buffer_size='8': expected an int of at least 1 .*"),
        ({"aligned": "labels"}, TypeError, "aligned='labels': give a list of names"),
        ({"add": None}, TypeError, "add=None: give a list of names"),
        ({"add": "position_ids"}, TypeError, "add='position_ids': give a list of names"),
        ({"add": [3]}, TypeError, r"add=\[3\]: give a list of names"),
    ],
)
def test_arguments_of_other_types(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=rf"^Pack\.{message}$"):
        arrowdl.Pack(**{"column": "tokens", "length": 4, **options})


def test_sizes_of_numpy() -> None:
    """They are in states, which are of JSON types."""
    pack = arrowdl.Pack("tokens", np.int64(4), buffer_size=np.int32(2))  # type: ignore[arg-type]
    loader = make_loader(make_documents(5), pack=pack)
    next(iter(loader))
    make_loader(make_documents(5), pack=pack).load_state_dict(
        json.loads(json.dumps(loader.state_dict()))
    )


def test_what_is_refused_later() -> None:
    with pytest.raises(TypeError, match=r"a block of batching=Pack\(\.\.\.\) has several"):
        make_loader().map_dataset()
    with pytest.raises(ValueError, match='row 2 has 5 items in "tokens", and a block has 4'):
        len(make_loader(pack=arrowdl.Pack("tokens", 4, long="raise")))
    uneven = TABLE.set_column(1, "labels", pa.array([[0]] * 5))
    with pytest.raises(ValueError, match=r'row 0 has 3 items in "tokens" and 1 in "labels"'):
        next(iter(make_loader(uneven)))
    null = pa.table({"tokens": [[1, 2], None, [3]]})
    with pytest.raises(ValueError, match='row 1 of column "tokens" is null'):
        list(make_loader(null))


def test_mixtures_that_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r'the Loader "a" has batching=Pack\(\.\.\.\): give it to '
    ):
        arrowdl.Loader.mix(
            {"a": make_loader()}, weights={"a": 1}, ranks=arrowdl.Ranks(global_batch_size=2)
        )
    empty = pa.table({"tokens": pa.array([[], []], pa.list_(pa.int32()))})
    weights = {"a": 1, "b": 1}

    def mix(sources: Any, **options: Any) -> arrowdl.Loader:
        sources = dict(zip("ab", sources, strict=True))
        options = {"weights": weights, "pack": PACK, "framework": "numpy", "splits": 2} | options
        return arrowdl.Loader.mix(sources, **group(global_batch_size=2, **options))

    for stop in ("all", "repeat"):
        with pytest.raises(ValueError, match='no source has a row with tokens in "tokens"'):
            next(iter(mix([empty, empty], stop=stop)))
    assert list(mix([empty, empty])) == []
    tokens = TABLE.select(["tokens"])
    with pytest.raises(
        ValueError, match=r"batching=Pack\(\.\.\.\) with weights that change at a step"
    ):
        mix([tokens, tokens], weights={0: weights, 5: {"a": 1, "b": 2}})
    loader = mix([tokens, tokens], stop="repeat")
    next(iter(loader))
    other = mix([tokens, tokens], stop="repeat", weights={"a": 1, "b": 2})
    with pytest.raises(ValueError, match="packed mixture by other weights"):
        other.load_state_dict(loader.state_dict())
    with pytest.raises(TypeError, match="never ends"):
        len(loader)


def test_a_mixture_says_where_documents_are_from() -> None:
    sources = {"a": TABLE.select(["tokens"]), "b": TABLE.select(["tokens"])}
    loader = arrowdl.Loader.mix(
        sources,
        weights={"a": 1, "b": 1},
        batching=PACK,
        ranks=arrowdl.Ranks(global_batch_size=2, splits=1),
        origin="from",
        framework="numpy",
    )
    assert next(iter(loader))["from"][0].tolist() == [1, 0, 0, 1]


def test_states() -> None:
    loader = make_loader(make_documents(60), shuffle=True, buffer_size=16)
    expected = read_blocks(make_loader(make_documents(60), shuffle=True, buffer_size=16))
    read = read_blocks(loader, 3)
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["stages"] == [[1, 1, 2, 0, 3]]
    assert state["pack"] == {
        "column": "tokens", "length": 4, "strategy": "concat", "buffer_size": 256, "long": "split",
    }  # fmt: skip
    resumed = pickle.loads(pickle.dumps(loader))
    resumed.load_state_dict(state)
    assert read + read_blocks(resumed) == expected
    other = make_loader(make_documents(60), shuffle=True, buffer_size=16, batch_size=3)
    other.load_state_dict(state)
    assert read + read_blocks(other) == expected
    packs = {r"no batching=Pack\(...\)": None, "length=5, ": arrowdl.Pack("tokens", 5)}
    for text, pack in packs.items():
        changed = make_loader(make_documents(60), shuffle=True, buffer_size=16, pack=pack)
        with pytest.raises(
            ValueError,
            match=rf"of batching=Pack\(column='tokens', .* has .*{text}.*the Pack of the st",
        ):
            changed.load_state_dict(state)
    state["stages"] = [[1, 1, 2, 0, 999]]
    with pytest.raises(ValueError, match=r"stages\[0\] says that .*, for "):
        other.load_state_dict(state)


@pytest.mark.parametrize("strategy", ["concat", "best_fit"])
def test_lengths_are_read_once_and_a_resume_reads_the_rest(
    strategy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(make_documents(300), tmp_path / "a.parquet", row_group_size=10)
    reads: list[tuple[Any, list[int]]] = []
    read = DatasetSource.read

    def note(self: DatasetSource, units: Any, readers: int = 1) -> Any:
        reads.append((self.scanner.query.columns, list(units)))
        return read(self, units, readers)

    monkeypatch.setattr(DatasetSource, "read", note)
    pack = arrowdl.Pack("tokens", 4, strategy, buffer_size=4)
    loader = make_loader(tmp_path, pack=pack)
    reads.clear()
    for _ in range(2):
        read_blocks(loader)
    assert reads == [(["tokens"], list(range(30))), *[(None, list(range(30)))] * 2]
    reads.clear()
    read_blocks(loader.map(dict))
    assert reads == [(None, list(range(30)))]
    blocks = read_blocks(loader, 300)
    state = loader.state_dict()
    position = loader._pipeline.epochs.open(loader._cursor.position)._plan.find(600)
    resumed = make_loader(tmp_path, pack=pack)
    resumed.load_state_dict(state)
    reads.clear()
    rest = read_blocks(resumed)
    assert blocks + rest == read_blocks(make_loader(tmp_path, pack=pack))
    assert reads[0] == (None, list(range(position.row // 10, 30)))
    assert position.row > 150


def test_a_rank_reads_its_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """And none after those of its last block."""
    table = make_documents(40_000)
    rows = []
    read = TableSource.read

    def note(self: TableSource, chosen: Any, readers: int = 1) -> Any:
        rows.append(sum(self.units[unit] for unit in chosen))
        return read(self, chosen, readers)

    loader = make_loader(
        table, rank=1, world_size=4, batch_size=512, shuffle=True, buffer_size=100,
        pack=arrowdl.Pack("tokens", 64),
    )  # fmt: skip
    len(loader)
    monkeypatch.setattr(TableSource, "read", note)
    read_blocks(loader)
    assert 10_000 <= sum(rows) <= 11_000


@pytest.mark.parametrize("shuffle", [False, True])
def test_streams(shuffle: bool) -> None:
    """Every rank packs all rows, and has its share of the blocks."""
    table = make_documents(40)
    order = {"shuffle": shuffle, "buffer_size": 16}
    expected = read_blocks(make_loader(table.to_reader, **order))
    assert (expected == read_blocks(make_loader(table))) is not shuffle
    ranks = [make_loader(table.to_reader, rank=i, world_size=2, **order) for i in range(2)]
    read = sorted(block for rank in ranks for block in read_blocks(rank))
    assert read == sorted(expected)
    loader = make_loader(table.to_reader, **order)
    first = read_blocks(loader, 4)
    resumed = make_loader(table.to_reader, **order)
    resumed.load_state_dict(loader.state_dict())
    assert first + read_blocks(resumed) == expected
    assert read_blocks(make_loader(table.to_reader())) == read_blocks(make_loader(table))


@pytest.mark.parametrize("splits", [None, 2])
def test_workers(splits: int | None) -> None:
    table, options = make_documents(60), {"shuffle": True, "splits": splits}
    with make_loader(table, num_workers=2, **options) as loader:
        assert loader._pipeline.for_workers().epochs._lengths is not None
        blocks = read_blocks(loader)
        alone = read_blocks(make_loader(table, **options))
        assert (blocks if splits else sorted(blocks)) == (alone if splits else sorted(alone))


def test_workers_of_a_data_loader() -> None:
    """The workers of a DataLoader are told their number."""
    table = make_documents(60)
    expected = read_blocks(make_loader(table, splits=2))
    shares = [make_loader(table, splits=2)._read_share(i, 3) for i in range(3)]
    read = []
    for share in itertools.cycle(shares):
        if (batch := next(share, None)) is None:
            break
        read += batch["tokens"].tolist()
    assert read == expected
