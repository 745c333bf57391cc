"""`AdaptedReader`: batches of a Loader in other forms: mapped, filtered, as datasets."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from arrowdl.loader._checks import require_bool, require_function, require_int
from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._look.batch_schema import BatchSchema, find_schema
from arrowdl.loader._look.explain import Explanation, explain
from arrowdl.loader._options.functions import Step
from arrowdl.loader._random_access.map_dataset import MapDataset, open_map_dataset
from arrowdl.loader._reader import EpochReader, describe_rank

if TYPE_CHECKING:
    import pyarrow as pa
    from grain import IterDataset
    from torch.utils.data import IterableDataset


class AdaptedReader(EpochReader):
    """The part of `Loader` that gives batches in other forms, and facts about the source."""

    def map(self, function: Callable[[Any], Any]) -> Self:
        """Return a loader that calls `function` with each batch, and returns its result.

        It is called after `transform` and the functions of earlier `map` and `filter` calls, in the
        same thread or process as `transform`. This loader does not change.

        Parameters
        ----------
        function : callable
            Takes a batch. With `num_workers` it has to be picklable.

        Returns
        -------
        Loader
            Over the same source and options, at the same position.

        Raises
        ------
        TypeError
            `function` cannot be called.
        """
        return self._with_step(Step(require_function("map", function), False))

    def filter(self, function: Callable[[Any], Any]) -> Self:
        """Return a loader that drops rows of each batch.

        Steps, ranks and states stay as they are: a batch has fewer rows. A batch that would be
        empty repeats a row, with 0 `valid_rows`: a row of its own, or, for a later `map`, the first
        row of the epoch that all filters keep (of a stream, a row of an earlier batch). With
        `pad_last`, batches keep their shape, and ``"valid"`` is False for rows that were dropped.
        If the files can be filtered by their columns, give `Loader` a `filter` instead: its batches
        are full, and row groups are skipped. The logger "arrowdl.loader" warns if no row of this
        rank is kept in an epoch.

        Parameters
        ----------
        function : callable
            Takes a batch, as it is after `transform` and earlier functions. Returns a bool for each
            row: a tensor, array or list.

        Returns
        -------
        Loader
            Over the same source and options, at the same position. After `transform` or `map`,
            batches have to be tensors, and dicts, tuples and lists of them, with the rows first.

        Raises
        ------
        TypeError
            `function` cannot be called.
        ValueError
            When reading: a batch lost all its rows, a `map` follows, and no row is kept. Or
            `device` is a sharding, without `pad_last`: all processes need the same number of rows.
        """
        return self._with_step(Step(require_function("filter", function), True))

    def _with_step(self, step: Step) -> Self:
        """Return a Loader at the same position that calls one step more."""
        loader = copy.copy(self)
        functions = self._options.functions
        functions = replace(functions, chain=(*functions.chain, step))
        loader._use(self._pipeline.with_options(replace(self._options, functions=functions)))
        return loader

    def torch_dataset(self, *, valid_rows: bool = False) -> IterableDataset[Any]:
        """Return an ``IterableDataset`` of whole batches, for ``DataLoader(batch_size=None)``.

        The worker processes of a DataLoader share the rows of this rank. With workers, each
        iteration of the DataLoader is the next epoch, counted from the epoch of this loader; the
        loader itself does not advance, and its state does not include theirs. torchdata's
        ``StatefulDataLoader`` keeps their states.

        Parameters
        ----------
        valid_rows : bool
            Whether to return pairs of a batch and its `valid_rows`, which only the worker process
            that read the batch knows.

        Returns
        -------
        torch.utils.data.IterableDataset
        """
        from arrowdl.loader._integrations.torch import TorchDataset

        return TorchDataset(self, valid_rows=require_bool("valid_rows", valid_rows))

    def map_dataset(self, *, cache_bytes: int = 2**29) -> MapDataset:
        """Return a map-style dataset of the rows by their numbers, for samplers.

        Row numbers are those of the source in its own order, after `filter`. `shuffle` and `ranks`
        of the loader do not apply: a sampler chooses the rows. Batches have as many rows as are
        requested.

        Parameters
        ----------
        cache_bytes : int
            How many bytes of decoded row groups each process caches, for files that are not mapped:
            the groups that were used last, and at least one; 0 caches none. If rows in random order
            come from more row groups than that, a group is decoded for almost every row.

        Returns
        -------
        arrowdl.loader.MapDataset

        Raises
        ------
        TypeError
            The source is a stream, whose rows can only be read in order, or a mixture; or the
            loader packs rows.
        ValueError
            `cache_bytes` is not a number of bytes.
        RuntimeError
            The loader was closed.
        """
        number = require_int("cache_bytes", cache_bytes, 0)
        if self._received.is_closed:
            raise RuntimeError("this Loader was closed: make a new one")
        return open_map_dataset(
            self._pipeline, self.batch_size if self._options.pad_last else 1, number
        )

    def grain_dataset(self) -> IterDataset[Any]:
        """Return a ``grain.IterDataset`` of whole batches, whose iterators have states.

        Returns
        -------
        grain.IterDataset
        """
        from arrowdl.loader._integrations.grain import GrainDataset

        return GrainDataset(self)

    def vocabulary(self, column: str) -> pa.Array:
        """Return the values of a dictionary column, in the order of its codes.

        They are the same for every rank, worker and epoch, and after a resume. For a dataset, the
        first call or the first epoch, whichever comes first, reads the dictionary columns of all
        files once, unless the Loader has a `vocabulary`.

        Parameters
        ----------
        column : str

        Returns
        -------
        pyarrow.Array

        Raises
        ------
        ValueError
            The column is not a dictionary column, and has no `vocabulary`.
        RuntimeError
            The source is a stream for one pass that has not been read; or its engine's threads are
            in another process, from which this one was forked.
        """
        self._source.check_process()
        values = self._source.vocabulary.tables.get(column)
        if values is None:
            values = self._source.find_vocabulary(column)
        if values is None:
            raise ValueError(
                f'"{column}" is not a dictionary column of the source: give its values as '
                "Loader(vocabulary=) to read codes"
            )
        return values

    @property
    def schema(self) -> BatchSchema:
        """The columns of a batch before `transform`: dtypes, shapes and what becomes of nulls.

        No row is read. Dictionaries are read as by `vocabulary`, and a stream is opened.
        `transform_arrow` is called with a batch without rows.

        Raises
        ------
        BufferError
            A column cannot become a tensor with these options.
        RuntimeError
            The source is a stream for one pass that has been read.
        """
        return find_schema(self._pipeline)

    def explain(self) -> Explanation:
        """Return what an epoch reads, in which order, by which threads, with which copies.

        No row is read, except some that show how many bytes a row has.

        Returns
        -------
        Explanation
            Its text is a report of some lines.
        """
        return explain(self._pipeline, describe_rank(self._cursor))

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    def plan(self) -> FilePlan:
        """Return the files and their row groups, for ``Storage(plan=)`` on any machine.

        Returns
        -------
        FilePlan
            The files with their sizes, times and ETags, their schema and the rows of their row
            groups. It has no passwords. Its ``save(path)`` writes a file.

        Raises
        ------
        TypeError
            The source has no files, or maps them into memory, or is a mixture.
        """
        return self._source.files.make_plan()
