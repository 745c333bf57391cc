"""The cases: our pass over a data set, and a peer's pass over the same file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import torch

from benchmarks.loader.data import BATCH_ROWS

Pass = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes
    ----------
    name : str
    ours, peer : callable
        What is timed.
    peer_name : str
        What the peer does, for the table.
    target : float
        The most that `ours` may take, as a multiple of `peer`.
    """

    name: str
    ours: Pass
    peer: Pass
    peer_name: str
    target: float


def drain(batches: Iterator[Any]) -> int:
    """Take every batch, and keep none."""
    count = 0
    for _ in batches:
        count += 1
    return count


def make_cases(folder: Path) -> list[Case]:
    """All rows, over the files of `data.write_files`."""
    return [
        *(case for name in BATCH_ROWS for case in _make_parquet(name, folder)),
        *(case for name in BATCH_ROWS for case in _make_ipc(name, folder)),
        *_make_packed(folder / "tok.parquet"),
        *_make_packed_loaders(folder / "tok.parquet"),
        *_make_tables(folder),
        *_make_small_tables(),
        *_make_filters(folder / "sorted.parquet"),
        _make_workers(folder / "emb.parquet"),
        *(case for name in BATCH_ROWS for case in _make_splits(name, folder)),
        *_make_peers(folder),
    ]


def _make_loader(source: Any, name: str, **arguments: Any) -> Pass:
    # Ragged rows as the hand-written loops make them; the nulls of `tab` have to become something.
    loader = arrowdl.Loader(source, BATCH_ROWS[name], nulls="nan", ragged="offsets", **arguments)
    return partial(_drain_loader, loader)


def _read_floor(path: Path, name: str) -> Pass:
    """pyarrow's plain decode, and no tensors."""
    return lambda: drain(pq.ParquetFile(path).iter_batches(BATCH_ROWS[name]))


def _scan(path: Path) -> Pass:
    """pyarrow's fastest bare decode."""
    return lambda: drain(ds.dataset(path).scanner(batch_size=131_072).to_reader())


def _make_parquet(name: str, folder: Path) -> Iterator[Case]:
    path = folder / f"{name}.parquet"
    floor, ours = _read_floor(path, name), _make_loader(path, name)
    yield Case(f"parquet-{name}", ours, floor, "iter_batches, no tensors", 0.9)
    yield Case(f"parquet-{name}-scan", ours, _scan(path), "scanner, no tensors", 1.15)
    shuffled = _make_loader(path, name, shuffle=True)
    yield Case(f"parquet-{name}-shuffled", shuffled, floor, "iter_batches, no tensors", 1.3)


def _make_filters(path: Path) -> Iterator[Case]:
    """Rows of few row groups, and rows of each; the file is opened in each pass."""
    row, x = ds.field("row"), ds.field("x0")
    for name, filter in (("range", (row >= 900_000) & (x > 0.1)), ("each", x > 0.5)):
        ours, peer = partial(_read_filtered, path, filter), partial(_scan_filtered, path, filter)
        yield Case(f"filter-{name}", ours, peer, "scanner, counted and read", 1.3)


def _read_filtered(path: Path, filter: Any) -> int:
    return drain(iter(arrowdl.Loader(path, 4096, filter=filter)))


def _scan_filtered(path: Path, filter: Any) -> int:
    dataset = ds.dataset(path)
    dataset.scanner(columns=[], filter=filter).count_rows()
    return drain(dataset.scanner(filter=filter, batch_size=131_072).to_reader())


def _make_packed(path: Path) -> Iterator[Case]:
    """Blocks of 2,048 tokens of shuffled rows, beside the rows themselves."""

    def shuffle() -> arrowdl.DeviceStream:
        reader = ds.dataset(path).scanner(batch_size=131_072).to_reader()
        return arrowdl.from_arrow_stream(reader).shuffle(65_536, seed=7)

    def pack(**options: Any) -> int:
        return drain(shuffle().pack("tokens", 2048, **options).rebatch(64))

    def read_rows() -> int:
        return drain(shuffle().rebatch(BATCH_ROWS["tok"]))

    for name, options in _list_packs():
        yield Case(f"pack-{name}", partial(pack, **options), read_rows, "shuffled rows", 1.15)


