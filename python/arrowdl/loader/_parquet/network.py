"""Datasets over a network: their files through the layers that keep and fetch ranges ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from arrowdl.loader._clock import Clock
from arrowdl.loader._files.stamps import is_local
from arrowdl.loader._parquet.fragments import remake_fragment
from arrowdl.loader._schema.fields import find_paths
from arrowdl.loader._schema.filters import find_columns

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    import pyarrow.fs as fs

    from arrowdl.loader._files.file_plan import FilePlan
    from arrowdl.loader._parquet.scans import Query
    from arrowdl.loader._storage.access import Access
    from arrowdl.loader._storage.fetch_ahead import FetchAhead
    from arrowdl.loader._storage.fetch_handler import FetchHandler
    from arrowdl.loader._storage.footers import FooterHandler
    from arrowdl.loader._storage.readers import Stamp
    from arrowdl.loader._storage.unit_ranges import UnitRanges

T = TypeVar("T")

_LOCAL_PROTOCOLS = {"file", "local", "memory"}


def is_network(filesystem: Any) -> bool:
    """Whether a pyarrow file system reads over a network, as far as can be known."""
    import pyarrow.fs as fs

    if isinstance(filesystem, fs.SubTreeFileSystem):
        return is_network(filesystem.base_fs)
    if not isinstance(filesystem, fs.PyFileSystem):
        return not is_local(filesystem) and filesystem.type_name != "mock"
    fsspec = getattr(filesystem.handler, "fs", None)
    protocols = getattr(fsspec, "protocol", ())
    return _LOCAL_PROTOCOLS.isdisjoint([protocols] if isinstance(protocols, str) else protocols)


def open_over_network(
    dataset: ds.FileSystemDataset,
    access: Access,  # how often requests are made again, and what keeps what is read
    secrets: Sequence[str] = (),  # that errors must not have
    plan: FilePlan | None = None,  # of the files
) -> ds.FileSystemDataset:
    """Return a dataset whose files are read through our layers; a local one as it is."""
    import pyarrow.dataset as ds

    filesystem = dataset.filesystem
    if not is_network(filesystem):
        return dataset
    fragments = list(dataset._get_fragments(None))
    planned_stamps = {} if plan is None else {file.path: file.stamp for file in plan.files}
    layered = _add_layers(filesystem, access, secrets, planned_stamps, dataset.format)
    if layered is filesystem:
        return dataset
    moved = [
        remake_fragment(fragment, dataset.format, layered, fragment.partition_expression)
        for fragment in fragments
    ]
    return ds.FileSystemDataset(moved, dataset.schema, dataset.format, layered)


def _add_layers(
    filesystem: fs.FileSystem,
    access: Access,
    secrets: Sequence[str],
    planned_stamps: Mapping[str, Stamp],
    format: ds.FileFormat,
) -> fs.FileSystem:
    import pyarrow.dataset as ds

    from arrowdl.loader._storage.fetch_handler import FetchHandler, fetch_ahead
    from arrowdl.loader._storage.handlers import find_handler

    handler = find_handler(filesystem)
    is_parquet = isinstance(format, ds.ParquetFileFormat)
    if handler is None:
        has_footers = is_parquet or isinstance(format, ds.IpcFileFormat)
        filesystem = access.wrap(filesystem, secrets, planned_stamps, has_footers=has_footers)
    is_ready = isinstance(handler, FetchHandler) or not is_parquet  # see `open_fetched` for others
    return filesystem if is_ready else fetch_ahead(filesystem)


def find_fetching(dataset: ds.FileSystemDataset) -> FetchHandler | None:
    """Return what holds the ranges of the files of a dataset; None if none are fetched."""
    handler = getattr(dataset.filesystem, "handler", None)
    return handler if type(handler).__name__ == "FetchHandler" else None


def find_footers(filesystem: Any) -> FooterHandler | None:
    """Return what keeps the footers of a file system; None if nothing does."""
    handler = getattr(filesystem, "handler", None)
    while handler is not None and type(handler).__name__ != "FooterHandler":
        handler = getattr(getattr(handler, "inner", None), "handler", None)
    return handler


def find_revisions(filesystem: Any, fragments: Sequence[Any]) -> str:
    """Return the revisions of Hugging Face's files, for states; empty for other files."""
    if getattr(filesystem, "handler", None) is None:
        return ""
    from arrowdl.loader._storage.revisions import name_revisions

    return name_revisions(filesystem, [fragment.path for fragment in fragments])


