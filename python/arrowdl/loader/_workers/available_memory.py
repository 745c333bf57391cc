"""How much memory is available: Linux grants what it lacks, and then kills a process for it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

# Left to the processes themselves, which go on while a worker waits.
RESERVE = 32 << 20
_UNLIMITED = "max"


def find_available(
    proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Estimate how many bytes this process can get: of the machine, and of its containers.

    Files that the kernel caches count as available, active ones by half, as in its own estimate
    (MemAvailable). So does swap space.

    Parameters
    ----------
    proc, cgroups : Path
        Where these file systems are mounted.

    Returns
    -------
    int, optional
        None if the system does not say.
    """
    try:
        machine = _read_table(proc / "meminfo")
        available = machine["MemAvailable:"]
    except (OSError, LookupError, ValueError):  # not Linux
        return None
    for folder in _find_cgroups(proc, cgroups):
        available = min(available, _read_cgroup(folder, machine["MemTotal:"]))
    return available + machine.get("SwapFree:", 0)


def _read_table(path: Path) -> dict[str, int]:
    """Read lines of a name and a number, which may be in kB."""
    rows = (line.split() for line in path.read_text().splitlines())
    return {name: int(value) << (10 if unit else 0) for name, value, *unit in rows}


def _find_cgroups(proc: Path, cgroups: Path) -> Iterator[Path]:
    """Yield the folders of this process's groups and of those that they are in."""
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = cgroups / ("memory" if controllers else "")
        # Of a container the path may be that of the host: then only the root is here.
        names = [name for name in path.split("/") if name]
        for count in range(len(names), -1, -1):
            yield root.joinpath(*names[:count])


def _read_cgroup(folder: Path, most: int) -> int:
    """Return the bytes that a group may still use, `most` if it has no limit."""
    for limit_name, usage_name, prefix in (
        ("memory.max", "memory.current", ""),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    ):
        try:
            limit = (folder / limit_name).read_text().strip()
            if limit == _UNLIMITED or int(limit) >= most:
                return most
            usage = int((folder / usage_name).read_text())
            stat = _read_table(folder / "memory.stat")
        except (OSError, ValueError):  # of another version, or not of this container
            continue
        inactive, active = (stat.get(f"{prefix}{kind}_file", 0) for kind in ("inactive", "active"))
        return max(0, int(limit) - usage + inactive + active // 2 + stat.get("slab_reclaimable", 0))
    return most


class MemoryGuard:
    """Refuses memory that the system would kill a process for."""

    def __init__(self) -> None:
        self._granted = 0

    def check(self, size: int) -> None:
        """Raise OSError (ENOMEM) if `size` bytes for a batch would leave too little.

        Memory is measured anew when a part of what was available is used.
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
