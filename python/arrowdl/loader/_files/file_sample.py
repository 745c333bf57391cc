"""What a state says of the files: how many there are, and some of them, whatever their number."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

_MOST_NAMES = 8
_LONGEST = 40  # characters of a name, of which the last ones are the number of a file
_MOST_SHOWN = 3


def sample_files(rows: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """Return the numbers of files and rows, and the rows of some names; empty without files.

    The names are those with the least hashes. So two samples tell of each of their names whether
    the other files have it, also if there are thousands.
    """
    files: dict[str, int] = {}
    for path, count in rows:
        files[path] = files.get(path, 0) + count
    if not files:
        return {}
    names: dict[str, int] = {}
    for path, count in files.items():
        name = os.path.basename(path)[-_LONGEST:]
        names[name] = names.get(name, 0) + count
    chosen = heapq.nsmallest(_MOST_NAMES, names, key=_hash)
    return {
        "files": len(files),
        "rows": sum(files.values()),
        "names": {name: names[name] for name in chosen},
    }


def compare_files(
    then: Any,  # what `sample_files` returned; what a state has may be anything
    now: Mapping[str, Any],
) -> str:
    """Say which files came, went or changed, as far as two samples tell; empty without these."""
    if not now or not _is_sample(then):
        return ""
    theirs, ours = then["names"], now["names"]
    changes = [
        *_show("went", _list_missing(theirs, ours)),
        *_show("came", _list_missing(ours, theirs)),
        *_show(
            "changed",
            [
                f"{name} ({theirs[name]:,} rows, here {ours[name]:,})"
                for name in theirs
                if name in ours and theirs[name] != ours[name]
            ],
        ),
    ]
    before, after = (
        f"{one['files']:,} file{'s' * (one['files'] != 1)} with {one['rows']:,} rows"
        for one in (then, now)
    )
    if before != after:
        text = f"It had {before}, and this Loader has {after}"
    else:
        text = f"Both have {before}"
        if not changes and len(theirs) < _MOST_NAMES:
            changes = ["their row groups, columns, types or filter= differ"]
    return ": ".join(filter(None, [text, "; ".join(changes)]))


def _is_sample(sample: Any) -> bool:
    if not isinstance(sample, Mapping) or not isinstance(sample.get("names"), Mapping):
        return False
    numbers = [sample.get("files"), sample.get("rows"), *sample["names"].values()]
    return all(type(one) is int for one in numbers) and all(
        isinstance(name, str) for name in sample["names"]
    )


def _hash(name: str) -> tuple[int, str]:
    return crc32(name.encode(errors="surrogateescape")), name


def _list_missing(names: Mapping[str, int], others: Mapping[str, int]) -> list[str]:
    """List the names that are certainly not among the files of which `others` are a sample."""
    last = max(map(_hash, others), default=None) if len(others) >= _MOST_NAMES else None
    return [name for name in names if name not in others and (last is None or _hash(name) < last)]


def _show(what: str, names: Sequence[str]) -> list[str]:
    more = [f"{len(names) - _MOST_SHOWN} more"] if len(names) > _MOST_SHOWN else []
    return [f"{', '.join([*names[:_MOST_SHOWN], *more])} {what}"] if names else []
