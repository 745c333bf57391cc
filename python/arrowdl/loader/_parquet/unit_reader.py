"""`UnitReader`: units of a dataset as a stream, read ahead and with the codes of dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

from arrowdl import _core
from arrowdl.loader._clock import Clock
from arrowdl.loader._files.locate import split_row_groups
from arrowdl.loader._parquet.codes import Codes
from arrowdl.loader._parquet.counted import BY_FOOTER, BY_LOADER, check_counts, name_group
from arrowdl.loader._parquet.find_units import Units
from arrowdl.loader._parquet.fragments import join_fragments, list_paths
from arrowdl.loader._parquet.network import Arrival, start_fetching
from arrowdl.loader._parquet.read_ahead import read_ahead
from arrowdl.loader._parquet.scans import read_in_thread
from arrowdl.loader._parquet.unit_scanner import UnitScanner
from arrowdl.loader._parquet.unit_sizes import UnitSizes
from arrowdl.loader._schema.vocabulary import Vocabulary, make_empty

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from arrowdl.loader._storage.fetch_ahead import FetchAhead
    from arrowdl.loader._storage.fetch_handler import FetchHandler


class UnitReader:
    """Reads units in any order."""

    # `codes` are those of the dictionaries; `clock` is that of the threads that read.
    def __init__(self, scanner: UnitScanner, units: Units, codes: Codes, clock: Clock) -> None:
        self._scanner = scanner
        self._fragments, self.units = units
        self._clock = clock
        self.codes = codes
        self.sizes: UnitSizes = scanner.measure(*units)

    def with_vocabulary(self, vocabulary: Vocabulary) -> UnitReader:
        """Return a reader whose columns have the codes of a user's vocabulary."""
        reader = copy(self)
        reader.codes = self.codes.with_tables(vocabulary)
        return reader

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        """Read the rows of `units`; as `IndexedSource.read`."""
        return self.codes.check(self, self._scan(units, self.sizes.divide(readers)))

    def list_fragments(self) -> Sequence[ds.Fragment]:
        """See `CodedUnits`."""
        return self._fragments

    def project(self) -> pa.Schema:
        """See `CodedUnits`."""
        return self._scanner.query.project(self._scanner.dataset)

    def scan_columns(
        self, columns: list[str], fragments: Sequence[ds.Fragment]
    ) -> Iterator[pa.RecordBatch]:
        """See `CodedUnits`."""
        scanner = self._scanner
        paths, query = [fragment.path for fragment in fragments], scanner.query
        query = replace(query, schema=query.read_schema, columns=columns, filter=None)
        if scanner.fetching is None:
            batches = scanner.scan(fragments, paths, query, sizes=self.sizes)
        else:
            units = [unit for fragment in fragments for unit in split_row_groups(fragment)]
            batches = chain.from_iterable(scanner.scan_each(units, query, 1))
        return scanner.stamps.guard(paths, batches)

    def scan_unit(self, unit: int) -> _core.DeviceStream:
        """See `CodedUnits`."""
        return self._scan([unit], self.sizes)

    def _scan(self, units: Sequence[int], sizes: UnitSizes) -> _core.DeviceStream:
        units = [unit for unit in units if self.units[unit] > 0] or list(units[:1])
        paths = list_paths(self._fragments)
        scans = sizes.cut(units, [paths[unit] for unit in units])
        handler = self._scanner.fetching
        if handler is not None and scans:
            return _core.from_arrow_stream(self._read_fetched(handler, scans, sizes))
        if len(scans) <= 1 or sizes.limits.scans == 1:
            return self._open(scans or [units], sizes)
        if sizes.limits.file_bytes < inf:
            return _core.from_arrow_stream(self._read_in_turn(scans, sizes))
        return _core.from_arrow_stream(self._read_ahead(scans, sizes))

    def _read_in_turn(
        self, scans: Sequence[Sequence[int]], sizes: UnitSizes
    ) -> Iterator[_core.DeviceArray]:
        """Read small scans by a few threads, since a thread for each takes memory of its own."""
        count = sizes.limits.scans
        streams = [self._open(scans[i::count], sizes) for i in range(count)]
        yield self._make_empty()  # for the schema, without a wait for rows
        for i, units in enumerate(scans):
            rows = sum(self.units[unit] for unit in units)
            while rows > 0:
                if (array := next(streams[i % count], None)) is None:
                    return  # the process ends
                rows -= len(array)
                yield array
                del array

    def _read_fetched(
        self, handler: FetchHandler, scans: Sequence[Sequence[int]], sizes: UnitSizes
    ) -> Iterator[_core.DeviceArray]:
        """Fetch row groups ahead, and scan each when it has arrived."""
        units = [self._fragments[unit] for scan in scans for unit in scan]
        prefixes = self._scanner.list_prefixes(self._scanner.query)
        fetched = start_fetching(handler, units, prefixes, sizes.limits.readers)
        try:
            yield from self._read_ahead(scans, sizes, fetched)
        finally:
            fetched.close()

    def _read_ahead(
        self,
        scans: Sequence[Sequence[int]],
        sizes: UnitSizes,
        fetched: FetchAhead | None = None,
    ) -> Iterator[_core.DeviceArray]:
        def open_scan(units: Sequence[int], begin: int) -> _core.DeviceStream:
            arrival = None
            if fetched is not None:
                arrival = Arrival(fetched, begin, begin + len(units), self._clock)
            return self._open([units], sizes, arrival)

        return read_ahead(scans, sizes.measure_scan, open_scan, self._make_empty, sizes.limits)

    def _make_empty(self) -> _core.DeviceArray:
        return _core.from_arrow(self.codes.find(self).encode(make_empty(self.project())))

    def _open(
        self,
        scans: Sequence[Sequence[int]],
        sizes: UnitSizes,
        arrival: Arrival | None = None,
    ) -> _core.DeviceStream:
        """Read the units of scans in a thread, one scan after another."""
        codes, schema = self.codes.find(self), self.project()
        encodes = codes.concerns(schema)
        depth = 1 if self._scanner.row_groups is None else sizes.count_ready()
        batches = chain.from_iterable(
            self._read_scan(units, sizes, codes if encodes else None, arrival) for units in scans
        )
        return read_in_thread(batches, codes.encode_schema(schema) if encodes else schema, depth)

    def _read_scan(
        self,
        units: Sequence[int],
        sizes: UnitSizes,
        codes: Vocabulary | None,
        arrival: Arrival | None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the batches of `units`, with dictionaries encoded by `codes`."""
        scanner = self._scanner
        unit_fragments = [self._fragments[unit] for unit in units]
        fragments = join_fragments(unit_fragments)
        paths = [fragment.path for fragment in fragments]
        guarded = paths if arrival is None else []  # those were checked when their bytes arrived
        latest = [""]  # the path of the next batches
        note = None if codes is None else lambda path: latest.__setitem__(0, path)
        batches = scanner.scan(fragments, paths, scanner.query, note, sizes=sizes, arrival=arrival)
        if codes is not None:
            batches = (codes.encode(batch, latest[0]) for batch in batches)
        batches = self._check_counts(batches, unit_fragments, [self.units[unit] for unit in units])
        guard = partial(scanner.stamps.guard, is_checked=scanner.is_direct(fragments))
        return self._clock.time(guard(guarded, batches))

    def _check_counts(
        self,
        batches: Iterator[pa.RecordBatch],
        fragments: Sequence[ds.Fragment],
        counts: Sequence[int],
    ) -> Iterator[pa.RecordBatch]:
        # Without a filter, `UnitScanner.scan` has looked at each row group.
        has_groups = self._scanner.query.filter is None and all(
            hasattr(fragment, "row_groups") for fragment in fragments
        )
        who = BY_FOOTER if has_groups else BY_LOADER
        return check_counts(batches, counts, partial(name_group, fragments), who, joins=has_groups)
