"""`ScanLimits`: what a scan of files reads ahead at most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

# Bytes that one scan reads, and bytes of each of its batches, unless a row group or row is larger.
# A scan reads ahead until it holds a gigabyte, however little is needed: so it gets little to read.
SCAN_BYTES = 2**27
BATCH_BYTES = 2**23
_LEAST_BATCH_BYTES = 2**20
_JOINED_BYTES = 2**20
_LEAST_JOINED_BYTES = 2**18

# Files that a scan of pyarrow's reads: it keeps their footers, ten times as large as in the files.
_SCAN_FILES = 256

# Decoding more rows at once is hardly faster, and takes more memory.
DECODE_ROWS = 131_072
# Each column of a batch costs some microseconds: batches of many narrow columns are larger.
_WIDE_BATCH_ROWS = 8_192
_NARROW_COLUMN = 64
_SMALL_UNIT = 2**20
# Threads that open small files: more of them wait for each other, for the interpreter lock.
_SMALL_SCANS = 2
# A scan of local files has at most this many times the units of all scans before it: the work for
# each of its files before it begins delays its first rows.
_GROWTH = 4


class ScanLimits(NamedTuple):
    """What one scan reads at most, and how many are open if they are small.

    If this is 1, one thread reads one scan after another.
    """

    nbytes: int
    files: float
    scans: int
    readers: int = 1  # that share the memory of these scans
    grows: bool = False  # whether the first scan is one unit if its size is known
    # after which a scan ends where a file does; if not infinite, `scans` threads read in turn
    file_bytes: float = math.inf

    @property
    def ahead(self) -> int:
        """Batches that a scan decodes in parallel."""
        return max(1, SCAN_BYTES // BATCH_BYTES // self.readers)

    @property
    def batch_bytes(self) -> int:
        """Bytes of a batch: each of several readers holds some."""
        return max(_LEAST_BATCH_BYTES, BATCH_BYTES // self.readers)

    @property
    def joined_bytes(self) -> int:
        """Bytes of small files that become one batch: all readers wait for their first."""
        return max(_LEAST_JOINED_BYTES, _JOINED_BYTES // self.readers)

    def divide(self, readers: int) -> ScanLimits:
        """Return the limits of each of `readers`."""
        scans = max(2, self.scans // readers)
        nbytes = max(min(self.nbytes, 2**20), self.nbytes // readers)
        return self._replace(nbytes=nbytes, scans=scans, readers=readers, file_bytes=math.inf)

    def cut(
        self, units: Sequence[int], sizes: Sequence[float], paths: Sequence[str]
    ) -> list[list[int]]:
        """Cut `units`, each of a size in bytes and of a file, into parts for one scan each."""
        scans: list[list[int]] = []
        files: set[str] = set()
        held = 0.0
        most: float = 0
        for i, (unit, size, path) in enumerate(zip(units, sizes, paths, strict=True)):
            limit = self.nbytes if path in files else min(self.nbytes, self.file_bytes)
            files.add(path)
            if (
                not scans
                or held + size > limit
                or len(files) > self.files
                or len(scans[-1]) == most
            ):
                # Each of several readers first needs one row group, and all wait for each other.
                held = float(self.nbytes) if self.readers > 1 and not scans else 0.0
                most = max(1, _GROWTH * i) if self.grows and size > 0 else math.inf
                scans.append([])
                files = {path}
            scans[-1].append(unit)
            held += size
        return scans

    def has_room(self, opened: Sequence[float], nbytes: float) -> bool:
        """Whether a scan of `nbytes` may start beside those that are open: one may always.

        Two scans of a single reader may, so that the next row group is decoded ahead, however
        large.
        """
        if len(opened) < (2 if self.readers == 1 else 1):
            return True
        is_small = sum(opened) + nbytes <= 2 * SCAN_BYTES / self.readers
        return is_small and len(opened) < self.scans


LOCAL = ScanLimits(SCAN_BYTES, math.inf, 2, grows=True)
# Row groups that are read without a scanner: a thread for each scan. pyarrow decodes their columns
# in parallel; several scans take more time of the CPU for the same rows.
ROW_GROUPS = ScanLimits(SCAN_BYTES // 8, math.inf, 2, grows=True)
# A scan may open one file after another, as it does on a file system in Python.
REMOTE = ScanLimits(SCAN_BYTES // 4, 1, 8)
# Row groups that were fetched: small scans begin early, and release their bytes early.
FETCHED = ScanLimits(SCAN_BYTES // 16, 1, 8)


def choose_limits(
    # bytes of each unit, of row groups that are read without a scanner
    sizes: Sequence[float] | None,
    *,
    is_local: bool,  # whether the files are on the local file system
    is_fetched: bool,  # whether row groups are fetched ahead, over a network
    largest_share: float,  # the share of the bytes that the largest column has
    decoder: str = "pyarrow",  # what decodes most columns
) -> ScanLimits:
    """Return the limits of the scans of a dataset."""
    if not is_local:
        return FETCHED if is_fetched else REMOTE
    if sizes is None:
        return LOCAL._replace(files=_SCAN_FILES)
    import pyarrow as pa

    cores = pa.cpu_count()
    if sum(sizes) < _SMALL_UNIT * len(sizes):
        return LOCAL._replace(scans=min(_SMALL_SCANS, cores), file_bytes=_JOINED_BYTES)
    if decoder == "polars":  # it decodes a row group in one thread, pyarrow a column
        return ROW_GROUPS._replace(scans=cores)
    if max(sizes, default=0.0) < ROW_GROUPS.nbytes:
        cores -= 1  # the training's; larger row groups are decoded into cold memory anyway
    return ROW_GROUPS._replace(scans=max(1, math.ceil(cores * largest_share)))


def count_ready(row_bytes: float, columns: int, ahead: int, batch_bytes: int = BATCH_BYTES) -> int:
    """Count the batches that may be ready, of row groups that are read without a scanner."""
    rows, _ = plan_batches(row_bytes, columns, ahead, batch_bytes, joins=True)
    return max(1, min(ahead, int(ahead * batch_bytes / 2 / max(batch_bytes, rows * row_bytes))))


def count_batch_rows(
    row_bytes: float, columns: int, budget: int, batch_bytes: int = BATCH_BYTES
) -> int:
    """Count the rows of a batch of a scan that holds about `budget` bytes of batches."""
    rows = batch_bytes / max(1.0, row_bytes)
    if row_bytes < _NARROW_COLUMN * columns:
        rows = max(rows, min(_WIDE_BATCH_ROWS, budget / 4 / max(1.0, row_bytes)))
    return max(1, min(DECODE_ROWS, int(rows)))


def plan_batches(
    row_bytes: float,
    columns: int,
    ahead: int,  # batches of `batch_bytes` that may be decoded in parallel
    batch_bytes: int = BATCH_BYTES,
    *,
    # whether the scanner decodes row groups as a whole, as of Parquet files: their number is that
    # of the rows ahead, and small batches would only be slices, each of which takes time
    joins: bool = False,
) -> tuple[int, int]:
    """Return the rows of the batches of a scan, and how many it reads ahead."""
    budget = ahead * batch_bytes
    rows = count_batch_rows(row_bytes, columns, budget, batch_bytes)
    readahead = max(1, int(budget / max(batch_bytes, rows * row_bytes)))
    if not joins:
        return rows, readahead
    joined = max(rows, min(DECODE_ROWS, rows * readahead))
    return joined, max(1, rows * readahead // joined)
