"""Text whose tokens decide on the batches: as if a file had the tokens."""

from __future__ import annotations

import gc
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from arrowdl import Buckets, Pack, Padded, Skip, Tokenize, Tokens
from arrowdl.loader._sources.tokenized import TokenizedSource
from arrowdl.loader._text.libraries import HuggingFaceTokenizer
from helpers.faults import flip_value, open_checked, write_checked
from helpers.options import group
from helpers.ranks import Ranks, read_with_stops
from helpers.text import TOKENIZER, make_texts
from tokenizers import Tokenizer, models

ROWS = 40
TEXTS = make_texts(ROWS, seed=2)
IDS = [row.ids for row in TOKENIZER.encode_batch(TEXTS)]
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int32()), "text": TEXTS})
TOKENIZED = TABLE.set_column(1, "text", pa.array(IDS, pa.list_(pa.int32())))
STEP = {"text": Tokenize(TOKENIZER)}
BATCHINGS: list[dict[str, Any]] = [
    {"batch_size": 3, "batching": Pack("text", 16)},
    {"batch_size": 3, "batching": Pack("text", 16, "best_fit", buffer_size=4)},
    {"batch_size": Tokens(64, column="text")},
    {"batch_size": Tokens(64), "ragged": Padded(0, max_length=20)},
    {"batch_size": 4, "batching": Buckets("text", window=16)},
    {"batch_size": Tokens(96), "batching": Buckets("text", window=16)},
]
SOURCES = ["table", "parquet", "ipc", "stream"]


def make(source: Any = TABLE, **options: Any) -> arrowdl.Loader:
    common = {"framework": "numpy", "ragged": "offsets", "transform_arrow": STEP}
    return arrowdl.Loader(source, **group(**{**common, **options}))


def write(kind: str, table: pa.Table, folder: Path) -> Any:
    if kind == "table":
        return table
    if kind == "stream":
        return lambda: iter(table.to_batches(7))
    folder.mkdir()
    for i, start in enumerate(range(0, ROWS, 15)):
        part = table[start : start + 15]
        if kind == "ipc":
            feather.write_feather(part, f"{folder}/{i}.arrow", "uncompressed", chunksize=6)
        else:
            pq.write_table(part, f"{folder}/{i}.parquet", row_group_size=6)
    return folder


