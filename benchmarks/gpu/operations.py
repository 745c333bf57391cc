"""Operations on a GPU beside a copy in its memory: bits, nulls, joins, gathers and padded rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import arrowdl
import pyarrow as pa
import torch
from arrowdl import _core

from benchmarks.gpu.cases import Names

OPERATION_ROWS = 1 << 28
WIDE = 32  # elements of a wide row, of 4 bytes
SHUFFLED = 16  # a shuffle has a 16th of the rows: the host makes the order
TARGET = 0.8  # of the bandwidth that a copy has, for rows that fill what a GPU reads at once


@dataclass(frozen=True)
class Operation:
    """A statement that reads and writes `bytes_per_row` of device memory, at least `target` as
    fast as a copy in that memory."""

    name: str
    statement: str
    bytes_per_row: float
    target: float | None = TARGET


OPERATIONS = [
    Operation("bools", "to_torch(bools); finish()", 1 + 1 / 8),
    Operation("nulls filled", "to_torch(nulls, nulls='fill'); finish()", 4 + 1 / 8 + 4 + 1 / 8),
    Operation("mask", "to_torch(nulls, nulls='mask'); finish()", 1 + 1 / 8),
    Operation("bools to bits", "to_arrow_device(flags, bool_as='bits').synchronize()", 1 + 1 / 8),
    Operation("joined", "concatenate([numbers, numbers]).synchronize()", 2 * (4 + 4)),
    Operation("padded", "to_torch(lists, ragged='padded'); finish()", 4 + 4),
    # Rows of 4 bytes come one at a time from memory that is read 32 bytes at a time.
    Operation("rows of 4 bytes shuffled", "shuffle(few)", 8 / SHUFFLED, None),
    Operation("rows of 128 bytes shuffled", "shuffle(wide)", 8 / SHUFFLED),
    # One launch each; rows of 4 bytes again.
    Operation("32 columns shuffled", "shuffle(columns)", 8 / SHUFFLED, None),
    Operation("32 columns stacked", "to_torch(columns, stack=True); finish()", 8 / SHUFFLED, None),
]
# Reads and writes 8 bytes a row.
COPY = "target.copy_(source); finish()"
COPY_BYTES_PER_ROW = 8


def make_operation_names(rows: int, device: str = "cuda") -> Names:
    """The names of the statements; `rows` is a multiple of 512."""
    valid = pa.py_buffer(bytes([0b11101111]) * (rows // 8))
    zeros = pa.py_buffer(bytes(4 * rows))
    numbers = pa.Array.from_buffers(pa.float32(), rows, [None, zeros])
    columns = {
        "bools": pa.Array.from_buffers(pa.bool_(), rows, [None, valid]),
        "nulls": pa.Array.from_buffers(pa.float32(), rows, [valid, zeros], rows // 8),
        "numbers": numbers,
        "few": numbers[: rows // SHUFFLED],
        "wide": pa.FixedSizeListArray.from_arrays(numbers[: rows // SHUFFLED], WIDE),
        "columns": pa.record_batch(
            {f"c{i}": numbers[: rows // SHUFFLED // WIDE] for i in range(WIDE)}
        ),
        "lists": pa.ListArray.from_arrays(pa.array(range(0, rows + 1, WIDE), pa.int32()), numbers),
    }
    source = torch.zeros(rows, device=device)
    names: Names = {name: arrowdl.from_arrow(one).to(device) for name, one in columns.items()}
    for array in names.values():
        array.synchronize()
    finish: Callable[[], None] = (
        torch.cuda.current_stream().synchronize if device == "cuda" else lambda: None
    )
    return {
        **names,
        "flags": torch.zeros(rows, dtype=torch.bool, device=device),
        "source": source,
        "target": torch.empty_like(source),
        "to_torch": arrowdl.to_torch,
        "to_arrow_device": arrowdl.to_arrow_device,
        "concatenate": _core.concatenate,
        "shuffle": _shuffle,
        "finish": finish,
    }


def _shuffle(array: arrowdl.DeviceArray) -> None:
    (made,) = _core.chain([array]).shuffle(len(array), 5)
    made.synchronize()
