"""Tells the files of a state from files of the same names that were written since."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from arrowdl.loader._storage.readers import Stamp, strip_etag


def describe_files(stamps: Iterable[Stamp]) -> list[str]:
    """Return a digest of the sizes of files, and one of their ETags; empty if some are unknown.

    Times are left out: a copy of the files has others.
    """
    paths = list(stamps)
    return [
        _digest([stamp.size for stamp in paths]),
        _digest([strip_etag(stamp.etag) for stamp in paths]),
    ]


def warn_of_rewrites(
    then: Any,  # what `describe_files` returned; what a state has may be anything
    now: Sequence[str],
) -> None:
    """Log a warning if the files of a state are others than those of its Loader."""
    if not isinstance(then, (list, tuple)) or len(then) != len(now):
        return
    kinds = zip(("sizes", "ETags"), then, now, strict=True)
    others = [kind for kind, before, after in kinds if before and after and before != after]
    if others:
        logging.getLogger("arrowdl.loader").warning(
            "the files have other %s than those of the state, and as many rows: if they were "
            "rewritten with other rows, this epoch loses some and reads others",
            " and ".join(others),
        )


def _digest(values: Sequence[Any]) -> str:
    if not values or None in values:
        return ""
    return hashlib.blake2b(repr(values).encode(), digest_size=4).hexdigest()
