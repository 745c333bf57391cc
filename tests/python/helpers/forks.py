"""A training that forks while worker processes read for it: `python forks.py NAME`.

Every child is ended here, and says by its exit code, 0, or by what it raises, whether all was well.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import select
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from arrowdl import debug

from helpers.worker_memory import count_mapped

ROWS, BATCH = 960, 40
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int64())})


def start_child() -> int:
    gc.freeze()  # else each child looks through all that was imported when it ends
    return os.fork()


def fork_and_exit(batch: dict[str, Any]) -> dict[str, Any]:
    if start_child() == 0:
        sys.exit(0)
    os.wait()
    return batch


def fork_and_return(batch: dict[str, Any]) -> dict[str, Any]:
    if start_child() != 0:
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 1
    return batch


def add_process(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "process": os.getpid()}


Loader = partial(
    arrowdl.Loader, TABLE, BATCH, framework="numpy", num_workers=2, transform=add_process
)


def fork(run: Callable[[], None]) -> int:
    """A child that ends as a process does, with all that happens at exit."""
    child = start_child()
    if child == 0:
        run()
        sys.exit(0)
    return child


def assert_ended_well(child: int) -> None:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def assert_whole(batches: list[Any]) -> None:
    ids = [row for batch in batches for row in batch["id"].tolist()]
    assert sorted(ids) == list(range(ROWS)), len(ids)


def child_ends() -> None:
    """In the middle of an epoch, and between two: the workers are those from before."""
    loader = Loader()
    batches = iter(loader)
    read = [next(batches)]
    assert_ended_well(fork(lambda: None))
    read += batches
    assert_whole(read)
    assert_ended_well(fork(loader.__iter__))
    again = list(loader)
    assert_whole(again)
    assert {batch["process"] for batch in read} == {batch["process"] for batch in again}


def child_drops_the_iterator() -> None:
    batches: Any = iter(Loader())
    read = [next(batches)]
    assert_ended_well(fork(batches.close))
    assert_whole([*read, *batches])


def child_reads() -> None:
    """Both at a time, each by workers of its own."""
    loader = Loader()
    batches = iter(loader)
    read = [next(batches)]
    before = {child.pid for child in multiprocessing.active_children()}
    told, tell = os.pipe()

    def read_in_child() -> None:
        own = []
        for batch in loader:
            if not own:
                os.write(tell, b".")
            own.append(batch)
        assert_whole(own)
        assert not before & {batch["process"] for batch in own}
        assert_whole(list(loader))

    child = fork(read_in_child)
    assert os.read(told, 1) == b"."
    assert_whole([*read, *batches])
    assert_ended_well(child)
    assert_whole(list(loader))


def child_reads_the_iterator() -> None:
    batches: Any = iter(Loader())
    read = [next(batches)]

    def read_on() -> None:
        with pytest.raises(RuntimeError, match="forked"):
            next(batches)
        assert list(batches) == []

    assert_ended_well(fork(read_on))
    assert_whole([*read, *batches])


def child_keeps_a_batch() -> None:
    """The memory that a child has inherited is not written to."""
    loader = Loader()
    batches = iter(loader)
    kept: Any = next(batches)
    ids = kept["id"].tolist()
    told, tell = os.pipe()

    def compare() -> None:
        assert os.read(told, 1) == b"."
        assert kept["id"].tolist() == ids

    child = fork(compare)
    kept = None
    for _ in batches:
        pass
    addresses = {batch["id"].ctypes.data for _ in range(2) for batch in loader}
    assert len(addresses) < 12, "slots are not used again any more"
    os.write(tell, b".")
    assert_ended_well(child)


def child_outlives_the_parent() -> None:
    """The workers end with the one that they read for. Prints the child, which waits for ever."""
    batches = iter(Loader())
    next(batches)
    os.set_inheritable(1, False)
    child = fork(signal.pause)
    workers = [os.pidfd_open(process.pid) for process in multiprocessing.active_children()]
    watcher = os.fork()
    if watcher:
        os.kill(os.getpid(), signal.SIGKILL)
    while workers:
        ended, _, _ = select.select(workers, [], [], 60)
        assert ended, "the workers are left"
        workers = [worker for worker in workers if worker not in ended]
    os.kill(child, signal.SIGKILL)
    print("ended", flush=True)
    os._exit(0)


def process_of_multiprocessing() -> None:
    loader = Loader()
    batches = iter(loader)
    read = [next(batches)]
    context = multiprocessing.get_context("fork")
    for target in (lambda: None, lambda: assert_whole(list(loader))):
        process = context.Process(target=target)
        process.start()
        process.join()
        assert process.exitcode == 0

    def be_told() -> None:
        with pytest.raises(RuntimeError, match=r"a daemon .* num_workers=0"):
            list(loader)

    process = context.Process(target=be_told, daemon=True)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert_whole([*read, *batches])


def transform_forks() -> None:
    for transform in (fork_and_exit, fork_and_return):
        assert_whole(list(Loader(transform=transform)))


def nothing_is_left() -> None:
    """Many forks leave nothing in the memory that the loader holds."""
    loader = Loader()
    for _ in range(2):
        for batch in loader:
            assert_ended_well(fork(lambda: None))
            assert np.diff(batch["id"]).tolist() == [1] * (BATCH - 1)
        assert 0 < count_mapped() < 12, count_mapped()
        del batch
    del loader
    assert debug.live_objects() == 0


if __name__ == "__main__":
    globals()[sys.argv[1]]()
