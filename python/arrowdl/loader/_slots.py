"""Shared memory between a worker process and its consumer: slots that are used again.

The worker makes a slot when none is free that is large enough, and tells its number. The consumer
opens it and unlinks its name at once: from then on the memory lasts as long as a process has it
mapped, and nothing is left behind however these end. A slot goes back to the worker when nothing
made of its memory is alive any more.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from multiprocessing.shared_memory import SharedMemory

from arrowdl import _core


def name_slot(prefix: str, number: int) -> str:
    return f"{prefix}-{number}"


class SlotPool:
    """The slots of a worker: on the writing side."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count = 0
        self._slots: dict[int, SharedMemory] = {}
        self._free: set[int] = set()

    def take(self, size: int) -> tuple[int, SharedMemory, list[int]]:
        """A free slot of at least `size` bytes, its number, and those that were given up for it."""
        fitting = [number for number in self._free if self._slots[number].size >= size]
        if fitting:
            number = min(fitting, key=lambda number: self._slots[number].size)
            self._free.remove(number)
            return number, self._slots[number], []
        dropped = list(self._free)
        for number in dropped:
            self._slots.pop(number).close()
        self._free.clear()
        number = self._count
        self._count += 1
        # Room to spare: the next batch may be a little larger.
        name = name_slot(self._prefix, number)
        self._slots[number] = SharedMemory(name, create=True, size=max(1, size + size // 8))
        return number, self._slots[number], dropped

    def give_back(self, numbers: list[int]) -> None:
        self._free.update(number for number in numbers if number in self._slots)


class _Lease:
    """Keeps a slot's memory from being written again as long as it lives."""

    def __init__(self, number: int, memory: SharedMemory, returned: deque[int]) -> None:
        self._number = number
        self._memory = memory
        self._returned = returned

    def __del__(self) -> None:  # on any thread
        self._returned.append(self._number)


class SlotReader:
    """The slots of a worker: on the reading side."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._opened: dict[int, tuple[SharedMemory, int]] = {}
        self._next = 0
        self._returned: deque[int] = deque()

    def read(self, number: int, size: int) -> _core.DeviceArray:
        """The first `size` bytes of a slot, which hold it."""
        memory, address = self._opened.get(number) or self._open(number)
        lease = _Lease(number, memory, self._returned)
        return _core.borrow_memory(address, size, "cpu", lease)

    def _open(self, number: int) -> tuple[SharedMemory, int]:
        memory = SharedMemory(name_slot(self._prefix, number))
        self._next = number + 1
        if sys.platform != "win32":
            memory.unlink()
        # The address alone: a memory view would keep the memory from being closed.
        self._opened[number] = memory, _core.address_of(_core.to_arrow_device(memory.buf))
        return self._opened[number]

    def drop(self, numbers: list[int]) -> None:
        """Forget slots that the worker has given up: their memory goes with its last user."""
        for number in numbers:
            self._opened.pop(number, None)

    def take_returned(self) -> list[int]:
        """The slots that nobody uses any more, each told once."""
        return [self._returned.popleft() for _ in range(len(self._returned))]

    def close(self, announced: int) -> None:
        """Unlink what a worker that has ended made and nobody opened.

        Parameters
        ----------
        announced : int
            Slots that it may have made besides those that were opened.
        """
        for number in range(self._next, self._next + announced):
            with contextlib.suppress(FileNotFoundError):
                _unlink(name_slot(self._prefix, number))
        self._opened.clear()


def _unlink(name: str) -> None:
    try:
        memory = SharedMemory(name)
    except ValueError:  # empty: its maker was killed before it had a size
        if sys.platform != "win32":
            from _posixshmem import shm_unlink  # type: ignore[import-not-found]

            shm_unlink(f"/{name}")
        return
    memory.unlink()
    memory.close()
