"""Types of the arguments that a `Loader` takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from arrowdl.typing import SupportsArrowArray, SupportsArrowStream, SupportsDataFrame

if TYPE_CHECKING:
    import pyarrow as pa

Framework: TypeAlias = Literal["torch", "jax", "numpy"]
Decoder: TypeAlias = Literal["pyarrow", "polars"]


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
    | SupportsArrowStream
    | SupportsArrowArray
    | SupportsDataFrame
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
