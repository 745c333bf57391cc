"""`FilePlan`: what a Loader found out about its files, for others that open the same ones."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl.loader._schema.fields import choose_columns
from arrowdl.loader._schema.filters import describe_filter, find_columns, show_filter
from arrowdl.loader._storage.readers import Stamp

if TYPE_CHECKING:
    import pyarrow as pa

_VERSION = 4


class PlannedTable(NamedTuple):
    """What a plan has of a table's version, or of a pyarrow dataset, beyond its files."""

    identity: str  # what has to be the same in what is opened
    name: str  # for users, without secrets
    place: str = ""  # of an Iceberg table, where its files are
    files: bytes = b""  # as `pack_files` of `table_version` returns it, of the files of the plan


class PlannedFile(NamedTuple):
    """A file of a plan."""

    path: str  # a URL without secrets, or a path; for tables and datasets, of their file system
    stamp: Stamp  # its size, and its time and ETag if the file system tells them
    rows: tuple[int, ...]  # of each unit: a row group, or the whole file if it has none
    nbytes: tuple[int, ...]  # uncompressed, of each unit; 0 if unknown
    groups: tuple[int, ...]  # the number of each row group; empty for a file that has none
    counts: tuple[int, ...]  # rows of each unit that the filter keeps


@dataclass(frozen=True)
class FilePlan:
    """The files of a source, their schema and their rows, taken once.

    ``Loader.plan`` returns it. ``Loader(source, storage=Storage(plan=...))`` opens the same files,
    or the same version of a table, without listing them, and reads no footer before its rows are
    read. It has no passwords.

    Attributes
    ----------
    fingerprint : str
        Identifies the order of the rows: the ``"source"`` of the states of its Loaders.
    format : {'parquet', 'ipc'}
    schema : pyarrow.Schema
        The schema of all files.
    files : tuple of PlannedFile
        The files in their order.
    partitions : tuple of str
        Columns that come from directories named key=value.
    columns : tuple of str or None
        The columns that a Loader of this plan can read; None for all.
    filter : str or None
        The text of the filter of `PlannedFile.counts`.
    shares : mapping of str to float
        The share of a row's bytes in each column.
    row_bytes : mapping of str to float
        The bytes of a row in memory, in each column.
    table : PlannedTable, optional
        None for a plan of paths.
    revisions : mapping of str to str
        The commits of "datasets/user/name@branch" and the like, of Hugging Face's Hub.
    """

    fingerprint: str
    format: str
    schema: pa.Schema
    files: tuple[PlannedFile, ...]
    partitions: tuple[str, ...]
    columns: tuple[str, ...] | None
    filter: str | None
    shares: Mapping[str, float]
    row_bytes: Mapping[str, float]
    table: PlannedTable | None = None
    revisions: Mapping[str, str] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        """Rows of all files that the filter keeps."""
        return sum(sum(file.counts) for file in self.files)

    def __repr__(self) -> str:
        of = "" if self.table is None else f" of {self.table.name}"
        return (
            f"<arrowdl FilePlan of {len(self.files)} files{of}, {self.num_rows} rows, "
            f"{self.fingerprint}>"
        )

    def __reduce__(self) -> Any:
        # pyarrow's own pickle of a schema renames the items of fixed-size lists.
        return _read_text, (json.dumps(self._dump()),)

    def _dump(self) -> dict[str, Any]:
        names = ("fingerprint", "format", "partitions", "columns", "filter", "shares", "row_bytes")
        return {
            "arrowdl_file_plan": _VERSION,
            **{name: getattr(self, name) for name in names},
            "files": self.files,
            "schema": base64.b64encode(self.schema.serialize().to_pybytes()).decode(),
            "table": _dump_table(self.table),
            "revisions": dict(self.revisions),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a local file, as JSON; a reader sees all of it or none.

        Parameters
        ----------
        path : path
        """
        content = self._dump()
        content["digest"] = _digest_content(content)
        name = os.fspath(path)
        written = f"{name}.{os.getpid()}.tmp"
        with open(written, "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(written, name)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FilePlan:
        """Read a plan that `save` wrote.

        Parameters
        ----------
        path : path

        Returns
        -------
        FilePlan

        Raises
        ------
        ValueError
            The file is not a plan, one of another version, or damaged.
        """
        name = os.fspath(path)
        with open(path, "rb") as file:
            text = file.read()
        try:
            content = json.loads(text)
            version = content["arrowdl_file_plan"]
        except Exception:
            raise ValueError(
                f"{name!r} is not a plan, or a damaged one: Loader.plan().save() writes one"
            ) from None
        if version != _VERSION:
            raise ValueError(
                f"{name!r} is a plan of version {version}, and this arrowdl reads version "
                f"{_VERSION}: make a new one, Loader.plan().save()"
            )
        try:
            if content.pop("digest") != _digest_content(content):
                raise ValueError("its digest is of another content")
            return _read_plan(content)
        except Exception as error:  # whatever was made of it
            raise ValueError(
                f"the plan {name!r} is damaged, or was changed by hand ({error}): make a new one, "
                "Loader.plan().save()"
            ) from None

    def check_fingerprint(self, rows: str) -> None:
        """Raise ValueError unless the fingerprint is that of the rows that `rows` describes."""
        if self.fingerprint != (actual := digest(rows.encode())):
            raise ValueError(
                f"the plan has the fingerprint {self.fingerprint}, and its files and rows have "
                f"{actual}: it was changed, or another version of pyarrow made it. Make a new plan"
            )

    def check_source(self, identity: str, name: str) -> None:
        """Raise ValueError if the plan is of something else.

        Parameters
        ----------
        identity : str
            See `PlannedTable`; empty for paths.
        name : str
            What is opened, for users.
        """
        table = PlannedTable("", "paths or URLs") if self.table is None else self.table
        if table.identity != identity:
            raise ValueError(
                f"the plan is of {table.name}, and the source is {name}: open what the plan is of, "
                "of a table the same version, or make a new plan"
            )

    def check(self, columns: list[str] | None, filter: Any) -> None:
        """Raise ValueError if a Loader of `columns` and `filter` cannot use the plan."""
        if self.filter is not None and self.filter != describe_filter(filter):
            raise ValueError(
                f"the plan has the rows that {self.filter} keeps, and the Loader has "
                f"filter={show_filter(filter)}: give the filter of the plan, or make a plan "
                "without one"
            )
        planned_columns = (
            None if self.columns is None else {name.split(".")[0] for name in self.columns}
        )
        wanted = list(choose_columns(columns, self.schema) or self.schema.names)
        if self.filter is None and filter is not None:
            filtered = find_columns(self.schema.names, [], filter) - set(self.partitions)
            wanted += sorted(filtered - set(wanted))
        others = [
            name
            for name in wanted
            if planned_columns is not None and name.split(".")[0] not in planned_columns
        ]
        if others:
            raise ValueError(
                f"the plan was made for columns={list(self.columns or ())}, and the types of "
                f"{others} were not compared: make a plan with these columns, or with all"
            )


def _dump_table(table: PlannedTable | None) -> list[str] | None:
    return None if table is None else [*table[:3], base64.b64encode(table.files).decode()]


def _digest_content(content: Mapping[str, Any]) -> str:
    return digest(json.dumps(content, sort_keys=True).encode())


def digest(data: bytes) -> str:
    """Return 16 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _read_text(text: str) -> FilePlan:
    return _read_plan(json.loads(text))


def _read_plan(content: Mapping[str, Any]) -> FilePlan:
    """Read what `FilePlan._dump` returns; raises any exception if it is something else."""
    import pyarrow as pa

    columns, filter = content["columns"], content["filter"]
    plan = FilePlan(
        _take(str, content["fingerprint"]),
        _take(str, content["format"]),
        pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["schema"], validate=True))),
        tuple(_read_file(*parts) for parts in _take(list, content["files"])),
        _take_all(str, content["partitions"]),
        None if columns is None else _take_all(str, columns),
        None if filter is None else _take(str, filter),
        _take_numbers(content["shares"]),
        _take_numbers(content["row_bytes"]),
        _load_table(content["table"]),
        dict(
            zip(content["revisions"], _take_all(str, [*content["revisions"].values()]), strict=True)
        ),
    )
    if plan.format not in ("parquet", "ipc"):
        raise ValueError(f"files of {plan.format!r}")
    names = plan.schema.names
    if missing := [name for name in plan.partitions if name not in names]:
        raise ValueError(f"no column {missing[0]!r}")
    if len({file.path for file in plan.files}) < len(plan.files):
        raise ValueError("a file that is listed twice")
    for file in plan.files if plan.filter is None and plan.table is None else ():
        if file.counts != file.rows:
            raise ValueError(f"{file.path!r} with {sum(file.counts)} of {sum(file.rows)} rows")
    return plan


