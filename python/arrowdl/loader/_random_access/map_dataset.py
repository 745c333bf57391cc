"""`MapDataset`: the rows of a Loader's source by their numbers."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any, Self

from arrowdl import _core
from arrowdl._frameworks.threads import use_one_thread
from arrowdl.loader._batches.assemble import RowStream
from arrowdl.loader._epoch.kinds import open_epochs
from arrowdl.loader._epoch.read import Order
from arrowdl.loader._open.source import collect
from arrowdl.loader._options.options import Options
from arrowdl.loader._options.sizes import BatchSizes
from arrowdl.loader._pipeline import Pipeline
from arrowdl.loader._random_access.rows import Rows, open_rows, split_rows
from arrowdl.loader._skip.numbers import Place
from arrowdl.loader._sources.stream import StreamSource
from arrowdl.loader._workers.sending import check_sending

Convert = Callable[[_core.DeviceArray], Any]


class MapDataset:
    """Rows by their numbers in the source: a map-style dataset for samplers.

    `Loader.map_dataset` makes it. Batches are those of that Loader: its columns, filter, framework,
    null policies, ragged forms, dtypes, transforms and device apply. Its order does not: row
    numbers count the rows of the whole source, on every rank, whatever `shuffle`, `ranks` and
    `num_workers` say. `transform` is called in the thread that reads.

    - ``dataset[[3, 0, 3]]`` is the batch of these rows, in this order. The row numbers may also be
      a NumPy array, a tensor, an Arrow array, a range or a tuple. Negative ones count from the end.
    - ``dataset[3:7]`` is the batch of consecutive rows.
    - ``dataset[3]`` is an item: the row of each tensor of a batch, without the dimension of rows. A
      row of a ragged column is its values.

    With PyTorch, ``DataLoader(dataset, batch_size=32, sampler=...)`` returns batches of one gather
    each, since the default collate function gets the whole batch; another ``collate_fn`` gets a
    list of items. Its samplers and worker processes, forked or spawned, work as with any map-style
    dataset. ``DataLoader(dataset, batch_size=None, sampler=BatchSampler(...))`` passes whole
    batches to ``collate_fn``.

    Tables, frames and mapped files are gathered in place. Row groups of other files are decoded
    when they are needed, and cached: each process up to the same number of bytes.

    Threads may read at the same time. A pickle has the source (its paths, if any), and no cache.
    """

    def __init__(self, pipeline: Pipeline, batch_size: int, cache_bytes: int) -> None:
        if pipeline.options.functions.filters:
            raise TypeError(
                "map_dataset() returns the rows that are asked for, and filter() drops rows: call "
                "map_dataset() on the Loader without it, or give a filter= of files"
            )
        # The thread that requests a batch reads it.
        options = replace(
            pipeline.options,
            sizes=BatchSizes(batch_size=batch_size),
            shuffle=False,
            prefetch=0,
            num_workers=0,
            num_threads=0,
            progress=False,
            report_every=None,
            report=None,
            on_error="raise",
            max_skipped_rows=None,
        )
        ((_, self._source),) = pipeline.source.list_members()
        self._pipeline = Pipeline(open_epochs(self._source, options))
        self._batch_size = batch_size  # to which pad_last pads
        self._cache_bytes = cache_bytes
        self._num_rows = self._source.num_rows
        self._is_closed = False
        self._process: int | None = None  # that has read
        self._rows: Rows | None = None
        self._source.prepare()  # for workers that are forked
        self._start()

    def _start(self) -> None:
        options = self._pipeline.options
        is_plain = options.functions.transform_arrow is None and options.target.device is None
        self._is_plain = is_plain and not options.pad_last and self._source.column_names is not None
        self._find_seed = seed_reads(self._pipeline.options.seed)
        make = partial(self._pipeline.assembly.make_converter, find_seed=self._find_seed)
        self._convert_new, self._convert_shared = make(is_new=True), make(is_new=False)

    def __len__(self) -> int:
        """Return the number of rows of the source."""
        return self._num_rows

    def __getitem__(self, index: Any) -> Any:
        """Return the batch of rows, or an item for an int.

        Parameters
        ----------
        index : int, slice, sequence or array of int

        Raises
        ------
        IndexError
            There is no such row.
        TypeError
            The row numbers are not integers. For a mask, pass ``numpy.flatnonzero(mask)``.
        OSError
            A file has changed since the Loader was made.
        RuntimeError
            The dataset was closed.
        """
        if _is_int(index):
            return split_rows(*self._read([index]))[0]
        return self._read(index)[0]

    def __getitems__(self, indices: Any) -> list[Any]:
        """Return a list of items, of one gather, for a DataLoader.

        A DataLoader with PyTorch's default collate function gets the whole batch as the only item.
        """
        batch, rows = self._read(indices)
        if collates_by_default(sys._getframe(1)):
            return [WholeBatch(batch)]
        return split_rows(batch, rows)[: len(indices)]

    def close(self) -> None:
        """Drop the decoded row groups. Batches stay valid, and the Loader stays open.

        Closing again does nothing.
        """
        self._is_closed = True
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _read(self, indices: Any) -> tuple[Any, int]:
        """Return the batch of rows, and how many rows it has."""
        rows = self._open()
        array, is_shared = rows.take(_core.read_row_numbers(indices, self._num_rows))
        if self._is_plain:
            convert = self._convert_shared if is_shared else self._convert_new
            return convert(array), len(array)
        return self._convert_by_stream(array, is_shared, partial(self._locate, indices))

    def _open(self) -> Rows:
        if self._is_closed:
            raise RuntimeError("this map dataset was closed: make a new one, loader.map_dataset()")
        if self._process != os.getpid():
            self._enter_process()
        rows = self._rows
        if rows is None:
            rows = self._rows = open_rows(self._source, self._cache_bytes)
        return rows

    def _enter_process(self) -> None:
        """Begin to read in this process."""
        self._source.check_process()
        if _find_worker() is not None:
            _require_host(self._pipeline.options)
            use_one_thread()  # as torch does for its own threads
        self._source.check_unchanged()
        self._process = os.getpid()

    def _locate(self, indices: Any, batch: int, row: int) -> Place:
        """Return where a row of a read is."""
        numbers = range(self._num_rows)
        number = numbers[indices][row] if isinstance(indices, slice) else int(indices[row])
        return self._source.files.locate_row(numbers[number])

    def _convert_by_stream(
        self, array: _core.DeviceArray, is_shared: bool, locate: Callable[[int, int], Place]
    ) -> tuple[Any, int]:
        """Convert a batch as the Loader does, with all of its steps."""
        options = self._pipeline.options
        rows = len(array)
        size = self._batch_size
        if options.pad_last and not 0 < rows <= size:
            raise ValueError(
                f"pad_last=True pads a batch to batch_size={size} rows, and {rows} were asked for"
            )
        share = self._pipeline.assembly.open(
            RowStream(
                _core.chain([array]),
                _describe_batch,
                {},
                batch_size=size,
                is_new=not is_shared,
                find_seed=self._find_seed,
                locate=locate,
                is_ready=True,
            )
        )
        with closing(share.items):
            batch = share.convert(next(share.items))
        return batch, size if options.pad_last else rows

    def __getstate__(self) -> dict[str, Any]:
        check_sending(self._source, self._pipeline.options)
        fields = ("_source", "_pipeline", "_batch_size", "_cache_bytes", "_num_rows", "_is_closed")
        return {name: self.__dict__[name] for name in fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _process=None, _rows=None)
        self._start()

    def __repr__(self) -> str:
        closed = ", closed" if self._is_closed else ""
        framework = self._pipeline.options.target.framework
        return f"<arrowdl.loader.MapDataset of {self._num_rows} rows for {framework}{closed}>"


def _is_int(index: Any) -> bool:
    """Whether `index` is one row number: an int, also of NumPy or a tensor without dimensions."""
    return getattr(index, "ndim", 0) == 0 and hasattr(index, "__index__")


def _require_host(options: Options) -> None:
    if (
        options.target.device is not None
        or options.target.sharding is not None
        or options.target.pin_memory
    ):
        raise RuntimeError(
            "device= of the Loader is for the training's process, and this is a worker process of "
            "a DataLoader: leave it out, and give the DataLoader pin_memory=True; or use "
            "num_workers=0"
        )


def _describe_batch(index: int) -> str:
    return "a batch of a map dataset"


def open_map_dataset(pipeline: Pipeline, batch_size: int, cache_bytes: int) -> MapDataset:
    """Make what `Loader.map_dataset` returns."""
    if pipeline.options.pack is not None:
        raise TypeError(
            "map_dataset() reads rows by their numbers, and a block of batching=Pack(...) has "
            "several of them: iterate the Loader, or make one without it"
        )
    source = pipeline.source
    if source.schedule:
        raise TypeError(
            "map_dataset() reads rows by their numbers, and a mixture chooses rows by its "
            "weights: join the map datasets of its sources, for PyTorch by "
            "torch.utils.data.ConcatDataset, and let a sampler weigh them"
        )
    if isinstance(source, StreamSource):
        if not source.is_in_memory:
            raise TypeError(
                "map_dataset() reads rows in any order, and this source is a stream, which is "
                "read from its start: give the Loader a table of its rows "
                "(pyarrow.table(source)), or write them to Arrow IPC files if they do not fit "
                "into memory. A Hugging Face dataset after shuffle(), select() or filter() is "
                "a table again by flatten_indices()"
            )
        pipeline = Pipeline(open_epochs(collect(source), pipeline.options))
    return MapDataset(pipeline, batch_size, cache_bytes)


class WholeBatch:
    """The only item of a batch that needs no collating."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch


