"""What the Loader takes for available memory, and that it asks for no more."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from arrowdl.loader._workers import available_memory
from arrowdl.loader._workers.available_memory import RESERVE, MemoryGuard, find_available
from arrowdl.loader._workers.no_room import NoRoomError
from arrowdl.loader._workers.shared_memory import SlotPool

KIB, MIB, GIB = 2**10, 2**20, 2**30
MEMINFO = f"MemTotal: {8 * GIB // KIB} kB\nMemAvailable: {5 * GIB // KIB} kB\nHugePages_Total: 0\n"
SWAP = MEMINFO + f"SwapFree: {GIB // KIB} kB\n"
UNLIMITED = 9223372036854771712


def write(root: Path, files: dict[str, str | int]) -> tuple[Path, Path]:
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}".rstrip() + "\n")
    return root / "proc", root / "cg"


def group_2(folder: str, limit: str | int, used: int, **stat: int) -> dict[str, str | int]:
    lines = "anon 0\n" + "".join(f"{name} {value}\n" for name, value in stat.items())
    return {
        f"{folder}/memory.max": limit,
        f"{folder}/memory.current": used,
        f"{folder}/memory.stat": lines,
    }


def group_1(folder: str, limit: int, used: int, **stat: int) -> dict[str, str | int]:
    lines = "anon 0\n" + "".join(
        f"total_{name} {value}\n{name} 0\n" for name, value in stat.items()
    )
    return {
        f"{folder}/memory.limit_in_bytes": limit,
        f"{folder}/memory.usage_in_bytes": used,
        f"{folder}/memory.stat": lines,
    }


CASES: dict[str, tuple[dict[str, str | int], int]] = {
    "no groups": ({}, 5 * GIB),
    "swap": ({"proc/meminfo": SWAP}, 6 * GIB),
    "no limit": ({"proc/self/cgroup": "0::/a", **group_2("cg/a", "max", GIB)}, 5 * GIB),
    "a limit": ({"proc/self/cgroup": "0::/a", **group_2("cg/a", 3 * GIB, GIB)}, 2 * GIB),
    "of a group above": (
        {
            "proc/self/cgroup": "0::/a/b",
            **group_2("cg/a", 2 * GIB, GIB),
            **group_2("cg/a/b", 3 * GIB, 0),
        },
        GIB,
    ),
    "cached files": (
        {
            "proc/self/cgroup": "0::/",
            **group_2("cg", GIB, GIB, inactive_file=9, active_file=8, shmem=7, slab_reclaimable=1),
        },
        18,
    ),
    "above its limit": ({"proc/self/cgroup": "0::/a", **group_2("cg/a", MIB, GIB)}, 0),
    "version 1": (
        {
            "proc/self/cgroup": "9:cpu,cpuacct:/x\n4:memory:/a\n0::/",
            **group_1("cg/memory", UNLIMITED, GIB),
            **group_1("cg/memory/a", GIB, GIB, inactive_file=9, active_file=8),
        },
        17,
    ),
    "swap that the group may not use": (
        {
            "proc/meminfo": SWAP,
            "proc/self/cgroup": "0::/a",
            **group_2("cg/a", 2 * GIB, GIB),
            "cg/a/memory.swap.max": 0,
            "cg/a/memory.swap.current": 0,
        },
        GIB,
    ),
    "swap that the group may use": (
        {
            "proc/meminfo": SWAP,
            "proc/self/cgroup": "0::/a",
            **group_2("cg/a", 2 * GIB, GIB),
            "cg/a/memory.swap.max": 3 * MIB,
            "cg/a/memory.swap.current": MIB,
        },
        GIB + 2 * MIB,
    ),
    "swap of version 1": (
        {
            "proc/meminfo": SWAP,
            "proc/self/cgroup": "4:memory:/a",
            **group_1("cg/memory/a", 2 * GIB, GIB),
            "cg/memory/a/memory.memsw.limit_in_bytes": 2 * GIB,
            "cg/memory/a/memory.memsw.usage_in_bytes": GIB,
        },
        GIB,
    ),
    "lines of another kind": ({"proc/self/cgroup": "\n0::\nx\n"}, 5 * GIB),
    "the path of a host": (
        {"proc/self/cgroup": "4:memory:/docker/1234", **group_1("cg/memory", GIB, MIB)},
        GIB - MIB,
    ),
    "outside of the namespace": (
        {"proc/self/cgroup": "0::/../../x", **group_2("cg", GIB, MIB)},
        GIB - MIB,
    ),
    "unreadable": ({"proc/self/cgroup": "0::/a", "cg/a/memory.max": "?"}, 5 * GIB),
}


@pytest.mark.parametrize("case", CASES)
def test_available_memory(case: str, tmp_path: Path) -> None:
    files, expected = CASES[case]
    assert find_available(*write(tmp_path, files)) == expected


def test_a_system_that_does_not_say(tmp_path: Path) -> None:
    assert find_available(tmp_path, tmp_path) is None
    assert find_available(*write(tmp_path, {"proc/meminfo": "MemTotal: 4 kB"})) is None


class Measure:
    """Stands in for `find_available`, and counts its calls."""

    def __init__(self, available: int | None) -> None:
        self.available = available
        self.calls = 0

    def __call__(self) -> int | None:
        self.calls += 1
        return self.available


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Measure:
    stand_in = Measure(GIB)
    monkeypatch.setattr(available_memory, "find_available", stand_in)
    return stand_in


def test_what_is_not_available_is_refused(measure: Measure) -> None:
    guard = MemoryGuard()
    guard.check((GIB - RESERVE) // 2)
    guard = MemoryGuard()
    with pytest.raises(OSError, match="annot allocate") as error:
        guard.check((GIB - RESERVE) // 2 + 1)
    assert error.value.errno == errno.ENOMEM
    measure.available = None
    guard.check(4 * GIB)


def test_it_is_measured_now_and_then(measure: Measure) -> None:
    guard = MemoryGuard()
    for _ in range(16):
        guard.check(MIB)
    assert measure.calls == 1
    measure.available = RESERVE
    with pytest.raises(OSError, match="annot allocate"):
        guard.check(MIB)
    assert measure.calls == 2


def test_a_slot_is_refused_and_later_granted(measure: Measure) -> None:
    pool = SlotPool()
    measure.available = 0
    with pytest.raises(
        NoRoomError, match=r"a batch of 1000 bytes: \d+ bytes are available"
    ) as info:
        pool.take(1000)
    assert info.value.errno == errno.ENOMEM
    measure.available = GIB
    number, slot, _ = pool.take(1000)
    assert number == 0
    slot.close()


# ---- in a group with a limit

SCRIPT = """
import os, sys
import arrowdl, numpy as np, pyarrow as pa

