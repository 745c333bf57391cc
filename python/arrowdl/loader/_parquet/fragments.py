"""Row groups and files as pyarrow's fragments: their rows and bytes, and several as one."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from arrowdl.loader._files.stamps import is_local
from arrowdl.loader._ipc.in_memory import is_ipc
from arrowdl.loader._sources.row_bytes import measure_row_group

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


def find_group(unit: ds.Fragment) -> int | None:
    """Return the number of the row group that a unit is; None for a whole file."""
    groups = getattr(unit, "row_groups", ())
    return groups[0].id if groups else None


def count_rows(fragment: ds.Fragment) -> int:
    """Count the rows of a unit."""
    if hasattr(fragment, "row_groups"):
        return sum(group.num_rows for group in fragment.row_groups)
    if is_ipc(fragment) and len(set(fragment.physical_schema.names)) < len(
        fragment.physical_schema.names
    ):  # pyarrow's scanner takes no columns of one name
        return _count_batches(fragment)
    return int(fragment.count_rows())


def _count_batches(fragment: ds.Fragment) -> int:
    import pyarrow as pa

    with fragment.open() as file:
        reader = pa.ipc.open_file(file)
        return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))


def count_filtered(batches: Iterator[pa.RecordBatch], unit: ds.Fragment) -> int:
    """Count the rows of a unit that a scan yields."""
    return sum(batch.num_rows for batch in batches)


def measure(
    fragments: Sequence[ds.Fragment],
    shares: Mapping[str, float],  # as `find_shares` returns them for `fragments`
    columns: Container[str],
) -> list[float]:
    """Estimate the bytes of `columns` in each fragment; 0 if unknown."""
    share = sum(part for name, part in shares.items() if name in columns)
    return [size * share for size in _list_sizes(fragments)]


def find_largest_share(shares: Mapping[str, float], columns: Container[str]) -> float:
    """Return the share that the largest of `columns` has of their bytes; 1 if unknown."""
    parts = [part for name, part in shares.items() if name in columns]
    return max(parts, default=1.0) / (sum(parts) or 1.0)


def list_paths(fragments: Sequence[Any]) -> Sequence[str]:
    """Return the path of each fragment's file."""
    if hasattr(fragments, "paths"):  # of `LocalUnits`
        return cast("Sequence[str]", fragments.paths)
    return [fragment.path for fragment in fragments]


def has_ipc(fragments: Sequence[Any]) -> bool:
    """Whether a fragment is an Arrow IPC file."""
    return not hasattr(fragments, "paths") and any(map(is_ipc, fragments))


def _list_sizes(fragments: Sequence[Any]) -> list[float]:
    """Return the bytes of each fragment; 0 if unknown."""
    if hasattr(fragments, "sizes"):
        return cast("list[float]", fragments.sizes)
    return [
        float(sum(group.total_byte_size for group in getattr(fragment, "row_groups", ())))
        for fragment in fragments
    ]


def _list_shares(fragment: Any) -> Mapping[str, float]:
    """Return the share of the bytes that each column has."""
    if (plan := getattr(fragment, "plan", None)) is not None:
        return cast("Mapping[str, float]", plan.shares)
    group = fragment.metadata.row_group(fragment.row_groups[0].id)
    chunks = [group.column(i) for i in range(group.num_columns)]
    total = max(1, sum(chunk.total_uncompressed_size for chunk in chunks))
    shares: dict[str, float] = {}
    for chunk in chunks:
        name = chunk.path_in_schema.split(".")[0]
        shares[name] = shares.get(name, 0.0) + chunk.total_uncompressed_size / total
    return shares


def find_shares(fragments: Sequence[ds.Fragment]) -> Mapping[str, float]:
    """Return the share of the bytes that each column has in the largest fragment."""
    sizes = _list_sizes(fragments)
    largest = max(range(len(sizes)), key=sizes.__getitem__, default=None)
    return {} if largest is None or not sizes[largest] else _list_shares(fragments[largest])


