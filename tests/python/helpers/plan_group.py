"""A double of torch's process group, for plans that ranks share."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest


def share_plan(group: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give `open_shared` a process group that is a double."""

    class Torch:
        distributed = group

    monkeypatch.setitem(sys.modules, "torch", Torch)


class Group:
    """A double of torch.distributed, of one rank of two."""

    def __init__(self, rank: int, told: list[Any]) -> None:
        self.rank, self.told = rank, told

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def get_world_size(self) -> int:
        return 2

    def get_rank(self) -> int:
        return self.rank

    def broadcast_object_list(self, objects: list[Any], src: int) -> None:
        if self.rank == src:
            self.told += pickle.loads(pickle.dumps(objects))
        else:
            objects[:] = self.told
