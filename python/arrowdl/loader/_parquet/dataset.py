"""`DatasetSource`: the files of a pyarrow dataset, read by row groups."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from arrowdl import _core
from arrowdl.loader._clock import Clock
from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._files.locate import Candidate, split_row_groups
from arrowdl.loader._files.stamps import FileStamps, check_footers, is_local
from arrowdl.loader._ipc.in_memory import is_ipc
from arrowdl.loader._parquet.codes import Codes
from arrowdl.loader._parquet.counted import (
    BY_FOOTER,
    BY_LOADER,
    check_counts,
    list_counts,
    name_group,
)
from arrowdl.loader._parquet.dataset_files import DatasetFiles
from arrowdl.loader._parquet.fragments import (
    choose_options,
    count_filtered,
    count_rows,
    find_group,
    find_largest_share,
    find_row_bytes,
    find_shares,
    is_memory_new,
    join_fragments,
    measure,
)
from arrowdl.loader._parquet.int96 import Int96Check
from arrowdl.loader._parquet.network import (
    Arrival,
    find_fetching,
    list_prefixes,
    list_revisions,
    read_from_memory,
    scan_units,
    start_fetching,
)
from arrowdl.loader._parquet.planned import (
    describe_dataset,
    list_files,
    list_partitions,
    make_units,
    materialize,
)
from arrowdl.loader._parquet.pruning import drop_ranges, list_fragments, prune
from arrowdl.loader._parquet.read_ahead import read_ahead
from arrowdl.loader._parquet.row_groups import open_row_groups
from arrowdl.loader._parquet.scan_limits import (
    SCAN_BYTES,
    ScanLimits,
    choose_limits,
    count_ready,
    plan_batches,
)
from arrowdl.loader._parquet.scans import (
    FindDamage,
    NotePath,
    Query,
    check_nothing,
    dropping_unreadable,
    naming_files,
    open_file,
    read_in_thread,
    wait_for,
)
from arrowdl.loader._progress import OpeningLine
from arrowdl.loader._schema.filters import describe_filter, find_columns
from arrowdl.loader._schema.vocabulary import (
    Vocabulary,
    make_empty,
)
from arrowdl.loader._skipped import Skipped, can_skip, describe, opening
from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.request import Request
from arrowdl.loader._sources.row_bytes import Held, estimate_row, measure_held
from arrowdl.loader._storage.threads import FILES_AT_ONCE, map_in_threads

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from arrowdl.loader._storage.fetch_ahead import FetchAhead
    from arrowdl.loader._storage.fetch_handler import FetchHandler

T = TypeVar("T")

# Each scan that counts rows holds decoded row groups.
_SCANS_AT_ONCE = 4


class DatasetSource(IndexedSource):
    """Row groups of Parquet files, or whole files of other formats, read by pyarrow's scanner.

    Parameters
    ----------
    dataset : pyarrow.dataset.FileSystemDataset
    query : Query
    stamps : FileStamps
        Of files whose footers have been read; those of the others are added.
    request : Request
        Its plan, and what was skipped: with a plan, no file is opened.
    is_given : bool
        Whether `dataset` is a user's.

    Raises
    ------
    OSError
        A file has changed since the dataset read its footer.
    """

    decodes_units = True
    clock: Clock
    _decoder = "pyarrow"

    def __init__(
        self,
        dataset: ds.FileSystemDataset,
        query: Query,
        stamps: FileStamps,
        request: Request,
        *,
        is_given: bool = False,
    ) -> None:
        query.check_filter()
        self.clock = Clock()
        self._left_out = request.skipped
        self._is_given = is_given
        self._dataset = dataset
        self._query = query
        self._stamps = stamps
        self._int96 = Int96Check(is_given=is_given)
        self._fetching = find_fetching(dataset)
        self._options = choose_options(dataset) if self._fetching is None else read_from_memory()
        self._read_footers() if request.plan is None else self._follow(request.plan)
        self._use(query)
        self.is_shared = not is_memory_new(dataset, self._fragments)
        self.is_decoded = not self.is_shared and not any(map(is_ipc, self._fragments))

    def _use(self, query: Query) -> None:
        self._query = query
        columns = set(query.roots or self._dataset.schema.names)
        shares = find_shares(self._fragments)
        self._bytes = measure(self._fragments, shares, columns)
        self._row_bytes = self._measure_row()
        self._columns = len(columns)
        if any(map(is_ipc, self._fragments)):
            self._bytes = [float(self._stamps.get_size(unit.path)) for unit in self._fragments]
        self._row_groups = open_row_groups(self._dataset, query, self._decoder)
        self._limits = choose_limits(
            None if self._row_groups is None else self._bytes,
            is_local=is_local(self._dataset.filesystem),
            is_fetched=self._fetching is not None,
            largest_share=find_largest_share(shares, columns),
            decoder=self._decoder,
        )
        self._codes = Codes(self.vocabulary, self._left_out is not None)

    def use_decoder(self, decoder: str) -> None:
        if any(map(is_ipc, self._fragments)):
            super().use_decoder(decoder)
        self._decoder = decoder
        self._use(self._query)

    def select(self, column: str) -> DatasetSource:
        made = object.__new__(type(self))  # a copy would read the dictionaries
        made.__dict__.update(self.__dict__)
        made._use(replace(self._query, columns=[column]))
        return made

    def _read_footers(self) -> None:
        found = wait_for(lambda: list_fragments(self._dataset, self._query.filter))
        if self._stamps.add_fragments(found):
            wait_for(lambda: self._check_footers(found))
        line = OpeningLine("reads the footers", len(found))
        files = map_in_threads(self._open_file, found, FILES_AT_ONCE, line)
        self._fragments: list[Any] = [fragment for file in files for fragment in file]
        if self._query.filter is None and all(
            hasattr(unit, "row_groups") for unit in self._fragments
        ):
            self.units = list(map(count_rows, self._fragments))
            return
        self._count_files(files)

    def _count_files(self, files: Sequence[Sequence[ds.Fragment]]) -> None:
        line = OpeningLine("counts the rows", len(files))
        counts = map_in_threads(self._count_file, files, _SCANS_AT_ONCE, line)
        self.units = [rows for file in counts for rows in file]

    def _follow(self, plan: FilePlan) -> None:
        """Take the units from a plan."""
        given = map(drop_ranges, self._dataset._get_fragments(None))
        partitions = {fragment.path: fragment.partition_expression for fragment in given}
        self._fragments = make_units(plan, self._dataset, partitions, None)
        self.units = [rows for file in plan.files for rows in file.counts]
        plan.check_fingerprint(self._describe_rows(plan.filter))
        self._stamps.add_fragments(self._fragments)
        self._stamps.compare({file.path: file.stamp for file in plan.files})
        if plan.filter != self._describe_filter():
            units = make_units(plan, self._dataset, partitions, self._query.filter)
            self._fragments = units
            self._count_files([[unit] for unit in units])

    def _open_file(self, fragment: ds.Fragment) -> list[ds.Fragment]:
        with opening(self._left_out):
            return self._try(open_file, fragment, [])

    def _check_footers(self, fragments: Iterable[ds.Fragment]) -> None:
        for fragment in fragments:
            self._try(lambda fragment: check_footers([fragment]), fragment, None)

    def _try(
        self,
        function: Callable[[ds.Fragment], T],
        fragment: ds.Fragment,
        default: T,
        group: int | None = None,
    ) -> T:
        """Return what `function` returns, or `default` if it fails and the rows may be left out."""
        try:
            return function(fragment)
        except Exception as error:
            if self._left_out is None or not can_skip(error):
                raise
            self._left_out.append(Skipped(fragment.path, (), describe(error), group))
        return default

    @property
    def column_names(self) -> list[str]:
        return self._query.column_names

    @property
    def files(self) -> DatasetFiles:
        return DatasetFiles(**self._describe_files())

    def _describe_files(self) -> dict[str, Any]:
        """Return the arguments of `DatasetFiles`."""
        return {
            "dataset": self._dataset,
            "fragments": self._fragments,
            "units": self.units,
            "stamps": self._stamps,
            "is_filtered": self._query.filter is not None,
            "plan": self._make_plan,
        }

    def _make_plan(self) -> FilePlan:
        """Return what was found out about the files."""
        query = self._query
        files = list_files(self._fragments, self.units, self._stamps.find)
        return FilePlan(
            self.identify(),
            "ipc" if any(map(is_ipc, self._fragments)) else "parquet",
            self._dataset.schema,
            files,
            list_partitions(self._fragments),
            None if query.roots is None else tuple(query.roots),
            self._describe_filter(),
            find_shares(self._fragments),
            find_row_bytes(self._fragments),
            describe_dataset(self._dataset) if self._is_given else None,
            list_revisions(self._dataset.filesystem),
        )

    def check_unchanged(self) -> None:
        self._stamps.check()

    def check_read(self) -> None:
        if self._row_groups is not None:  # small files are read before their rows are asked for
            self._stamps.check(may_be_gone=True)

    def estimate_row_bytes(self) -> float:
        schema, stored = self._query.project(self._dataset), sum(self._bytes)
        return estimate_row(
            schema, find_row_bytes(self._fragments), stored / max(1, sum(self.units))
        )

    def measure_held(self) -> Held:
        return measure_held(find_row_bytes(self._fragments), max(self.units, default=0))

    def _measure_row(self) -> float:
        """Estimate the bytes of a row where rows are largest; 0 if unknown."""
        sizes = zip(self._bytes, self.units, strict=True)
        return max((size / rows for size, rows in sizes if rows > 0), default=0.0)

    def _count_file(self, units: Sequence[ds.Fragment]) -> list[int]:
        filter = self._query.filter
        paths = [unit.path for unit in units]
        with (
            opening(self._left_out, has_filter=filter is not None),
            naming_files(paths),
            dropping_unreadable(*units[:1]),
        ):
            if filter is None:
                return list(map(count_rows, units))
            # By scans: pyarrow counts by statistics, which is wrong for casts and NaN.
            query = replace(self._query, columns=[])
            read = self._prune(units)
            scans = self._scan_each([units[i] for i in read], query)
            counts = [0] * len(units)
            for i, batches in zip(read, scans, strict=True):
                count = partial(count_filtered, batches)
                counts[i] = self._try(count, units[i], 0, find_group(units[i]))
            return counts

    def _prune(self, units: Sequence[ds.Fragment]) -> Sequence[int]:
        """List those of the units of a file of which the filter may keep rows."""
        return prune(list(map(materialize, units)), self._query.filter, self._query.read_schema)

    def _list_prefixes(self, query: Query) -> Callable[[Any], Sequence[str] | None]:
        """Return what finds the columns that `query` reads of the file of a unit."""
        prefixes = list_prefixes(query)
        return lambda unit: prefixes

    def _scan_each(
        self, units: Sequence[ds.Fragment], query: Query, readers: int = _SCANS_AT_ONCE
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        scan = partial(self._scan_unit, query=query)
        return scan_units(self._fetching, units, self._list_prefixes(query), scan, readers)

    def _scan_unit(self, unit: ds.Fragment, query: Query) -> Iterator[pa.RecordBatch]:
        """Scan one unit; what is fetched is checked where it arrives."""
        find = partial(query.find_damage, [Candidate(unit.path, unit)])
        self._check_times([unit], self._list_needed(query), find)
        if self._fetching is None:
            yield from query.scan_each([unit], self._stamps.check)
        else:
            yield from query.scan_each([unit], check_nothing, **self._options)

    def _list_needed(self, query: Query) -> list[str]:
        """Return the whole columns that `query` and its filter need."""
        needed = find_columns(query.schema.names, query.roots, query.filter)
        return [name for name in query.schema.names if name in needed]

    def _guard_times(
        self,
        fragments: Sequence[ds.Fragment],
        columns: Sequence[str],
        find: FindDamage,
        batches: Iterator[pa.RecordBatch],
    ) -> Iterator[pa.RecordBatch]:
        self._check_times(fragments, columns, find)
        yield from batches

    def _check_times(
        self, fragments: Sequence[ds.Fragment], columns: Sequence[str], find: FindDamage
    ) -> None:
        """Check the INT96 timestamps of row groups; `find` as of `naming_files`."""
        with naming_files([fragment.path for fragment in fragments], find):
            self._int96.check(fragments, columns, self._options)

    def prepare(self) -> None:
        self._codes.find(self)

    def __getstate__(self) -> dict[str, Any]:
        self.prepare()
        # As in TableSource: pickled fixed-size lists lose the extension types of their items.
        schema = self._dataset.schema.serialize().to_pybytes()
        return self.__dict__ | {"_dataset": (self._dataset, schema), "_row_groups": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import pyarrow as pa

        self.__dict__.update(state)
        dataset, buffer = state["_dataset"]
        schema = pa.ipc.read_schema(pa.py_buffer(buffer))
        is_same = dataset.schema.equals(schema, check_metadata=True)
        self._dataset = dataset if is_same else dataset.replace_schema(schema)
        self._query = replace(self._query, schema=schema)
        self._row_groups = open_row_groups(self._dataset, self._query, self._decoder)

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        super().use_vocabulary(vocabulary)
        self._codes = self._codes.with_tables(vocabulary)

    def find_vocabulary(self, column: str) -> pa.Array | None:
        return self._codes.find_values(self, column)

    def describe_unread(self) -> str:
        return self._codes.describe_unread(self)

    def list_fragments(self) -> Sequence[ds.Fragment]:
        """As of `CodedUnits`."""
        return self._fragments

    def project(self) -> pa.Schema:
        """As of `CodedUnits`."""
        return self._query.project(self._dataset)

    def scan_columns(
        self, columns: list[str], fragments: Sequence[ds.Fragment]
    ) -> Iterator[pa.RecordBatch]:
        """As of `CodedUnits`."""
        paths = [fragment.path for fragment in fragments]
        own = self._query
        query = replace(own, schema=own.read_schema, columns=columns, filter=None)
        if self._fetching is None:
            batches = self._scan_fragments(fragments, paths, query, limits=self._limits)
        else:
            units = [unit for fragment in fragments for unit in split_row_groups(fragment)]
            batches = chain.from_iterable(self._scan_each(units, query, 1))
        return self._stamps.guard(paths, batches)

    def scan_unit(self, unit: int) -> _core.DeviceStream:
        """As of `CodedUnits`."""
        return self._scan([unit], self._limits)

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        stream = self._scan(units, self._limits.divide(readers) if readers > 1 else self._limits)
        return self._codes.check(self, stream)

    def _scan(self, units: Sequence[int], limits: ScanLimits) -> _core.DeviceStream:
        units = [unit for unit in units if self.units[unit] > 0] or list(units[:1])
        sizes = [self._bytes[unit] for unit in units]
        scans = limits.cut(units, sizes, [self._fragments[unit].path for unit in units])
        if self._fetching is not None and scans:
            return _core.from_arrow_stream(self._read_fetched(self._fetching, scans, limits))
        if len(scans) <= 1 or limits.scans == 1:
            return self._open(scans or [units], limits)
        return _core.from_arrow_stream(self._read_ahead(scans, limits))

    def _read_fetched(
        self, handler: FetchHandler, scans: Sequence[Sequence[int]], limits: ScanLimits
    ) -> Iterator[_core.DeviceArray]:
        """Fetch row groups ahead, and scan each when it has arrived."""
        units = [self._fragments[unit] for scan in scans for unit in scan]
        fetched = start_fetching(handler, units, self._list_prefixes(self._query), limits.readers)
        try:
            yield from self._read_ahead(scans, limits, fetched)
        finally:
            fetched.close()

    def _read_ahead(
        self,
        scans: Sequence[Sequence[int]],
        limits: ScanLimits,
        fetched: FetchAhead | None = None,
    ) -> Iterator[_core.DeviceArray]:
        def open_scan(units: Sequence[int], begin: int) -> _core.DeviceStream:
            arrival = None
            if fetched is not None:
                arrival = Arrival(fetched, begin, begin + len(units), self.clock)
            return self._open([units], limits, arrival)

        return read_ahead(scans, self._measure_scan, open_scan, self._make_empty, limits)

    def _make_empty(self) -> _core.DeviceArray:
        empty = make_empty(self._query.project(self._dataset))
        return _core.from_arrow(self._codes.find(self).encode(empty))

    def _measure_scan(self, units: Sequence[int]) -> float:
        sizes = [self._bytes[unit] for unit in units]
        return sum(sizes) if all(sizes) else SCAN_BYTES

    def _open(
        self,
        scans: Sequence[Sequence[int]],
        limits: ScanLimits,
        arrival: Arrival | None = None,
    ) -> _core.DeviceStream:
        """Read the units of scans in a thread, one scan after another."""
        codes, schema = self._codes.find(self), self._query.project(self._dataset)
        encodes = codes.concerns(schema)
        depth = 1
        if self._row_groups is not None:
            depth = count_ready(self._row_bytes, self._columns, limits.ahead, limits.batch_bytes)
        batches = chain.from_iterable(
            self._read_scan(units, limits, codes if encodes else None, arrival) for units in scans
        )
        return read_in_thread(batches, codes.encode_schema(schema) if encodes else schema, depth)

    def _read_scan(
        self,
        units: Sequence[int],
        limits: ScanLimits,
        codes: Vocabulary | None,
        arrival: Arrival | None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the batches of `units`, with dictionaries encoded by `codes`."""
        fragments = join_fragments([self._fragments[unit] for unit in units])
        paths = [fragment.path for fragment in fragments]
        guarded = paths if arrival is None else []  # those were checked when their bytes arrived
        latest = [""]  # the path of the next batches
        batches = self._scan_fragments(
            fragments,
            paths,
            self._query,
            None if codes is None else lambda path: latest.__setitem__(0, path),
            limits=limits,
            arrival=arrival,
        )
        if codes is not None:
            batches = (codes.encode(batch, latest[0]) for batch in batches)
        batches = self._check_counts(batches, units)
        return self.clock.time(self._stamps.guard(guarded, batches))

    def _check_counts(
        self, batches: Iterator[pa.RecordBatch], units: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        fragments = [self._fragments[unit] for unit in units]
        # Without a filter, `_scan_fragments` has looked at each row group.
        has_groups = self._query.filter is None and all(
            hasattr(own, "row_groups") for own in fragments
        )
        counts = [self.units[unit] for unit in units]
        who = BY_FOOTER if has_groups else BY_LOADER
        return check_counts(batches, counts, partial(name_group, fragments), who, joins=has_groups)

    def _scan_fragments(
        self,
        fragments: Sequence[ds.Fragment],
        paths: Sequence[str],
        query: Query,
        note: NotePath | None = None,
        *,
        limits: ScanLimits,
        arrival: Arrival | None = None,
    ) -> Iterator[pa.RecordBatch]:
        fragments = list(map(materialize, fragments))
        has_groups = all(hasattr(unit, "row_groups") for unit in fragments)
        options = self._make_options(limits, joins=query.filter is None and has_groups)
        if any(map(is_ipc, fragments)):
            return query.scan_each(fragments, self._stamps.check, note, **options)
        find = partial(query.find_damage, list(map(Candidate, paths, fragments)))
        check = self._stamps.check if arrival is None else check_nothing
        files = self._row_groups
        if files is not None and query is self._query and all(map(files.can_read, fragments)):
            list_counts(fragments)  # raises if a column has more values than rows
            batches = files.read(fragments, options["batch_size"], check, find, note)
        else:
            batches = query.scan_files(self._dataset, fragments, check, note, **options)
        batches = self._guard_times(fragments, self._list_needed(query), find, batches)
        return batches if arrival is None else arrival.use(batches)

    def _make_options(self, limits: ScanLimits, *, joins: bool = False) -> dict[str, Any]:
        """Return the options of a scanner; see `plan_batches`."""
        rows, readahead = plan_batches(
            self._row_bytes, self._columns, limits.ahead, limits.batch_bytes, joins=joins
        )
        options = {"batch_size": rows, "batch_readahead": readahead, "fragment_readahead": 2}
        return {**options, **self._options}

    def describe(self) -> str:
        return self._describe_rows(self._describe_filter())

    def _describe_rows(self, filter: str | None) -> str:
        """Describe the order of the rows that a filter keeps."""
        names = [os.path.basename(fragment.path) for fragment in self._fragments]
        parts = [self._dataset.schema.to_string(), names, self.units, filter]
        snapshot = self.files.snapshot
        return " ".join(map(str, [*parts, snapshot] if snapshot else parts))

    def _describe_filter(self) -> str | None:
        return None if self._query.filter is None else describe_filter(self._query.filter)
