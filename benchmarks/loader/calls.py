"""Single calls of the loader, in absolute time, and peers in the same rounds.

A frame is compared with pandas' own Arrow export. The others are made by hand with pyarrow, NumPy
and torch alone, which makes less: padding begins with tensors, and batches of the file have the
memory of whole row groups, which may not be written to.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import arrowdl
import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from torch.nn.utils.rnn import pad_sequence

from benchmarks.loader.cases import slice_by_hand, to_tensor
from benchmarks.loader.data import make_table
from benchmarks.timing import FULL, measure

MICROSECOND = 1e-6


class _Call(NamedTuple):
    """A statement, the most seconds that it may take for each of `batches`, and its peer."""

    name: str
    ours: str
    target: float
    peer: str
    peer_name: str
    batches: int = 1


class _Exported:
    """A frame of which only pandas' own Arrow export can be seen."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


def _pad(values: Any, offsets: Any) -> Any:
    return pad_sequence(torch.tensor_split(values, offsets), batch_first=True)


def _fill(path: Path) -> int:
    """Make the batches of an IPC file, without its nulls."""
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file)
        parts = map(reader.get_batch, range(reader.num_record_batches))
        filled = (
            pa.record_batch([column.fill_null(0) for column in part.columns], part.schema.names)
            for part in parts
        )
        return slice_by_hand(filled, 4096)


def _slice(table: pa.Table) -> None:
    """Make the batches of a table as NumPy arrays."""
    for batch in table.to_batches(4096):
        arrays = (column.to_numpy() for column in batch.columns)
        dict(zip(batch.schema.names, arrays, strict=True))


def measure_calls(folder: Path) -> list[dict[str, Any]]:
    """Median seconds of each call, the most that it may take, and what its peer takes."""
    tokens = make_table("tok").slice(0, 1024)["tokens"].combine_chunks()
    columns = {f"x{i}": np.random.default_rng(i).random(4096, dtype=np.float32) for i in range(20)}
    loader = arrowdl.Loader(folder / "tab.arrow", 4096, nulls="fill", prefetch=0)
    batches = len(loader)
    eight = pa.table({f"x{i}": columns["x0"] for i in range(8)})
    eights = pa.concat_tables([eight] * 100).combine_chunks()
    frame = pd.DataFrame({f"x{i}": np.arange(100_000, dtype=np.float32) for i in range(20)})
    values, offsets = to_tensor(tokens)
    names = {
        "to_torch": arrowdl.to_torch,
        "from_numpy": torch.from_numpy,
        "np": np,
        "deque": deque,
        "tokens": arrowdl.from_arrow(tokens),
        "pad": _pad,
        "values": values,
        "offsets": offsets[1:-1].long(),
        "batch": arrowdl.from_arrow(pa.record_batch(columns)),
        "columns": list(columns.values()),
        "loader": loader,
        "fill": _fill,
        "path": folder / "tab.arrow",
        "eight": arrowdl.Loader(eights, 4096, framework="numpy", writable=False, prefetch=0),
        "slice": _slice,
        "eights": eights,
        "frame": frame,
        "exported": _Exported(frame),
    }
    calls = [
        _Call(
            "padding 1,024 lists of mean 128",
            "to_torch(tokens, ragged='padded')",
            100 * MICROSECOND,
            "pad(values, offsets)",
            "pad_sequence",
        ),
        _Call(
            "20 float columns by 4,096 to a matrix",
            "to_torch(batch, stack=True)",
            50 * MICROSECOND,
            "from_numpy(np.stack(columns, 1))",
            "np.stack",
        ),
        _Call(
            "a pandas frame of 20 float columns by 100,000",
            "to_torch(frame)",
            600 * MICROSECOND,
            "to_torch(exported)",
            "pandas' Arrow export",
        ),
        _Call(
            "a 21-column batch of 4,096 from memory-mapped IPC",
            "deque(loader, maxlen=0)",
            30 * MICROSECOND,
            "fill(path)",
            "by hand",
            batches,
        ),
        _Call(
            "an 8-column batch of 4,096 of a table, for NumPy",
            "deque(eight, maxlen=0)",
            5 * MICROSECOND,
            "slice(eights)",
            "by hand",
            100,
        ),
    ]
    statements = [statement for call in calls for statement in (call.ours, call.peer)]
    timings = iter(measure(statements, names, FULL))
    return [
        {
            "name": call.name,
            "median": next(timings).median / call.batches,
            "target": call.target,
            "peer": next(timings).median / call.batches,
            "peer_name": call.peer_name,
        }
        for call in calls
    ]
