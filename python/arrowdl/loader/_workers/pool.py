"""`WorkerPool`: the worker processes of a `Loader`, seen from the training."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import weakref
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from arrowdl._lifecycle import before_fork, in_forked_child
from arrowdl.loader._batches.pack import Message
from arrowdl.loader._workers.process import ShareReader
from arrowdl.loader._workers.sending import advising_sending
from arrowdl.loader._workers.worker import Worker


class WorkerPool:
    """Processes that wait for an epoch to read. They end with this object, or with `close`.

    Raises TypeError if `reader` cannot be pickled. Raises RuntimeError if this process may start no
    processes.

    The pool belongs to the process that made it. In a forked child `close` does nothing, the
    connections are closed, and the memory of inherited batches is never written again.
    """

    def __init__(
        self,
        reader: ShareReader,  # what each worker reads with; it is pickled
        count: int,  # workers
    ) -> None:
        if multiprocessing.current_process().daemon:
            raise RuntimeError(
                f"num_workers={count}: this process is a daemon of multiprocessing, which may "
                "start no processes: give the Loader num_workers=0 here, or start this process "
                "with daemon=False"
            )
        with advising_sending():
            data = pickle.dumps(reader)
        self.is_idle = True
        self._next = 0
        self._process = os.getpid()
        self._workers: list[Worker] = []
        self.close: Callable[[], Any] = weakref.finalize(self, _close, self._workers, self._process)
        _pools.add(weakref.ref(self, _pools.discard))
        try:
            for i in range(count):
                self._workers.append(Worker(i, count))
            for worker in self._workers:
                worker.send_bytes(data)
        except BaseException:
            self.close()
            raise

    def read(
        self,
        position: dict[str, Any],  # of `Position.to_state`
        rank: int,
        world_size: int,
        turns: range,  # the batches to receive; its end may be more than there are
        ahead: int,  # batches that each worker makes ahead, at least 1
    ) -> Generator[Message]:
        """Yield the batches of an epoch, batch `i` from worker ``i % count``.

        The pool closes if the iteration ends before the last batch.
        """
        self.is_idle = False
        try:
            for worker in self._workers:
                worker.read(position, rank, world_size, ahead)
            for turn in turns:
                message = self._find_worker(turn).receive()
                if message is None:
                    break
                if turn + 1 == turns.stop:
                    self._receive_ends()
                self._next = turn + 1
                yield message
                del message
            self._receive_ends()
        finally:
            if not self.is_idle:
                self.close()

    def is_of_this_process(self) -> bool:
        """Whether this process made the pool, not one that this process was forked from."""
        return os.getpid() == self._process

    def before_fork(self) -> None:
        """Prepare the workers for a fork of this process."""
        for worker in self._workers:
            worker.before_fork()

    def after_fork_in_child(self) -> None:
        """Detach the forked child from the workers, which belong to its parent."""
        for worker in self._workers:
            worker.after_fork_in_child()

    def is_ready(self) -> bool:
        """Whether `read` yields next without waiting."""
        return self.is_idle or self._find_worker(self._next).is_ready()

    def _find_worker(self, turn: int) -> Worker:
        return self._workers[turn % len(self._workers)]

    def _receive_ends(self) -> None:
        """Wait until every worker says that it has no more batches."""
        for worker in self._workers:
            worker.receive_end()
            worker.trim()
        self.is_idle = True


# All live pools, for the hooks below. Copying a set is atomic, so that other threads may change it.
_pools: set[weakref.ref[WorkerPool]] = set()


def _call_each(method: Callable[[WorkerPool], None]) -> None:
    for reference in list(_pools):
        if pool := reference():
            method(pool)


before_fork(partial(_call_each, WorkerPool.before_fork))
in_forked_child(partial(_call_each, WorkerPool.after_fork_in_child))


def _close(workers: list[Worker], process: int) -> None:
    if os.getpid() != process:  # in a forked child
        return
    for worker in workers:
        worker.terminate()
    while workers:
        workers.pop().close()
