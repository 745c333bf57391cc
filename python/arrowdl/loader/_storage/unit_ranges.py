"""`UnitRanges`: the bytes of a file that one unit needs, as the ranges that are requested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from arrowdl.loader._storage.held_ranges import Range

# Ranges that are nearer are read as one: bytes that arrive within some milliseconds, of the tens
# that a request waits for its answer.
GAP_BYTES = 2**20
# The bytes of a request: some times what arrives while one waits for its answer, at 100 MB/s.
# Larger ones would be hardly faster, and the first rows later.
RANGE_BYTES = 2**22


class UnitRanges(NamedTuple):
    """What is read of the file at `path` for one unit."""

    path: str
    ranges: Sequence[Range]


def join_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Join ranges that are near to each other, and cut those that are large.

    A range is cut between two of the given ones where possible, so that each of these is in one.
    """
    joined: list[Range] = []
    for offset, nbytes in sorted(ranges):
        if nbytes <= 0:
            continue
        if joined:
            begin, before = joined[-1]
            end = max(begin + before, offset + nbytes)
            if offset - begin - before <= GAP_BYTES and end - begin <= RANGE_BYTES:
                joined[-1] = Range(begin, end - begin)
                continue
            offset, nbytes = max(offset, begin + before), end - max(offset, begin + before)
        parts = -(-nbytes // RANGE_BYTES)
        cuts = [offset + nbytes * part // parts for part in range(parts + 1)]
        joined += [Range(begin, end - begin) for begin, end in pairwise(cuts)]
    return joined
