"""`Request`: what a Loader wants of a source, for what opens sources of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._storage.access import Access


@dataclass(frozen=True)
class Request:
    """What is read of a source, and how its files are reached."""

    columns: list[str] | None = None  # to read, in this order
    filter: Any = None  # an expression of pyarrow.dataset; for Lance, also a SQL string
    memory_map: bool = True  # whether local IPC files are mapped
    vocabulary: Vocabulary = field(default_factory=lambda: Vocabulary({}))
    # Files and row groups that cannot be read now are added. None: their errors are raised.
    skipped: list[Skipped] | None = None
    storage: Access = field(default_factory=Access)
    dtype: Any = None  # as of a Loader: files whose times differ in their units are read in it
    names_files: bool = False  # whether columns have paths of files in the storage
    plan: FilePlan | None = None  # of the files, which are then neither listed nor opened


def read_columns(columns: Any) -> list[str] | None:
    """Return the names that a user gave as `columns`; None for all columns.

    Raises TypeError if it is not a list of names, and ValueError if a name is listed twice.
    """
    if columns is None:
        return None
    if isinstance(columns, (str, Set, Mapping)) or not isinstance(columns, Iterable):
        rename = "; transform= can rename the tensors" if isinstance(columns, Mapping) else ""
        raise TypeError(
            f"columns={columns!r}: give a list of names, in the order of the batch's columns"
            + rename
        )
    names = list(columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"columns={names!r}: {name!r} is not a str")
        if names.count(name) > 1:
            raise ValueError(f'columns={names!r}: "{name}" is listed twice')
    return names