def _find_worker() -> Any:
    """Return what torch knows of this worker process of a DataLoader; None elsewhere."""
    torch_data = sys.modules.get("torch.utils.data")
    return None if torch_data is None else torch_data.get_worker_info()


def collates_by_default(
    caller: FrameType | None,  # of the function that called `__getitems__`
) -> bool:
    """Whether `caller` is a DataLoader that stacks items with its default collate function.

    A dataset is not told the DataLoader's ``collate_fn``; the fetcher that calls `__getitems__`
    knows it. A ``torch.utils.data.Subset`` between them passes on what it gets.
    """
    torch_data = sys.modules.get("torch.utils.data")
    while caller is not None and torch_data is not None:
        owner = caller.f_locals.get("self")
        if type(owner) is not torch_data.Subset:
            is_default = getattr(owner, "collate_fn", None) is torch_data.default_collate
            return is_default and bool(getattr(owner, "auto_collation", False)) and _register()
        caller = caller.f_back
    return False


def _register() -> bool:
    """Make ``default_collate([WholeBatch(batch)])`` return the batch; return whether it does."""
    # Source: PyTorch's documentation of ``torch.utils.data.default_collate``, whose registry of
    # functions by type is ``default_collate_fn_map``.
    collate = sys.modules.get("torch.utils.data._utils.collate")
    registry = getattr(collate, "default_collate_fn_map", None)
    if registry is None:
        return False
    registry.setdefault(WholeBatch, _get_batch)
    return True


def _get_batch(items: Any, *, collate_fn_map: Any = None) -> Any:
    return items[0].batch


def seed_reads(
    seed: int,  # of the Loader
) -> Callable[[str, int | None], int]:
    """Return a `find_seed` of `Draws` with a new seed at each call: a sampler has no steps.

    In a worker of a DataLoader it depends on the worker's seed, which torch draws for each
    iteration: otherwise new workers would draw the same in each epoch.
    """
    reads = itertools.count()
    order = Order(seed, None)

    def find_seed(purpose: str, index: int | None) -> int:
        worker = _find_worker()
        worker_seed = 0 if worker is None else int(worker.seed)
        return order.make_seed(next(reads), f"{purpose} of a map dataset {worker_seed}")

    return find_seed
