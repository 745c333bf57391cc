"""This process among those that share the rows."""

from __future__ import annotations

import os
import sys


def find_world(framework: str) -> tuple[int, int]:
    torch = sys.modules.get("torch")
    if (
        torch is not None
        and torch.distributed.is_available()
        and torch.distributed.is_initialized()
    ):
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return _read_environment(os.environ["RANK"], os.environ["WORLD_SIZE"])
    if framework == "jax":
        import jax

        return jax.process_index(), jax.process_count()
    return 0, 1


def _read_environment(rank: str, world_size: str) -> tuple[int, int]:
    if rank.isdecimal() and world_size.isdecimal() and int(rank) < int(world_size):
        return int(rank), int(world_size)
    raise ValueError(
        f"the environment has RANK={rank!r} and WORLD_SIZE={world_size!r}: expected a rank from 0 "
        "on and how many there are; rank= and world_size= of the Loader come before them"
    )
