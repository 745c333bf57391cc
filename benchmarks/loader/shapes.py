"""Passes over tables of many shapes, compared with what pyarrow and polars take to decode them.

Run it with ``python -m benchmarks.loader.shapes [--seconds N] [NAME ...]``. Times are of all
threads of the process together (CPU time), the minimum of alternating passes: other work on the
machine hardly changes them. The passes over a shape take N seconds in all, and each is made seven
times at least. The first batch (wall time, the least of five passes) and the memory (the most that
the first pass adds) are those of a process of their own; a Loader that is kept is compared with a
dataset that is kept, a new one with a new one.

A loop by hand is measured too: pyarrow reads a row group, torch splits its columns, or pyarrow
slices them where they are more than one tensor each. It makes batches as ours does, which the
scanner does not.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import torch

from benchmarks.loader.cases import slice_by_hand, to_tensor
from benchmarks.timing import format_seconds

DATA = Path(__file__).parents[2] / "build/benchmark-data"
GROUP_ROWS = 65_536
MIN_ROUNDS = 7
SECONDS = 10.0
FIRST_BATCH = 1.5  # the most that it may take, as a multiple of the scanner's
FIRST_BATCHES = 5

Pass = Callable[[], Any]
MakeTable = Callable[[np.random.Generator], pa.Table]


@dataclass(frozen=True)
class Shape:
    """One row of the table.

    Attributes
    ----------
    name : str
    make_table : callable
    in_order, shuffled : float, optional
        The most that a pass of a Loader may take, as a multiple of the scanner's.
    batch_rows : int
    group_rows : int
        Rows of a row group.
    files : int
        Into how many files the rows are divided.
    options : dict
        Arguments of the Loader.
    engine : {"scanner", "duckdb"}
        Whose bare decode is the floor; a Loader reads that of DuckDB as a relation.
    data : str, optional
        The shape whose files these are, if not its own.
    """

    name: str
    make_table: MakeTable
    in_order: float | None
    shuffled: float | None
    batch_rows: int = 1024
    group_rows: int = GROUP_ROWS
    files: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    engine: str = "scanner"
    data: str | None = None


def _make_floats(columns: int, rows: int, share_of_nulls: float = 0) -> MakeTable:
    def make_table(random: np.random.Generator) -> pa.Table:
        arrays = {}
        for i in range(columns):
            mask = random.random(rows) < share_of_nulls if share_of_nulls else None
            arrays[f"x{i}"] = pa.array(random.random(rows, dtype=np.float32), mask=mask)
        return pa.table(arrays)

    return make_table


def _make_lists(random: np.random.Generator, values: Any, mean: int) -> pa.Array:
    """Divide `values` into lists of 0 to ``2 * mean`` values."""
    lengths = random.integers(0, 2 * mean + 1, len(values) // mean + 1)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).clip(max=len(values)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _make_bytes(random: np.random.Generator, rows: int, low: int, high: int, kind: Any) -> pa.Array:
    """Return strings of lower-case letters, or bytes, of `low` to `high` bytes each."""
    lengths = random.integers(low, high + 1, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    is_text = pa.types.is_string(kind)
    first, last = (97, 123) if is_text else (0, 256)
    data = random.integers(first, last, offsets[-1], dtype=np.uint8)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, rows, buffers)


def _make_strings(random: np.random.Generator) -> pa.Table:
    return pa.table(
        {
            "name": _make_bytes(random, 300_000, 0, 24, pa.string()),
            "text": _make_bytes(random, 300_000, 20, 80, pa.string()),
            "label": random.integers(0, 10, 300_000),
        }
    )


def _make_dictionaries(random: np.random.Generator) -> pa.Table:
    def make_column(index: int) -> pa.Array:
        values = pa.array([f"category {index} {i}" for i in range(1000)])
        codes = pa.array(random.integers(0, 1000, 500_000, dtype=np.int32))
        return pa.DictionaryArray.from_arrays(codes, values)

    return pa.table({f"c{i}": make_column(i) for i in range(6)})


def _make_list_table(random: np.random.Generator) -> pa.Table:
    lists = _make_lists(random, pa.array(random.random(3_000_000, dtype=np.float32)), 8)
    return pa.table({"values": lists, "label": random.integers(0, 10, len(lists))})


def _make_list_of_structs(random: np.random.Generator) -> pa.Table:
    structs = pa.StructArray.from_arrays(
        [
            pa.array(random.random(1_000_000, dtype=np.float32)),
            pa.array(random.integers(0, 100, 1_000_000, dtype=np.int32)),
        ],
        ["value", "item"],
    )
    lists = _make_lists(random, structs, 5)
    return pa.table({"items": lists, "label": random.integers(0, 10, len(lists))})


def _make_fixed_size_lists(random: np.random.Generator) -> pa.Table:
    rows = 400_000
    values = pa.array(random.random(rows * 8, dtype=np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(values, 8)
    return pa.table({"vector": vectors, "label": random.integers(0, 10, rows)})


def _make_images(random: np.random.Generator) -> pa.Table:
    images = _make_bytes(random, 4_000, 10_000, 30_000, pa.binary())
    return pa.table({"image": images, "label": random.integers(0, 1000, len(images))})


def _make_bools(random: np.random.Generator) -> pa.Table:
    rows = 1_000_000
    return pa.table({f"b{i}": pa.array(random.random(rows) < 0.3) for i in range(8)})


def _make_embeddings(random: np.random.Generator) -> pa.Table:
    rows, width = 200_000, 256
    values = pa.array(random.random(rows * width, dtype=np.float32))
    return pa.table(
        {
            "vector": pa.FixedSizeListArray.from_arrays(values, width),
            "label": random.integers(0, 10, rows),
        }
    )


OFFSETS = {"ragged": "offsets"}
BY_POLARS = ", decoder=polars"  # of an order
NEW = ", new Loader"  # of an order
NEW_SCANNER = "scanner of a new dataset"

# The targets are those of issue 16.
SHAPES = (
    Shape("wide", _make_floats(1000, 100_000), 1.05, 1.3, group_rows=20_000),
    Shape("strings", _make_strings, 1.1, 1.6, options=OFFSETS),
    Shape("dictionary", _make_dictionaries, 1.2, 1.7),
    Shape("lists", _make_list_table, 1.0, 1.45, options=OFFSETS),
    Shape("lists-of-structs", _make_list_of_structs, 1.0, 1.45, options=OFFSETS),
    Shape("fixed-size-lists", _make_fixed_size_lists, 1.0, 1.3),
    Shape("nulls", _make_floats(8, 500_000, 0.2), 1.1, 1.35, options={"nulls": "nan"}),
    Shape("images", _make_images, 1.0, 1.15, batch_rows=64, group_rows=1_000, options=OFFSETS),
    Shape("nine-floats", _make_floats(9, 1_000_000), 1.0, 1.7),
    Shape("bools", _make_bools, 1.2, 1.6),
    Shape("small-files", _make_floats(4, 1_000_000), 0.9, None, files=400),
    Shape("batches-of-32", _make_embeddings, None, 1.3, batch_rows=32),
    # Issue 16 has no target for these. A trial reached 1.5; of a batch of strings, making torch's
    # nested tensors takes most.
    Shape("duckdb", _make_floats(9, 1_000_000), 1.5, None, engine="duckdb", data="nine-floats"),
    Shape("strings-jagged", _make_strings, 2.7, None, data="strings"),
)


def measure_shapes(
    names: Iterable[str] = (), seconds: float = SECONDS, folder: Path = DATA
) -> list[dict[str, Any]]:
    """Return a row for each shape, or for those of `names`, each measured for `seconds`."""
    chosen = set(names)
    rows = []
    for shape in SHAPES:
        if not chosen or shape.name in chosen:
            rows += list(_measure_shape(shape, write_shape(shape, folder), seconds))
    return rows


def make_passes(name: str) -> tuple[dict[str, Pass], Any, int]:
    """Return passes over a shape, each by what makes it; also a batch, and how many there are."""
    (shape,) = [shape for shape in SHAPES if shape.name == name]
    paths = write_shape(shape, DATA)
    loaders = {
        kind: _make_loader(shape, paths, **_read_kind(kind)) for kind in ("in order", "shuffled")
    }
    passes: dict[str, Pass] = {"scanner": lambda: _drain(_open_floor(shape, paths))}
    passes |= {kind: partial(_drain, loader) for kind, loader in loaders.items()}
    loop = _find_loop_by_hand(paths)
    for kind in loaders:
        passes[f"by hand, {kind}"] = partial(loop, shape, paths, kind == "shuffled")
    loader = loaders["in order"]
    return passes, next(iter(loader)), len(loader)


def _make_pass(shape: Shape, paths: list[Path], kind: str) -> Callable[[], Iterable[Any]]:
    """Return what begins a pass: of pyarrow's scanner, or of a Loader."""
    if kind.endswith(NEW):
        options = _read_kind(kind.removesuffix(NEW))
        return lambda: iter(_make_loader(shape, paths, **options))
    if kind == "scanner":
        if shape.engine == "scanner":
            return partial(_scan, _open_dataset(paths))
        return partial(_open_floor, shape, paths)
    if kind == NEW_SCANNER:
        return partial(_open_floor, shape, paths)
    return _make_loader(shape, paths, **_read_kind(kind)).__iter__


