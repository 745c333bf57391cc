"""One worker process, seen from the training: its channel and its slots."""

from __future__ import annotations

import multiprocessing
import pickle
from contextlib import suppress
from typing import Any

from arrowdl.loader._batches.pack import Layout, Message
from arrowdl.loader._batches.padding import Counts
from arrowdl.loader._workers.errors import describe_exit, load_error
from arrowdl.loader._workers.process import run_worker
from arrowdl.loader._workers.shared_memory import SlotReader
from arrowdl.loader._workers.wire import Channel


class Worker:
    """Worker process `index` of `count`. Raises OSError if the process does not start."""

    def __init__(self, index: int, count: int) -> None:
        # A forked process would inherit locks of threads that it does not have.
        context = multiprocessing.get_context("spawn")
        self._index = index
        self._slots = SlotReader()
        self._layout: Layout | None = None
        self._is_at_end = self._has_answered = False
        self._ahead = 0
        ours, theirs = context.Pipe()
        self._channel = Channel(ours)
        self._process = context.Process(
            target=run_worker,
            args=(theirs, index, count),
            name=f"arrowdl loader worker {index}",
            daemon=True,
        )
        try:
            self._process.start()
        except BaseException:
            self._channel.close()
            raise
        finally:
            theirs.close()  # only the worker has it: when it ends, the connection ends

    def read(
        self,
        position: dict[str, Any],  # of `Position.to_state`
        rank: int,
        world_size: int,
        ahead: int,
    ) -> None:
        """Make it read an epoch, at most `ahead` batches before they are received."""
        self._ahead = ahead
        self.trim()  # batches of the last epoch may have been released since
        self.send("read", position, rank, world_size, ahead)

    def send(self, *command: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # receive() says why
            self._channel.send(*command)

    def send_bytes(self, data: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._channel.send_bytes(data)

    def is_ready(self) -> bool:
        """Whether `receive` does not wait."""
        return self._channel.is_ready()

    def receive(self) -> Message | None:
        """Return the next batch, or None at the end of the epoch."""
        self._is_at_end = False
        while True:
            try:
                (kind, *content), descriptor = self._channel.receive()
            except (EOFError, ConnectionResetError):
                raise RuntimeError(self._describe_exit()) from None
            self._has_answered = True
            if kind == "batch":
                return self._open(descriptor, *content)
            if kind == "error":
                raise load_error(self._index, *content)
            if kind == "end":
                self._is_at_end = True
                return None
            self._make_room(*content)

    def _make_room(self, dropped: list[int]) -> None:
        """Give back all memory that is not in use, for a worker that found none."""
        self._slots.drop(dropped)
        self._give_back(0)

    def _give_back(self, credit: int) -> None:
        self.send("taken", credit, *self._slots.take_returned())

    def trim(self) -> None:
        """Give back idle memory beyond what an epoch needs, between two epochs."""
        # Batches ahead, one that is being written and one that the training has.
        self.send("taken", 0, *self._slots.trim(self._ahead + 2))

    def receive_end(self) -> None:
        """Wait for the end of the epoch, unless it was received."""
        if not self._is_at_end and self.receive() is not None:
            raise AssertionError(f"worker {self._index} has a batch more than its share")

    def _open(
        self,
        descriptor: int | None,
        valid: int,
        rows: int,
        padding: Counts,
        spent: tuple[float, ...],
        number: int,
        size: int,
        table: bytes,
        others: bytes | None,
        dropped: list[int],
        layout: bytes | None,
        outcome: bytes | None,
    ) -> Message:
        self._slots.drop(dropped)
        is_first = self._layout is None
        block = self._slots.read(number, size, descriptor)  # first: it closes the descriptor
        if layout is not None:
            self._layout = pickle.loads(layout)
        assert self._layout is not None
        self._give_back(1)
        left = pickle.loads(others) if others else {}
        return Message(
            rows,
            valid,
            self._layout,
            block,
            table,
            left,
            padding,
            outcome,
            spent=spent,
            is_first=is_first,
        )

    def _describe_exit(self) -> str:
        self._process.join(5)
        return describe_exit(self._index, self._process.exitcode, self._has_answered)

    def before_fork(self) -> None:
        """Mark the memory in use as shared with the child: it is not reused."""
        self._slots.share()

    def after_fork_in_child(self) -> None:
        """Close the child's copy of the channel: the worker belongs to the parent."""
        # With the copy open, the worker would not see the end of the parent.
        self._channel.close()
        # multiprocessing would terminate and join it when the child exits.
        getattr(multiprocessing.process, "_children", set()).discard(self._process)

    def terminate(self) -> None:
        """Ask the process to end; `close` waits for it."""
        self._process.terminate()

    def close(self) -> None:
        """End the process and release its memory that no batch uses."""
        self._channel.close()
        self._process.terminate()
        self._process.join(1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._slots.close()
        self._process.close()