def find_row_bytes(fragments: Sequence[ds.Fragment]) -> Mapping[str, float]:
    """Estimate the bytes in memory of a row in each column; none of files without footers."""
    sizes = _list_sizes(fragments)
    largest = max(range(len(sizes)), key=sizes.__getitem__, default=None)
    if largest is None or not sizes[largest]:
        return {}
    fragment: Any = fragments[largest]
    if (plan := getattr(fragment, "plan", None)) is not None:
        return cast("Mapping[str, float]", plan.row_bytes)
    column_bytes = measure_row_group(fragment.metadata, fragment.row_groups[0].id)
    counts = getattr(fragments, "rows", None) or map(count_rows, fragments)
    rows = [count if size else 0 for count, size in zip(counts, sizes, strict=True)]
    mean = sum(sizes) / max(1, sum(rows)) / (sizes[largest] / max(1, rows[largest]))
    return {name: size * mean for name, size in column_bytes.items()}


def count_rows_before(fragment: Any, group: int) -> int:
    """Count the rows of a file before one of its row groups."""
    if hasattr(fragment, "file"):  # of a plan, which may lack some
        group_rows = dict(zip(fragment.file.groups, fragment.file.rows, strict=True))
        if all(i in group_rows for i in range(group)):
            return sum(group_rows[i] for i in range(group))
    return sum(fragment.metadata.row_group(i).num_rows for i in range(group))


def join_fragments(fragments: Sequence[ds.Fragment]) -> list[ds.Fragment]:
    """Join consecutive row groups of a file into one fragment, which the scanner reads ahead."""
    joined: list[tuple[ds.Fragment, list[int], list[int]]] = []  # own row groups, those to add
    for fragment in fragments:
        new = [group.id for group in getattr(fragment, "row_groups", ())]
        if new and joined and joined[-1][0].path == fragment.path:
            _, first_groups, more = joined[-1]
            if (more or first_groups)[-1:] == [new[0] - 1]:
                more += new
                continue
        joined.append((fragment, new, []))
    return [
        fragment.subset(row_group_ids=first_groups + more) if more else fragment
        for fragment, first_groups, more in joined
    ]


def remake_fragment(
    fragment: Any, format: ds.FileFormat, filesystem: Any, partition: Any
) -> ds.Fragment:
    """Return the same file, or row groups, with another file system or partition expression."""
    if not hasattr(fragment, "subset"):
        return format.make_fragment(fragment.path, filesystem, partition)
    *_, groups = fragment.__reduce__()[1]  # None if the footer was not read; asking reads it
    chosen = {} if groups is None else {"row_groups": groups}
    return format.make_fragment(fragment.path, filesystem, partition, **chosen)


def is_memory_new(dataset: ds.FileSystemDataset, fragments: Sequence[ds.Fragment]) -> bool:
    """Whether a scan always returns new memory. Columns of directories are made for each batch."""
    import pyarrow.dataset as ds

    if isinstance(dataset.format, ds.ParquetFileFormat):  # decoded on every file system
        return not _is_mapped(dataset.filesystem)
    return all(map(is_ipc, fragments))  # mapped privately or copied for each scan


def _is_mapped(filesystem: Any) -> bool:
    """Whether files are read through memory maps."""
    import pyarrow.fs as fs

    return is_local(filesystem) and not filesystem.equals(fs.LocalFileSystem())


def choose_options(dataset: ds.FileSystemDataset) -> dict[str, Any]:
    import pyarrow.dataset as ds

    options: dict[str, Any] = {}
    is_parquet = isinstance(dataset.format, ds.ParquetFileFormat)
    if is_local(dataset.filesystem) and is_parquet and _is_plain(dataset.format):
        # Fetching all bytes of a scan at once does not help for local files.
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True
        )
    return options


def _is_plain(format: ds.ParquetFileFormat) -> bool:
    """Whether the format has default scan options."""
    import pyarrow.dataset as ds

    plain = ds.ParquetFileFormat().default_fragment_scan_options
    return bool(format.default_fragment_scan_options.equals(plain))