def _read_kind(kind: str) -> dict[str, Any]:
    """Return the options of a Loader whose order is `kind`."""
    order, _, decoder = kind.partition(BY_POLARS[:2])
    storage = arrowdl.Storage(decoder="polars" if decoder else "pyarrow")
    return {"shuffle": order == "shuffled", "storage": storage}


def _make_loader(shape: Shape, paths: list[Path], **options: Any) -> arrowdl.Loader:
    source = paths if shape.engine == "scanner" else _open_relation(paths)
    return arrowdl.Loader(source, shape.batch_rows, **shape.options, **options)


def _probe(name: str, kind: str) -> dict[str, float]:
    """Return the seconds to the first batch and the bytes that a pass adds, in a new process."""
    command = [sys.executable, "-m", "benchmarks.loader.shapes", "--probe", kind, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=DATA.parents[1])
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _print_probe(name: str, kind: str) -> None:
    """Print what `_probe` returns, of this process."""
    (shape,) = [shape for shape in SHAPES if shape.name == name]
    _drain(arrowdl.Loader(pa.table({"x": [1.0]}), 1))  # imports
    begin = _make_pass(shape, write_shape(shape, DATA), kind)
    before = read_memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
    first = []
    for _ in range(FIRST_BATCHES):
        start = time.perf_counter()
        batches = iter(begin())
        batch = next(batches)
        first.append(time.perf_counter() - start)
        del batch
        _drain(batches)
        del batches
        if len(first) == 1:
            memory = read_memory("VmHWM") - before
    print(json.dumps({"first": min(first), "memory": memory}))


