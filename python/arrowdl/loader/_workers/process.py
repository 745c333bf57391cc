"""What a worker process does: read its share, and send batches through shared memory."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from arrowdl import _core
from arrowdl._frameworks.threads import use_one_thread
from arrowdl._lifecycle import in_forked_child
from arrowdl.loader._batches.chain import Outcome
from arrowdl.loader._batches.pack import Layout, flatten
from arrowdl.loader._batches.padding import Counts
from arrowdl.loader._workers.no_room import NoRoomError
from arrowdl.loader._workers.shared_memory import Slot, SlotPool
from arrowdl.loader._workers.wire import Channel

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class ShareReader(Protocol):
    """Reads a worker's share of an epoch; the worker process unpickles it."""

    def read_share(
        self, position: dict[str, Any], rank: int, world_size: int, worker: int, num_workers: int
    ) -> Iterator[tuple[int, Any, int, Counts, Outcome | None, tuple[float, ...]]]:
        """Yield each batch, after the number of its rows that belong to the rank.

        The number of all its rows follows, its padding, what became of its rows, if they may
        have been skipped or filtered, and the seconds of each of `WORKS`.
        """


def run_worker(
    connection: Connection,  # sends the pickled `ShareReader` first, and then commands
    index: int,  # which of how many workers
    workers: int,
) -> None:
    """Serve the consumer at the other end until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the consumer gets it too, and ends this process
    process = os.getpid()
    channel = Channel(connection)
    in_forked_child(channel.close)  # else the end of this process would not be seen
    try:
        _Worker(channel, index, workers).serve()
    except _ConsumerGone:
        pass
    except BaseException as error:
        if os.getpid() != process:  # a child that the transform forked
            raise
        with suppress(_ConsumerGone):
            _send(channel, "error", _dump_error(error), _summarize(error), _format(error))
    finally:
        channel.close()


class _ConsumerGone(Exception):
    """The other end of the connection is closed."""


def _send(channel: Channel, *message: Any, descriptor: int | None = None) -> None:
    try:
        channel.send(*message, descriptor=descriptor)
    except (BrokenPipeError, ConnectionResetError):
        raise _ConsumerGone from None


@contextmanager
def _receiving() -> Iterator[None]:
    try:
        yield
    except (EOFError, ConnectionResetError):
        raise _ConsumerGone from None


class _Worker:
    def __init__(self, channel: Channel, index: int, workers: int) -> None:
        self._channel = channel
        self._index, self._workers = index, workers
        self._slots = SlotPool()
        self._process = os.getpid()
        self._ahead = self._credit = 0
        self._layout: Layout | None = None

    def serve(self) -> None:
        with _receiving():
            data, _ = self._channel.receive_bytes()
        self._reader: ShareReader = pickle.loads(data)
        del data
        while True:
            self._obey()

    def _obey(self) -> None:
        """Wait for a command, and carry it out."""
        with _receiving():
            (kind, *arguments), _ = self._channel.receive()
        if kind == "read":
            self._read(*arguments)
        else:
            credit, returned, shared = arguments
            self._credit += credit
            self._slots.give_back(returned)
            self._slots.drop(shared)

    def _read(self, position: dict[str, Any], rank: int, world_size: int, ahead: int) -> None:
        """Send the rest of an epoch, at most `ahead` batches before the consumer."""
        use_one_thread()  # the processes work side by side
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)
        self._ahead = self._credit = ahead
        share = self._reader.read_share(position, rank, world_size, self._index, self._workers)
        for valid, batch, rows, padding, outcome, spent in share:
            if os.getpid() != self._process:
                raise RuntimeError(
                    "the transform or the source returned in a process that it forked: end that "
                    "process with os._exit()"
                )
            while not self._credit:
                self._obey()
            self._send_batch(batch, (valid, rows, padding, spent), outcome)
            self._credit -= 1
            del batch
        _send(self._channel, "end")

    def _send_batch(
        self, tree: Any, counts: tuple[int, int, Counts, tuple[float, ...]], outcome: Outcome | None
    ) -> None:
        """Write a batch to shared memory, and send what the consumer needs to read it."""
        layout, leaves = flatten(tree)
        block = _core.TensorBlock(leaves, layout.frameworks)
        others = {i: leaves[i] for i in block.left_out}
        dumped = pickle.dumps(others) if others else None  # first: it may fail
        number, slot, dropped = self._take_slot(block.nbytes)
        block.write(slot.memory)
        read = number, block.nbytes, block.table, dumped, dropped, self._learn(layout)
        content = *counts, *read
        told = None
        if outcome is not None and (outcome.report is not None or outcome.filtered):
            told = _dump_outcome(outcome)
        try:
            _send(self._channel, "batch", *content, told, descriptor=slot.descriptor)
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:
                raise
            raise OSError(*NoRoomError(block.nbytes, error.errno).args) from None
        slot.close_descriptor()

    def _take_slot(self, size: int) -> tuple[int, Slot, list[int]]:
        """Take a slot, or wait for one: batches that the consumer has not received make room."""
        has_asked = False
        while True:
            try:
                return self._slots.take(size)
            except NoRoomError as error:
                if self._credit == self._ahead:  # it waits for this batch
                    if has_asked:
                        raise OSError(*error.args) from None
                    has_asked = True
                    _send(self._channel, "full", self._slots.take_dropped())
                self._obey()

    def _learn(self, layout: Layout) -> bytes | None:
        """Return the layout if it differs from that of the last batch."""
        if layout == self._layout:
            return None
        self._layout = layout
        return pickle.dumps(layout)


def _dump_outcome(outcome: Outcome) -> bytes:
    report = outcome.report
    if report is not None and _dump_error(report.error) is None:
        error = RuntimeError(f"a worker of the Loader {_summarize(report.error)}")
        outcome = replace(outcome, report=replace(report, error=error))
    return pickle.dumps(outcome)


def _dump_error(error: BaseException) -> bytes | None:
    """Pickle the error; None if it cannot be unpickled as the same type."""
    try:
        data = pickle.dumps(error)
        is_whole = type(pickle.loads(data)) is type(error)
    except Exception:
        return None
    return data if is_whole and isinstance(error, Exception) else None


def _summarize(error: BaseException) -> str:
    """Say what the worker did, for an error that takes its place."""
    if isinstance(error, SystemExit):
        return f"ended with exit code {error.code}: the transform, or the source, called sys.exit()"
    try:
        text = str(error)
    except Exception as failure:
        text = f"its text raises {type(failure).__name__}"
    return f"raised {type(error).__name__}: {text}"


def _format(error: BaseException) -> str:
    try:
        return traceback.format_exc()
    except Exception as failure:  # raised by the error's own methods
        return f"{type(error).__name__}, whose traceback raises {type(failure).__name__}\n"
