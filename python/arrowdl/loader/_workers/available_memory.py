"""How much memory is available: Linux grants what it lacks, and then kills a process for it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

# Left to the processes themselves, which go on while a worker waits.
RESERVE = 32 << 20
_UNLIMITED = 1 << 60  # version 1 writes a number above


def find_available(
    proc: Path = Path("/proc"),  # where these file systems are mounted
    cgroups: Path = Path("/sys/fs/cgroup"),
) -> int | None:
    """Estimate how many bytes this process can get: of the machine, and of its containers.

    Files that the kernel caches count as available, and so does swap space that may be used. None
    if the system does not say.
    """
    try:
        machine = _read_table(proc / "meminfo")
        available = machine["MemAvailable:"]
    except (OSError, LookupError, ValueError):  # not Linux
        return None
    swap = machine.get("SwapFree:", 0)
    rooms = (_read_cgroup(folder, swap) for folder in _find_cgroups(proc, cgroups))
    return min([available + swap, *(room for room in rooms if room is not None)])


def _read_table(path: Path) -> dict[str, int]:
    """Read lines of a name and a number, which may be in kB."""
    rows = (line.split() for line in path.read_text().splitlines())
    return {name: int(value) << (10 if unit else 0) for name, value, *unit in rows}


def _find_cgroups(proc: Path, cgroups: Path) -> Iterator[Path]:
    """Yield the folders of this process's groups and of those that they are in."""
    try:
        lines = [line.split(":", 2) for line in (proc / "self/cgroup").read_text().splitlines()]
    except (OSError, ValueError):
        return
    for line in lines:
        if len(line) != 3:
            continue
        _, controllers, path = line
        if controllers and "memory" not in controllers.split(","):
            continue
        root = cgroups / ("memory" if controllers else "")
        # The path of a container may be that of the host: then only the root is here.
        names = [name for name in path.split("/") if name]
        for count in range(len(names), -1, -1):
            yield root.joinpath(*names[:count])


def _read_cgroup(folder: Path, swap: int) -> int | None:
    """Return the bytes that a group may still use, with `swap` bytes on the machine, if known."""
    room = _read_room(folder, "memory.max", "memory.current", "")
    if room is not None:
        swap_left = _read_rest(folder, "memory.swap.max", "memory.swap.current")
        return room + (swap if swap_left is None else min(swap, max(0, swap_left)))
    room = _read_room(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
    if room is None:
        return None
    # Version 1 has a limit of memory and swap together.
    swap_left = _read_rest(folder, "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes")
    return room + (swap if swap_left is None else min(swap, max(0, swap_left - room)))


def _read_room(folder: Path, limit: str, usage: str, prefix: str) -> int | None:
    """Return what is left of a limit if the group's cached files go."""
    room = _read_rest(folder, limit, usage)
    if room is None:
        return None
    try:
        stat = _read_table(folder / "memory.stat")
    except (OSError, ValueError):
        return None
    kinds = (f"{prefix}inactive_file", f"{prefix}active_file", "slab_reclaimable")
    return max(0, room + sum(stat.get(kind, 0) for kind in kinds))


def _read_rest(folder: Path, limit: str, usage: str) -> int | None:
    """Return the limit without the usage; None without a limit that can be read."""
    try:
        bound = (folder / limit).read_text().strip()
        if bound == "max" or int(bound) >= _UNLIMITED:
            return None
        return int(bound) - int((folder / usage).read_text())
    except (OSError, ValueError):  # of another version, or not of this container
        return None


class MemoryGuard:
    """Refuses memory that the system would kill a process for."""

    def __init__(self) -> None:
        self._granted = 0

    def check(self, size: int) -> None:
        """Raise OSError (ENOMEM) if `size` bytes for a batch would leave too little.

        Memory is measured again when a part of what was available is used.
        """
        if size > self._granted:
            available = find_available()
            if available is None:
                return
            # The worker makes the next batch, of about that size, while this one is on its way.
            if available < 2 * size + RESERVE:
                raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
            self._granted = size + (available - 2 * size) // 64
        self._granted -= size
