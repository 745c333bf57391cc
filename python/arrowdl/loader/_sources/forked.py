"""`Home`: the process with the threads that a source needs, for errors in forked children."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from arrowdl import _core

# Libraries whose objects run a query in threads of their own, by the module of their classes.
_ENGINES = {
    "_duckdb": "DuckDB",
    "duckdb": "DuckDB",
    "datafusion": "DataFusion",
    "deltalake": "deltalake",
    "adbc_driver_manager": "the ADBC driver",
    "ibis": "the backend of Ibis",
    "lance": "Lance",
    "pyarrow._flight": "Flight",
}
_READERS = ("RecordBatchReader", "ArrayReader", "ArrayStream", "ArrowArrayStreamHandle")


@dataclass(frozen=True)
class Home:
    """The process that has the threads of a source. A pickle is of the process that loads it."""

    source: str  # what it is, for people
    engine: str  # whose threads these are
    has_pickle: bool  # whether another process can open the source by itself
    process: int

    def __reduce__(self) -> tuple[Any, ...]:
        return make_home, (self.source, self.engine, self.has_pickle)

    def check(self) -> None:
        """Raise RuntimeError in a process that was forked from this one."""
        if os.getpid() == self.process:
            return
        other = (
            'multiprocessing_context="spawn", or use Loader(num_workers=)'
            if self.has_pickle
            else "give the Loader a function that opens the source in the process that calls it"
        )
        raise RuntimeError(
            f"process {self.process} opened this {self.source}, and process {os.getpid()} was "
            f"forked from it, without the threads of {self.engine}: reading here might wait for "
            f"them for ever. A Loader reads ahead without worker processes: give the DataLoader "
            f"num_workers=0, or {other}"
        )


def make_home(source: str, engine: str, has_pickle: bool) -> Home:
    """Return a `Home` that is this process."""
    return Home(source, engine, has_pickle, os.getpid())


def find_home(source: Any) -> Home | None:
    """Return this process, if what a user gave is read by threads of it; otherwise None."""
    kind = type(source)
    for base in kind.__mro__:
        for module, engine in _ENGINES.items():
            if f"{base.__module__}.".startswith(f"{module}."):
                return make_home(kind.__name__, engine, False)
    is_stream = isinstance(source, _core.DeviceStream) or kind.__name__ == "PyCapsule"
    if is_stream or any(base.__name__ in _READERS for base in kind.__mro__):
        return make_home(kind.__name__, "whatever makes its rows", False)
    return None


def find_home_of_files(filesystem: Any) -> Home | None:
    """Return this process, if a pyarrow file system reads by threads of another library."""
    while (inner := getattr(filesystem, "base_fs", None)) is not None:
        filesystem = inner
    handler = getattr(filesystem, "handler", None)
    if handler is None:
        return None
    root = type(handler).__module__.partition(".")[0]
    return make_home("dataset", _ENGINES[root], True) if root in _ENGINES else None
