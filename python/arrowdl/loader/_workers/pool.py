"""The worker processes of a `Loader`, seen from the training."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import secrets
import signal
import weakref
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from arrowdl.loader._workers.process import run_worker
from arrowdl.loader._workers.shared_memory import SlotReader
from arrowdl.loader._workers.wire import Layout, Message, receive, send

if TYPE_CHECKING:
    from arrowdl.loader._loader import Loader


class WorkerPool:
    """Processes that wait for an epoch to read. They end with this object, or with `close`.

    Parameters
    ----------
    loader : Loader
        As the workers shall have it: it is pickled.
    count : int

    Raises
    ------
    TypeError
        The loader cannot be pickled.
    RuntimeError
        This process may have no children.

    Notes
    -----
    The pool belongs to the process that made it. In a forked child it is nobody's: `close` does
    nothing, the connections are closed, and the memory of the batches that the child has inherited
    is not written again.
    """

    def __init__(self, loader: Loader, count: int) -> None:
        if multiprocessing.current_process().daemon:
            raise RuntimeError(
                f"num_workers={count}: this process is a daemon of multiprocessing, which may "
                "start no processes: give the Loader num_workers=0 here, or start this process "
                "with daemon=False"
            )
        data = _dump(loader, count)
        self.is_idle = True
        self._next = 0
        self._process = os.getpid()
        self._workers: list[_Worker] = []
        self.close: Callable[[], Any] = weakref.finalize(self, _close, self._workers, self._process)
        _pools.add(weakref.ref(self, _pools.discard))
        token = f"arrowdl-{os.getpid()}-{secrets.token_hex(3)}"
        try:
            for i in range(count):
                self._workers.append(_Worker(i, count, f"{token}-{i}"))
            for worker in self._workers:
                worker.send_bytes(data)
        except BaseException:
            self.close()
            raise

    def read(
        self, state: dict[str, Any], rank: int, world_size: int, turns: range, ahead: int
    ) -> Generator[Message]:
        """The batches of an epoch, number `i` from worker ``i % count``, up to the end of `turns`.

        An iteration that does not come to the last of them, or to the workers' end before, closes
        the pool.
        """
        self.is_idle = False
        try:
            for worker in self._workers:
                worker.read(state, rank, world_size, ahead)
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
        """Whether it was made here, not in a process of which this one was forked."""
        return os.getpid() == self._process

    def before_fork(self) -> None:
        for worker in self._workers:
            worker.before_fork()

    def after_fork_in_child(self) -> None:
        for worker in self._workers:
            worker.after_fork_in_child()

    def is_ready(self) -> bool:
        """Whether `read` gives what comes next without waiting for it."""
        return self.is_idle or self._find_worker(self._next).is_ready()

    def _find_worker(self, turn: int) -> _Worker:
        return self._workers[turn % len(self._workers)]

    def _receive_ends(self) -> None:
        """Every worker says when it has no batch any more, which is at the same time for all."""
        for worker in self._workers:
            worker.receive_end()
        self.is_idle = True


# Of all pools that are alive, for the hooks below. A set of references is copied at once, whatever
# other threads do.
_pools: set[weakref.ref[WorkerPool]] = set()


def _before_fork() -> None:
    for reference in list(_pools):
        if pool := reference():
            pool.before_fork()


def _after_fork_in_child() -> None:
    for reference in list(_pools):
        if pool := reference():
            pool.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)


class _Worker:
    """One process: its connection, and its slots."""

    def __init__(self, index: int, count: int, prefix: str) -> None:
        # Processes that are forked would have the locks of threads that they do not have.
        context = multiprocessing.get_context("spawn")
        self._index = index
        self._slots = SlotReader(prefix)
        self._layout: Layout | None = None
        self._is_at_end = self._has_answered = False
        self._ahead = 0
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=run_worker,
            args=(theirs, index, count, prefix),
            name=f"arrowdl loader worker {index}",
            daemon=True,
        )
        try:
            self._process.start()
        except BaseException:
            self._connection.close()
            raise
        finally:
            theirs.close()  # only the worker has it: its death is the end of the connection

    def read(self, state: dict[str, Any], rank: int, world_size: int, ahead: int) -> None:
        """Have it read an epoch, never more than `ahead` batches before they are taken."""
        self._ahead = ahead
        self.send("read", state, rank, world_size, ahead)

    def send(self, *command: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # receive() says why
            send(self._connection, *command)

    def send_bytes(self, data: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send_bytes(data)

    def is_ready(self) -> bool:
        """Whether `receive` does not wait."""
        try:
            return self._connection.poll()
        except OSError:
            return True  # receive() says why

    def receive(self) -> Message | None:
        """The next batch, or None at the end of the epoch."""
        self._is_at_end = False
        while True:
            try:
                kind, *content = receive(self._connection)
            except (EOFError, ConnectionResetError):
                raise RuntimeError(self._describe_end()) from None
            self._has_answered = True
            if kind == "batch":
                return self._open(*content)
            if kind == "error":
                raise _load_error(self._index, *content)
            if kind == "end":
                self._is_at_end = True
                return None
            self._make_room(*content)

    def _make_room(self, dropped: list[int]) -> None:
        """For a worker that finds none: no memory is kept that could be given back."""
        self._slots.drop(dropped)
        self._give_back(0)

    def _give_back(self, credit: int) -> None:
        self.send("taken", credit, *self._slots.take_returned())

    def receive_end(self) -> None:
        """Wait for the end of the epoch, where it was not received yet."""
        if not self._is_at_end and self.receive() is not None:
            raise AssertionError(f"worker {self._index} has a batch more than its share")

    def _open(
        self,
        rows: int,
        number: int,
        size: int,
        table: bytes,
        others: bytes | None,
        dropped: list[int],
        layout: bytes | None,
    ) -> Message:
        self._slots.drop(dropped)
        if layout is not None:
            self._layout = pickle.loads(layout)
        assert self._layout is not None
        block = self._slots.read(number, size)
        self._give_back(1)
        return Message(rows, self._layout, block, table, pickle.loads(others) if others else {})

    def _describe_end(self) -> str:
        self._process.join(5)
        code = self._process.exitcode
        if code is not None and code < 0:
            name, meaning = _describe_signal(-code)
            return f"worker {self._index} of the Loader was killed by {name}: {meaning}"
        text = f"worker {self._index} of the Loader ended with exit code {code}; "
        if self._has_answered or code != 1:
            return text + "the transform, the source or a library has called os._exit() or exit()"
        return text + (
            "its error stream says why. Worker processes import the main module: a script has to "
            'start its work under if __name__ == "__main__"'
        )

    def before_fork(self) -> None:
        self._slots.share()

    def after_fork_in_child(self) -> None:
        # With the child's copy open, the worker would not see the end of the parent.
        self._connection.close()
        # multiprocessing would terminate and join it when the child exits.
        getattr(multiprocessing.process, "_children", set()).discard(self._process)

    def close(self) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.join(1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._slots.close(announced=self._ahead + 1)  # one more may be in the making
        self._process.close()


def _close(workers: list[_Worker], process: int) -> None:
    if os.getpid() != process:  # one that was forked
        return
    for worker in workers:
        worker._process.terminate()
    while workers:
        workers.pop().close()


def _dump(loader: Loader, count: int) -> bytes:
    try:
        return pickle.dumps(loader)
    except Exception as error:
        raise TypeError(
            f"num_workers={count}: the source and the transform go to other processes, and pickle "
            f"says: {error}. Give paths or a table, and functions that are defined at the top "
            "level of a module; or num_workers=0"
        ) from error


# What mostly sends it.
_SIGNALS = {
    "SIGKILL": "often the system, for lack of memory",
    "SIGBUS": "memory that is mapped was not there: a file was cut short, or its disk is full",
    "SIGTERM": "somebody ended it, a scheduler or an operator",
    "SIGXCPU": "its limit of CPU time (ulimit -t)",
    "SIGXFSZ": "its limit of file sizes (ulimit -f)",
    "SIGALRM": "an alarm that the transform, or the source, has set",
} | dict.fromkeys(
    ("SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"),
    "native code of the transform, of the source or of a library has failed. The variable "
    "PYTHONFAULTHANDLER=1 has a worker print where, and num_workers=0 runs the same code in this "
    "process",
)


def _describe_signal(number: int) -> tuple[str, str]:
    """Its name, and what it says."""
    try:
        name = signal.Signals(number).name
    except ValueError:  # one of the real-time signals
        name = f"signal {number}"
    return name, _SIGNALS.get(name, "sent by another process, or by the worker itself")


def _load_error(index: int, data: bytes | None, summary: str, text: str) -> Exception:
    error = None
    if data is not None:
        with suppress(Exception):
            error = pickle.loads(data)
    if not isinstance(error, Exception):
        error = RuntimeError(f"worker {index} of the Loader {summary}")
    error.add_note(f"In worker {index} of the Loader:\n{text}")
    return error
