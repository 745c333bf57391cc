"""Passes of torchdata, Grain, LitData and LanceDB, in the environment of `make bench BENCH=peers`.

Each peer is used as its documentation recommends for tables, with batched reads where it has them.
Those that make rows in Python read files of fewer rows, so that a pass takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from benchmarks.loader.cases import Case, Pass, drain, to_tensor
from benchmarks.loader.data import BATCH_ROWS

FEW_ROWS = 20_000
NAMES = ("emb", "tab")
TARGET = 1.0  # issue 16 has none for these


def make_loader_cases(folder: Path) -> Iterator[Case]:
    """Passes over the files of `data.write_files`."""
    for name in NAMES:
        yield from _make_torchdata(name, folder)
        yield from _make_grain(name, folder)
        yield from _make_litdata(name, folder)
        yield from _make_lancedb(name, folder)


def write_few(name: str, folder: Path) -> Path:
    """The first rows of a data set, as the only file of a folder."""
    path = folder / f"{name}-few" / "part.parquet"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pq.read_table(folder / f"{name}.parquet").slice(0, FEW_ROWS), path)
    return path


def map_table(name: str, folder: Path) -> pa.Table:
    with pa.memory_map(str(folder / f"{name}.arrow")) as file:
        return pa.ipc.open_file(file).read_all()


def make_tensors(batch: pa.RecordBatch | pa.Table) -> dict[str, Any]:
    """A tensor of each column of a batch; nulls become NaN."""
    if isinstance(batch, pa.Table):
        batch = batch.combine_chunks()
    columns = (
        column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        for column in batch.columns
    )
    return dict(zip(batch.schema.names, map(to_tensor, columns), strict=True))


def _make_pass(source: Any, name: str, **options: Any) -> Pass:
    loader = arrowdl.Loader(source, BATCH_ROWS[name], nulls="nan", **options)
    return partial(_drain, loader)


def _drain(batches: Any) -> int:
    return drain(iter(batches))


class TakenRows(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    """Rows of a table for samplers, a batch at a time."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table.combine_chunks()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, index: int) -> pa.Table:
        return self.table.slice(index, 1)

    def __getitems__(self, indices: list[int]) -> pa.Table:
        return self.table.take(pa.array(indices))


class ParquetBatches:
    """What `ParquetFile.iter_batches` returns, once more in each epoch."""

    def __init__(self, path: Path, rows: int) -> None:
        self.path, self.rows = path, rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(pq.ParquetFile(self.path).iter_batches(self.rows))


def _make_torchdata(name: str, folder: Path) -> Iterator[Case]:
    from torchdata import nodes
    from torchdata.stateful_dataloader import StatefulDataLoader

    rows = TakenRows(map_table(name, folder))
    for shuffle, suffix in ((False, ""), (True, "-shuffled")):
        ours = _make_pass(folder / f"{name}.arrow", name, shuffle=shuffle)
        batches = StatefulDataLoader(
            rows, batch_size=BATCH_ROWS[name], shuffle=shuffle, collate_fn=make_tensors
        )
        peer = "StatefulDataLoader, __getitems__ by Table.take"
        yield Case(f"torchdata-{name}{suffix}", ours, partial(_drain, batches), peer, TARGET)
    path = folder / f"{name}.parquet"
    read = nodes.IterableWrapper(ParquetBatches(path, BATCH_ROWS[name]))
    pipeline = nodes.Loader(nodes.Prefetcher(nodes.Mapper(read, make_tensors), 4))
    peer = "torchdata.nodes: iter_batches, map, prefetch"
    yield Case(f"nodes-{name}", _make_pass(path, name), partial(_drain, pipeline), peer, TARGET)


