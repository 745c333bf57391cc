"""A worker process of a `Loader`: reads its share, and hands batches over in shared memory."""

from __future__ import annotations

import pickle
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._messages import Layout, flatten, receive, send
from arrowdl.loader._slots import SlotPool

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


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
    try:
        _Worker(connection, index, workers, prefix).serve()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the consumer has gone
    except Exception as error:
        send(connection, "error", _dump_error(error), traceback.format_exc())


class _Worker:
    def __init__(self, connection: Connection, index: int, workers: int, prefix: str) -> None:
        self._connection = connection
        self._index, self._workers = index, workers
        self._slots = SlotPool(prefix)
        self._credit = 0
        self._layout: Layout | None = None

    def serve(self) -> None:
        self._loader = pickle.loads(self._connection.recv_bytes())
        while True:
            self._obey(receive(self._connection))

    def _obey(self, command: tuple[Any, ...]) -> None:
        kind, *arguments = command
        if kind == "read":
            self._read(*arguments)
        else:
            self._credit += 1
            self._slots.give_back(*arguments)

    def _read(self, state: dict[str, Any], rank: int, world_size: int, ahead: int) -> None:
        """The rest of an epoch, never more than `ahead` batches before the consumer."""
        loader = self._loader
        loader.load_state_dict(state)
        _core.set_thread_limit(1)  # there are as many processes as are wanted
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)
        self._credit = ahead
        rows = loader.stats().rows
        for batch in loader._iterate(loader._begin(rank, world_size, self._index, self._workers)):
            while not self._credit:
                self._obey(receive(self._connection))
            total = loader.stats().rows
            send(self._connection, "batch", total - rows, *self._write(batch))
            rows = total
            self._credit -= 1
            del batch
        send(self._connection, "end")

    def _write(self, tree: Any) -> tuple[Any, ...]:
        """Where the batch lies now, and what reads it: see `Message`."""
        layout, leaves = flatten(tree)
        block = _core.TensorBlock(leaves, layout.frameworks)
        others = {i: leaves[i] for i in block.left_out}
        dumped = pickle.dumps(others) if others else None  # first: it may fail
        number, slot, dropped = self._slots.take(block.nbytes)
        assert slot.buf is not None
        block.write(slot.buf)
        return number, block.nbytes, block.table, dumped, dropped, self._learn(layout)

    def _learn(self, layout: Layout) -> bytes | None:
        """The layout, if it is another one than that of the batch before."""
        if layout == self._layout:
            return None
        self._layout = layout
        return pickle.dumps(layout)


def _dump_error(error: Exception) -> bytes | None:
    """The error pickled, or None where it does not come back from that."""
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:
        return None
    return data
