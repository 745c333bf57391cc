"""DeviceStream.pack beside a model in plain Python: blocks, resumes, batches, refusals."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.random_arrays import draw_type, draw_values, lay_out
from helpers.random_cases import check_cases

ADDED = ("position_ids", "segment_ids", "cu_seqlens", "resume_from")
LISTS: list[Callable[[pa.DataType], pa.DataType]] = [
    pa.list_,
    pa.large_list,
    pa.list_view,
    pa.large_list_view,
]
OTHERS = [
    pa.int64(),
    pa.string(),
    pa.list_(pa.string()),
    pa.list_(pa.float32(), 3),
    pa.struct([("a", pa.int32()), ("b", pa.string())]),
    pa.dictionary(pa.int8(), pa.string()),
]
ITEMS = [pa.int32(), pa.int64(), pa.uint8(), pa.float32(), pa.bool_(), pa.list_(pa.int16(), 2)]


@dataclass
class Rows:
    """The columns of a source: `tokens`, `aligned` ones and others, and the padding of each."""

    types: dict[str, pa.DataType]
    values: dict[str, list[Any]]
    packed: list[str]
    padding: dict[str, Any]

    def open(self, rng: random.Random, start: int = 0) -> arrowdl.DeviceStream:
        """Open the rows from `start` on, in arrays of any size and layout."""
        batches = []
        count = len(self.values["tokens"])
        while start < count or not batches:
            stop = min(count, start + rng.choice([0, 1, 2, 5, 30]))
            columns = [
                lay_out(rng, kind, self.values[name][start:stop])
                for name, kind in self.types.items()
            ]
            batches.append(pa.record_batch(columns, names=list(self.types)))
            start = stop
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        return arrowdl.from_arrow_stream(reader)


@dataclass
class Block:
    """(row, first item, last item) of each part, and where the stream goes on."""

    parts: list[tuple[int, int, int]] = field(default_factory=list)
    after: tuple[int, int, int] = (0, 0, 0)

    @property
    def used(self) -> int:
        return sum(stop - start for _, start, stop in self.parts)


def pack_in_turn(lengths: list[int], length: int, drop_last: bool) -> list[Block]:
    items = [(row, i) for row, n in enumerate(lengths) for i in range(n)]
    blocks = []
    for start in range(0, len(items), length):
        block = Block()
        chosen = items[start : start + length]
        for row in sorted({row for row, _ in chosen}):
            of_row = [i for other, i in chosen if other == row]
            block.parts.append((row, of_row[0], of_row[-1] + 1))
        row, _, stop = block.parts[-1]
        block.after = (row, stop, 0) if stop < lengths[row] else (row + 1, 0, 0)
        blocks.append(block)
    if blocks and drop_last and blocks[-1].used < length:
        blocks.pop()
    return blocks


def place_by_fit(lengths: list[int], length: int, buffer_size: int, drop_last: bool) -> list[Block]:
    blocks: list[Block] = []
    window: list[tuple[int, int, int]] = []
    first = 0
    for row, n in enumerate(lengths):
        window += [(row, start, min(n, start + length)) for start in range(0, n, length)]
        held = sum(stop - start for _, start, stop in window)
        is_last = not any(lengths[row + 1 :])
        if held < buffer_size * length and row + 1 < len(lengths):
            continue
        placed = place_window(window, length)
        for number, block in enumerate(placed):
            block.after = (first, 0, number + 1)
        if placed:
            first = window[-1][0] + 1
            placed[-1].after = (first, 0, 0)
        blocks += placed
        window = []
        if is_last and drop_last and placed and blocks[-1].used < length:
            blocks.pop()
            if len(placed) > 1:
                placed[-2].after = (first, 0, 0)
            return blocks
    return blocks


def place_window(window: list[tuple[int, int, int]], length: int) -> list[Block]:
    left = sorted(window, key=lambda part: part[1] - part[2])
    blocks = []
    while left:
        block = Block()
        for part in list(left):
            if part[2] - part[1] <= length - block.used:
                block.parts.append(part)
                left.remove(part)
        block.parts.sort()
        blocks.append(block)
    if not blocks:
        return []
    emptiest = min(blocks, key=lambda block: block.used)
    blocks.remove(emptiest)
    return [*sorted(blocks, key=lambda block: block.parts), emptiest]


def expect_row(rows: Rows, block: Block, length: int, added: tuple[str, ...]) -> dict[str, Any]:
    padding = length - block.used
    ends = np.cumsum([0, *(stop - start for _, start, stop in block.parts)]).tolist()
    ids = {
        "position_ids": [
            i for a, b in zip(ends, [*ends[1:], length], strict=True) for i in range(b - a)
        ],
        "segment_ids": [
            number + 1 for number, (_, a, b) in enumerate(block.parts) for _ in range(a, b)
        ]
        + [0] * padding,
        "cu_seqlens": ends + [length] * (padding > 0),
        "resume_from": list(block.after),
    }
    made: dict[str, Any] = {}
    for name, values in rows.values.items():
        if name in rows.packed:
            made[name] = [x for row, a, b in block.parts for x in values[row][a:b]]
            made[name] += [rows.padding[name]] * padding
        else:
            made[name] = [values[row] for row, _, _ in block.parts]
    return made | {name: ids[name] for name in added}


def draw_rows(rng: random.Random) -> Rows:
    longest = rng.choice([1, 4, 12, 40])
    count = rng.choice([0, 1, 3, 20, 60])
    lengths = [rng.choice([0, 1, rng.randrange(longest + 1)]) for _ in range(count)]
    types: dict[str, pa.DataType] = {}
    values: dict[str, list[Any]] = {}
    padding: dict[str, Any] = {}
    packed = ["tokens", *rng.sample(["labels", "mask"], rng.randrange(3))]
    for name in packed:
        item = rng.choice(ITEMS)
        types[name] = rng.choice(LISTS)(item)
        values[name] = [draw_values(rng, item, length, 0) for length in lengths]
        scalar = rng.randrange(2)
        is_pair = pa.types.is_fixed_size_list(item)
        padding[name] = [scalar] * 2 if is_pair else scalar
    for name in rng.sample(["id", "text"], rng.randrange(3)):
        # A list of items of a fixed width would be packed too.
        types[name] = rng.choice([*OTHERS, draw_type(rng, 0)])
        values[name] = draw_values(rng, types[name], count, 0.2)
    names = rng.sample(list(types), len(types))
    return Rows(
        {name: types[name] for name in names},
        {name: values[name] for name in names},
        packed,
        padding,
    )


def read(stream: arrowdl.DeviceStream) -> list[dict[str, Any]]:
    return [row for array in stream for row in pa.array(array).to_pylist()]


def check_packing(rng: random.Random) -> None:
    rows = draw_rows(rng)
    lengths = [len(tokens) for tokens in rows.values["tokens"]]
    length = rng.choice([1, 2, 5, 16, 64])
    drop_last = rng.random() < 0.3
    added = tuple(rng.sample(ADDED, rng.randrange(5)))
    if rng.random() < 0.5:
        strategy, buffer_size = "best_fit", rng.choice([1, 2, 7])
        blocks = place_by_fit(lengths, length, buffer_size, drop_last)
    else:
        strategy, buffer_size = "concat", 1
        blocks = pack_in_turn(lengths, length, drop_last)
    options: dict[str, Any] = {
        "strategy": strategy,
        "buffer_size": buffer_size,
        "drop_last": drop_last,
        "pad_value": {
            name: value[0] if isinstance(value, list) else value
            for name, value in rows.padding.items()
        },
        "add": added,
    }
    stream = rows.open(rng).pack("tokens", length, **options)
    if rng.random() < 0.5:
        stream = stream.rebatch(rng.randrange(1, 4)).prefetch()
    expected = [expect_row(rows, block, length, added) for block in blocks]
    assert read(stream) == expected
    if blocks:
        done = rng.randrange(len(blocks))
        state = blocks[done].after
        rest = rows.open(rng, state[0]).pack("tokens", length, **options, resume_from=state)
        assert read(rest) == expected[done + 1 :]


def test_blocks_are_those_of_the_model() -> None:
    check_cases(check_packing, 250)


# ---------------------------------------------------------------- batches


TABLE = pa.table({"tokens": [[1, 2, 3], [], [4, 5], [6, 7, 8, 9, 10], [11]], "id": list("abcde")})


def pack(table: pa.Table = TABLE, length: int = 4, **options: Any) -> arrowdl.DeviceStream:
    return arrowdl.from_arrow_stream(table).pack("tokens", length, **options)


def test_a_batch_has_tensors_and_the_offsets_of_flash_attention() -> None:
    batch = next(pack(pad_value=-1))
    tensors = arrowdl.to_numpy(batch.field("tokens"))
    assert tensors.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, -1]]
    positions = arrowdl.to_numpy(batch["position_ids"])
    assert positions.dtype == np.int32
    assert positions.tolist() == [[0, 1, 2, 0], [0, 0, 1, 2], [0, 1, 0, 0]]
    assert arrowdl.to_numpy(batch["segment_ids"]).tolist() == [
        [1, 1, 1, 2],
        [1, 2, 2, 2],
        [1, 1, 2, 0],
    ]
    offsets = np.from_dlpack(arrowdl.flatten_cu_seqlens(batch["cu_seqlens"]))
    assert offsets.dtype == np.int32
    assert offsets.tolist() == [0, 3, 4, 5, 8, 10, 11, 12]
    # What finds sequences by positions that are 0 finds the same ones.
    assert [*np.flatnonzero(positions.ravel() == 0), 12] == offsets.tolist()
    last = batch[1:]["cu_seqlens"]
    assert np.from_dlpack(arrowdl.flatten_cu_seqlens(last)).tolist() == [0, 1, 4, 6, 7, 8]


def test_other_libraries_read_the_blocks() -> None:
    table = pa.table(pack(strategy="best_fit", add=["resume_from"]))
    assert table.to_pydict() == {
        "tokens": [[1, 2, 3, 10], [6, 7, 8, 9], [4, 5, 11, 0]],
        "id": [["a", "d"], ["d"], ["c", "e"]],
        "resume_from": [[0, 0, 1], [0, 0, 2], [5, 0, 0]],
    }
    assert table.schema.field("tokens").type == pa.list_(pa.int64(), 4)


def test_resumes_take_the_row_as_it_comes() -> None:
    whole = pa.table(pack(add=["resume_from"]))
    state = np.array(whole["resume_from"][0].as_py())
    rest = arrowdl.from_arrow_stream(TABLE).slice(int(state[0]))
    packed = pa.table(rest.pack("tokens", 4, add=["resume_from"], resume_from=state))
    assert packed.to_pylist() == whole.to_pylist()[1:]


def test_shuffled_rows_resume_in_the_middle_of_a_window() -> None:
    table = pa.table({"tokens": [[i] * (1 + i % 5) for i in range(60)]})

    def open_at(row: int) -> arrowdl.DeviceStream:
        window, rest = divmod(row, 16)
        stream = arrowdl.from_arrow_stream(table).slice(16 * window)
        return stream.shuffle(16, seed=3, first_window=window).slice(rest)

    for strategy in ("concat", "best_fit"):
        options: Any = {"strategy": strategy, "buffer_size": 2, "add": ADDED}
        whole = read(open_at(0).pack("tokens", 8, **options))
        for done, block in enumerate(whole):
            state = block["resume_from"]
            stream = open_at(state[0]).pack("tokens", 8, **options, resume_from=state)
            assert read(stream) == whole[done + 1 :]


@pytest.mark.parametrize("strategy", ["concat", "best_fit"])
def test_few_rows_are_read_ahead(strategy: Any) -> None:
    read_rows = 0

    def yield_batches() -> Iterator[pa.RecordBatch]:
        nonlocal read_rows
        while True:
            read_rows += 100
            yield pa.record_batch({"tokens": [[7] * 10] * 100})

    stream = arrowdl.from_arrow_stream(yield_batches())
    blocks = stream.pack("tokens", 16, strategy, buffer_size=64).rebatch(1)
    for _ in range(20):
        assert len(next(blocks)) == 1
    assert read_rows <= 200


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"strategy": "first_fit"}, ValueError, "strategy='first_fit' is not one of \"concat\""),
        ({"long": "wrap"}, ValueError, "long='wrap' is not one of \"split\""),
        ({"long": "raise"}, ValueError, 'row 3 has 5 items in "tokens", and a block has 4'),
        ({"pad_value": "x"}, TypeError, "pad_value='x'"),
        ({"pad_value": 2**80}, ValueError, "is not a value of int64"),
        ({"pad_value": 1.5}, ValueError, "is not a value of int64"),
        ({"pad_value": {"labels": 1}}, ValueError, 'names "labels", and the columns are'),
        ({"add": ["seqlens"]}, ValueError, "packing adds"),
        ({"add": "position_ids"}, TypeError, "incompatible"),
        ({"aligned": ["id"]}, TypeError, 'column "id" is of string'),
        ({"resume_from": (0, 0, 1)}, ValueError, 'is not a position of strategy="concat"'),
        ({"resume_from": (0, 9, 0)}, ValueError, "value 9 of row 0, which has 3 items"),
        ({"buffer_size": 0}, ValueError, "buffer_size=0"),
    ],
)
def test_what_cannot_be_is_said(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        read(pack(**options))
    assert text in str(caught.value)


def test_refused_arguments_leave_the_stream() -> None:
    stream = arrowdl.from_arrow_stream(TABLE)
    with pytest.raises(ValueError, match="no column"):
        stream.pack("words", 4)
    with pytest.raises(ValueError, match="2\\^30"):
        stream.pack("tokens", 0)
    assert len(read(stream)) == 5


def test_padding_of_other_types() -> None:
    decimals = pa.array([[1]], pa.list_(pa.decimal128(5)))
    table = pa.table({"tokens": pa.array([[1]], pa.list_(pa.uint8())), "price": decimals})
    with pytest.raises(ValueError, match='pad_value=1 is not a value of column "price"'):
        pack(table, pad_value=1)
    packed = read(pack(table, pad_value={"tokens": 255}, add=[]))
    assert packed == [{"tokens": [1, 255, 255, 255], "price": [1, 0, 0, 0]}]
    with pytest.raises(ValueError, match=r"pad_value=\{'tokens': 256\} is not a value of uint8"):
        pack(table, pad_value={"tokens": 256})


def test_nulls_name_their_row() -> None:
    for values, text in [
        ([[1], None], 'row 1 of column "tokens" is null'),
        ([[1], [2, None]], 'row 1 of column "tokens" has null items'),
    ]:
        table = pa.table({"tokens": pa.array(values, pa.list_(pa.int32()))})
        with pytest.raises(ValueError, match=text):
            read(pack(table))
    rows = pa.StructArray.from_arrays(
        [TABLE["tokens"].combine_chunks()], ["tokens"], mask=pa.array([False] * 4 + [True])
    )
    with pytest.raises(ValueError, match='row 4 of column "tokens" is null'):
        read(arrowdl.from_arrow_stream(arrowdl.from_arrow(rows)).pack("tokens", 4))