def read_memory(name: str) -> int:
    """Return bytes of this process that Linux counts."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(name)


def write_shape(shape: Shape, folder: Path) -> list[Path]:
    """Write the files of a shape, if they do not exist yet."""
    target = folder / "shapes" / (shape.data or shape.name)
    paths = [target / f"{i:03}.parquet" for i in range(shape.files)]
    if not all(path.exists() for path in paths):
        target.mkdir(parents=True, exist_ok=True)
        table = shape.make_table(np.random.default_rng(7))
        rows = -(-len(table) // shape.files)
        for i, path in enumerate(paths):
            part = table.slice(i * rows, rows)
            unfinished = path.with_suffix(".tmp")  # of a run that was stopped
            pq.write_table(part, unfinished, row_group_size=shape.group_rows)
            unfinished.replace(path)
    return paths


def _measure_shape(shape: Shape, paths: list[Path], budget: float) -> Iterator[dict[str, Any]]:
    import polars as pl  # the environment of `make bench BENCH=peers` has none

    passes: dict[str, Pass] = {
        "scanner": lambda: _drain(_open_floor(shape, paths)),
        "polars": lambda: pl.read_parquet(paths),
    }
    targets = {"in order": shape.in_order, "shuffled": shape.shuffled}
    schema = pq.read_schema(paths[0])
    loop = _find_loop_by_hand(paths)
    if shape.files == 1 and shape.engine == "scanner" and all(map(_is_plain, schema.types)):
        targets |= {f"{order}{BY_POLARS}": target for order, target in targets.items()}
    for order, target in targets.items():
        if target is not None:
            options = _read_kind(order)
            passes[order] = partial(_drain, _make_loader(shape, paths, **options))
            if order in ("in order", "shuffled"):
                passes[f"by hand, {order}"] = partial(loop, shape, paths, options["shuffle"])
    if shape.files > 1:
        targets[f"in order{NEW}"] = 1.1
        passes[f"in order{NEW}"] = lambda: _drain(_make_loader(shape, paths))
    seconds = _measure(passes, budget)
    kinds = [kind for kind, target in targets.items() if target is not None]
    probes = {kind: _probe(shape.name, kind) for kind in ["scanner", NEW_SCANNER, *kinds]}
    for order, target in targets.items():
        if target is None:
            continue
        scanner = seconds["scanner"]
        ratio = seconds[order] / scanner
        hand = seconds.get(f"by hand, {order.partition(',')[0]}")
        probe = probes[order]
        floor = probes[NEW_SCANNER if order.endswith(NEW) else "scanner"]
        first = probe["first"] / floor["first"]
        print(
            f"{shape.name + ', ' + order:34} {ratio:6.2f} (at most {target:g}; "
            f"by hand {_format_ratio(hand, scanner) or 'none'}; first batch {first:.2f})",
            flush=True,
        )
        yield {
            "name": shape.name,
            "order": order,
            "ours": seconds[order],
            "scanner": scanner,
            "by hand": hand,
            "polars": seconds["polars"],
            "ratio": ratio,
            "target": target,
            "reached": ratio <= target,
            "probe": probe,
            "scanner probe": floor,
            "first ratio": first,
            "first reached": first <= FIRST_BATCH,
        }


def _is_plain(type: pa.DataType) -> bool:
    """Whether polars decodes columns of this type for a Loader."""
    return bool(pa.types.is_boolean(type) or pa.types.is_float32(type))


def _open_floor(shape: Shape, paths: list[Path]) -> Any:
    """The fastest bare decode of pyarrow or DuckDB: large batches, in threads."""
    if shape.engine == "duckdb":
        return _open_relation(paths).to_arrow_reader(131_072)
    return _open_scan(paths)


def _open_relation(paths: list[Path]) -> Any:
    import duckdb  # the environment of `make bench BENCH=peers` has none

    return duckdb.connect().read_parquet([str(path) for path in paths])


def _open_scan(paths: list[Path]) -> pa.RecordBatchReader:
    return _scan(_open_dataset(paths))


def _open_dataset(paths: list[Path]) -> ds.Dataset:
    return ds.dataset([str(path) for path in paths])


def _scan(dataset: ds.Dataset) -> pa.RecordBatchReader:
    """pyarrow's fastest bare decode: large batches, in threads."""
    return dataset.scanner(batch_size=131_072).to_reader()


