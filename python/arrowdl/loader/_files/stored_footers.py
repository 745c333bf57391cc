"""`read_stored_footers`: what the order of rows needs of the Parquet files of a store."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from arrowdl import _core
from arrowdl.loader._files.footers import Footers
from arrowdl.loader._progress import OpeningLine
from arrowdl.loader._storage.threads import FOOTERS_AT_ONCE, map_in_threads

if TYPE_CHECKING:
    from arrowdl.loader._storage.footers import FooterHandler

_STAMP = array("q", [-1, 0, 0]).tobytes()  # the store compares its files itself
_UNKNOWN = (b"", b"", b"")


def read_stored_footers(store: FooterHandler | None, paths: Sequence[str]) -> Footers:
    """Read the footers of files, many at a time; those that pyarrow has to look at are left out.

    So are those that cannot be read: pyarrow says why.
    """
    if store is None:
        return Footers()

    def read(path: str | None) -> tuple[bytes, bytes, bytes]:
        with suppress(Exception):
            if path is not None:
                return _core.parse_parquet_footer(store.read_footer(path) or b"") or _UNKNOWN
            store.open_ahead(paths[0])  # its rows come next, in order
        return _UNKNOWN

    line = OpeningLine("reads the footers", len(paths))
    footers = map_in_threads(
        read, [None, *paths], FOOTERS_AT_ONCE, lambda done: line(min(done, len(paths)))
    )
    return Footers(
        paths,
        [
            (_STAMP, array("q", [len(rows) // 8]).tobytes(), rows, nbytes, [schema])
            for rows, nbytes, schema in footers[1:]
        ],
    )
