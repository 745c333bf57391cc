"""`Loader`: an Arrow source as batches of tensors, epoch after epoch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self, Unpack

from arrowdl import _core
from arrowdl.loader._adapt import AdaptedReader
from arrowdl.loader._checked import open_checked
from arrowdl.loader._mix import mix_sources
from arrowdl.loader._settings.buckets import Buckets
from arrowdl.loader._settings.flatten import flatten, read_storage
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
from arrowdl.loader._types import Framework, SourceLike, TransformArrowLike
from arrowdl.typing import NullsLike, RaggedLike


class Loader(AdaptedReader):
    """Batches of tensors from any Arrow source, for training.

    Parameters
    ----------
    source : object
        For many epochs: paths, URLs and globs of Parquet or Arrow IPC files or directories of them,
        open file objects, a ``pyarrow.dataset.Dataset``, a pyarrow table, a polars frame or lazy
        frame (collected once), a pandas frame, a DuckDB relation, a table of Delta Lake or Iceberg,
        a Lance or Hugging Face dataset, a list of record batches, or a function that makes an Arrow
        stream, an ADBC cursor or a Flight stream. For one epoch: such a stream or cursor itself.
    batch_size : int or Tokens, optional
        Rows, or tokens, of a batch on this rank. Give this or `Ranks.global_batch_size`.
    columns : sequence of str, optional
        Columns to read, in this order. All columns by default.
    filter : pyarrow.dataset.Expression, optional
        Which rows to read from files, datasets and tables with versions: those that
        ``pyarrow.Table.filter`` would keep. Lance also takes a SQL string. If no row matches,
        epochs have no batches, and the logger "arrowdl.loader" warns.

    Order
    -----
    shuffle : bool or Shuffle
        Permute the rows in each epoch: all rows, if the buffer of `Shuffle` can hold them.
        Otherwise the row groups (of tables: blocks) are permuted, twelve of them are read side by
        side, from all parts of the source, and the rows of each full buffer are permuted; the
        logger "arrowdl.loader" says so. For streams, only the rows of each buffer are permuted.
    seed : int or Seed
        Decides the order of a shuffle, and the random draws in transforms. The same seed, epoch and
        source give the same batches on every machine.
    drop_last : bool
        Drop incomplete batches. Otherwise the last batch of a rank may have fewer rows. All ranks
        have the same number of batches: a rank that would have one batch less repeats a single row
        of another rank (see `valid_rows`).
    pad_last : bool
        Pad each batch to `batch_size` rows, by repeating rows of the batch, and add a bool column
        ``"valid"``. It is False for padding, and for a row that another rank also reads. Compilers
        that need stable shapes, such as JAX's, and metrics use it.
    batching : Buckets or Pack, optional
        `Buckets` puts rows with similar lengths into a batch; `Pack` packs rows into blocks.
    ranks : Ranks, optional
        The processes that share the rows, and the size of a step on all of them together. By
        default the ranks of ``torch.distributed``, of ``RANK`` and ``WORLD_SIZE``, or of JAX.

    Tensors
    -------
    framework : {'torch', 'jax', 'numpy'}
        The library whose tensors the batches have.
    device : device or jax.sharding.Sharding, optional
        Where batches are copied to, ahead of the training and through pinned memory: see
        `DeviceArray.to`. "cuda_host" is pinned memory, for your own copies of torch tensors. A
        sharding makes global arrays of JAX: this process has `batch_size` rows of each, and
        `transform` gets NumPy arrays.
    nulls : {'raise', 'fill', 'nan', 'mask'}, number, or mapping of str to these
        As in `to_torch`: one policy or number, or those of columns, or of matrices of `stack`, by
        name. Other columns raise.
    ragged : {'jagged', 'padded', 'offsets'}, Padded, or mapping of str to these
        As in `to_torch`: one form, or the forms of columns by name. Other columns are jagged.
    dtype : dtype, str, or mapping of str to these, optional
        What numbers are cast to, or the unit of times, as in `to_torch`: one dtype of torch, NumPy
        or JAX, or its name, or the dtypes of columns, or of matrices of `stack`, by name.
    stack : bool or mapping of str to sequence of str, optional
        Put columns side by side into a matrix. True makes each batch one matrix of all columns. A
        mapping makes a matrix of the listed columns under each name, and keeps the other columns.
    vocabulary : mapping of str to sequence, optional
        The distinct values of columns: batches then have the index of each value. Give them for
        columns of plain values, such as strings, and for dictionary columns, whose values would
        otherwise be read from all files first. A value that is not listed is an error. A set is
        refused, since its order differs between processes.
    writable : bool
        Whether batches may be written to, as in ``batch["x"] /= 2``, without changing the source or
        another batch. With False, batches that are not shuffled share memory with the source or
        with what `transform_arrow` returns: do not write to either.

    Work
    ----
    transform : callable, optional
        Called with each batch; the loader returns its result.
    transform_arrow : callable, mapping of str to callable, or sequence of these, optional
        Called with the ``pyarrow.RecordBatch`` of each batch's rows, in their final order, ahead of
        the training in a native thread, one batch after another, or in the worker processes. It
        returns as many rows: a record batch, a table, or a dict of Arrow arrays, tensors or lists
        by name. A mapping is by column (`Image`, `Audio`, `Tokenize`); a list is run in order.
    num_workers : int
        Worker processes that read and call `transform`; 0 for none. They help if `transform` is
        slow Python code. They take turns: the batches are the same as without workers, but in
        another order (with `Ranks.splits`, in the same order). Not on Windows.
    num_threads : int
        Threads that make tensors and call `transform`, which must be safe in several threads; 0
        for the training's own thread. They help if `transform` releases the interpreter lock. Not
        with `num_workers`, or with a `device` other than the CPU.
    prefetch : int
        How many batches a native thread reads, shuffles or copies to `device` ahead; 0 for none.
        With `num_workers`, how many batches each worker is ahead (at least 1).
    storage : Storage, optional
        How files are reached and read: file systems, retries, a cache on disk, saved plans.
    on_error : {'raise', 'skip'} or Skip
        'raise' raises the error of what cannot be read. 'skip' leaves it out and goes on, until
        too many rows are left out: see `Skip`.
    progress : bool or Report
        Show a progress bar of tqdm, on rank 0. A `Report` may also log, or call a function.

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
    Iterating reads the current epoch, from its start or from a loaded state. After a complete
    epoch, iterating reads the next one; an epoch that was left early starts again.

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
        transform_arrow: TransformArrowLike | None = None,
        num_workers: int = 0,
        num_threads: int = 0,
        prefetch: int = 2,
        storage: Storage | None = None,
        on_error: Literal["raise", "skip"] | Skip = "raise",
        progress: bool | Report = False,
        **unknown: Unpack[NoOptions],
    ) -> None:
        refuse_unknown(unknown, OPTIONS)
        storage = read_storage(storage)
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
            dtype=dtype,
            on_error=on_error,
            progress=progress,
        )
        opened, options, skipped = open_checked(
            source, columns, filter, vocabulary, storage, options
        )
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
        """Make a Loader that mixes the rows of several sources by weights.

        Each sequence of `Ranks.splits` takes every row from one of the sources, so that the share
        of each source in any number of steps is its weight, up to a few rows. The order depends on
        the seed and the weights alone: each step has the same rows on any number of ranks and
        workers, also after a resume. A source that ends goes on with its next epoch, in another
        order if it is shuffled.

        Parameters
        ----------
        sources : mapping of str to object
            The sources by name: what `Loader` takes, except streams, or Loaders. A Loader keeps its
            columns, filter, vocabulary, order and seed; its other options are replaced by those of
            the mixture. All sources have the same columns of the same types; units of times may
            differ if `dtype` has one.
        weights : mapping
            A number for each name: the shares of the rows, not of the tokens. Or a mapping from
            steps, of which the first is 0, to such mappings, each of which holds from that step of
            the epoch on. A loaded state may have been saved with other weights: those given here
            hold from its step on.
        ranks : Ranks
            Has a `global_batch_size`: the rows or tokens of a step on all ranks together.
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
            Other options, as in `Loader`.

        Returns
        -------
        Loader

        Raises
        ------
        TypeError
            A source is a stream, or `sources` or `weights` is not a mapping.
        ValueError
            The sources differ in their columns or types, or one has fewer rows than
            `Ranks.splits`, or the weights do not fit the sources.
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
        loader = cls(
            mixed.source, ranks=mixed.ranks, shuffle=shuffle, seed=seed, storage=storage, **options
        )
        loader._skips.adopt(
            source._skips for source in sources.values() if isinstance(source, AdaptedReader)
        )
        loader._skips.note(mixed.skipped)
        return loader


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
