"""Types of the arguments that a `Loader` takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

Framework: TypeAlias = Literal["torch", "jax", "numpy"]
Decoder: TypeAlias = Literal["pyarrow", "polars"]


class ArrowStreamExporter(Protocol):
    """A table, frame or stream: an object with the Arrow PyCapsule protocol for streams."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...


class ArrowArrayExporter(Protocol):
    """A record batch: an object with the Arrow PyCapsule protocol for arrays."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


class InterchangeFrame(Protocol):
    """A frame with the dataframe interchange protocol."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any: ...


class ScannableDataset(Protocol):
    """A dataset of pyarrow or Lance."""

    def scanner(self, *args: Any, **kwargs: Any) -> Any: ...


class ScannableTable(Protocol):
    """A table of Delta Lake or Iceberg."""

    def scan(self, *args: Any, **kwargs: Any) -> Any: ...


class TableScan(Protocol):
    """A scan of an Iceberg table."""

    def plan_files(self) -> Iterable[Any]: ...


class SavedPlan(Protocol):
    """What `Loader.plan` returns."""

    def save(self, path: str | os.PathLike[str]) -> None: ...


PlanLike: TypeAlias = str | os.PathLike[str] | SavedPlan
SourceLike: TypeAlias = (
    str
    | os.PathLike[str]
    | ArrowStreamExporter
    | ArrowArrayExporter
    | InterchangeFrame
    | ScannableDataset
    | ScannableTable
    | TableScan
    | Iterable[Any]  # of paths, of record batches
    | Callable[[], Any]  # makes an Arrow stream
)
"""What a `Loader` reads."""

BatchFunction: TypeAlias = "Callable[[pa.RecordBatch], Any]"
ColumnFunctions: TypeAlias = Mapping[str, Callable[..., Any]]  # each takes the array of a column
TransformArrowLike: TypeAlias = (
    "BatchFunction | ColumnFunctions | Sequence[BatchFunction | ColumnFunctions]"
)
"""What a `Loader` calls with the Arrow rows of a batch."""