def list_revisions(filesystem: Any) -> dict[str, str]:
    """Return the revisions of Hugging Face that URLs named, for plans, with their commits."""
    if getattr(filesystem, "handler", None) is None:
        return {}
    from arrowdl.loader._storage.revisions import list_revisions as list_named

    return list_named(filesystem)


class Arrival(NamedTuple):
    """Units `first` to `stop` of those that are fetched."""

    fetched: FetchAhead
    first: int
    stop: int
    clock: Clock

    def use(self, batches: Iterator[T]) -> Iterator[T]:
        """Yield the batches of the units, when their bytes have arrived; release these then."""
        try:
            with self.clock.measure("storage"):
                self.fetched.wait(self.first, self.stop)
            yield from batches
        finally:
            self.fetched.release(self.first, self.stop)


def read_from_memory() -> dict[str, Any]:
    """Return the options of a scanner whose bytes have arrived: it has nothing to read ahead.

    Pages with checksums are compared with these: bytes of another version of the file are seen.
    """
    import pyarrow.dataset as ds

    options = ds.ParquetFragmentScanOptions(pre_buffer=False, page_checksum_verification=True)
    return {"fragment_scan_options": options}


# Takes a unit; returns what of it is read, as in `list_ranges`.
ListPrefixes = Callable[[Any], Sequence[str] | None]


def start_fetching(
    handler: FetchHandler,
    units: Sequence[ds.Fragment],
    list_prefixes: ListPrefixes,
    readers: int,  # that fetch side by side, and share the memory and the requests
) -> FetchAhead:
    """Fetch what is read of row groups, in their order."""
    from arrowdl.loader._storage.fetch_ahead import FETCH_BYTES, REQUESTS_AT_ONCE, FetchAhead

    fetched = FetchAhead(
        handler,
        len(units),
        lambda index: list_ranges(units[index], list_prefixes(units[index])),
        FETCH_BYTES // readers,
        max(2, REQUESTS_AT_ONCE // readers),
    )
    fetched.start()
    return fetched


def scan_units(
    handler: FetchHandler | None,  # None: nothing is fetched ahead
    units: Sequence[ds.Fragment],
    list_prefixes: ListPrefixes,
    scan: Callable[[ds.Fragment], Iterator[T]],
    readers: int,  # as in `start_fetching`
) -> Iterator[Iterator[T]]:
    """Yield what `scan` returns for each of `units`, whose ranges are fetched ahead."""
    if handler is None:
        yield from map(scan, units)
        return
    fetched = start_fetching(handler, units, list_prefixes, readers)
    try:
        for index, unit in enumerate(units):
            yield Arrival(fetched, index, index + 1, Clock()).use(scan(unit))
    finally:
        fetched.close()


def list_prefixes(query: Query) -> list[str] | None:
    """Return paths of columns and fields that a query reads of a file; None for all."""
    if query.columns is None:
        return None
    paths = [".".join(path) for path in find_paths(query.columns, query.schema)]
    return [*paths, *find_columns(query.schema.names, [], query.filter)]


def list_ranges(
    unit: ds.Fragment,
    # paths of columns and of fields, joined by dots. None: all columns
    prefixes: Sequence[str] | None,
) -> UnitRanges:
    """Return where the column chunks of row groups are."""
    from arrowdl.loader._storage.held_ranges import Range
    from arrowdl.loader._storage.unit_ranges import UnitRanges, join_ranges

    def find() -> Iterator[Range]:
        for number in (group.id for group in unit.row_groups):
            group = unit.metadata.row_group(number)
            for chunk in map(group.column, range(group.num_columns)):
                if prefixes is None or _is_below(chunk.path_in_schema, prefixes):
                    begin = chunk.data_page_offset
                    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                        begin = min(begin, chunk.dictionary_page_offset)
                    yield Range(begin, chunk.total_compressed_size)

    return UnitRanges(unit.path, join_ranges(find()))


def _is_below(path: str, prefixes: Sequence[str]) -> bool:
    return any(path == prefix or path.startswith(f"{prefix}.") for prefix in prefixes)
