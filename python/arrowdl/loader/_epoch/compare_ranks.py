"""`Meeting`, `Comparison`: what ranks skip, and whether they could read the same rows.

They say it by the store of ``torch.distributed``. Nothing waits: a rank that begins an epoch writes
what it knows, and looks whether all have. A rank that reads alone, as for a sample of a batch, does
not wait for the others.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from arrowdl._lifecycle import in_forked_child

_MOST_LOOKS = 1_000  # then some rank does not read this epoch
_begun: Counter[tuple[str, int]] = Counter()  # meetings, by their subject and the rank
_inherited: Any = None  # the store of the process that this one was forked from


class Meeting:
    """Where the ranks that read one epoch write what the others are to know."""

    def __init__(
        self,
        about: Mapping[str, Any],  # what is the same on all ranks, of JSON types: names the epoch
        rank: int,
        world_size: int,
    ) -> None:
        self.rank, self.world_size = rank, world_size
        self.name = ""
        self.store = find_store(rank, world_size)  # of the process group; None without one
        if self.store is None:
            return
        text = json.dumps(about, sort_keys=True, default=repr)
        subject = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        self.name = f"arrowdl/{subject}/{_begun[subject, rank]}"  # with which keys begin
        _begun[subject, rank] += 1

    def count_skipped(self, number: int, rows: int) -> int | None:
        """Add to the rows that were skipped in a pass; return those of all ranks, if known."""
        if self.store is None:
            return None
        try:
            return int(self.store.add(f"{self.name}/skipped {number}", rows))
        except RuntimeError:  # the process that has the store is gone, which others say
            self.store = None
            return None


class Comparison:
    """What the ranks say about one epoch."""

    def __init__(
        self,
        meeting: Meeting,
        unread: str,  # what could not be read, for people; empty for nothing
    ) -> None:
        self._lost = unread
        self._rank = meeting.rank
        self._looks = 0
        self._store = meeting.store
        self._keys = [f"{meeting.name}/{i}" for i in range(meeting.world_size)]
        if self._store is None:
            return
        try:
            self._store.set(self._keys[self._rank], unread)
        except RuntimeError:
            self._store = None

    def check(self) -> None:
        """Raise RuntimeError if another rank says something else."""
        store = self._store
        if store is None:
            return
        self._looks += 1
        try:
            if not store.check(self._keys):
                if self._looks >= _MOST_LOOKS:
                    self._store = None
                return
            told = [store.get(key).decode() for key in self._keys]
        except RuntimeError:
            self._store = None
            return
        self._store = None
        for rank, other in enumerate(told):
            if other != self._lost:
                raise RuntimeError(
                    f'Loader(on_error="skip"): {_describe(rank, other)}, and '
                    f"{_describe(self._rank, self._lost)}: their steps would have other rows, and "
                    "one might have more steps. Restore the files on all ranks, or leave those "
                    "that are damaged on one out of the paths of all"
                )


def _describe(rank: int, unread: str) -> str:
    return f"rank {rank} could not read {unread}" if unread else f"rank {rank} could read all rows"


def find_store(rank: int, world_size: int) -> Any:
    """Return the store of the process group that has these ranks; None without one."""
    torch = sys.modules.get("torch")
    if torch is None or world_size == 1 or not torch.distributed.is_available():
        return None
    group = torch.distributed
    if not group.is_initialized():
        return None
    find = getattr(group.distributed_c10d, "_get_default_store", None)
    if find is None or (group.get_rank(), group.get_world_size()) != (rank, world_size):
        return None
    store = find()
    # Both processes would read the answers to each other's requests.
    return None if store is _inherited else store


def _note_inherited() -> None:
    global _inherited
    torch = sys.modules.get("torch")
    group = getattr(torch, "distributed", None)
    if group is not None and group.is_available() and group.is_initialized():
        find = getattr(group.distributed_c10d, "_get_default_store", None)
        _inherited = None if find is None else find()


in_forked_child(_note_inherited)
