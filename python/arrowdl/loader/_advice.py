"""`advise`: what to do about the part of an epoch that takes the time."""

from __future__ import annotations

from collections.abc import Set
from typing import Literal

Part = Literal["source", "decode", "conversion", "transform", "copy", "start", "consumer"]


def advise(
    part: Part | Literal["storage"],  # that takes the most time, or what `source` waits for
    in_use: Set[str],  # options that the Loader has
) -> str:
    """Say what to do for more batches in a second."""
    if part == "consumer":
        return "the training itself takes the time, and the Loader is not the problem"
    if part == "transform":
        return _advise_transform(in_use)
    text, ways = _WAYS[part]
    return f"{text}: {_join([way for condition, way in ways if _holds(condition, in_use)])}"


def _holds(condition: str, in_use: Set[str]) -> bool:
    """Whether an option is not in use; after a plus sign, whether it is."""
    return condition[1:] in in_use if condition.startswith("+") else condition not in in_use


_COLUMNS = ("", "read fewer columns (columns=)")
_PREFETCH = ("prefetch", "set prefetch=")
_WAYS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "storage": (
        "reading waits for storage",
        [
            ("cache", "keep the files nearer (Storage.cache)"),
            _COLUMNS,
            ("", "write larger row groups"),
        ],
    ),
    "source": (
        "the training waits for rows",
        [
            _PREFETCH,
            _COLUMNS,
            ("+shuffle", "give the shuffle a smaller buffer (Shuffle.buffer_size)"),
        ],
    ),
    "decode": (
        "decoding takes the time (of local files with the waits for the disk)",
        [_COLUMNS, ("", "write files that decode faster (zstd, uncompressed Arrow IPC)")],
    ),
    "conversion": (
        "the training waits for tensors",
        [
            ("ragged", "of columns of lists, ragged='offsets' is quicker than 'jagged'"),
            ("", "leave out columns that it does not need (columns=)"),
        ],
    ),
    "copy": (
        "copies to the device take the time",
        [("", "copy fewer or smaller columns (columns=, dtype=)"), _PREFETCH],
    ),
    "start": (
        "the training waits for worker processes to start, which stay for the next epochs",
        [("", "use fewer (num_workers=)"), ("", "use threads (num_threads=)")],
    ),
}


def _advise_transform(in_use: Set[str]) -> str:
    called = [name for name in ("transform", "transform_arrow") if name in in_use] or ["transform"]
    ways = ["use whole-batch operations"]
    if "num_workers" in in_use:
        ways.append("give it more num_workers=")
    elif "num_threads" in in_use and "transform_arrow" not in in_use:
        ways += ["give it more num_threads=", "use num_workers= instead"]
    else:
        if "transform_arrow" not in in_use:
            ways += ["call it ahead of the training as transform_arrow=", "set num_threads="]
        ways.append("set num_workers=")
    return f"the training waits for {'= and '.join(called)}=: {_join(ways)}"


def _join(ways: list[str]) -> str:
    *others, last = ways
    return f"{', '.join(others)}, or {last}" if others else last