def _make_packed_loaders(path: Path) -> Iterator[Case]:
    """The same blocks as batches of a Loader, beside the rows in the same order."""
    for shuffle, suffix in ((False, ""), (True, "-shuffled")):
        rows = _make_loader(path, "tok", shuffle=shuffle)
        for name, options in _list_packs():
            pack = arrowdl.loader.Pack("tokens", 2048, **options)
            loader = arrowdl.Loader(path, 64, batching=pack, shuffle=shuffle, ragged="offsets")
            ours = partial(_drain_loader, loader)
            yield Case(f"loader-pack-{name}{suffix}", ours, rows, "the rows, not packed", 1.15)


def _list_packs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Both strategies, with all that masks need and with what flash attention takes."""
    for strategy in ("concat", "best_fit"):
        yield strategy, {"strategy": strategy}
        yield f"{strategy}-cu_seqlens", {"strategy": strategy, "add": ["cu_seqlens"]}


def _make_ipc(name: str, folder: Path) -> Iterator[Case]:
    path = folder / f"{name}.arrow"
    ours = _make_loader(path, name)
    by_hand = _loop_by_hand(path, BATCH_ROWS[name])
    yield Case(f"ipc-{name}", ours, by_hand, "zero-copy loop by hand", 1.3)
    lent = _make_loader(path, name, writable=False)
    yield Case(f"ipc-{name}-lent", lent, by_hand, "zero-copy loop by hand", 1.3)
    if name != "tab":
        floor = _read_floor(folder / f"{name}.parquet", name)
        yield Case(f"ipc-{name}-floor", ours, floor, "iter_batches of Parquet", 0.1)


def _loop_by_hand(path: Path, batch_rows: int) -> Pass:
    """The quickest that pyarrow and torch alone allow."""

    def read() -> int:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        return slice_by_hand(batches, batch_rows)

    return read


def slice_by_hand(batches: Iterable[pa.RecordBatch], batch_rows: int) -> int:
    """Make a dict of tensors of each slice of batches; return their number."""
    count = 0
    for whole in batches:
        for start in range(0, whole.num_rows, batch_rows):
            batch = whole.slice(start, batch_rows)
            tensors = {
                name: to_tensor(column)
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            }
            count += len(tensors) > 0
    return count


def to_tensor(column: pa.Array) -> Any:
    """A column as one tensor, or a ragged one as (values, offsets), in its memory if it can be.

    Strings and binary are bytes with offsets, dictionaries their codes, structs a dict.
    """
    if pa.types.is_dictionary(column.type):
        return to_tensor(column.indices)
    if pa.types.is_struct(column.type):
        names = [field.name for field in column.type]
        return dict(zip(names, map(to_tensor, column.flatten()), strict=True))
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        _, ends, data = column.buffers()
        offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
        values = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
        return torch.from_numpy(values), torch.from_numpy(offsets - offsets[0])
    if pa.types.is_fixed_size_list(column.type):
        values = torch.from_numpy(column.flatten().to_numpy())
        return values.view(-1, column.type.list_size)
    if pa.types.is_list(column.type):
        offsets = column.offsets.to_numpy()
        values = to_tensor(column.flatten())
        return values, torch.from_numpy(offsets - offsets[0])
    return torch.from_numpy(column.to_numpy(zero_copy_only=False))


def _make_tables(folder: Path) -> Iterator[Case]:
    for name in ("emb", "tab"):
        rows = BATCH_ROWS[name]
        with pa.memory_map(str(folder / f"{name}.arrow")) as file:
            table = pa.ipc.open_file(file).read_all().combine_chunks()
        tensors = read_tensors(table)
        copies = partial(_clone_slices, tensors, rows)
        # Batches that may be written to are copies, and with writable=False the table itself.
        yield Case(f"table-{name}", _make_loader(table, name), copies, "torch slices, cloned", 1.5)
        lent = _make_loader(table, name, writable=False)
        by_hand = partial(slice_by_hand, table.to_batches(), rows)
        yield Case(f"table-{name}-lent", lent, by_hand, "zero-copy loop by hand", 1.3)
        yield Case(
            f"table-{name}-shuffled",
            _make_loader(table, name, shuffle=True),
            partial(_index_select, tensors, rows),
            "torch.index_select in memory",
            1.5,
        )


def _make_small_tables() -> Iterator[Case]:
    """An epoch of 100 rows, which is over before anything that was set up for it pays."""
    random = np.random.default_rng(7)
    columns = {f"x{i}": random.random(100, dtype=np.float32) for i in range(4)}
    table = pa.table(columns)
    tensors = read_tensors(table)
    peers: dict[bool, tuple[str, Pass]] = {
        False: ("torch slices, cloned", partial(_clone_slices, tensors, 32)),
        True: ("torch.index_select in memory", partial(_index_select, tensors, 32)),
    }
    for shuffle, (peer_name, peer) in peers.items():
        loader = arrowdl.Loader(table, 32, shuffle=shuffle)
        suffix = "-shuffled" if shuffle else ""
        yield Case(f"table-100{suffix}", partial(_drain_loader, loader), peer, peer_name, 1.5)


def _make_workers(path: Path) -> Case:
    """Small batches of two processes: what handing each over costs."""
    loader = arrowdl.Loader(path, 32, num_workers=2)
    peer_name = "scanner, no tensors"
    return Case("workers-32", partial(_drain_loader, loader), _scan(path), peer_name, 2.0)


def read_tensors(table: pa.Table) -> dict[str, Any]:
    """A tensor of each column, in the memory of the table if it has no nulls."""
    return {key: to_tensor(table[key].combine_chunks()) for key in table.column_names}


def _clone_slices(tensors: dict[str, Any], batch_rows: int) -> int:
    rows = len(next(iter(tensors.values())))
    count = 0
    for start in range(0, rows, batch_rows):
        stop = start + batch_rows
        count += len({name: value[start:stop].clone() for name, value in tensors.items()}) > 0
    return count


def _drain_loader(loader: arrowdl.Loader) -> int:
    return drain(iter(loader))


def _index_select(tensors: dict[str, Any], batch_rows: int) -> int:
    rows = len(next(iter(tensors.values())))
    order = torch.randperm(rows)
    count = 0
    for start in range(0, rows, batch_rows):
        chosen = order[start : start + batch_rows]
        count += len({name: value.index_select(0, chosen) for name, value in tensors.items()}) > 0
    return count


def _make_splits(name: str, folder: Path) -> Iterator[Case]:
    """One rank that reads the sequences of eight."""
    path = folder / f"{name}.parquet"
    for shuffle, suffix in ((False, ""), (True, "-shuffled")):
        ours = _make_loader(path, name, ranks=arrowdl.Ranks(splits=8), shuffle=shuffle)
        alone = _make_loader(path, name, shuffle=shuffle)
        yield Case(f"splits-{name}{suffix}", ours, alone, "the same with splits=None", 1.15)


def _make_peers(folder: Path) -> Iterator[Case]:
    """What people use. The targets of the issue are speed-ups: 10 times is a ratio of 0.1."""
    for name in BATCH_ROWS:
        path = folder / f"{name}.parquet"
        yield Case(
            f"collate-{name}",
            _make_loader(path, name),
            partial(_collate, path, BATCH_ROWS[name]),
            "hand-written collate by to_pandas",
            0.5,
        )


def _collate(path: Path, batch_rows: int) -> int:
    count = 0
    for batch in pq.ParquetFile(path).iter_batches(batch_rows):
        frame = batch.to_pandas()
        tensors = {}
        for column in frame.columns:
            first = frame[column].iloc[0]
            if isinstance(first, np.ndarray) and column == "vector":
                tensors[column] = torch.as_tensor(np.stack(frame[column].to_numpy()))
            elif isinstance(first, np.ndarray):
                rows = [torch.as_tensor(row.copy()) for row in frame[column]]
                tensors[column] = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
            else:
                tensors[column] = torch.as_tensor(frame[column].to_numpy().copy())
        count += len(tensors) > 0
    return count
