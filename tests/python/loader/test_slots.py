"""Slots of shared memory: idle ones are released, and a missing file descriptor is an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import arrowdl
import pyarrow as pa
import pytest
from arrowdl.loader._workers.shared_memory import SlotPool, SlotReader

SHARED_MEMORY = Path("/dev/shm")
needs_proc = pytest.mark.skipif(
    not (SHARED_MEMORY.is_dir() and Path("/proc/self/fd").is_dir()), reason="reads /proc"
)

KEEP = """
import multiprocessing, os, resource
from functools import partial
import arrowdl, numpy as np, pyarrow as pa

Loader = partial(arrowdl.Loader, pa.table({"id": range(200)}), 1, num_workers=1, framework="numpy")

def count_open(process):
    folder = f"/proc/{process}/fd"
    links = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)
             if os.path.lexists(f"{folder}/{name}")]  # listdir's own is closed by then
    return sum("arrowdl-" in link for link in links)
"""

TRIM = """
if __name__ == "__main__":
    loader = Loader()
    kept = list(loader)
    (worker,) = multiprocessing.active_children()
    processes = (os.getpid(), worker.pid)
    print(min(map(count_open, processes)) >= 200)
    batches = kept[:50]
    del kept
    kept = [batch["id"].item() for batch in loader]
    assert kept == list(range(200)) and [b["id"].item() for b in batches] == kept[:50]
    print(count_open(os.getpid()) // 2)
"""

TOO_MANY = """
if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, most))
    loader = Loader()
    kept = []
    try:
        for batch in loader:
            kept.append(batch)
    except OSError as error:
        print(error.errno, error, sep="|")
    assert [batch["id"].item() for batch in kept] == list(range(len(kept)))
    del kept, batch
    print(sum(1 for _ in loader))
"""


def run(code: str, tmp_path: Path) -> list[str]:
    script = tmp_path / "script.py"
    script.write_text(KEEP + code)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_proc
def test_idle_slots_are_released_at_the_end_of_an_epoch(tmp_path: Path) -> None:
    are_kept, slots = run(TRIM, tmp_path)
    assert are_kept == "True"
    assert 50 <= int(slots) < 60  # those of kept batches, and a few for the next epoch


@needs_proc
def test_too_many_kept_batches_are_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    error, again = run(TOO_MANY, tmp_path)
    for words in ("24|", "100 files open (ulimit -n", "keep fewer batches", "num_workers=0"):
        assert words in error
    assert again == "200"


def test_trimming_keeps_slots_in_use_and_some_idle_ones() -> None:
    pool, reader = SlotPool("arrowdl-0-trim"), SlotReader("arrowdl-0-trim")
    taken = [pool.take(64) for _ in range(5)]
    arrays = [reader.read(number, 64) for number, _, _ in taken]
    del arrays[1:]
    returned, dropped = reader.trim(1)
    assert (returned, dropped) == ([4], [1, 2, 3])
    pool.give_back(returned)
    pool.drop(dropped)
    assert pool.take(64)[0] == 4
    assert reader.trim(1) == ([], [])
    del arrays
    returned, dropped = reader.trim(0)
    assert (returned, dropped) == ([], [0, 4])
    pool.drop(dropped)


def test_a_free_slot_that_is_dropped_is_not_taken() -> None:
    pool = SlotPool("arrowdl-0-drop")
    number, memory, _ = pool.take(64)
    memory.unlink()
    pool.give_back([number])
    pool.drop([number])
    other, memory, dropped = pool.take(64)
    memory.unlink()
    assert (other, dropped) == (number + 1, [])
    pool.drop([other])


def test_a_loader_reads_on_after_slots_were_released() -> None:
    table = pa.table({"id": range(60)})
    loader = arrowdl.Loader(table, 1, num_workers=2, framework="numpy")
    for _ in range(2):
        kept = list(loader)
        assert sorted(int(batch["id"][0]) for batch in kept) == list(range(60))
        del kept
