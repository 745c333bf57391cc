"""Opens what a `Loader` was given: one row of `KINDS` for each kind of source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from arrowdl._libraries import find_advice, is_of, name_class
from arrowdl.loader._files.find_local import list_paths
from arrowdl.loader._libraries.huggingface import open_huggingface
from arrowdl.loader._libraries.lance import open_lance, refuse_lance_plan
from arrowdl.loader._libraries.objects import (
    is_on_device,
    is_stream,
    is_table,
    open_on_device,
    open_stream,
    open_table,
)
from arrowdl.loader._open.file_objects import list_file_objects, open_file_objects
from arrowdl.loader._open.paths import open_paths
from arrowdl.loader._options.functions import Functions
from arrowdl.loader._parquet.open_dataset import check_dataset_plan, open_dataset
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.request import Request, read_columns
from arrowdl.loader._sources.stream import StreamSource
from arrowdl.loader._sources.table import TableSource
from arrowdl.loader._storage.access import Access
from arrowdl.loader._storage.disk_cache import open_cache
from arrowdl.loader._tables.delta import open_delta
from arrowdl.loader._tables.iceberg import open_iceberg


def _refuse_plan(source: Any) -> None:
    raise ValueError(
        "Storage.plan works on paths and URLs, tables of Delta Lake and Iceberg, and pyarrow "
        f"datasets of files, not on {type(source).__name__}"
    )


def _accept_plan(source: Any) -> None:
    return


class Kind(NamedTuple):
    """A kind of sources: how an object is recognised, and what opens it."""

    matches: Callable[[Any], bool]  # whether an object is of this kind; it imports no library
    open: Callable[[Any, Request], Source]
    takes_filter: bool = False  # `open` leaves rows out by `Request.filter`
    takes_storage: bool = False  # the object may be in the file system that a user gave
    check_plan: Callable[[Any], None] = _refuse_plan  # raises ValueError if there can be no plan


def _is_of(module: str, *names: str) -> Callable[[Any], bool]:
    return lambda source: is_of(source, module, *names)


def _refuse(source: Any, request: Request) -> Source:
    raise TypeError(f"a Loader cannot read {name_class(source)}: {_advise(source)}")


# The first row that matches opens a source, so one that accepts many objects comes late.
KINDS = (
    Kind(lambda source: list_file_objects(source) is not None, open_file_objects, True, True),
    Kind(lambda source: list_paths(source) is not None, open_paths, True, True, _accept_plan),
    Kind(is_table, open_table),
    Kind(_is_of("deltalake", "DeltaTable"), open_delta, True, False, _accept_plan),
    Kind(_is_of("pyiceberg.table", "Table", "DataScan"), open_iceberg, True, False, _accept_plan),
    Kind(_is_of("lance", "LanceDataset"), open_lance, True, False, refuse_lance_plan),
    Kind(_is_of("pyarrow._dataset", "Dataset"), open_dataset, True, False, check_dataset_plan),
    Kind(is_on_device, open_on_device),
    Kind(_is_of("datasets", "Dataset"), open_huggingface),
    Kind(is_stream, open_stream),
)
_UNKNOWN = Kind(lambda source: True, _refuse)


def open_source(source: Any, request: Request) -> Source:
    """Open what a `Loader` was given; a source that is open stays as it is.

    Raises TypeError if `source` cannot be read; ValueError if it takes no filter or no plan, or
    lacks a column; FileNotFoundError if no file matches.
    """
    if isinstance(source, Source):
        return source
    kind = _find_kind(source)
    if request.plan is not None:
        kind.check_plan(source)
    if request.storage.is_given and not (kind.takes_storage or request.names_files):
        raise ValueError(
            f"Storage.filesystem and Storage.options work on paths and URLs, not on "
            f"{type(source).__name__}, unless transform_arrow= reads the files of a column"
        )
    if request.filter is not None and not kind.takes_filter:
        raise ValueError(
            "filter= works on files, pyarrow datasets and tables of Delta Lake, Iceberg and Lance, "
            f"not on {type(source).__name__}: filter the rows in the source itself"
        )
    opened = kind.open(source, request)
    opened.use_vocabulary(request.vocabulary)
    return opened


def check_has_plan(source: Any) -> None:
    """Raise ValueError if there can be no plan of what a user gave."""
    _find_kind(source).check_plan(source)


def make_request(
    columns: Any,
    filter: Any,
    vocabulary: Mapping[str, Any] | None,
    storage: Storage,
    functions: Functions,
    dtype: Any,
    *,
    skips: bool,
) -> Request:
    """Return what a user wants of a source; `skips` is whether files may be left out.

    Raises TypeError or ValueError if `columns` are not names, or `vocabulary` does not have the
    values of columns.
    """
    cache = open_cache(storage.cache, storage.cache_bytes)
    return Request(
        read_columns(columns),
        filter,
        storage.memory_map,
        Vocabulary.of_user(vocabulary),
        [] if skips else None,
        Access(storage.filesystem, storage.options, storage.retries, cache),
        dtype,
        any(hasattr(step.function, "for_loader") for step in functions.arrow_steps),
    )


def collect(source: StreamSource) -> TableSource:
    """Return the rows of a stream, with its vocabulary, as a table."""
    import pyarrow as pa

    table = TableSource(pa.table(source.open(0)), None)
    table.vocabulary = source.vocabulary  # its columns are encoded
    return table


def _find_kind(source: Any) -> Kind:
    return next((kind for kind in KINDS if kind.matches(source)), _UNKNOWN)


def _advise(source: Any) -> str:
    """Say what to give instead of an object that a Loader cannot read."""
    return find_advice(source, of_loader=True) or (
        "give paths, a pyarrow dataset, a table or frame, a file object, an object with "
        "__arrow_c_stream__, an iterator of record batches, or a function that makes one of the "
        "last three; tensors by arrowdl.to_arrow_device()"
    )