def _find_loop_by_hand(paths: list[Path]) -> Callable[[Shape, list[Path], bool], None]:
    """Return `_loop_by_hand`, or `_slice_by_hand` for columns of more than one tensor."""
    has_tensors_only = _has_tensors_only(pq.read_schema(paths[0]))
    return _loop_by_hand if has_tensors_only else _slice_by_hand


def _has_tensors_only(schema: pa.Schema) -> bool:
    """Whether each column is one tensor of as many rows."""
    values = (
        kind.value_type if pa.types.is_fixed_size_list(kind) else kind for kind in schema.types
    )
    return all(pa.types.is_primitive(kind) for kind in values)


def _loop_by_hand(shape: Shape, paths: list[Path], shuffle: bool) -> None:
    """Read row groups as tensors and divide each into dicts; permute its rows to shuffle."""
    for table in _read_parts(shape, paths):
        tensors = [to_tensor(column) for column in table.columns]
        if shuffle:
            order = torch.randperm(table.num_rows)
            tensors = [tensor.index_select(0, order) for tensor in tensors]
        parts = (tensor.split(shape.batch_rows) for tensor in tensors)
        names = table.schema.names
        _drain(dict(zip(names, values, strict=True)) for values in zip(*parts, strict=True))


def _slice_by_hand(shape: Shape, paths: list[Path], shuffle: bool) -> None:
    """Do the same with columns of which pyarrow makes slices, and takes rows."""
    parts = _read_parts(shape, paths)
    if shuffle:
        draw = np.random.default_rng(7).permutation
        parts = (part.take(pa.array(draw(part.num_rows))) for part in parts)
    slice_by_hand(parts, shape.batch_rows)


