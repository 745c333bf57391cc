"""Row groups and files of a plan in place of pyarrow's fragments: made when they are read."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from arrowdl.loader._files.file_plan import FilePlan, PlannedFile, PlannedTable
from arrowdl.loader._files.footers import check_footer
from arrowdl.loader._files.stamps import check_fragment, is_of_metadata_file
from arrowdl.loader._parquet.pruning import list_fragments
from arrowdl.loader._storage.readers import Stamp
from arrowdl.loader._storage.transient import FileChangedError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

# Footers take so much in their files, and some ten times as much memory as pyarrow decodes them.
_FOOTER_BYTES = 2**20


class PlannedGroup(NamedTuple):
    """What pyarrow says of a row group."""

    id: int
    num_rows: int
    total_byte_size: int


class FragmentMaker:
    """Makes pyarrow's fragments of files when rows are read; keeps the last ones, and footers."""

    def __init__(
        self,
        dataset: ds.FileSystemDataset,  # with the format and the file system of the files
        plan: FilePlan | None,  # None: the Loader has read the footers itself
    ) -> None:
        self.format = dataset.format
        self.filesystem = dataset.filesystem
        self.plan = plan
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._cached: OrderedDict[Any, tuple[Any, int]] = OrderedDict()  # with their bytes
        self._held = 0

    def __getstate__(self) -> tuple[Any, ...]:
        return self.format, self.filesystem, self.plan

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.format, self.filesystem, self.plan = state
        self._forget()

    def make(self, file: PlannedFile, partition: Any) -> Any:
        """Return the fragment, whose footer has been read if it is of Parquet."""
        fragment = self._find(file.path)
        if fragment is not None:
            return fragment
        fragment = self.format.make_fragment(file.path, self.filesystem, partition)
        nbytes = 0
        if hasattr(fragment, "ensure_complete_metadata"):
            if self.plan is not None:  # else the core has read the footer
                check_fragment(fragment)
            self.compare(fragment.metadata, file)
            nbytes = fragment.metadata.serialized_size
        self._keep(file.path, fragment, nbytes)
        return fragment

    def open_local(self, file: PlannedFile, opened: pa.OSFile, **options: Any) -> pq.ParquetFile:
        """Open a local file; its footer is decoded once, as long as its stamp stays."""
        import pyarrow.parquet as pq

        status = os.fstat(opened.fileno())
        times = status.st_mtime_ns, status.st_ctime_ns  # a program can set the first one
        key = file.path, status.st_ino, status.st_size, times
        footer = self._find(key)
        reader = pq.ParquetFile(opened, metadata=footer, **options)
        if footer is None:
            if self.plan is not None:
                check_footer(repr(file.path), opened)
            self.compare(reader.metadata, file)
            self._keep(key, reader.metadata, reader.metadata.serialized_size)
        return reader

    def _find(self, key: Any) -> Any:
        with self._lock:
            if key not in self._cached:
                return None
            self._cached.move_to_end(key)
            return self._cached[key][0]

    def _keep(self, key: Any, item: Any, nbytes: int) -> None:
        with self._lock:
            if key in self._cached:  # another thread was faster
                return
            self._cached[key] = item, nbytes
            self._held += nbytes
            while self._held > _FOOTER_BYTES and len(self._cached) > 1:
                _, (_, dropped) = self._cached.popitem(last=False)
                self._held -= dropped

    def compare(self, footer: pq.FileMetaData, file: PlannedFile) -> None:
        """Raise OSError if the footer, which the file's stamp may not tell, has other rows."""
        if any(
            group.id >= footer.num_row_groups or group != _describe(footer, group.id)
            for group in _list_groups(file)
        ):
            what = "Loader" if self.plan is None else "plan"
            raise FileChangedError(
                f"{file.path!r} has changed since the {what} was made: its footer has other row "
                f"groups. Make a new {what}"
            )


class PlannedUnit:
    """A whole file as a fragment that is made when it is read."""

    __slots__ = ("_maker", "alike", "file", "partition_expression")

    def __init__(
        self,
        file: PlannedFile,
        partition: Any,
        maker: FragmentMaker,
        alike: bytes | None,  # equal for files with equal columns; None if unknown
    ) -> None:
        self.file = file
        self.partition_expression = partition
        self.alike = alike
        self._maker = maker

    def __getattr__(self, name: str) -> Any:
        """What the plan does not know is asked of pyarrow's fragment."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.make(), name)

    @property
    def path(self) -> str:
        """Where the file is in its file system."""
        return self.file.path

    @property
    def plan(self) -> FilePlan | None:
        """The plan that has the file; None if the Loader has read the footer itself."""
        return self._maker.plan

    @property
    def filesystem(self) -> Any:
        """Where the file is."""
        return self._maker.filesystem

    @property
    def format(self) -> Any:
        """How the file is read."""
        return self._maker.format

    def open_local(self, opened: pa.OSFile, **options: Any) -> pq.ParquetFile:
        """Open the file; raise OSError if its footer has other rows than this."""
        return self._maker.open_local(self.file, opened, **options)

    def make(self) -> ds.Fragment:
        """Make pyarrow's fragment, which reads the footer unless that is kept."""
        return cast("ds.Fragment", self._maker.make(self.file, self.partition_expression))


