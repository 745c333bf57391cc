"""`Loader`: an Arrow source as batches of tensors, epoch after epoch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from arrowdl import _core
from arrowdl.loader._adapt import AdaptedReader
from arrowdl.loader._checked import open_checked
from arrowdl.loader._mix import mix_sources
from arrowdl.loader._settings.buckets import Buckets
from arrowdl.loader._settings.flatten import flatten
from arrowdl.loader._settings.pack import Pack
from arrowdl.loader._settings.ranks import Ranks
from arrowdl.loader._settings.report import Report
from arrowdl.loader._settings.seed import Seed
from arrowdl.loader._settings.shuffle import Shuffle
from arrowdl.loader._settings.skip import Skip
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._settings.tokens import Tokens
from arrowdl.loader._settings.unknown import (
    NoOptions,
    refuse_unknown,
    refuse_unknown_of_mix,
)
from arrowdl.loader._types import Framework, SourceLike
from arrowdl.typing import NullsLike, RaggedLike

if TYPE_CHECKING:
    import pyarrow as pa


class Loader(AdaptedReader):
    """Batches of tensors from any Arrow source, for training.

    Parameters
    ----------
    source : object
        For many epochs: paths, URLs and globs of Parquet or Arrow IPC files or directories of them,
        open file objects, a ``pyarrow.dataset.Dataset``, a pyarrow table, a polars frame or lazy
        frame (collected once), a pandas frame, a DuckDB relation, a table of Delta Lake or Iceberg,
        a Lance or Hugging Face dataset, a list of record batches, a function that makes an Arrow
        stream, an ADBC cursor or a Flight stream. For one epoch: such a stream or cursor itself.
    batch_size : int or Tokens, optional
        Rows, or tokens, of a batch on this rank. Give this or `Ranks.global_batch_size`.
    columns : sequence of str, optional
        Columns to read, in this order. All columns by default.
    filter : pyarrow.dataset.Expression, optional
        Rows to read, of files, datasets and tables with versions: those that
        ``pyarrow.Table.filter`` keeps. Of Lance, also a SQL string. If no row matches, epochs have
        no batch, and the logger "arrowdl.loader" warns.

    Order
    -----
    shuffle : bool or Shuffle
        Each epoch permutes all rows, if the buffer of `Shuffle` holds as many. Otherwise it
        permutes the row groups (of tables: blocks), reads twelve of them side by side, from all
        parts of the source, and permutes the rows of each full buffer; the logger "arrowdl.loader"
        says so. Of streams, only the rows of each buffer are permuted.
    seed : int or Seed
        Of the shuffles, and of the draws in transforms. The same seed, epoch and source give the
        same batches on every machine.
    drop_last : bool
        Drop incomplete batches. Otherwise the last batch of a rank may have fewer rows. It may also
        be a single row that another rank has too, if this rank would have one batch less than the
        others: see `valid_rows`.
    pad_last : bool
        Pad each batch to `batch_size` rows, and add a bool column ``"valid"``. Padding repeats rows
        of the batch. ``"valid"`` is False for it, and for a row that another rank also reads. For
        compilers that need stable shapes, such as JAX's, and for metrics.
    batching : Buckets or Pack, optional
        Batches of rows of like lengths, or of blocks that rows are packed into.
    ranks : Ranks, optional
        Who shares the rows, and the steps of all together. By default the ranks of
        ``torch.distributed``, of ``RANK`` and ``WORLD_SIZE``, or of JAX.

    Tensors
    -------
    framework : {'torch', 'jax', 'numpy'}
        Whose tensors the batches are made of.
    device : device or jax.sharding.Sharding, optional
        Copies the batches there, ahead of the training and through pinned memory. See
        `DeviceArray.to`. "cuda_host" is pinned memory, for your own copies of torch tensors. A
        sharding makes global arrays of JAX, of which this process has `batch_size` rows;
        `transform` gets NumPy arrays then.
    nulls : {'raise', 'fill', 'nan', 'mask'} or mapping of str to these
        As in `to_torch`: one policy, or the policies of columns, or of matrices of `stack`, by
        name. Other columns raise.
    ragged : {'jagged', 'padded', 'offsets'}, Padded, or mapping of str to these
        As in `to_torch`: one form, or the forms of columns by name. Other columns are jagged.
    dtype : dtype, str, or mapping of str to these, optional
        What integers and floats are cast to, as in `to_torch`: one dtype of torch, NumPy or JAX, or
        its name, or the dtypes of columns, or of matrices of `stack`, by name.
    stack : bool or mapping of str to sequence of str, optional
        Columns side by side as one matrix. True makes each batch one matrix of all columns. A
        mapping makes a matrix of the listed columns under each name, and keeps the other columns.
    vocabulary : mapping of str to sequence, optional
        Distinct values of columns: a batch has the index of each value. For dictionary columns
        whose values are not to be read from all files first, and for plain values, such as strings.
        A value that is not listed is an error. A set is refused: its order differs between
        processes.
    writable : bool
        Whether batches may be written to, as in ``batch["x"] /= 2``, without changing the source or
        another batch. With False, batches in order share memory with the source or with what
        `transform_arrow` returns, and neither may write to it.

    Work
    ----
    transform : callable, optional
        Called with each batch; the loader returns its result.
    transform_arrow : callable, optional
        Called with the ``pyarrow.RecordBatch`` of each batch's rows, in their final order, before
        they become tensors. It returns as many rows: a record batch, a table, or a dict of Arrow
        arrays, tensors or lists by column name. It runs in a native thread ahead of the training,
        one batch after another, or in the worker processes.
    num_workers : int
        Worker processes, which read and call `transform`; 0 for none. They help a `transform` that
        is slow Python code. They take turns: the batches are those without workers, in another
        order (with `Ranks.splits` in the same one). Not on Windows.
    num_threads : int
        Threads that make tensors and call `transform`, which has to be safe in several threads; 0
        for the training's own thread. They help a `transform` that releases the interpreter lock.
        Not with `num_workers`, or with a `device` other than the CPU.
    prefetch : int
        Batches that a native thread reads, shuffles or copies to `device` ahead; 0 for none. With
        `num_workers`, how many batches each worker is ahead (at least 1).
    storage : Storage, optional
        How files are reached and read: file systems, retries, a cache on disk, saved plans.
    on_error : {'raise', 'skip'} or Skip
        'skip' leaves out what cannot be read, and goes on, up to a number of rows.
    progress : bool or Report
        Show a progress bar of tqdm, on rank 0; a `Report` may also log or call a function.

    Raises
    ------
    TypeError
        The source cannot be read, or an argument has an unsupported type or name.
    ValueError
        An argument has an unsupported value, or contradicts another one.
    NotImplementedError
        `num_workers` on Windows.
    FileNotFoundError
        No file matches.
    OSError
        When reading: a file has changed since the loader was made.

    Notes
    -----
    Iterating reads the current epoch from its start, or from a loaded state. The next epoch follows
    when it is complete. An epoch that was left early starts again.

    ``with Loader(...) as loader:`` closes the loader at the end of the block: see `close`.
    """

    def __init__(
        self,
        source: SourceLike,
        batch_size: int | Tokens | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        shuffle: bool | Shuffle = False,
        seed: int | Seed = 0,
        drop_last: bool = False,
        pad_last: bool = False,
        batching: Buckets | Pack | None = None,
        ranks: Ranks | None = None,
        framework: Framework = "torch",
        device: Any = None,
        nulls: NullsLike = "raise",
        ragged: RaggedLike = "jagged",
        dtype: Any = None,
        stack: bool | Mapping[str, Sequence[str]] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        writable: bool = True,
        transform: Callable[[Any], Any] | None = None,
        transform_arrow: Callable[[pa.RecordBatch], Any] | None = None,
        num_workers: int = 0,
        num_threads: int = 0,
        prefetch: int = 2,
        storage: Storage | None = None,
        on_error: Literal["raise", "skip"] | Skip = "raise",
        progress: bool | Report = False,
        **unknown: Unpack[NoOptions],
    ) -> None:
        refuse_unknown(unknown, OPTIONS)
        options = flatten(
            batch_size=batch_size,
            batching=batching,
            ranks=ranks,
            shuffle=shuffle,
            seed=seed,
            drop_last=drop_last,
            pad_last=pad_last,
            framework=framework,
            device=device,
            columns=_core.ColumnOptions(nulls=nulls, ragged=ragged, dtype=dtype, stack=stack),
            writable=writable,
            transform=transform,
            transform_arrow=transform_arrow,
            num_workers=num_workers,
            num_threads=num_threads,
            prefetch=prefetch,
            storage=storage,
            on_error=on_error,
            progress=progress,
        )
        opened, skipped = open_checked(source, columns, filter, vocabulary, storage, options)
        super().__init__(opened, options, filter)
        self._skips.note(skipped)

    @classmethod
    def mix(
        cls,
        sources: Mapping[str, Any],
        weights: Mapping[str, float] | Mapping[int, Mapping[str, float]],
        *,
        ranks: Ranks | None = None,
        stop: Literal["first", "all", "repeat"] = "first",
        origin: str | None = None,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        vocabulary: Mapping[str, Any] | None = None,
        shuffle: bool | Shuffle = False,
        seed: int | Seed = 0,
        storage: Storage | None = None,
        **options: Any,
    ) -> Self:
        """Make a Loader of rows of several sources, by their weights.

        Each sequence of `Ranks.splits` takes the next row of one source after the other, so that
        the share of each source in any number of steps is its weight, to a few rows. The order
        depends on the seed and the weights alone: each step has the same rows on any number of
        ranks and workers, also after a resume. A source that ends goes on with its next epoch, in
        another order if it is shuffled.

        Parameters
        ----------
        sources : mapping of str to object
            By name, sources as in `Loader`, except streams, or Loaders, which keep their columns,
            filter, vocabulary, order and seed; everything else is of the mixture. All have the same
            columns of the same types.
        weights : mapping
            Of each name to a number: shares of the rows, not of tokens. Or of steps, the first one
            0, to such mappings, which hold from that step of the epoch on. A loaded state may have
            been saved with other weights: those given here hold from its step on.
        ranks : Ranks
            With a `global_batch_size`, the rows or tokens of a step on all ranks together.
        stop : {"first", "all", "repeat"}
            Where an epoch ends: before the first row that would be repeated, when all rows of all
            sources have been read, or never.
        origin : str, optional
            Name of a column of int32 with the index of each row's source.
        columns, filter, vocabulary, storage
            As in `Loader`, for the sources that are not Loaders.
        shuffle, seed
            As in `Loader`, for the sources that are not Loaders: these share the buffer.
        **options
            Of `Loader`.

        Returns
        -------
        Loader

        Raises
        ------
        TypeError
            A source is a stream, or `sources` or `weights` is no mapping.
        ValueError
            The sources have other columns or types, or fewer rows than `Ranks.splits`; or the
            weights do not fit them.
        """
        unknown = [name for name in options if name not in OPTIONS_OF_MIX]
        refuse_unknown_of_mix(unknown, OPTIONS_OF_MIX)
        mixed = mix_sources(
            sources,
            weights,
            stop,
            origin,
            columns,
            filter,
            vocabulary,
            ranks,
            seed,
            storage,
            options,
        )
        made = cls(
            mixed.source,
            ranks=mixed.ranks,
            shuffle=shuffle,
            seed=seed,
            storage=mixed.storage,
            **options,
        )
        made._skips.adopt(own._skips for own in sources.values() if isinstance(own, AdaptedReader))
        made._skips.note(mixed.skipped)
        return made


OPTIONS = frozenset(inspect.signature(Loader).parameters) - {"source", "unknown"}
OPTIONS_OF_MIX = OPTIONS - {"batch_size"} | inspect.signature(Loader.mix).parameters.keys() - {
    "options"
}


def _name_inherited() -> None:
    """Let Python's errors of calls say Loader.map_dataset(), not the class that has the method."""
    for kind in Loader.__mro__[1:-1]:
        for name, method in vars(kind).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                method.__module__, method.__qualname__ = Loader.__module__, f"Loader.{name}"


_name_inherited()
