"""pyarrow's scans as streams that end cleanly on errors, interrupts and early stops.

``Scanner.to_reader()`` holds the interpreter lock while it waits for a mutex. If an error comes
from Python, another thread holds the mutex while it waits for the interpreter lock: a deadlock.
``Scanner.scan_batches()`` releases the interpreter lock first.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from arrowdl import _core
from arrowdl.loader._files.locate import Candidate, drop_metadata, find_damage, split_row_groups
from arrowdl.loader._files.stamps import check_fragment
from arrowdl.loader._ipc.in_memory import Part, is_ipc, split_file
from arrowdl.loader._parquet.counted import RowCountError, check_rows, list_counts
from arrowdl.loader._schema.fields import find_paths, forget_pandas
from arrowdl.loader._schema.filters import (
    add_mask,
    find_columns,
    show_filter,
    take_true,
    views_to_strings,
)
from arrowdl.loader._schema.vocabulary import make_empty, make_table
from arrowdl.loader._skipped import CANNOT_READ, OptionError
from arrowdl.loader._storage.retry_calls import RetriedError
from arrowdl.loader._storage.transient import FileChangedError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

Result = TypeVar("Result")
NotePath = Callable[[str], None]
Check = Callable[[Sequence[str]], None]  # takes paths, raises if a file has changed
FindDamage = Callable[[int], str]  # takes how many files are done, says which cannot be read

# Errors that name the file.
_NAMING = (RetriedError, FileChangedError, RowCountError)
# A scan reads two files ahead: an error may concern each of these.
_FILES_AT_ONCE = 3
# Files or parts that are read again after an error; more than a scan reads ahead.
_MOST_CANDIDATES = 64
# The limits of IPC files that are scanned together.
_GROUP_PARTS = 64
_GROUP_BYTES = 2**25


@dataclass(frozen=True)
class Query:
    """What is read of each fragment of a dataset."""

    schema: pa.Schema  # of the dataset
    columns: list[str] | None
    filter: Any
    memory_map: bool = True  # whether local IPC files are mapped

    @property
    def column_names(self) -> list[str]:
        """The columns of the batches."""
        return list(self.schema.names if self.columns is None else self.columns)

    @property
    def projection(self) -> list[str] | dict[str, Any] | None:
        """What a scanner takes as `columns`."""
        import pyarrow.dataset as ds

        if self.columns is None:
            return None
        paths = find_paths(self.columns, self.schema)
        if all(len(path) == 1 for path in paths):
            return self.columns
        return {name: ds.field(*path) for name, path in zip(self.columns, paths, strict=True)}

    def check_filter(self) -> None:
        """Raise TypeError if the filter is of another type than bool."""
        import pyarrow as pa

        if self.filter is not None:
            type = self._scan_nothing(add_mask([], self.filter, self.schema)).field(0).type
            if not pa.types.is_boolean(type):
                shown = show_filter(self.filter)
                raise TypeError(f"filter={shown} is {type}, not bool: compare it with a value")

    def _scan_nothing(self, columns: Any) -> pa.Schema:
        """Return the schema of a scan of `columns`."""
        import pyarrow.dataset as ds

        return ds.dataset(make_table(self.read_schema)).scanner(columns=columns).projected_schema

    @cached_property
    def read_schema(self) -> pa.Schema:
        """The columns as they are read: with a filter, views as strings."""
        return self.schema if self.filter is None else views_to_strings(self.schema)

    @property
    def scanned(self) -> list[str] | dict[str, Any] | None:
        """What a scanner takes as `columns`, of whose batches `keep` keeps rows.

        The filter is a column, and not the scanner's filter: pyarrow leaves out row groups by that,
        also some whose NaN or zeros it keeps.
        """
        if self.filter is None:
            return self.projection
        return add_mask(self.column_names, self.filter, self.schema)

    def keep(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that the filter keeps of a scan of `scanned`."""
        if self.filter is None:
            yield from batches
            return
        for batch in batches:
            mask = batch.column(batch.num_columns - 1)
            rows = batch.select(list(range(batch.num_columns - 1)))
            del batch
            if rows.num_columns == 0:  # for their number
                yield rows.slice(0, mask.true_count)
            elif mask.true_count:
                yield from take_true(rows, mask)

    @property
    def roots(self) -> list[str] | None:
        """The columns of the dataset that are read, or that have fields that are."""
        if self.columns is None:
            return None
        return [path[0] for path in find_paths(self.columns, self.schema)]

    def project(self, dataset: ds.Dataset) -> pa.Schema:
        """Return the schema of the batches."""
        if self.filter is not None:
            return self.project_names()
        return forget_pandas(dataset.scanner(columns=self.projection).projected_schema)

    def project_names(self) -> pa.Schema:
        """Return the schema of the batches of a dataset whose scanner adds nothing."""
        return forget_pandas(self._scan_nothing(self.projection))

    def scan_each(
        self,
        fragments: Iterable[ds.Fragment],
        check: Check,
        note: NotePath | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one fragment after another; IPC files are read from memory.

        With `note`, which is called with the path of the next batches, small files are not scanned
        together.
        """
        pieces = (part for fragment in fragments for part in self._split(fragment))
        for parts in _group(pieces) if note is None else ([part] for part in pieces):
            paths = list(dict.fromkeys(part.path for part in parts if part.path))
            check(paths)
            if note is not None:
                note("".join(paths))
            some = [part.fragment for part in parts]
            candidates = [Candidate(part.path, part.fragment) for part in parts]
            find = partial(self.find_damage, candidates)
            batches = scan(self._make_scanner(some, options), paths, check, find)
            chosen = {"columns": self.scanned, **options}
            yield from self.keep(check_rows(batches, some, self.read_schema, chosen))

    def scan_files(
        self,
        dataset: ds.FileSystemDataset,
        fragments: Sequence[ds.Fragment],
        check: Check,
        note: NotePath | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of files of a dataset, two of which are read at once."""
        import pyarrow.dataset as ds

        paths = [fragment.path for fragment in fragments]
        find = partial(self.find_damage, list(map(Candidate, paths, fragments)))
        chosen = ds.FileSystemDataset(
            fragments, self.read_schema, dataset.format, dataset.filesystem
        )
        options = {"columns": self.scanned, **options}
        batches = scan(chosen.scanner(**options), paths, check, find, note)
        return self.keep(check_rows(batches, fragments, self.read_schema, options))

    def find_damage(self, candidates: Sequence[Candidate], done: int) -> str:
        """Say which of `candidates` cannot be read, after the first `done`; see there."""
        chosen = candidates[done : done + _MOST_CANDIDATES]
        columns = self.column_names if self.roots is None else self.roots
        return find_damage(chosen, self.read_schema, list(dict.fromkeys(columns)), self.filter)

    def _split(self, fragment: ds.Fragment) -> Iterator[Part]:
        path = getattr(fragment, "path", "")
        if not is_ipc(fragment):
            yield Part(path, fragment, _GROUP_BYTES)
            return
        needed = find_columns(self.schema.names, self.roots, self.filter)
        with naming_files([path]), dropping_unreadable(fragment):
            yield from split_file(fragment, needed, self.memory_map)

    def _make_scanner(
        self, fragments: Sequence[ds.Fragment], options: Mapping[str, Any]
    ) -> ds.Scanner:
        import pyarrow.dataset as ds

        chosen = {"columns": self.scanned, **options}
        if len(fragments) == 1:
            return fragments[0].scanner(self.read_schema, **chosen)
        dataset = ds.FileSystemDataset(fragments, self.read_schema, fragments[0].format)
        return dataset.scanner(**{"fragment_readahead": 2, **chosen})


def _group(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Group small parts, which are faster to scan together."""
    group: list[Part] = []
    nbytes = 0
    for part in parts:
        group.append(part)
        nbytes += part.nbytes
        if len(group) == _GROUP_PARTS or nbytes >= _GROUP_BYTES:
            yield group
            group, nbytes = [], 0
    if group:
        yield group


def scan(
    scanner: ds.Scanner,
    paths: Sequence[str],
    check: Check,
    find_damage: FindDamage | None = None,
    note: NotePath | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a scan of the files at `paths`; an error names the file.

    A file is checked when its first batch arrives, after it was opened. `note` is called with the
    path of the next batches.
    """
    latest = ""
    with naming_files(paths, find_damage) as names:
        for tagged in scanner.scan_batches():
            path = getattr(tagged.fragment, "path", "")
            if path != latest and path in names:
                check([path])
                del names[: names.index(path)]
            if path and path != latest and note is not None:
                note(path)
            latest = path
            yield tagged.record_batch


def check_nothing(paths: Sequence[str]) -> None:
    """Stands in for a `Check` of files that are checked elsewhere."""


@contextmanager
def naming_files(
    paths: Sequence[str], find_damage: FindDamage | None = None
) -> Iterator[list[str]]:
    """Add the file that could not be read to an error; yields the list of files, to shorten.

    If `find_damage` finds none, and the error does not name one, the files being read are added.
    If it finds that what the user gave is at fault, the error is its `OptionError`.
    """
    names = list(paths)
    try:
        yield names
    except Exception as error:
        if not names or isinstance(error, _NAMING):
            raise
        if isinstance(error, OptionError):
            find_damage = None  # the file is not at fault
        if find_damage is not None and (damage := find_damage(len(paths) - len(names))):
            error.add_note(f"{CANNOT_READ} {damage}")
        elif not any(path in text for text in _list_texts(error) for path in paths):
            distinct = list(dict.fromkeys(names))
            more = len(distinct) - _FILES_AT_ONCE
            shown = ", ".join(map(repr, distinct[:_FILES_AT_ONCE]))
            hint = "" if find_damage is None else "; they can be read now: try again"
            error.add_note(
                f"while arrowdl.Loader read {shown}{f' and {more} more' if more > 0 else ''}{hint}"
            )
        raise


def _list_texts(error: Exception) -> list[str]:
    return [str(error), *getattr(error, "__notes__", ())]


def open_file(fragment: ds.Fragment) -> list[ds.Fragment]:
    """Read a file's footer; return its units. Raise RowCountError if an empty one has values."""
    with naming_files([fragment.path]), dropping_unreadable(fragment):
        check_fragment(fragment)
        units = split_row_groups(fragment)
        list_counts(
            unit
            for unit in units
            for group in getattr(unit, "row_groups", ())
            if not group.num_rows
        )
        return units


@contextmanager
def dropping_unreadable(*fragments: ds.Fragment) -> Iterator[None]:
    """``with`` this, what is kept of files is dropped if they cannot be read."""
    try:
        yield
    except Exception:
        for fragment in fragments:
            drop_metadata(fragment)
        raise


def read_in_thread(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, depth: int = 1
) -> _core.DeviceStream:
    """Read `batches` in a native thread, `depth` ahead; it has started when this returns.

    Waiting for the thread can be interrupted.
    """
    alike = itertools.chain([make_empty(schema)], map(_forget_pandas, batches))
    stream = _core.from_arrow_stream(alike).prefetch(depth)
    next(stream)  # the empty batch: the thread runs
    return stream


def _forget_pandas(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose fields are all columns, as `Query.project` says."""
    metadata = batch.schema.metadata
    if not metadata or b"pandas" not in metadata:
        return batch
    return batch.replace_schema_metadata(forget_pandas(batch.schema).metadata)


def wait_for(function: Callable[[], Result]) -> Result:
    """Call `function` in a thread, so that the wait can be interrupted; return its result."""
    future: Future[Result] = Future()

    def call() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=call, name="arrowdl-open", daemon=True).start()
    return future.result()