class PlannedGroups(PlannedUnit):
    """Row groups of a file."""

    __slots__ = ("row_groups",)

    def __init__(
        self,
        file: PlannedFile,
        partition: Any,
        maker: FragmentMaker,
        alike: bytes | None,
        row_groups: tuple[PlannedGroup, ...],
    ) -> None:
        super().__init__(file, partition, maker, alike)
        self.row_groups = row_groups

    def subset(self, row_group_ids: Sequence[int]) -> PlannedGroups:
        """Return other row groups of the file."""
        wanted = set(row_group_ids)
        groups = tuple(group for group in _list_groups(self.file) if group.id in wanted)
        return PlannedGroups(self.file, self.partition_expression, self._maker, self.alike, groups)

    def make(self) -> ds.Fragment:
        return super().make().subset(row_group_ids=[group.id for group in self.row_groups])


def _list_groups(file: PlannedFile) -> Iterable[PlannedGroup]:
    return map(PlannedGroup, file.groups, file.rows, file.nbytes)


def _describe(footer: pq.FileMetaData, number: int) -> PlannedGroup:
    group = footer.row_group(number)
    return PlannedGroup(number, group.num_rows, group.total_byte_size)


def materialize(fragment: Any) -> ds.Fragment:
    """Return pyarrow's fragment of one that may be of a plan."""
    return fragment.make() if isinstance(fragment, PlannedUnit) else fragment


def make_units(
    plan: FilePlan,
    dataset: ds.FileSystemDataset,  # with the format and the file system of the files
    # the columns of directories, by path; empty for a path that it lacks
    partitions: Mapping[str, Any],
    filter: Any,  # files whose partitions it excludes are left out, as a dataset does
) -> list[PlannedUnit]:
    """Return the units of a plan in the order of its rows; nothing is read."""
    files = [(file, _find_partition(file.path, plan, partitions)) for file in plan.files]
    matching_paths = None if filter is None else _list_matching(dataset, files, filter)
    maker = FragmentMaker(dataset, plan)
    return [
        unit
        for file, partition in files
        if matching_paths is None or file.path in matching_paths
        for unit in split_planned(file, partition, maker)
    ]


def split_planned(
    file: PlannedFile,
    partition: Any,
    maker: FragmentMaker,
    alike: bytes | None = None,  # as of `PlannedUnit`
) -> list[PlannedUnit]:
    """Return the units of one file."""
    if not file.groups:
        return [PlannedUnit(file, partition, maker, alike)]
    return [PlannedGroups(file, partition, maker, alike, (group,)) for group in _list_groups(file)]


def _find_partition(path: str, plan: FilePlan, partitions: Mapping[str, Any]) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    if path in partitions:
        return partitions[path]
    fields: list[pa.Field] = [plan.schema.field(name) for name in plan.partitions]
    return ds.HivePartitioning(pa.schema(fields)).parse(path) if fields else ds.scalar(True)


def _list_matching(
    dataset: ds.FileSystemDataset, files: Sequence[tuple[PlannedFile, Any]], filter: Any
) -> set[str]:
    import pyarrow.dataset as ds

    format, filesystem = dataset.format, dataset.filesystem
    fragments = [
        format.make_fragment(file.path, filesystem, partition) for file, partition in files
    ]
    planned_dataset = ds.FileSystemDataset(fragments, dataset.schema, format, filesystem)
    return {fragment.path for fragment in list_fragments(planned_dataset, filter)}


def describe_dataset(dataset: ds.FileSystemDataset) -> PlannedTable:
    """Return what a plan has of a dataset that a user gave: its rows are those of no other.

    Raises TypeError if a plan would be of no use.
    """
    import pyarrow.dataset as ds

    fragments = list(dataset._get_fragments(None))
    if not isinstance(dataset.format, (ds.ParquetFileFormat, ds.IpcFileFormat)):
        kind = dataset.format.default_extname
        raise TypeError(f"a dataset of {kind} files has no plan: they have no footers")
    if any(map(is_of_metadata_file, fragments)):
        raise TypeError("a dataset of a metadata file has no plan: it has all footers itself")
    parts = [dataset.schema.to_string()]
    for fragment in fragments:
        parts += [fragment.path, str(fragment.partition_expression), str(_list_chosen(fragment))]
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
    name = f"a pyarrow dataset of {len(fragments)} files ({digest})"
    return PlannedTable(f"dataset {digest}", name)


def _list_chosen(fragment: ds.Fragment) -> list[int] | None:
    """List the row groups that are a fragment; None for all of the file."""
    *_, groups = fragment.__reduce__()[1]
    if not isinstance(groups, list) or len(groups) == fragment.metadata.num_row_groups:
        return None
    return groups


def list_files(
    fragments: Sequence[Any],  # the units
    counts: Sequence[int],  # rows of each that the filter keeps
    find_stamp: Callable[[str], Stamp],  # takes a path
) -> tuple[PlannedFile, ...]:
    """Return the files of units."""
    files: dict[str, list[int]] = {}
    for i, fragment in enumerate(fragments):
        files.setdefault(fragment.path, []).append(i)

    def plan(path: str, units: Sequence[int]) -> PlannedFile:
        groups = [group for i in units for group in getattr(fragments[i], "row_groups", ())]
        counts_of_units = tuple(counts[i] for i in units)
        return PlannedFile(
            path,
            find_stamp(path),
            tuple(group.num_rows for group in groups) or counts_of_units,
            tuple(group.total_byte_size for group in groups) or (0,) * len(units),
            tuple(group.id for group in groups),
            counts_of_units,
        )

    return tuple(plan(path, units) for path, units in files.items())


def list_partitions(fragments: Sequence[Any]) -> tuple[str, ...]:
    """Return the columns that directories named key=value are."""
    import pyarrow.dataset as ds

    names: dict[str, None] = {}
    for fragment in fragments:
        names.update(dict.fromkeys(ds.get_partition_keys(fragment.partition_expression)))
    return tuple(names)
