"""`explain`: what a Loader reads, in which order, by which steps, with which copies and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from arrowdl import _core
from arrowdl.loader._buffer import find_mixing
from arrowdl.loader._html import make_table
from arrowdl.loader._options.options import Options
from arrowdl.loader._parquet.scan_limits import BATCH_BYTES, SCAN_BYTES
from arrowdl.loader._pipeline import Pipeline
from arrowdl.loader._sources.base import ENDLESS, IndexedSource, Source
from arrowdl.loader._sources.row_bytes import count_lanes

Line = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What a Loader does in an epoch: ``str(loader.explain())`` is a report for people.

    Attributes
    ----------
    rows : int or None
        Rows of an epoch on all ranks; None of a stream, and of a mixture without end.
    files : int
        Files that are read; 0 if the source is not one of files.
    file_bytes : int or None
        The sizes of these files together, if they are known.
    row_groups : int or None
        Row groups, or other parts that are decoded as a whole; None for rows in memory.
    row_bytes : float or None
        Bytes of a row in memory, estimated.
    mixed : float or None
        The share of the rows that the shuffle permutes together: 1 for a permutation of all rows,
        0 for rows in order, None of a stream.
    order : str
        The order of the rows.
    steps : tuple of (str, str)
        The steps of a batch, and the threads or processes that work on each.
    copies : tuple of (str, str)
        What is copied between the source and the batch, and why.
    memory : mapping of str to int
        The bytes that each part of the work takes at its peak, estimated: not those of a source in
        memory. Empty if `row_bytes` is not known.
    """

    rows: int | None
    files: int
    file_bytes: int | None
    row_groups: int | None
    row_bytes: float | None
    mixed: float | None
    order: str
    steps: tuple[Line, ...]
    copies: tuple[Line, ...]
    memory: Mapping[str, int]

    def __str__(self) -> str:
        return "\n".join(f"{name:<10}{text}" for name, text in self._list_lines())

    def _repr_html_(self) -> str:
        return make_table("arrowdl.Loader", self._list_lines())

    def _list_lines(self) -> Iterator[Line]:
        yield "source", self._describe_source()
        yield "order", self.order
        for name, parts in (("step", self.steps), ("copy", self.copies or (("none", ""),))):
            for what, how in parts:
                yield name, f"{what}: {how}" if how else what
        shares = [f"{name} {show_bytes(size)}" for name, size in self.memory.items()]
        total = show_bytes(sum(self.memory.values()))
        yield "memory", f"about {total} ({', '.join(shares)})" if shares else "unknown"

    def _describe_source(self) -> str:
        texts = ["rows of unknown number" if self.rows is None else f"{self.rows:,} rows"]
        if self.row_groups is not None:
            texts.append(count_of(self.row_groups, "row group"))
        if self.files:
            size = "" if self.file_bytes is None else f" of {show_bytes(self.file_bytes)}"
            texts.append(f"{count_of(self.files, 'file')}{size}")
        if self.row_bytes is not None:
            texts.append(f"{self.row_bytes:,.0f} bytes a row in memory")
        return ", ".join(texts)


def count_of(number: int, noun: str) -> str:
    """Return a number and the noun that it counts."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def show_bytes(size: float) -> str:
    """Return a number of bytes with a unit of people."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1_000 or unit == "GB":
            break
        size /= 1_000
    return f"{size:,.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"


def measure_files(source: Source) -> tuple[int, int | None]:
    """Return the number of a source's files, and their bytes if those of all are known."""
    sizes = [stamp.size for stamp in source.files.list_stamps()]
    file_sizes = [size for size in sizes if size is not None]
    return len(sizes), sum(file_sizes) if file_sizes and len(file_sizes) == len(sizes) else None


def explain(pipeline: Pipeline, rank: str) -> Explanation:
    """Return what a Loader does; `rank` says which part of the rows it reads."""
    source, options = pipeline.source, pipeline.options
    files, file_bytes = measure_files(source)
    members = [member for _, member in source.list_members()]
    rows = source.num_rows
    decoded = [member for member in members if member.decodes_units]
    row_bytes = source.estimate_row_bytes()
    mixed, order = _describe_order(source, options)
    return Explanation(
        rows=None if rows is None or rows >= ENDLESS else rows,
        files=files,
        file_bytes=file_bytes,
        row_groups=sum(len(member.units) for member in decoded) if decoded else None,
        row_bytes=row_bytes,
        mixed=mixed,
        order=f"{order}; {rank}",
        steps=tuple(_list_steps(source, options)),
        copies=tuple(_list_copies(source, options)),
        memory={} if row_bytes is None else _measure_memory(source, options, row_bytes),
    )


def _describe_order(source: Source, options: Options) -> tuple[float | None, str]:
    """Return the share of the rows that are permuted together, and the order for people."""
    after = ""
    if options.pack is not None:
        after = f", packed into blocks of {options.pack.length}"
    if options.sizes.bucket_by is not None:
        after += f', batches of rows of similar "{options.sizes.bucket_by}"'
    if source.schedule:
        names = ", ".join(name for name, _ in source.list_members())
        after = f", mixed from {names} by weights{after}"
    if not options.shuffle:
        return 0.0, f"in the order of the source{after}"
    if not source.list_members():
        size = options.buffer_rows or "as many rows as fit"
        return None, f"in the order of the source, permuted in buffers of {size}{after}"
    mixing = find_mixing(source, options)
    if mixing is None:
        return 1.0, f"a permutation of all rows, seed {options.seed}{after}"
    share = mixing.buffer_rows / mixing.rows
    return share, (
        f"permuted row groups or blocks, seed {options.seed}: the buffer has "
        f"{mixing.buffer_rows:,} of {mixing.rows:,} rows ({share:.1%}), and mixes rows of "
        f"{mixing.parts} of {mixing.units} row groups or blocks at a time{after}"
    )


