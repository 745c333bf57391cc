"""Slots of shared memory: idle ones are released, and a missing file descriptor is an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import arrowdl
import pyarrow as pa
import pytest
from arrowdl.loader._workers.anonymous_memory import IS_DESCRIPTOR_KEPT
from arrowdl.loader._workers.shared_memory import Slot, SlotPool, SlotReader
from helpers.worker_memory import HAS_PROC

needs_proc = pytest.mark.skipif(not HAS_PROC, reason="reads /proc")

KEEP = """
import multiprocessing, os, resource
from functools import partial
import arrowdl, numpy as np, pyarrow as pa
from helpers.worker_memory import count_mapped, count_open

Loader = partial(arrowdl.Loader, pa.table({"id": range(200)}), 1, num_workers=1, framework="numpy")

"""

TRIM = """
if __name__ == "__main__":
    loader = Loader()
    kept = list(loader)
    (worker,) = multiprocessing.active_children()
    processes = (os.getpid(), worker.pid)
    print(*map(count_mapped, processes), *map(count_open, processes))
    batches = kept[:50]
    del kept
    kept = [batch["id"].item() for batch in loader]
    assert kept == list(range(200)) and [b["id"].item() for b in batches] == kept[:50]
    print(count_mapped(os.getpid()))
"""

FEW_FILES = """
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
    else:
        print("none")
    assert [batch["id"].item() for batch in kept] == list(range(len(kept)))
    print(len(kept))
    del kept, batch
    print(sum(1 for _ in loader))
"""


def run(code: str, tmp_path: Path) -> list[str]:
    script = tmp_path / "script.py"
    script.write_text(KEEP + code)
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_proc
def test_idle_slots_are_released_at_the_end_of_an_epoch(tmp_path: Path) -> None:
    """And while 200 batches are kept, each costs a descriptor in both processes, or none."""
    counts, slots = run(TRIM, tmp_path)
    mapped, mapped_there, opened, opened_there = map(int, counts.split())
    assert 200 <= mapped <= mapped_there < 210
    assert (opened, opened_there) == ((mapped, mapped_there) if IS_DESCRIPTOR_KEPT else (0, 0))
    assert 50 <= int(slots) < 60  # those of kept batches, and a few for the next epoch


@needs_proc
def test_too_many_kept_batches_are_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    error, kept, again = run(FEW_FILES, tmp_path)
    if IS_DESCRIPTOR_KEPT:
        for words in ("24|", "100 files open (ulimit -n", "keep fewer batches", "num_workers=0"):
            assert words in error
        assert 60 < int(kept) < 100
    else:
        assert (error, kept) == ("none", "200")
    assert again == "200"


def read(reader: SlotReader, number: int, slot: Slot) -> arrowdl.DeviceArray:
    """Give the slot to the reader, as the socket does."""
    assert slot.descriptor is not None
    array = reader.read(number, 64, os.dup(slot.descriptor))
    slot.close_descriptor()
    return array


def test_trimming_keeps_slots_in_use_and_some_idle_ones() -> None:
    pool, reader = SlotPool(), SlotReader()
    taken = [pool.take(64) for _ in range(5)]
    arrays = [read(reader, number, slot) for number, slot, _ in taken]
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


def test_a_slot_is_the_same_memory_on_both_sides() -> None:
    pool, reader = SlotPool(), SlotReader()
    number, slot, _ = pool.take(64)
    slot.memory[:64] = bytes(range(64))
    array = read(reader, number, slot)
    pool.drop([number])
    reader.close()
    assert arrowdl.to_numpy(array).tolist() == list(range(64))


def test_a_free_slot_that_is_dropped_is_not_taken() -> None:
    pool = SlotPool()
    number, _, _ = pool.take(64)
    pool.give_back([number])
    pool.drop([number])
    other, _, dropped = pool.take(64)
    assert (other, dropped) == (number + 1, [])
    pool.drop([other])


def test_a_loader_reads_on_after_slots_were_released() -> None:
    table = pa.table({"id": range(60)})
    loader = arrowdl.Loader(table, 1, num_workers=2, framework="numpy")
    for _ in range(2):
        kept = list(loader)
        assert sorted(int(batch["id"][0]) for batch in kept) == list(range(60))
        del kept