def _read_parts(shape: Shape, paths: list[Path]) -> Iterator[pa.RecordBatch]:
    """Yield row groups, or what DuckDB makes of them."""
    if shape.engine == "duckdb":
        yield from _open_floor(shape, paths)
        return
    for path in paths:
        file = pq.ParquetFile(path)
        for number in range(file.num_row_groups):
            yield from file.read_row_group(number).combine_chunks().to_batches()


def _drain(batches: Iterable[Any]) -> None:
    for batch in batches:
        del batch


def _measure(passes: dict[str, Pass], budget: float) -> dict[str, float]:
    """Return the least CPU time of each pass; they alternate for `budget` seconds."""
    least = dict.fromkeys(passes, float("inf"))
    order = list(passes)
    end = time.perf_counter() + budget
    for number in count():
        if number > MIN_ROUNDS and time.perf_counter() > end:
            break
        order.reverse()
        for name in order:
            gc.collect()
            begin = time.process_time()
            passes[name]()
            if number > 0:  # the first round fills caches
                least[name] = min(least[name], time.process_time() - begin)
    return least


def to_markdown(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a table."""
    lines = [
        "| shape | order | CPU time | scanner | polars | of the scanner | at most | reached "
        "| by hand, of the scanner | first batch | scanner's | at most "
        f"{FIRST_BATCH:g} of it | memory | scanner's |",
        "|---|---|--:|--:|--:|--:|--:|---|--:|--:|--:|---|--:|--:|",
    ]
    for row in rows:
        cells = [
            f"`{row['name']}`",
            row["order"],
            *(format_seconds(row[key]) for key in ("ours", "scanner", "polars")),
            f"{row['ratio']:.2f}",
            f"{row['target']:g}",
            "yes" if row["reached"] else "**no**",
            _format_ratio(row["by hand"], row["scanner"]),
            *(format_seconds(row[key]["first"]) for key in ("probe", "scanner probe")),
            "yes" if row["first reached"] else f"**no**: {row['first ratio']:.1f}",
            *(f"{row[key]['memory'] / 2**20:.0f} MiB" for key in ("probe", "scanner probe")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _format_ratio(seconds: float | None, scanner: float) -> str:
    return "" if seconds is None else f"{seconds / scanner:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.loader.shapes", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--probe", metavar="KIND", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.probe:
        (name,) = arguments.names
        return _print_probe(name, arguments.probe)
    print("\n" + "\n".join(to_markdown(measure_shapes(arguments.names, arguments.seconds))))


if __name__ == "__main__":
    main()