def _list_steps(source: Source, options: Options) -> Iterator[Line]:
    work = "the training's thread"
    ahead = f"a native thread, {options.prefetch} batches ahead" if options.prefetch else work
    if options.num_workers:
        work = f"{options.num_workers} worker processes, {max(1, options.prefetch)} batches ahead"
        ahead = work
    elif options.num_threads:
        work = f"{options.num_threads} threads"
    yield "read", _name_readers(source)
    if options.shuffle:
        yield "shuffle", f"{_core.num_threads()} native threads (arrowdl.config.num_threads)"
    if options.functions.transform_arrow is not None:
        yield "transform_arrow", ahead
    yield f"tensors of {options.target.framework}", work
    names = ["filter" if step.is_filter else "map" for step in options.functions.chain]
    if options.functions.transform is not None:
        names.insert(0, "transform")
    for name in names:
        yield name, work
    if options.target.device is not None:
        how = f"a thread, {options.prefetch} batches ahead" if options.prefetch else work
        yield f"copy to {options.target.device}", how


def _name_readers(source: Source) -> str:
    """Name the threads that read the rows."""
    members = [member for _, member in source.list_members()]
    if any(member.clock is not None for member in members):
        import pyarrow as pa

        threads = f"{pa.cpu_count()} threads (pyarrow.set_cpu_count)"
        return f"{threads}, and {pa.io_thread_count()} for files (pyarrow.set_io_thread_count)"
    if members and not any(member.decodes_units for member in members):
        return "rows are in memory, or mapped"
    return "the threads of the source"


def _list_copies(source: Source, options: Options) -> Iterator[Line]:
    nulls = _list_policies(options)
    if options.shuffle:
        yield "rows", "once, into the order of the shuffle"
    elif options.pack is not None:
        yield "rows", "once, into blocks"
    elif source.schedule or options.sizes.bucket_by is not None:
        yield "rows", "once, into batches"
    elif options.exposes_writable_tensors and source.is_shared:
        if source.files.list_stamps():
            yield "pages that are written to", "files are mapped, and batches may be written to"
        else:
            yield "rows", "once, since batches may be written to: writable=False saves it"
    if options.columns.casts:
        yield "integers and floats of another type", "cast by dtype="
    if nulls:
        yield "columns with nulls", f"nulls={', '.join(nulls)}"
    if options.columns.stacks:
        yield "columns of a matrix", "put side by side by stack="
    if options.pad_last:
        yield "the last batch", "padded by pad_last=True"
    if options.num_workers:
        yield "batches", "into memory that is shared with the worker processes"
    if options.target.device is not None:
        yield "batches", f"to {options.target.device}"
    if options.target.pin_memory:
        yield "batches", "into pinned memory"
    if options.target.sharding is not None:
        yield "batches", "to the devices of the sharding"


def _list_policies(options: Options) -> list[str]:
    """List the policies that write to columns with nulls."""
    arguments: object = options.columns.__reduce__()
    assert isinstance(arguments, tuple)
    nulls = arguments[1][0]
    policies = nulls.values() if isinstance(nulls, Mapping) else [nulls]
    return sorted({str(policy) for policy in policies if policy != "raise"})


def _measure_memory(source: Source, options: Options, row_bytes: float) -> dict[str, int]:
    """Estimate the bytes of each part of the work, of all worker processes together."""
    processes = max(1, options.num_workers)
    memory: dict[str, float] = {}
    buffers = source.list_buffers(options.count_shuffled_rows(source.num_rows or 0))
    decoded = [member for _, member in source.list_members() if member.decodes_units]
    if decoded:
        has_lanes = options.shuffle and find_mixing(source, options) is not None
        lanes = options.buffer_rows if has_lanes else None
        sizes = [_measure_decoded(member, row_bytes, lanes) for member in decoded]
        memory["decoded row groups"] = sum(sizes) * processes
    if options.shuffle and (decoded or source.schedule):
        rows = sum(min(size, member.num_rows) for _, member, size in buffers)
        memory["shuffle buffer"] = rows * row_bytes * processes
    size = options.sizes.batch_size or options.sizes.global_batch_size
    if size is not None:
        length = 1 if options.pack is None else options.pack.length
        ahead = options.prefetch + options.num_threads + 1
        memory["batches ahead"] = size * length * row_bytes * ahead * processes
    return {name: int(size) for name, size in memory.items()}


def _measure_decoded(
    source: IndexedSource,
    row_bytes: float,
    # of the shuffle buffer, into which parts of the source are read side by side; None for a scan
    buffer_rows: int | None,
) -> float:
    """Estimate the bytes of decoded rows that a reader holds beside the buffer."""
    largest = max(source.units, default=0) * row_bytes
    if buffer_rows is None:
        return min(source.num_rows * row_bytes, 2 * max(SCAN_BYTES, largest))
    held = source.measure_held()
    return count_lanes(held, buffer_rows) * (held.unit + min(largest, BATCH_BYTES))
