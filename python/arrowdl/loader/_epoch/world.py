"""Rank and world size of this process."""

from __future__ import annotations

import os
import sys


def find_world(framework: str) -> tuple[int, int]:
    """Return rank and world size.

    They come from ``torch.distributed`` if it is initialised, then from the variables ``RANK`` and
    ``WORLD_SIZE``, then from JAX if `framework` is ``"jax"``; otherwise they are 0 and 1.

    Raises ValueError if the variables are not rank and world size.
    """
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
        f"the environment has RANK={rank!r} and WORLD_SIZE={world_size!r}: expected a rank, from "
        "0, and the number of ranks; the Loader's ranks=Ranks(rank, world_size) takes precedence"
    )
