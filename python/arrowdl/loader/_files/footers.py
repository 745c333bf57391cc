"""`read_footers`: what the order of rows needs of local Parquet files, without pyarrow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from arrowdl import _core
from arrowdl.loader._files.stamps import FileStamps, Stamp
from arrowdl.loader._progress import OpeningLine
from arrowdl.loader._storage.threads import FILES_AT_ONCE, map_in_threads

# So many are read by one call: some 1 ms if they are in the page cache.
_TOGETHER = 64


class Footer(NamedTuple):
    """What the footer of a local Parquet file says of its rows."""

    stamp: Stamp  # of the file that was open
    rows: tuple[int, ...]  # of each row group
    nbytes: tuple[int, ...]  # of each row group, uncompressed
    schema: bytes  # equal for files with equal columns


NO_FOOTERS: Mapping[str, Footer] = MappingProxyType({})


def read_footers(paths: Sequence[str], stamps: FileStamps) -> dict[str, Footer]:
    """Read the footers of files; those that pyarrow has to look at are left out.

    `stamps` gets the stamps of the files.
    """
    parts = [paths[i : i + _TOGETHER] for i in range(0, len(paths), _TOGETHER)]
    line = OpeningLine("reads the footers", len(paths))
    read = map_in_threads(
        _core.read_parquet_footers,
        parts,
        min(FILES_AT_ONCE, 2 * (os.cpu_count() or 1)),
        lambda done: line(min(done * _TOGETHER, len(paths))),
    )
    schemas: dict[bytes, bytes] = {}
    footers = {}
    for path, footer in zip(paths, (one for part in read for one in part), strict=True):
        if footer is not None:
            size, mtime, inode, rows, nbytes, schema = footer
            stamp = Stamp(size, mtime, inode or None)
            footers[path] = Footer(stamp, rows, nbytes, schemas.setdefault(schema, schema))
    stamps.add_stamps({path: footer.stamp for path, footer in footers.items()})
    return footers