LARGE = 40 * 2**20

def enlarge(batch):
    return {"id": batch["id"], "large": np.full(LARGE, batch["id"][0], np.uint8)}

if __name__ == "__main__":
    loader = arrowdl.Loader(
        pa.table({"id": range(20)}), 1, num_workers=1, prefetch=20, framework="numpy",
        transform=enlarge,
    )
    count = 0
    for batch in loader:  # more ahead than there is memory
        assert (batch["large"] == batch["id"][0]).all()
        count += 1
        del batch
    print(count)
    kept = []
    try:
        for batch in loader:
            kept.append(batch)
    except OSError as error:
        print(error.errno, error)
    assert all((batch["large"] == batch["id"][0]).all() for batch in kept)
    print(2 <= len(kept) < 20)
"""


def remove_group(folder: Path) -> None:
    """When its last process has ended: Python's resource tracker ends after the script."""
    until = time.monotonic() + 30
    while True:
        try:
            return folder.rmdir()
        except OSError:
            if time.monotonic() > until:
                raise
        time.sleep(0.01)


@pytest.fixture
def limited_group() -> Iterator[Path]:
    """A memory cgroup of 600 MiB: 20 batches of 40 MiB are more."""
    for root, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        folder = root / f"arrowdl-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            with contextlib.suppress(OSError):
                (folder / limit).write_text(str(600 * MIB))
                yield folder
                return
        finally:
            remove_group(folder)
    pytest.skip("needs to make a memory cgroup")


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="AddressSanitizer takes much itself")
def test_a_container_without_memory_is_an_error_and_no_kill(
    limited_group: Path, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    enter = f"echo $$ > {limited_group}/cgroup.procs && exec " + '"$@"'
    done = subprocess.run(
        ["sh", "-c", enter, "sh", sys.executable, script],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    count, error, is_between = done.stdout.splitlines()
    assert (count, is_between) == ("20", "True")
    assert error.startswith(f"{errno.ENOMEM} ")
    for words in ("batch of 4194310", "bytes are available", "(cgroup)", "keep fewer batches"):
        assert words in error, words
