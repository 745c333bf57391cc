"""`UnitSizes`: the bytes of the columns that are read, and what scans of them may hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from arrowdl.loader._parquet.scan_limits import SCAN_BYTES, ScanLimits, count_ready, plan_batches


@dataclass(frozen=True)
class UnitSizes:
    """The memory that the columns which are read take in each unit."""

    nbytes: Sequence[float]  # of each unit; 0 if unknown
    row_bytes: float  # of a row where rows are largest; 0 if unknown
    columns: int  # the number of the columns
    limits: ScanLimits  # of the scans of a reader
    share: float  # of the bytes of the files

    def divide(self, readers: int) -> UnitSizes:
        """Return the sizes for each of `readers`, which share the memory."""
        return replace(self, limits=self.limits.divide(readers)) if readers > 1 else self

    def cut(self, units: Sequence[int], paths: Sequence[str]) -> list[list[int]]:
        """Cut `units` into parts for one scan each; `paths` are those of their files."""
        return self.limits.cut(units, [self.nbytes[unit] for unit in units], paths)

    def measure_scan(self, units: Sequence[int]) -> float:
        """Return the bytes of a scan of some units."""
        sizes = [self.nbytes[unit] for unit in units]
        return sum(sizes) if all(sizes) else SCAN_BYTES

    def plan_scan(self, *, joins: bool = False) -> dict[str, Any]:
        """Return the options of a scanner; see `plan_batches`."""
        limits = self.limits
        rows, readahead = plan_batches(
            self.row_bytes, self.columns, limits.ahead, limits.batch_bytes, joins=joins
        )
        return {"batch_size": rows, "batch_readahead": readahead, "fragment_readahead": 2}

    def count_ready(self) -> int:
        """Count the batches that may be ready, of row groups that are read without a scanner."""
        return count_ready(self.row_bytes, self.columns, self.limits.ahead, self.limits.batch_bytes)