class ArrayRows:
    """Rows of NumPy arrays for Grain, which batches them."""

    def __init__(self, table: pa.Table) -> None:
        self.arrays = {key: value.numpy() for key, value in make_tensors(table).items()}
        self.rows = table.num_rows

    def __len__(self) -> int:
        return int(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {name: array[index] for name, array in self.arrays.items()}


def _make_grain(name: str, folder: Path) -> Iterator[Case]:
    import grain

    rows, path = BATCH_ROWS[name], write_few(name, folder)
    ours = _make_pass(path, name, framework="numpy")
    read = grain.experimental.ParquetIterDataset(str(path)).batch(rows, batch_fn=stack_rows)
    yield Case(f"grain-{name}", ours, partial(_drain, read), "ParquetIterDataset.batch", TARGET)
    table = map_table(name, folder).slice(0, FEW_ROWS)
    ours = _make_pass(table, name, framework="numpy", shuffle=True)
    # Grain's advice for data in memory: its threads would wait for each other.
    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    mapped = grain.MapDataset.source(ArrayRows(table)).shuffle(seed=7).to_iter_dataset(options)
    peer = "MapDataset of rows in memory, shuffled"
    yield Case(f"grain-{name}-map", ours, partial(_drain, mapped.batch(rows)), peer, TARGET)
    chosen = grain.MapDataset.range(table.num_rows).shuffle(seed=7).batch(rows)
    gather = partial(gather_rows, ArrayRows(table).arrays)
    gathered = chosen.map(gather).to_iter_dataset(options)
    peer = "MapDataset of numbers, batched gathers"
    yield Case(f"grain-{name}-gathers", ours, partial(_drain, gathered), peer, TARGET)


def stack_rows(rows: Any) -> dict[str, Any]:
    """A batch of rows of numbers and vectors."""
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def gather_rows(arrays: dict[str, Any], numbers: Any) -> dict[str, Any]:
    return {name: array[numbers] for name, array in arrays.items()}


def _make_litdata(name: str, folder: Path) -> Iterator[Case]:
    import litdata
    from litdata.streaming.item_loader import ParquetLoader

    path = write_few(name, folder)
    litdata.index_parquet_dataset(str(path.parent), num_workers=1)
    dataset = litdata.StreamingDataset(str(path.parent), item_loader=ParquetLoader())
    batches = litdata.StreamingDataLoader(
        dataset, batch_size=BATCH_ROWS[name], num_workers=0, collate_fn=collate_values
    )
    peer = "StreamingDataset of Parquet, num_workers=0"
    yield Case(f"litdata-{name}", _make_pass(path, name), partial(_drain, batches), peer, TARGET)


def collate_values(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Tensors of rows of Python's numbers and lists. NumPy makes None a NaN."""
    return {name: _make_tensor([row[name] for row in rows]) for name in rows[0]}


def _make_tensor(values: list[Any]) -> Any:
    array = np.array(values, None if isinstance(values[0], int) else np.float32)
    return torch.from_numpy(array)


def open_permutation(path: Path, folder: Path) -> Any:
    """All rows of a table of LanceDB, which is made of a Parquet file."""
    import lancedb
    from lancedb.permutation import Permutation

    database = lancedb.connect(str(folder / "lancedb"))
    name = "-".join(path.relative_to(folder).with_suffix("").parts)
    try:
        table = database.open_table(name)
    except ValueError:
        table = database.create_table(name, pq.read_table(path))
    return Permutation.identity(table)


def _make_lancedb(name: str, folder: Path) -> Iterator[Case]:
    from torch.utils.data import DataLoader

    rows, path = BATCH_ROWS[name], folder / f"{name}.parquet"
    in_order = open_permutation(path, folder).with_transform(make_tensors)

    def iterate() -> int:
        return drain(in_order.iter(rows))

    peer = "LanceDB's Permutation.iter, its own format"
    yield Case(f"lancedb-{name}", _make_pass(path, name), iterate, peer, TARGET)
    if name == "tab":
        path = write_few(name, folder)
    permutation = open_permutation(path, folder).with_transform(make_tensors)
    batches = DataLoader(permutation, batch_size=rows, shuffle=True, collate_fn=return_batch)
    peer = "LanceDB's Permutation in a DataLoader, shuffled"
    ours = _make_pass(path, name, shuffle=True)
    yield Case(f"lancedb-{name}-shuffled", ours, partial(_drain, batches), peer, TARGET)


def return_batch(batch: Any) -> Any:
    return batch
