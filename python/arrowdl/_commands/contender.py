"""One contender of ``python -m arrowdl bench``, in a process of its own.

The process takes a `Task` as JSON, and prints a `Result` as its last line.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from arrowdl._commands.sources import open_named
from arrowdl.loader import Loader, Storage

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

Batch = tuple[int, int]  # its rows and bytes
Pass = Callable[[], Iterator[Batch]]


@dataclass
class Task:
    """What is measured: a contender, the names of a source, and options of `Loader`."""

    who: str
    source: list[str]
    kind: str | None
    options: dict[str, Any]
    seconds: float  # that a pass may take


@dataclass
class Result:
    """What a contender did in a pass, after one that warmed the caches."""

    name: str
    batches: int = 0
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    first_batch_seconds: float | None = None  # of the first pass, from the opening on
    peak_bytes: int | None = None  # of this process, above what the imports took
    note: str = ""  # what bounds a Loader, and what to do; what others leave out
    problem: str = ""  # why there are no numbers
    rates: dict[str, float] = field(default_factory=dict)  # in a second


def run_loader(source: Any, task: Task, result: Result) -> Pass:
    """Return a pass of a Loader."""
    loader = Loader(source, **task.options)

    def read() -> Iterator[Batch]:
        before = loader.stats()
        for _ in loader:
            now = loader.stats()
            yield now.rows - before.rows, now.bytes - before.bytes
            before = now
        result.note = loader.stats("last").advice

    return read


def run_scan(source: Any, task: Task, result: Result) -> Pass:
    """Return a pass of pyarrow's scanner, or of the library of a table."""
    columns = task.options.get("columns")
    scan: Callable[..., Iterator[pa.RecordBatch]]
    scan = source.to_batches if hasattr(source, "to_batches") else _make_dataset(source).to_batches

    def read() -> Iterator[Batch]:
        for batch in scan(columns=columns):
            yield len(batch), batch.nbytes

    return read


def run_torch(source: Any, task: Task, result: Result) -> Pass:
    """Return a pass of a torch DataLoader, whose workers scan every n-th file in order.

    Columns of numbers, bools and lists of one length become tensors, others stay Arrow arrays.
    """
    from torch.utils.data import DataLoader

    from arrowdl._commands.torch_rows import ScanDataset, becomes_tensor

    if hasattr(source, "to_batches"):
        raise TypeError("files alone are scanned by the workers of a DataLoader")
    options = task.options
    dataset = _make_dataset(source)
    columns = options.get("columns") or dataset.schema.names
    others = [name for name in columns if not becomes_tensor(dataset.schema.field(name).type)]
    if others:
        result.note = f"these columns stay Arrow arrays: {', '.join(others)}"
    rows = ScanDataset(dataset, options.get("columns"), options["batch_size"])
    loader: Any = DataLoader(rows, batch_size=None, num_workers=options.get("num_workers", 0))

    def read() -> Iterator[Batch]:
        for batch in loader:
            values = list(batch.values())
            yield len(values[0]) if values else 0, sum(value.nbytes for value in values)

    return read


CONTENDERS = {"Loader": run_loader, "pyarrow scan": run_scan, "torch DataLoader": run_torch}


def _make_dataset(user_source: Any) -> ds.Dataset:
    """Return pyarrow's dataset of the files that a Loader finds."""
    import pyarrow.dataset as ds

    storage = Storage(memory_map=False)
    source: Any = Loader(user_source, 1, framework="numpy", storage=storage)._source
    plan = source.files.make_plan()
    return ds.dataset(
        [file.path for file in plan.files],
        plan.schema,
        plan.format,
        source.scanner.dataset.filesystem,
        partitioning="hive",
    )


def measure(task: Task) -> Result:
    """Make two passes, and count the second."""
    result = Result(task.who)
    source = open_named(task.source, task.kind)
    _warm_up(task)
    before, begin = _find_peak(), time.perf_counter()
    read = CONTENDERS[task.who](source, task, result)
    for _ in range(2):
        result.batches = result.rows = result.bytes = 0
        opened = time.perf_counter()
        for rows, size in _limit(read(), opened + task.seconds):
            if result.first_batch_seconds is None:
                result.first_batch_seconds = time.perf_counter() - begin
            result.batches += 1
            result.rows += rows
            result.bytes += size
        result.seconds = time.perf_counter() - opened
    after = _find_peak()
    result.peak_bytes = None if before is None or after is None else after - before
    for name in ("batches", "rows", "bytes"):
        result.rates[name] = getattr(result, name) / result.seconds if result.seconds else 0.0
    return result


def _warm_up(task: Task) -> None:
    """Import what a first batch imports, which takes seconds."""
    import pyarrow as pa

    framework: Any = "torch" if task.who == "torch DataLoader" else task.options["framework"]
    table = pa.table({"x": pa.array([[1]], pa.list_(pa.int32()))})
    if task.who != "pyarrow scan":
        next(iter(Loader(table, 1, framework=framework)))
    importlib.import_module("pyarrow.dataset")


def _limit(batches: Iterator[Batch], end: float) -> Iterator[Batch]:
    """Yield batches up to a time."""
    for batch in batches:
        yield batch
        if time.perf_counter() > end:
            return


def _find_peak() -> int | None:
    """Return the most memory that this process had; None where that is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> None:
    """Do the task of the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    try:
        result = measure(task)
    except Exception as error:
        result = Result(task.who, problem=f"{type(error).__name__}: {error}")
    print(f"\n{json.dumps(asdict(result))}")


if __name__ == "__main__":
    main()
