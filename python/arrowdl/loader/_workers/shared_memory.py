"""Shared memory between a worker process and its consumer: slots that are used again.

The worker makes a slot when none is free that is large enough, and tells its number. The consumer
opens it and unlinks its name at once: from then on the memory lasts as long as a process has it
mapped, and nothing is left behind however these end. A slot goes back to the worker when nothing
made of its memory is alive any more.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections import deque
from multiprocessing.shared_memory import SharedMemory

from arrowdl import _core


def name_slot(prefix: str, number: int) -> str:
    return f"{prefix}-{number}"


# Where glibc and musl have it. Other systems give no number of bytes to run out of.
PLACE = "/dev/shm"


class NoRoomError(OSError):
    """The system has no shared memory of the wanted size."""

    def __init__(self, size: int, code: int) -> None:
        super().__init__(
            code,
            f"no shared memory for a batch of {size} bytes: {_describe_room(code)}. Worker "
            "processes hand batches over in shared memory, of which each has some of them: start "
            "the container with more (docker run --shm-size=4g, an emptyDir of medium Memory in "
            "Kubernetes), or give the Loader smaller batches, fewer workers, a smaller prefetch, "
            "or workers=0, which needs none",
        )


def _describe_room(code: int) -> str:
    try:
        room = os.statvfs(PLACE)
    except (OSError, AttributeError):
        return os.strerror(code)
    free, total = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
    return f"{PLACE} has {free} bytes free, of {total} ({os.strerror(code)})"


def _make_memory(name: str, size: int) -> SharedMemory:
    """Shared memory that is there: without a reservation the first write to it may be a SIGBUS."""
    memory = SharedMemory(name, create=True, size=size)
    try:
        _reserve(memory)
    except BaseException:
        memory.unlink()
        memory.close()
        raise
    return memory


def _reserve(memory: SharedMemory) -> None:
    if not hasattr(os, "posix_fallocate"):
        return
    from _posixshmem import shm_open  # type: ignore[import-not-found]

    file = shm_open(f"/{memory.name}", os.O_RDWR, mode=0o600)
    try:
        os.posix_fallocate(file, 0, memory.size)
    finally:
        os.close(file)


class SlotPool:
    """The slots of a worker: on the writing side."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count = 0
        self._slots: dict[int, SharedMemory] = {}
        self._free: set[int] = set()
        self._dropped: list[int] = []

    def take(self, size: int) -> tuple[int, SharedMemory, list[int]]:
        """A free slot of at least `size` bytes, its number, and those that were given up for it.

        Raises
        ------
        NoRoomError
            Slots that the consumer gives back or forgets may make room: see `take_dropped`.
        """
        fitting = [number for number in self._free if self._slots[number].size >= size]
        if fitting:
            number = min(fitting, key=lambda number: self._slots[number].size)
            self._free.remove(number)
            return number, self._slots[number], []
        for number in self._free:
            self._slots.pop(number).close()
        self._dropped += self._free
        self._free.clear()
        number = self._count
        self._slots[number] = self._make(name_slot(self._prefix, number), max(1, size))
        self._count += 1
        return number, self._slots[number], self.take_dropped()

    def _make(self, name: str, size: int) -> SharedMemory:
        # Room to spare: the next batch may be a little larger.
        for wanted in (size + size // 8, size):
            try:
                return _make_memory(name, wanted)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.ENOMEM, errno.EFBIG):
                    raise
                code = error.errno
        raise NoRoomError(size, code)

    def take_dropped(self) -> list[int]:
        """The slots that were given up, each told once: the consumer has them open still."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def give_back(self, numbers: list[int]) -> None:
        self._free.update(number for number in numbers if number in self._slots)

    def drop(self, numbers: list[int]) -> None:
        """Forget slots that are not to be written again."""
        for number in numbers:
            if number in self._slots:
                self._slots.pop(number).close()


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
        self._lent: set[int] = set()
        self._shared: set[int] = set()

    def read(self, number: int, size: int) -> _core.DeviceArray:
        """The first `size` bytes of a slot, which hold it."""
        memory, address = self._opened.get(number) or self._open(number)
        self._lent.add(number)
        lease = _Lease(number, memory, self._returned)
        return _core.borrow_memory(address, size, "cpu", lease)

    def _open(self, number: int) -> tuple[SharedMemory, int]:
        memory = SharedMemory(name_slot(self._prefix, number))
        self._next = number + 1
        if sys.platform != "win32":
            memory.unlink()
        # The address alone: a memory view would keep the memory from being closed.
        self._opened[number] = memory, _core.address_of(_core.to_arrow_device(memory.buf or b""))
        return self._opened[number]

    def drop(self, numbers: list[int]) -> None:
        """Forget slots that the worker has given up: their memory goes with its last user."""
        for number in numbers:
            self._opened.pop(number, None)

    def take_returned(self) -> tuple[list[int], list[int]]:
        """The slots that nobody uses any more, each told once.

        Returns
        -------
        returned : list of int
            To be used again.
        shared : list of int
            Forgotten here: a forked child may use them still.
        """
        numbers = {self._returned.popleft() for _ in range(len(self._returned))}
        self._lent -= numbers
        shared = numbers & self._shared
        self._shared -= shared
        self.drop(list(shared))
        return list(numbers - shared), list(shared)

    def share(self) -> None:
        """Before a fork: what is in use is the child's too, and nobody hears when it is done."""
        self._shared |= self._lent

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
            from _posixshmem import shm_unlink

            shm_unlink(f"/{name}")
        return
    memory.unlink()
    memory.close()