def _take(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{value!r:.80} is not of type {getattr(kind, '__name__', 'number')}")
    return value


def _take_all(kind: Any, values: Any) -> tuple[Any, ...]:
    return tuple(_take(kind, value) for value in _take(list, values))


def _take_numbers(values: Any) -> dict[str, float]:
    numbers = _take_all((int, float), [*_take(dict, values).values()])
    return dict(zip(values, numbers, strict=True))


def _load_table(parts: Any) -> PlannedTable | None:
    if parts is None:
        return None
    identity, name, root, files = _take_all(str, parts)
    return PlannedTable(identity, name, root, base64.b64decode(files, validate=True))


def _read_file(
    path: Any, stamp: Any, rows: Any, nbytes: Any, groups: Any, counts: Any
) -> PlannedFile:
    numbers = [_take_all(int, values) for values in (rows, nbytes, groups, counts)]
    if min((number for values in numbers for number in values), default=0) < 0:
        raise ValueError("a number of rows below 0")
    units = len(numbers[0])
    if [len(values) for values in numbers] not in ([units] * 4, [units, units, 0, units]):
        raise ValueError("other numbers of row groups")
    return PlannedFile(_take(str, path), _read_stamp(*_take(list, stamp)), *numbers)


def _read_stamp(size: Any, mtime: Any = None, etag: Any = None) -> Stamp:
    kinds = zip((size, mtime, etag), (int, (int, float), str), strict=True)
    return Stamp(*(None if value is None else _take(kind, value) for value, kind in kinds))


def read_plan(plan: Any) -> FilePlan:
    """Return the plan that a user gave, itself or its file."""
    return plan if isinstance(plan, FilePlan) else FilePlan.load(plan)
