"""A worker process of a `Loader`: reads its share, and hands batches over in shared memory."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._workers.shared_memory import NoRoomError, SlotPool
from arrowdl.loader._workers.wire import Layout, flatten, receive, send

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.shared_memory import SharedMemory


def run_worker(connection: Connection, index: int, workers: int, prefix: str) -> None:
    """Serve the consumer at the other end until that closes.

    Parameters
    ----------
    connection : Connection
        First it gives the pickled loader, then commands.
    index, workers : int
        Whose share of how many.
    prefix : str
        Of the names of the shared memory.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the consumer gets it too, and ends this process
    process = os.getpid()
    if hasattr(os, "register_at_fork"):  # nobody would see this process end
        os.register_at_fork(after_in_child=connection.close)
    try:
        _Worker(connection, index, workers, prefix).serve()
    except _ConsumerGone:
        pass
    except BaseException as error:
        if os.getpid() != process:  # what a transform has forked
            raise
        with suppress(_ConsumerGone):
            _send(connection, "error", _dump_error(error), _summarize(error), _format(error))


class _ConsumerGone(Exception):
    """The other end of the connection is closed."""


def _send(connection: Connection, *message: Any) -> None:
    try:
        send(connection, *message)
    except (BrokenPipeError, ConnectionResetError):
        raise _ConsumerGone from None


def _receive(connection: Connection) -> tuple[Any, ...]:
    try:
        return receive(connection)
    except (EOFError, ConnectionResetError):
        raise _ConsumerGone from None


class _Worker:
    def __init__(self, connection: Connection, index: int, workers: int, prefix: str) -> None:
        self._connection = connection
        self._index, self._workers = index, workers
        self._slots = SlotPool(prefix)
        self._process = os.getpid()
        self._ahead = self._credit = 0
        self._layout: Layout | None = None

    def serve(self) -> None:
        try:
            data = self._connection.recv_bytes()
        except (EOFError, ConnectionResetError):
            raise _ConsumerGone from None
        self._loader = pickle.loads(data)
        while True:
            self._obey(_receive(self._connection))

    def _obey(self, command: tuple[Any, ...]) -> None:
        kind, *arguments = command
        if kind == "read":
            self._read(*arguments)
        else:
            credit, returned, shared = arguments
            self._credit += credit
            self._slots.give_back(returned)
            self._slots.drop(shared)

    def _read(self, state: dict[str, Any], rank: int, world_size: int, ahead: int) -> None:
        """The rest of an epoch, never more than `ahead` batches before the consumer."""
        loader = self._loader
        loader.load_state_dict(state)
        _core.set_num_threads(1)  # there are as many processes as are wanted
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)
        self._ahead = self._credit = ahead
        rows = loader.stats().rows
        for batch in loader._iterate(loader._begin(rank, world_size, self._index, self._workers)):
            if os.getpid() != self._process:
                raise RuntimeError(
                    "the transform, or the source, has returned in a process that it had forked: "
                    "end that with os._exit() there"
                )
            while not self._credit:
                self._obey(_receive(self._connection))
            total = loader.stats().rows
            _send(self._connection, "batch", total - rows, *self._write(batch))
            rows = total
            self._credit -= 1
            del batch
        _send(self._connection, "end")

    def _write(self, tree: Any) -> tuple[Any, ...]:
        """Where the batch lies now, and what reads it: see `Message`."""
        layout, leaves = flatten(tree)
        block = _core.TensorBlock(leaves, layout.frameworks)
        others = {i: leaves[i] for i in block.left_out}
        dumped = pickle.dumps(others) if others else None  # first: it may fail
        number, slot, dropped = self._take_slot(block.nbytes)
        assert slot.buf is not None
        block.write(slot.buf)
        return number, block.nbytes, block.table, dumped, dropped, self._learn(layout)

    def _take_slot(self, size: int) -> tuple[int, SharedMemory, list[int]]:
        """A slot, once there is room for it: what the consumer has not taken yet makes room."""
        has_asked = False
        while True:
            try:
                return self._slots.take(size)
            except NoRoomError as error:
                if self._credit == self._ahead:  # it waits for this batch
                    if has_asked:
                        raise OSError(*error.args) from None
                    has_asked = True
                    _send(self._connection, "full", self._slots.take_dropped())
                self._obey(_receive(self._connection))

    def _learn(self, layout: Layout) -> bytes | None:
        """The layout, if it is another one than that of the batch before."""
        if layout == self._layout:
            return None
        self._layout = layout
        return pickle.dumps(layout)


def _dump_error(error: BaseException) -> bytes | None:
    """The error pickled, or None where it does not come back from that."""
    try:
        data = pickle.dumps(error)
        is_whole = type(pickle.loads(data)) is type(error)
    except Exception:
        return None
    return data if is_whole and isinstance(error, Exception) else None


def _summarize(error: BaseException) -> str:
    """What it is, for an error in its place."""
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
    except Exception as failure:  # of the error's own methods
        return f"{type(error).__name__}, whose traceback raises {type(failure).__name__}\n"
