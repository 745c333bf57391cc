"""`UnitScanner`: what is read of the files of a dataset, and the batches of their row groups."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from arrowdl.loader._files.locate import Candidate
from arrowdl.loader._files.stamps import FileStamps, is_local
from arrowdl.loader._ipc.in_memory import is_ipc
from arrowdl.loader._parquet.fragments import (
    choose_options,
    count_rows,
    find_largest_share,
    find_shares,
    has_ipc,
    list_paths,
    measure,
)
from arrowdl.loader._parquet.int96 import Int96Check
from arrowdl.loader._parquet.network import (
    Arrival,
    find_fetching,
    find_revisions,
    list_prefixes,
    read_from_memory,
    scan_units,
)
from arrowdl.loader._parquet.planned import materialize
from arrowdl.loader._parquet.pruning import prune
from arrowdl.loader._parquet.row_groups import open_row_groups
from arrowdl.loader._parquet.scan_limits import choose_limits
from arrowdl.loader._parquet.scans import FindDamage, NotePath, Query, check_nothing, naming_files
from arrowdl.loader._parquet.unit_sizes import UnitSizes
from arrowdl.loader._schema.filters import describe_filter, find_columns

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

# Files of which less is read are not read whole.
_LEAST_SHARE = 0.5


class UnitScanner:
    """Reads row groups of Parquet files, or whole files of other formats, by pyarrow's scanner."""

    def __init__(
        self,
        dataset: ds.FileSystemDataset,
        query: Query,
        stamps: FileStamps,  # of files whose footers have been read; those of the others are added
        *,
        is_given: bool = False,  # the dataset is a user's
    ) -> None:
        query.check_filter()
        self.dataset = dataset
        self.query = query
        self.stamps = stamps
        self.is_given = is_given
        self.fetching = find_fetching(dataset)  # holds what was fetched over a network
        self.options = choose_options(dataset) if self.fetching is None else read_from_memory()
        self.decoder = "pyarrow"
        self._int96 = Int96Check(is_given=is_given)
        # Reads row groups without a scanner; None if a scanner has to.
        self.row_groups = open_row_groups(dataset, query, self.decoder)

    def __getstate__(self) -> dict[str, Any]:
        # As in TableSource: pickled fixed-size lists lose the extension types of their items.
        schema = self.dataset.schema.serialize().to_pybytes()
        return self.__dict__ | {"dataset": (self.dataset, schema), "row_groups": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import pyarrow as pa

        self.__dict__.update(state)
        dataset, buffer = state["dataset"]
        schema = pa.ipc.read_schema(pa.py_buffer(buffer))
        is_same = dataset.schema.equals(schema, check_metadata=True)
        self.dataset = dataset if is_same else dataset.replace_schema(schema)
        self.query = replace(self.query, schema=schema)
        self.row_groups = open_row_groups(self.dataset, self.query, self.decoder)

    def change(self, *, query: Query | None = None, decoder: str | None = None) -> Self:
        """Return a scanner of the same files with another query, or another decoder."""
        scanner = object.__new__(type(self))  # a copy would open the row groups twice
        scanner.__dict__.update(self.__dict__)
        scanner.query, scanner.decoder = query or self.query, decoder or self.decoder
        scanner.row_groups = open_row_groups(scanner.dataset, scanner.query, scanner.decoder)
        return scanner

    def describe_filter(self) -> str | None:
        """Return the filter as a text, for plans and states."""
        return None if self.query.filter is None else describe_filter(self.query.filter)

    def describe_rows(
        self, fragments: Sequence[ds.Fragment], rows: Sequence[int], filter: str | None
    ) -> str:
        """Describe what decides on the order of the rows, for fragments with `rows` rows each."""
        names = list(map(os.path.basename, list_paths(fragments)))
        parts = [self.dataset.schema.to_string(), names, rows, filter]
        snapshot = find_revisions(self.dataset.filesystem, fragments)
        return " ".join(map(str, [*parts, snapshot] if snapshot else parts))

    def measure(self, fragments: Sequence[ds.Fragment], rows: Sequence[int]) -> UnitSizes:
        """Measure the columns that are read of fragments with `rows` rows each."""
        columns, shares = set(self.query.roots or self.dataset.schema.names), find_shares(fragments)
        plain = measure(fragments, shares, columns)
        stored = self._list_stored(fragments, columns)
        nbytes = plain if stored is None else measure(fragments, shares, stored)
        sizes = zip(nbytes, rows, strict=True)
        row_bytes = max((size / count for size, count in sizes if count > 0), default=0.0)
        if has_ipc(fragments):
            nbytes = [float(self.stamps.get_size(unit.path)) for unit in fragments]
        limits = choose_limits(
            None if self.row_groups is None else plain,
            is_local=is_local(self.dataset.filesystem),
            is_fetched=self.fetching is not None,
            largest_share=find_largest_share(shares, columns),
            decoder=self.decoder,
        )
        share = sum(part for name, part in shares.items() if name in columns)
        return UnitSizes(nbytes, row_bytes, len(columns), limits, share)

    def _list_stored(self, fragments: Sequence[ds.Fragment], columns: set[str]) -> set[str] | None:
        """Return the names that `columns` have in the files; None if they are the same."""
        return None

    def count_rows(self, unit: ds.Fragment) -> int:
        """Count the rows of a unit, without the filter."""
        return count_rows(unit)

    def prune(self, units: Sequence[ds.Fragment]) -> Sequence[int]:
        """List those of the units of a file of which the filter may keep rows."""
        return prune(list(map(materialize, units)), self.query.filter, self.query.read_schema)

    def list_needed(self, query: Query) -> list[str]:
        """Return the whole columns that `query` and its filter need."""
        needed = find_columns(query.schema.names, query.roots, query.filter)
        return [name for name in query.schema.names if name in needed]

    def list_prefixes(self, query: Query) -> Callable[[Any], Sequence[str] | None]:
        """Return what finds the columns that `query` reads of the file of a unit."""
        prefixes = list_prefixes(query)
        return lambda unit: prefixes

    def scan_each(
        self, units: Sequence[ds.Fragment], query: Query, readers: int
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        """Yield the batches of each unit; over a network, the next units are fetched meanwhile."""
        scan = partial(self.scan_unit, query=query)
        return scan_units(self.fetching, units, self.list_prefixes(query), scan, readers)

    def scan_unit(self, unit: ds.Fragment, query: Query) -> Iterator[pa.RecordBatch]:
        """Scan one unit; what is fetched is checked where it arrives."""
        find = partial(query.find_damage, [Candidate(unit.path, unit)])
        self.check_times([unit], self.list_needed(query), find)
        if self.fetching is None:
            yield from query.scan_each([unit], self.stamps.check)
        else:
            yield from query.scan_each([unit], check_nothing, **self.options)

    def is_direct(self, fragments: Sequence[ds.Fragment]) -> bool:
        """Whether the query reads fragments without a scanner, and checks their files itself."""
        files = self.row_groups
        return (
            files is not None
            and not any(map(is_ipc, fragments))
            and all(map(files.can_read, fragments))
        )

    def scan(
        self,
        fragments: Sequence[ds.Fragment],
        paths: Sequence[str],  # of the fragments' files
        query: Query,
        note: NotePath | None = None,  # takes the path of the next batches
        *,
        sizes: UnitSizes,
        arrival: Arrival | None = None,  # of units whose bytes are fetched
    ) -> Iterator[pa.RecordBatch]:
        """Read the batches of fragments, one after the other."""
        files = self.row_groups if query is self.query and self.is_direct(fragments) else None
        if files is None:
            fragments = list(map(materialize, fragments))
        has_groups = all(hasattr(unit, "row_groups") for unit in fragments)
        joins = query.filter is None and has_groups
        options = {**sizes.plan_scan(joins=joins), **self.options}
        if any(map(is_ipc, fragments)):
            return query.scan_each(fragments, self.stamps.check, note, **options)
        find = partial(query.find_damage, list(map(Candidate, paths, fragments)))
        check = self.stamps.check if arrival is None else check_nothing
        if files is not None:
            rows, joined_bytes = options["batch_size"], sizes.limits.joined_bytes
            whole = sizes.share > _LEAST_SHARE
            batches = files.read(fragments, rows, joined_bytes, check, find, note, are_whole=whole)
        else:
            batches = query.scan_files(self.dataset, fragments, check, note, **options)
        batches = self._guard_times(fragments, self.list_needed(query), find, batches)
        return batches if arrival is None else arrival.use(batches)

    def _guard_times(
        self,
        fragments: Sequence[ds.Fragment],
        columns: Sequence[str],
        find: FindDamage,
        batches: Iterator[pa.RecordBatch],
    ) -> Iterator[pa.RecordBatch]:
        self.check_times(fragments, columns, find)
        yield from batches

    def check_times(
        self, fragments: Sequence[ds.Fragment], columns: Sequence[str], find: FindDamage
    ) -> None:
        """Check the INT96 timestamps of row groups; `find` as of `naming_files`."""
        with naming_files([fragment.path for fragment in fragments], find):
            self._int96.check(fragments, columns, self.options)
