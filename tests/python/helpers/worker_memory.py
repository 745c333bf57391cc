"""Counts the memory that worker processes of a Loader share with the training, by Linux's /proc."""

from __future__ import annotations

import os
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
HAS_PROC = SHARED_MEMORY.is_dir() and Path("/proc/self/maps").exists()
# As memfd_create and, where it is refused, shm_open name it.
_NAMES = ("/memfd:arrowdl-batch", "/dev/shm/arrowdl-")


def count_mapped(process: int | None = None) -> int:
    """Slots that a process, by default this one, has mapped."""
    maps = Path("/proc", str(process or os.getpid()), "maps").read_text().splitlines()
    return sum(any(name in line for name in _NAMES) for line in maps)


def count_open(process: int | None = None) -> int:
    """Descriptors of slots that a process has open."""
    count = 0
    for file in Path("/proc", str(process or os.getpid()), "fd").iterdir():
        try:
            count += os.readlink(file).startswith(_NAMES)
        except FileNotFoundError:  # the folder's own
            continue
    return count


def list_names() -> set[str]:
    """Names of ours in the file system of shared memory."""
    return {path.name for path in SHARED_MEMORY.glob("arrowdl-*")}
