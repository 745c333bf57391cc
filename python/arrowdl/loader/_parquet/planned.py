"""Row groups and files of a plan in place of pyarrow's fragments: made when they are read."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl.loader._files.file_plan import FilePlan, PlannedFile, PlannedTable
from arrowdl.loader._files.stamps import is_of_metadata_file
from arrowdl.loader._parquet.pruning import list_fragments
from arrowdl.loader._storage.readers import Stamp
from arrowdl.loader._storage.transient import FileChangedError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


class PlannedGroup(NamedTuple):
    """What pyarrow says of a row group."""

    id: int
    num_rows: int
    total_byte_size: int


class _Handle:
    """pyarrow's fragment of a file, made and read once for all its units."""

    def __init__(self, file: PlannedFile, dataset: Any, partition: Any) -> None:
        self.dataset = dataset
        self.file = file
        self.partition = partition
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._made: Any = None

    def __getstate__(self) -> tuple[Any, ...]:
        return self.dataset, self.file, self.partition

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dataset, self.file, self.partition = state
        self._forget()

    def load(self) -> Any:
        """Return the fragment, whose footer has been read if it is of Parquet."""
        with self._lock:
            if self._made is None:
                made = self.dataset.format.make_fragment(
                    self.file.path, self.dataset.filesystem, partition_expression=self.partition
                )
                if hasattr(made, "ensure_complete_metadata"):
                    made.ensure_complete_metadata()
                    self._compare(made)
                self._made = made
            return self._made

    def _compare(self, fragment: Any) -> None:
        """Raise OSError if the footer, which the plan's stamp may not tell, has other rows."""
        footer_groups = {
            group.id: (group.num_rows, group.total_byte_size) for group in fragment.row_groups
        }
        rows = zip(self.file.rows, self.file.nbytes, strict=True)
        if any(
            footer_groups.get(group) != planned_group
            for group, planned_group in zip(self.file.groups, rows, strict=True)
        ):
            raise FileChangedError(
                f"{self.file.path!r} has changed since the plan was made: its footer has other "
                "row groups. Make a new plan"
            )


class PlannedUnit:
    """Row groups of a file, or a whole file, as a fragment whose footer has not been read."""

    def __init__(
        self,
        file: PlannedFile,
        handle: _Handle,
        groups: tuple[int, ...],  # of the file; empty for a file without row groups
        plan: FilePlan,
    ) -> None:
        self.file = file
        self.path = file.path
        self.shares = plan.shares
        self.row_bytes = plan.row_bytes
        self.partition_expression = handle.partition
        self._handle = handle
        self._groups = groups

    def __getattr__(self, name: str) -> Any:
        """What the plan does not know is asked of pyarrow's fragment."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "row_groups" and self._groups:
            groups = zip(self.file.groups, self.file.rows, self.file.nbytes, strict=True)
            return [PlannedGroup(*group) for group in groups if group[0] in self._groups]
        return getattr(self.make(), name)

    @property
    def filesystem(self) -> Any:
        """Where the file is."""
        return self._handle.dataset.filesystem

    @property
    def format(self) -> Any:
        """How the file is read."""
        return self._handle.dataset.format

    def subset(self, row_group_ids: Sequence[int]) -> PlannedUnit:
        """Return other row groups of the file."""
        unit = copy(self)
        unit._groups = tuple(row_group_ids)
        return unit

    def make(self) -> ds.Fragment:
        """Make pyarrow's fragment; the first of a file reads its footer."""
        whole = self._handle.load()
        return whole.subset(row_group_ids=list(self._groups)) if self._groups else whole


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
    matching_paths = None if filter is None else _list_kept(dataset, files, filter)
    units = []
    for file, partition in files:
        if matching_paths is None or file.path in matching_paths:
            groups: list[tuple[int, ...]] = [(group,) for group in file.groups] or [()]
            handle = _Handle(file, dataset, partition)
            units += [PlannedUnit(file, handle, numbers, plan) for numbers in groups]
    return units


def _find_partition(path: str, plan: FilePlan, partitions: Mapping[str, Any]) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    if path in partitions:
        return partitions[path]
    fields: list[pa.Field] = [plan.schema.field(name) for name in plan.partitions]
    return ds.HivePartitioning(pa.schema(fields)).parse(path) if fields else ds.scalar(True)


def _list_kept(
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
        kept_counts = tuple(counts[i] for i in units)
        return PlannedFile(
            path,
            find_stamp(path),
            tuple(group.num_rows for group in groups) or kept_counts,
            tuple(group.total_byte_size for group in groups) or (0,) * len(units),
            tuple(group.id for group in groups),
            kept_counts,
        )

    return tuple(plan(path, units) for path, units in files.items())


def list_partitions(fragments: Sequence[Any]) -> tuple[str, ...]:
    """Return the columns that directories named key=value are."""
    import pyarrow.dataset as ds

    names: dict[str, None] = {}
    for fragment in fragments:
        names.update(dict.fromkeys(ds.get_partition_keys(fragment.partition_expression)))
    return tuple(names)
