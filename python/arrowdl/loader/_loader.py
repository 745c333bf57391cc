"""`Loader`: an Arrow source as batches of tensors, epoch after epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from arrowdl.loader._adapt import AdaptedReader
from arrowdl.loader._checks import require_bool, require_choice, require_function, require_int
from arrowdl.loader._epoch.packed import check_pack
from arrowdl.loader._files.file_plan import FilePlan, read_plan
from arrowdl.loader._mix import open_mixture, read_sizes
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._open.share_plan import open_shared
from arrowdl.loader._open.source import check_has_plan, open_source
from arrowdl.loader._options import (
    Options,
    Step,
    check_buffer_size,
    check_cache,
    choose_splits,
)
from arrowdl.loader._packing import Pack
from arrowdl.loader._parquet.polars_decoder import import_polars
from arrowdl.loader._schema.filters import show_filter
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._skip.tally import check_left_out
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._sources.base import StreamSource
from arrowdl.loader._stats import Stats
from arrowdl.loader._storage.access import Access
from arrowdl.loader._storage.disk_cache import open_cache
from arrowdl.loader._storage.retries import Retries
from arrowdl.loader._types import (
    Decoder,
    Framework,
    NullsOption,
    OnError,
    RaggedOption,
    SourceLike,
)

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
    batch_size : int, optional
        Rows of a batch on this rank. Give this, `global_batch_size`, or a budget of tokens.
    columns : sequence of str, optional
        Columns to read, in this order. All columns by default.
    filter : pyarrow.dataset.Expression, optional
        Rows to read, of files, datasets and tables with versions: those that
        ``pyarrow.Table.filter`` keeps. Row groups are skipped if their statistics say that no row
        matches. Of Lance, also a SQL string. If no row matches, epochs have no batch, and the
        logger "arrowdl.loader" warns.
    framework : {'torch', 'jax', 'numpy'}
        Whose tensors the batches are made of.
    device : device, optional
        Copies the batches there, ahead of the training and through pinned memory. See
        `DeviceArray.to`.
    shuffle : bool
        Each epoch permutes all rows, if `buffer_size` rows are as many. Otherwise it permutes the
        row groups (of tables: blocks), reads twelve of them side by side, from all parts of the
        source, and permutes the rows of each full buffer; the logger "arrowdl.loader" says so. Of
        streams, only the rows of each buffer are permuted.
    seed : int
        Of the shuffles, and of `seed_transforms`. The same seed, epoch and source give the same
        batches on every machine.
    drop_last : bool
        Drop incomplete batches. Otherwise the last batch of a rank may have fewer than `batch_size`
        rows. It may also be a single row that another rank has too, if this rank would have one
        batch less than the others: see `valid_rows`.
    rank, world_size : int, optional
        This process among those that share the rows. By default those of ``torch.distributed`` if
        it is initialised, then of the variables ``RANK`` and ``WORLD_SIZE``, then JAX's process
        index; otherwise 0 and 1.
    global_batch_size : int, optional
        Rows of a step on all ranks together, in place of `batch_size`: a multiple of the number of
        ranks.
    batch_tokens : int, optional
        Tokens of a batch on this rank, in place of a number of rows: a batch has as many rows as
        fit. Where the column is padded, its padding counts too. All ranks have equally many
        batches, with equally many rows of each sequence of `splits` (by default one for each rank).
        Not for streams, whose lengths are not known ahead.
    global_batch_tokens : int, optional
        Tokens of a step on all ranks together, in place of `batch_tokens`: with `splits` as
        `global_batch_size` has, steps are the same on any number of ranks.
    token_column : str, optional
        What `batch_tokens` counts: a column of lists (or strings, whose bytes count), or of
        integers. By default that of `bucket_by`, or the only column of lists. It is read once
        before the first epoch. A column of integers in Parquet is read in no time.
    bucket_by : str, optional
        Column of lists, strings or integers: batches have rows of like lengths. The rows of each
        `buffer_size` rows are sorted by length and cut into batches; with `shuffle`, these come in
        an order drawn from the seed, so that long rows are in the same steps on all ranks.
    splits : int, "auto" or None
        Divide the rows of an epoch into so many sequences, of which each global batch has equal
        shares, so that each step has the same rows, in the same order, on any number of ranks that
        divides `splits`, and with any number of workers. It has to divide the global batch. A rank
        reads ``splits / world_size`` sequences side by side, and holds a row group of each. The
        sequences share the buffer of `shuffle`. None: which rows a step has depends on the number
        of ranks. "auto": with `global_batch_size` its largest divisor up to 8, otherwise None.
    prefetch : int
        Batches that a native thread reads, shuffles or copies to `device` ahead; 0 for none. Files
        and tables in order on the CPU need no thread: pyarrow decodes files ahead by itself.
        With `num_workers`, how many batches each worker is ahead (at least 1), and how many copies
        to `device` are.
    num_workers : int
        Worker processes, which read and call `transform`; 0 for none. They help a `transform` that
        is slow Python code; threads are enough for everything else. Each worker reads a part of the
        rank's batches, and they take turns: the batches are those without workers, in another
        order (with `splits` in the same one, for which each worker decodes all rows of the rank).
        Workers start with the first epoch, import the main module and get a copy of the
        source (of its paths, if it has paths). They end with the loader, or when an epoch is left
        early. Batches arrive in shared memory, which is reused when no tensor uses it any more.
        Not on Windows.
    num_threads : int
        Threads that make tensors and call `transform`, for several batches at a time; 0 for the
        training's own thread. The batches keep their order, and errors come with their batch. They
        help a `transform` that releases the interpreter lock, as NumPy, torch and image decoders
        do, or any `transform` in free-threaded Python; `transform` has to be safe in several
        threads. Not with `num_workers`, or with a `device` other than the CPU.
    pad_last : bool
        Pad each batch to `batch_size` rows, and add a bool column ``"valid"``. Padding repeats rows
        of the batch. ``"valid"`` is False for it, and for a row that another rank also reads. For
        compilers that need stable shapes, such as JAX's, and for metrics.
    sharding : jax.sharding.Sharding, optional
        Make the batches global arrays of JAX: this process has `batch_size` rows of each, and
        ``jax.make_array_from_process_local_data`` puts them on its devices. `transform` gets NumPy
        arrays then.
    memory_map : bool
        Map local Arrow IPC files into memory, so that a page is read when it is first used. If
        another process truncates a mapped file, this process ends with SIGBUS. False reads the
        files instead, in the order of whole files.
    decoder : {'pyarrow', 'polars'}
        What decodes Parquet files. polars is faster at integers, bools and floats of 32 and 64
        bits, most of all at bools and nulls. It decodes those in whole row groups of a quarter of a
        million values and up to 128 MiB, of local files that are read without a `filter`; pyarrow
        decodes the rest, and all in forked processes. Rows, their order, errors and states are the
        same; only what is under a mask of nulls may differ, which nobody promises.
    nulls : {'raise', 'fill', 'nan', 'mask'} or mapping of str to these
        As in `to_torch`: one policy, or the policies of columns, or of matrices of `stack`, by
        name. Other columns raise.
    ragged : {'jagged', 'padded', 'offsets'} or mapping of str to these
        As in `to_torch`: one form, or the forms of columns by name. Other columns are jagged.
    dtype : dtype, str, or mapping of str to these, optional
        What integers and floats are cast to, as in `to_torch`: one dtype of torch, NumPy or JAX, or
        its name, or the dtypes of columns, or of matrices of `stack`, by name.
    pad_value : int, float, or mapping of str to these
        What rows of padded columns end with.
    max_length : int or mapping of str to int, optional
        Values of a padded row that are kept: longer rows are cut.
    pad_to_multiple : int, optional
        The width of padded columns is rounded up to a multiple of this.
    vocabulary : mapping of str to sequence, optional
        Distinct values of columns: a batch has the index of each value. For dictionary columns
        whose values are not to be read from all files first, and for columns of plain values, such
        as strings. A value that is not listed is an error. A set is refused: its order differs
        between processes.
    writable : bool
        Whether batches may be written to, as in ``batch["x"] /= 2``, without changing the source or
        another batch. For that, files are mapped privately, and rows of tables and streams that
        stay in order are copied once, and so is what `transform_arrow` returns. With False, batches
        share such memory with the source or the function, and neither may write to it.
    stack : bool or mapping of str to sequence of str, optional
        Columns side by side as one matrix. True makes each batch one matrix of all columns. A
        mapping makes a matrix of the listed columns under each name, and keeps the other columns.
    transform : callable, optional
        Called with each batch; the loader returns its result.
    transform_arrow : callable, optional
        Called with the ``pyarrow.RecordBatch`` of each batch's rows, in their final order, before
        they become tensors. It returns as many rows: a record batch, a table, or a dict of Arrow
        arrays, tensors or lists by column name. It runs in a native thread ahead of the training,
        one batch after another, or in the worker processes.
    pin_memory : bool
        Return torch tensors in pinned memory, for your own copies to a GPU. `device` does not need
        it.
    buffer_size : int or "auto"
        Rows of the shuffle buffer, which is held in memory. `splits` divides it. "auto": as many
        rows as fit into some 256 MiB, by the footers of the files, the size of the table, or the
        first rows of a stream; if these are not all, what is read side by side counts too. That
        depends neither on the machine nor on the rank. A loaded state of another number of rows
        sets it to that number. The windows of `bucket_by` have up to 65,536 rows then.
    progress : bool
        Show a progress bar of tqdm, on rank 0.
    report_every : float, optional
        Report the counters of `stats` between batches, when so many seconds have passed.
    report : callable, optional
        Takes a copy of the `Stats`. By default a line of what came since the last report goes to
        the logger "arrowdl.loader", at level INFO.
    pack : Pack, optional
        Pack the rows into blocks of one length, which take the place of rows in everything else: a
        batch has `batch_size` blocks, and ranks, workers, `splits` and states count them. Which
        blocks there are depends on the rows and their order alone (with `splits`, on the smaller
        shuffle buffer), so that every number of ranks trains on the same. The first epoch reads the
        lengths of all rows once, or a column of integers that has them (`Pack.lengths`). Of a
        stream, every rank packs all rows.
    on_error : {'raise', 'skip'}
        'skip' leaves out what cannot be read, and goes on: a file whose footer cannot be read, with
        a warning when the loader is made; a row group (of other formats than Parquet, a file) that
        is damaged or gone; a batch for which `transform`, `transform_arrow` or a function of `map`
        or `filter` raises, or, with `splits`, the sequences of its rows for which it does. Steps,
        ranks and states stay as they are: a batch has fewer rows, and one without a row repeats
        one, with 0 `valid_rows`. Each error is logged once an epoch, as a warning of the logger
        "arrowdl.loader" with the file and its rows, and is in ``stats().skipped``. Errors of
        streams, and of options such as `nulls`, are raised. With `pack`, blocks are left out that
        have a document of rows that fail, and documents whose length cannot be read are in no
        block.
    max_skipped_rows : int, optional
        Rows that `on_error` may skip in an epoch, or in each pass of a mixture without end, on all
        ranks of a process group of ``torch.distributed`` together, on others each. Then the error
        is raised. By default a tenth of the rows of the source; of a stream, 10,000. With `pack`
        blocks, and apart from these, documents whose length cannot be read.
    filesystem : pyarrow.fs.FileSystem or fsspec.AbstractFileSystem, optional
        What has the paths of `source`. By default the local file system, and for URLs the one that
        they name: ``s3://``, ``gs://``, ``abfss://``, ``az://`` and ``hdfs://`` of pyarrow, all
        others (``https://``, ``hf://``, ...) of fsspec.
    storage_options : mapping of str to object, optional
        Options of the file system that a URL names: keywords of ``pyarrow.fs.S3FileSystem``,
        ``GcsFileSystem``, ``AzureFileSystem`` and ``HadoopFileSystem``, or of fsspec's. For URLs of
        several schemes, such a mapping for each scheme.
    retries : Retries, optional
        How often and how long requests to a store are tried again.
    plan : FilePlan, path or "share", optional
        What `Loader.plan` of a Loader of the same paths, table or dataset returned, or the file
        that it was saved to: nothing is listed, and no footer is read before its rows are. "share":
        with a process group of ``torch.distributed``, rank 0 lists the files and reads the footers
        for all ranks.
    cache : str or PathLike, optional
        Folder on a local disk that keeps what was read over a network, for later epochs and
        Loaders of the same files. Processes share it, and may end at any time. What has changed in
        the store, or is damaged in the folder, is read again. If the folder cannot be written to,
        the logger "arrowdl.loader" warns once, and it is not used. Not on Windows.
    cache_bytes : int, optional
        The most bytes in `cache`, of all its users together: what was not used for longest goes
        first. Give both or none.
    seed_transforms : bool
        Give `random`, NumPy's legacy functions and torch (of the CPU, and of a GPU that is
        `device`) a seed of their own for each batch, derived from `seed`, the epoch, the step and
        the rank, while `transform`, `transform_arrow` and the functions of `map` and `filter` are
        called: their draws are the same in each run, after a resume, and with any number of
        workers, but not of ranks, which have other batches. Afterwards the generators are as they
        were. That needs the main thread of the training's process or of a worker: with
        `num_threads`, for a `transform_arrow` that runs ahead, and where another thread iterates,
        the generators are left alone, since the training draws from them at the same time. A
        function whose second parameter is named ``generator`` gets one with such a seed everywhere:
        a ``torch.Generator`` (of `device`, if that is a CUDA GPU), a key of ``jax.random``, or a
        ``numpy.random.Generator`` (always in `transform_arrow`, and with `sharding`). False sets no
        seeds, for functions that do so.

    Raises
    ------
    TypeError
        The source cannot be read, or an argument has an unsupported type.
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
        batch_size: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        framework: Framework = "torch",
        device: Any = None,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        global_batch_size: int | None = None,
        batch_tokens: int | None = None,
        global_batch_tokens: int | None = None,
        token_column: str | None = None,
        bucket_by: str | None = None,
        splits: int | Literal["auto"] | None = "auto",
        prefetch: int = 2,
        num_workers: int = 0,
        num_threads: int = 0,
        pad_last: bool = False,
        sharding: Any = None,
        memory_map: bool = True,
        decoder: Decoder = "pyarrow",
        nulls: NullsOption = "raise",
        ragged: RaggedOption = "jagged",
        dtype: Any = None,
        pad_value: Any = 0,
        max_length: int | Mapping[str, int] | None = None,
        pad_to_multiple: int | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        writable: bool = True,
        stack: bool | Mapping[str, Sequence[str]] | None = None,
        transform: Callable[[Any], Any] | None = None,
        transform_arrow: Callable[[pa.RecordBatch], Any] | None = None,
        pin_memory: bool = False,
        buffer_size: int | Literal["auto"] = "auto",
        progress: bool = False,
        report_every: float | None = None,
        report: Callable[[Stats], Any] | None = None,
        pack: Pack | None = None,
        on_error: OnError = "raise",
        max_skipped_rows: int | None = None,
        filesystem: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        retries: Retries | None = None,
        plan: FilePlan | str | PathLike[str] | None = None,
        cache: str | PathLike[str] | None = None,
        cache_bytes: int | None = None,
        seed_transforms: bool = True,
    ) -> None:
        require_choice("decoder", decoder, get_args(Decoder))
        if decoder == "polars":
            import_polars()  # on all ranks alike, before they share a plan
        options = Options(
            batch_size=batch_size,
            global_batch_size=global_batch_size,
            batch_tokens=batch_tokens,
            global_batch_tokens=global_batch_tokens,
            token_column=token_column,
            bucket_by=bucket_by,
            splits=choose_splits(splits, global_batch_size, global_batch_tokens),
            framework=framework,
            device=device,
            shuffle=shuffle,
            seed=seed,
            drop_last=drop_last,
            rank=rank,
            world_size=world_size,
            prefetch=prefetch,
            num_workers=num_workers,
            num_threads=num_threads,
            pad_last=pad_last,
            sharding=sharding,
            nulls=nulls,
            ragged=ragged,
            dtype=dtype,
            pad_value=pad_value,
            max_length=max_length,
            pad_to_multiple=pad_to_multiple,
            writable=writable,
            stack=stack,
            transform=transform,
            transform_arrow=transform_arrow,
            pin_memory=pin_memory,
            buffer_size=buffer_size,
            progress=progress,
            report_every=report_every,
            report=report,
            pack=pack,
            on_error=on_error,
            max_skipped_rows=max_skipped_rows,
            cache=cache,
            cache_bytes=cache_bytes,
            seed_transforms=seed_transforms,
        )
        maps = require_bool("memory_map", memory_map)
        left_out: list[Skipped] | None = [] if options.skips else None
        kept = open_cache(options.cache, options.cache_bytes)
        access = Access(filesystem, storage_options, retries, kept)

        given = source, columns, filter, maps, vocabulary, left_out, access
        if plan == "share":
            check_has_plan(source)  # on all ranks alike, before one of them lists and reads
            opened = open_shared(partial(open_source, *given))
        else:
            opened = open_source(*given, None if plan is None else read_plan(plan))
        if decoder != "pyarrow":
            opened.use_decoder(decoder)
        if left_out:
            check_left_out(left_out, opened, options.max_skipped_rows)
        names = opened.column_names if pack is None else check_pack(opened, pack)
        if names is not None and transform_arrow is None:
            options.check_columns(names)
            opened.vocabulary.check_names(names)
        super().__init__(
            opened, options, None if filter is None else " ".join(show_filter(filter).split())
        )
        self._note_skipped(left_out or ())

    @classmethod
    def mix(
        cls,
        sources: Mapping[str, Any],
        global_batch_size: int | None = None,
        *,
        weights: Mapping[str, float] | Mapping[int, Mapping[str, float]],
        global_batch_tokens: int | None = None,
        stop: Literal["first", "all", "repeat"] = "first",
        origin: str | None = None,
        splits: int | Literal["auto"] = "auto",
        columns: Sequence[str] | None = None,
        filter: Any = None,
        memory_map: bool = True,
        vocabulary: Mapping[str, Any] | None = None,
        shuffle: bool = False,
        seed: int = 0,
        buffer_size: int | Literal["auto"] = "auto",
        filesystem: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        retries: Retries | None = None,
        **options: Any,
    ) -> Self:
        """Make a Loader of rows of several sources, by their weights.

        Each sequence of `splits` takes the next row of one source after the other, so that the
        share of each source in any number of steps is its weight, to a few rows. The order depends
        on the seed and the weights alone: each step has the same rows on any number of ranks and
        workers, also after a resume. A source that ends goes on with its next epoch, in another
        order if it is shuffled.

        Parameters
        ----------
        sources : mapping of str to object
            By name, sources as in `Loader`, except streams, or Loaders, which keep their columns,
            filter, vocabulary, order and seed; everything else is of the mixture. All have the same
            columns of the same types.
        global_batch_size : int, optional
            Rows of a step on all ranks together.
        weights : mapping
            Of each name to a number: shares of the rows. Or of steps, the first one 0, to such
            mappings, which hold from that step of the epoch on. A loaded state may have been saved
            with other weights: those given here hold from its step on.
        global_batch_tokens : int, optional
            Tokens of a step on all ranks together, in place of its rows. Shares are of rows, not of
            tokens.
        stop : {"first", "all", "repeat"}
            Where an epoch ends: before the first row that would be repeated, when all rows of all
            sources have been read, or never.
        origin : str, optional
            Name of a column of int32 with the index of each row's source.
        splits : int or "auto"
            As in `Loader`.
        columns, filter, memory_map, vocabulary, filesystem, storage_options, retries
            As in `Loader`, for the sources that are not Loaders.
        shuffle, seed, buffer_size
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
            The sources have other columns or types, or fewer rows than `splits`; or the weights do
            not fit them.
        """
        if options.get("plan") is not None:
            raise ValueError("plan= is of one source: give each Loader of the mixture its own")
        of_rank = options.get("batch_size"), options.get("batch_tokens")
        size, sequences = read_sizes(global_batch_size, global_batch_tokens, *of_rank, splits)
        check_buffer_size(buffer_size)
        maps = require_bool("memory_map", memory_map)
        number = require_int("seed", seed)
        left_out: list[Skipped] | None = [] if options.get("on_error") == "skip" else None
        kept = open_cache(*check_cache(options.get("cache"), options.get("cache_bytes")))
        access = Access(filesystem, storage_options, retries, kept)
        mixture: Any = open_mixture(
            sources,
            weights,
            stop,
            origin,
            lambda source: open_source(source, columns, filter, maps, vocabulary, left_out, access),
            number,
            size,
            sequences,
            tables := Vocabulary.of_user(vocabulary),
        )
        if options.get("transform_arrow") is None:
            tables.check_names(mixture.column_names or [])
        made = cls(
            mixture,
            global_batch_size=global_batch_size,
            global_batch_tokens=global_batch_tokens,
            splits=sequences,
            shuffle=shuffle,
            seed=seed,
            buffer_size=buffer_size,
            **options,
        )
        made._name_left_out(own for own in sources.values() if isinstance(own, AdaptedReader))
        if left_out:
            check_left_out(left_out, mixture, options.get("max_skipped_rows"))
            made._note_skipped(left_out)
        return made

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

        Steps, ranks and states stay as they are: a batch has fewer rows. One that would have none
        repeats a row, with 0 `valid_rows`: one of its own, or, for a later `map`, the first of the
        epoch that all filters keep (of a stream, one of an earlier batch). With `pad_last`, batches
        keep their shape, and ``"valid"`` is False for what was dropped. Give `Loader` a `filter`
        instead if the files can be filtered by their columns: its batches are full, and row groups
        are skipped. The logger "arrowdl.loader" warns of an epoch of which no row of this rank is
        kept.

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
            `sharding` was given without `pad_last`: all processes need as many rows.
        """
        return self._with_step(Step(require_function("filter", function), True))

    def vocabulary(self, column: str) -> pa.Array:
        """Return the values of a dictionary column, in the order of its codes.

        They are the same for every rank, worker and epoch, and after a resume. Of a dataset, the
        first call, or else the first epoch, reads the dictionary columns of all files once, unless
        `vocabulary` was given.

        Parameters
        ----------
        column : str

        Returns
        -------
        pyarrow.Array

        Raises
        ------
        ValueError
            The column is no dictionary column, and has no `vocabulary`.
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
                f'"{column}" is no dictionary column of the source: give its values as '
                "Loader(vocabulary=) to read codes"
            )
        return values

    def plan(self) -> FilePlan:
        """Return what was found out about the files: for ``Loader(plan=)``, on any machine.

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
        if isinstance(self._source, StreamSource):
            raise TypeError("a stream has no plan: it has no files that are read in any order")
        if isinstance(self._source, MixedSource):
            raise TypeError("a mixture has no plan: make one of each of its Loaders")
        return self._source.make_plan()