def to_lists(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {name: to_lists(value) for name, value in batch.items()}
    if isinstance(batch, tuple | list):
        return [to_lists(value) for value in batch]
    return (str(batch.dtype), batch.tolist())


def read(loader: arrowdl.Loader) -> list[Any]:
    with loader:
        return [to_lists(batch) for batch in loader]


@pytest.mark.parametrize("order", [{}, {"shuffle": True}, {"shuffle": True, "buffer_size": 16}])
@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
@pytest.mark.parametrize("kind", SOURCES)
def test_batches_are_those_of_a_file_of_tokens(
    kind: str, batching: dict[str, Any], order: dict[str, Any], tmp_path: Path
) -> None:
    if kind == "stream" and not isinstance(batching.get("batching"), Pack):
        return  # refused: the lengths of its rows are not known ahead
    if "buffer_size" in order and isinstance(batching.get("batching"), Buckets):
        return  # given twice
    found = read(make(write(kind, TABLE, tmp_path / "text"), **batching, **order))
    options = {**batching, **order, "transform_arrow": None}
    assert found == read(make(write(kind, TOKENIZED, tmp_path / "ids"), **options))
    assert len(found) > 5


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_worker_processes(batching: dict[str, Any], tmp_path: Path) -> None:
    options = {"shuffle": True, "num_workers": 2, **batching}
    found = read(make(write("parquet", TABLE, tmp_path / "text"), **options))
    tokens = write("parquet", TOKENIZED, tmp_path / "ids")
    assert found == read(make(tokens, **{**options, "transform_arrow": None}))


WORLDS: list[list[tuple[int, int, int]]] = [
    [(2, 0, 1), (1, 2, 2)],
    [(4, 1, 2), (2, 2, 1)],
    [(1, 3, 3)],
]


@pytest.mark.parametrize("worlds", WORLDS, ids=str)
@pytest.mark.parametrize("tokens", [False, True])
def test_resumes_on_other_ranks(
    tokens: bool, worlds: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    size: Any = Tokens(4 * 64, column="text") if tokens else 8
    batching = {} if tokens else {"batching": Buckets("text")}

    def open_worlds(source: Any, **options: Any) -> Any:
        def open_loader(**rank: Any) -> arrowdl.Loader:
            ranks = arrowdl.Ranks(**rank, global_batch_size=size, splits=4)
            return make(source, ranks=ranks, shuffle=True, seed=3, **batching, **options)

        return lambda ranks, workers: Ranks(open_loader, ranks, workers)

    ids = write("parquet", TOKENIZED, tmp_path / "ids")
    text = write("parquet", TABLE, tmp_path / "text")
    plan = open_worlds(ids, transform_arrow=None, filter=pc.field("id") < 36)
    expected = read_with_stops(plan, [], 36)
    assert read_with_stops(open_worlds(text, filter=pc.field("id") < 36), worlds, 36) == expected


def test_resumed_blocks(tmp_path: Path) -> None:
    folder = write("parquet", TABLE, tmp_path / "text")
    options: dict[str, Any] = {"batch_size": 2, "batching": Pack("text", 16), "shuffle": True}
    whole = read(make(folder, **options))
    with make(folder, **options) as loader:
        batches = iter(loader)
        begin = [to_lists(next(batches)) for _ in range(3)]
        state = json.loads(json.dumps(loader.state_dict()))
    with make(folder, **options) as resumed:
        resumed.load_state_dict(state)
        assert begin + [to_lists(batch) for batch in resumed] == whole
    shorter = {"text": Tokenize(TOKENIZER, max_length=8)}
    with (
        make(folder, transform_arrow=shorter, **options) as other,
        pytest.raises(ValueError, match="another"),
    ):
        other.load_state_dict(state)


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_each_text_is_encoded_once(
    batching: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    encode = HuggingFaceTokenizer.encode

    def count(self: Any, own: list[str], *given: Any, **options: Any) -> Any:
        texts.extend(own)
        return encode(self, own, *given, **options)

    monkeypatch.setattr(HuggingFaceTokenizer, "encode", count)
    with make(write("parquet", TABLE, tmp_path / "text"), shuffle=True, **batching) as loader:
        for _ in range(3):
            assert sum(1 for _ in loader) > 0
    assert sorted(texts) == sorted(TEXTS)


def test_a_copy_keeps_ids_when_the_loader_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    encode = HuggingFaceTokenizer.encode

    def count(self: Any, own: list[str], *given: Any, **options: Any) -> Any:
        counts.append(len(own))
        return encode(self, own, *given, **options)

    loader = make(**BATCHINGS[0])
    expected = list(loader)
    copy = pickle.loads(pickle.dumps(loader))
    del loader
    gc.collect()
    monkeypatch.setattr(HuggingFaceTokenizer, "encode", count)
    for _ in range(2):
        assert len(list(copy)) == len(expected)
        assert sum(counts) == ROWS
    folder = Path(copy._source._folder.path)
    assert folder.exists()
    del copy
    gc.collect()
    assert not folder.exists()


def test_without_room_texts_are_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*names: str) -> None:
        raise OSError(28, "No space left on device")

    expected = read(make(TOKENIZED, transform_arrow=None, **BATCHINGS[0]))
    monkeypatch.setattr(os, "replace", refuse)
    loader = make(**BATCHINGS[0])
    assert read(loader) == expected
    assert isinstance(loader._source, TokenizedSource)
    assert not os.listdir(loader._source._folder.path)  # what was written would take room


def test_batches_may_be_written_to(tmp_path: Path) -> None:
    """They are copies of the files that keep the ids."""
    with make(write("ipc", TABLE, tmp_path / "text"), **BATCHINGS[2]) as loader:
        for _ in range(2):
            ids = []
            for batch in loader:
                values, offsets = batch["text"]
                ids += [row.tolist() for row in np.split(values, offsets[1:-1])]
                values[:] = -1
            assert ids == IDS


def test_the_files_go_with_the_loader(tmp_path: Path) -> None:
    loader = make(**BATCHINGS[0])
    read(loader)
    source = loader._source
    assert isinstance(source, TokenizedSource)
    folder = Path(source._folder.path)
    assert len(list(folder.iterdir())) == 1
    del loader, source
    gc.collect()
    assert not folder.exists()


def test_the_files_go_with_a_forked_process(tmp_path: Path) -> None:
    code = f"""
import arrowdl, multiprocessing, pyarrow, tokenizers

tokenizer = tokenizers.Tokenizer.from_str({TOKENIZER.to_str()!r})

def read():
    global loader
    loader = arrowdl.Loader(
        pyarrow.table({{"text": ["a b", "c"]}}),
        1,
        batching=arrowdl.Pack("text", 4),
        transform_arrow={{"text": arrowdl.Tokenize(tokenizer)}},
        framework="numpy",
    )
    assert list(loader)

process = multiprocessing.get_context("fork").Process(target=read)
process.start()
process.join()
assert not process.exitcode
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert not list(tmp_path.glob("arrowdl-tokens-*"))


def test_a_mixture() -> None:
    def open_mixture(table: pa.Table, step: Any) -> arrowdl.Loader:
        return arrowdl.Loader.mix(
            {"a": table, "b": table[20:]},
            {"a": 1, "b": 2},
            ranks=arrowdl.Ranks(global_batch_size=4),
            batching=Pack("text", 16, add=()),
            origin="origin",
            framework="numpy",
            transform_arrow=step,
        )

    assert read(open_mixture(TABLE, STEP)) == read(open_mixture(TOKENIZED, None))


def test_other_functions_are_called_with_the_batches() -> None:
    def number(batch: pa.RecordBatch) -> pa.RecordBatch:
        lengths = pc.list_value_length(batch["text"])
        return batch.append_column("length", pc.cast(lengths, pa.int64()))

    steps = [{"id": pc.negate, **STEP}, number]
    with make(batch_size=Tokens(64), transform_arrow=steps) as loader:
        for batch in loader:
            assert batch["length"].tolist() == [len(IDS[-i]) for i in batch["id"]]
    with pytest.raises(ValueError, match='changes "text" before it is tokenized'):
        make(batch_size=Tokens(64), transform_arrow=[{"text": pc.utf8_lower}, STEP])


def test_another_column_that_is_counted() -> None:
    """Then the batches are tokenized, as if rows were counted."""
    table = TABLE.append_column("n", pa.array([1] * ROWS))
    with make(table, batch_size=Tokens(4, column="n")) as loader:
        assert not isinstance(loader._source, TokenizedSource)
        values, offsets = next(iter(loader))["text"]
    assert [row.tolist() for row in np.split(values, offsets[1:-1])] == IDS[:4]


def test_columns_that_are_not_there() -> None:
    with pytest.raises(ValueError, match='names the column "words"'):
        make(batch_size=2, batching=Pack("words", 4), transform_arrow={"words": STEP["text"]})
    with pytest.raises(TypeError, match="cannot tokenize a column of int32"):
        make(batch_size=2, batching=Pack("id", 4), transform_arrow={"id": STEP["text"]})


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_row_groups_that_cannot_be_read(batching: dict[str, Any], tmp_path: Path) -> None:
    """They are left out, as of a file of tokens."""
    batches = []
    for name, table in (("text", TABLE), ("ids", TOKENIZED)):
        path = tmp_path / f"{name}.parquet"
        write_checked(path, table, 8)
        source = open_checked([str(path)])
        flip_value(path, 2, 1)
        step = STEP if name == "text" else None
        options = {**batching, "on_error": "skip", "max_skipped_rows": ROWS}
        loader = make(source, transform_arrow=step, **options)
        batches.append(read(loader))
    assert batches[0] == batches[1]
    assert len(batches[0]) > 3


def test_text_that_cannot_be_tokenized(tmp_path: Path) -> None:
    folder = write("parquet", TABLE, tmp_path / "text")
    tokenizer = Tokenizer(models.WordLevel({text: i for i, text in enumerate(TEXTS) if i != 17}))
    options = {"batch_size": Tokens(4), "transform_arrow": {"text": Tokenize(tokenizer)}}
    with pytest.raises(ValueError, match="cannot tokenize the text") as caught:
        read(make(folder, **options))
    where = f"row 2 of {str(folder / '1.parquet')!r}"
    assert f"row 2 of the batch is {where}" in caught.value.__notes__[0]


FAILING = (3, 17, 18, 25)
STRICT = Tokenizer(models.WordLevel({text: i for i, text in enumerate(TEXTS) if i not in FAILING}))
STRICT_STEP = {"text": Tokenize(STRICT)}
BY_ROWS: list[dict[str, Any]] = [
    {"batch_size": Tokens(4)},
    {"batch_size": Tokens(4), "shuffle": True},
    {"batch_size": Tokens(4), "num_workers": 1},
    {"batch_size": 4, "batching": Buckets("text", window=16)},
]


def find_skipped(loader: arrowdl.Loader) -> list[tuple[str, int]]:
    """The files and rows that were skipped, each alone."""
    entries = loader.stats().skipped
    assert all("cannot tokenize the text: Exception: WordLevel" in entry.error for entry in entries)
    assert all(entry.row_group is None for entry in entries)
    return sorted(
        {(Path(entry.path).name, start) for entry in entries for start, _ in entry.ranges}
    )


def place(kind: str, row: int) -> tuple[str, int]:
    names = {"table": "", "ipc": f"{row // 15}.arrow", "parquet": f"{row // 15}.parquet"}
    return names[kind], row if kind == "table" else row % 15


@pytest.mark.parametrize("options", BY_ROWS, ids=str)
@pytest.mark.parametrize("kind", ["table", "parquet", "ipc"])
def test_only_rows_that_cannot_be_tokenized_are_skipped(
    kind: str, options: dict[str, Any], tmp_path: Path
) -> None:
    source = write(kind, TABLE, tmp_path / "text")
    options = {"transform_arrow": STRICT_STEP, "on_error": Skip(4), **options}
    with make(source, **options) as loader:
        for epoch in range(2):
            ids = [int(i) for batch in loader for i in batch["id"][: loader.valid_rows]]
            assert sorted(ids) == [i for i in range(ROWS) if i not in FAILING]
            assert loader.stats().skipped_rows == 4 * (epoch + 1)
            assert find_skipped(loader) == sorted(place(kind, row) for row in FAILING)
    with (
        pytest.raises(ValueError, match="allows no more"),
        make(source, **{**options, "on_error": Skip(3)}) as loader,
    ):
        read(loader)


@pytest.mark.parametrize("kind", ["table", "parquet", "ipc"])
def test_packed_rows_that_cannot_be_tokenized(kind: str, tmp_path: Path) -> None:
    """Their documents are in no block, and no block is skipped."""
    source = write(kind, TABLE, tmp_path / "text")
    pack = {"batch_size": 2, "batching": Pack("text", 3, add=())}
    options = {**pack, "transform_arrow": STRICT_STEP, "on_error": Skip(4)}
    with make(source, **options) as loader:
        tokens = [int(i) for batch in loader for i in batch["text"][: loader.valid_rows].ravel()]
        assert loader.stats().skipped_rows == 0
        assert find_skipped(loader) == sorted(place(kind, row) for row in FAILING)
    kept = [i for i in range(ROWS) if i not in FAILING]
    assert tokens[: len(kept)] == kept
    assert not any(tokens[len(kept) :])
    with pytest.raises(OSError, match="the lengths of 4 rows cannot be read"):
        read(make(source, **{**options, "on_error": Skip(3)}))


def test_text_that_is_packed_with_other_lists_is_left_out_with_its_row_group(
    tmp_path: Path,
) -> None:
    marks = pa.array([[i] for i in range(ROWS)], pa.list_(pa.int32()))
    folder = write("parquet", TABLE.append_column("mark", marks), tmp_path / "text")
    options = {"transform_arrow": STRICT_STEP, "on_error": Skip(ROWS)}
    with make(folder, batch_size=1, batching=Pack("text", 3, add=()), **options) as loader:
        batches = [batch for batch in loader for _ in range(loader.valid_rows)]
    tokens = [int(i) for batch in batches for i in batch["text"].ravel()]
    kept = [i for i in range(ROWS) if i not in (*range(6), *range(15, 27))]
    assert tokens[: len(kept)] == kept
    assert [int(i) for batch in batches for i in batch["mark"].ravel()] == tokens


def test_a_mixture_names_the_source_of_a_row_that_cannot_be_tokenized() -> None:
    sources = {"one": TABLE[:10], "two": TABLE[10:20]}
    options: dict[str, Any] = {"ragged": "offsets", "on_error": Skip(4)}
    options |= {"ranks": arrowdl.Ranks(global_batch_size=Tokens(4)), "transform_arrow": STRICT_STEP}
    with arrowdl.Loader.mix(sources, {"one": 1, "two": 1}, framework="numpy", **options) as loader:
        ids = [int(i) for batch in loader for i in batch["id"][: loader.valid_rows]]
        assert find_skipped(loader) == [("one", 3), ("two", 7), ("two", 8)]
    assert not set(ids) & set(FAILING)


def test_rows_by_their_numbers_are_not_skipped() -> None:
    options = {"batching": Buckets("text", window=16), "transform_arrow": STRICT_STEP}
    loader = make(batch_size=4, on_error=Skip(4), **options)
    assert len(list(loader)) == 10
    with pytest.raises(ValueError, match="cannot tokenize the text"):
        loader.map_dataset()[3]
