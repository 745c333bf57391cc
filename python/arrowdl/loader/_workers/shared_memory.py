"""Shared memory between a worker process and its consumer, in slots that are reused.

The worker makes a slot when no free one is large enough, and sends its number. The consumer opens
the slot and unlinks its name at once: from then on the memory lasts as long as a process has it
mapped, and is released however these processes end. A slot returns to the worker when nothing uses
its memory any more.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections import deque
from multiprocessing.shared_memory import SharedMemory

from arrowdl import _core

# Where glibc and musl keep it. Other systems do not say how much there is.
FOLDER = "/dev/shm"
_NO_FILES = (errno.EMFILE, errno.ENFILE)
_NO_MEMORY = (errno.ENOSPC, errno.ENOMEM, errno.EFBIG)


def name_slot(prefix: str, number: int) -> str:
    """Return the name of a slot's shared memory."""
    return f"{prefix}-{number}"


class NoRoomError(OSError):
    """The system has no shared memory of the wanted size, or no file descriptor for it."""

    def __init__(self, size: int, code: int) -> None:
        explain = _explain_files if code in _NO_FILES else _explain_memory
        super().__init__(code, explain(size, code))


def _explain_memory(size: int, code: int) -> str:
    return (
        f"no shared memory for a batch of {size} bytes: {_describe_room(code)}. Each worker "
        "process keeps some batches in shared memory: start the container with more (docker run "
        "--shm-size=4g, an emptyDir of medium Memory in Kubernetes), or give the Loader smaller "
        "batches, fewer workers, a smaller prefetch, or num_workers=0, which needs none"
    )


def _describe_room(code: int) -> str:
    try:
        room = os.statvfs(FOLDER)
    except (OSError, AttributeError):
        return os.strerror(code)
    free, total = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
    return f"{FOLDER} has {free} bytes free, of {total} ({os.strerror(code)})"


def _explain_files(size: int, code: int) -> str:
    return (
        f"no file descriptor for the shared memory of a batch of {size} bytes: "
        f"{_describe_limit(code)}. Each batch that is alive takes two, in the training's process "
        "and in its worker: keep fewer batches (copy what you keep, as by tensor.clone()), raise "
        "the limit, or give the Loader num_workers=0, which needs none"
    )


def _describe_limit(code: int) -> str:
    if code != errno.EMFILE or sys.platform == "win32":
        return os.strerror(code)
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"this process may have {limit} files open (ulimit -n; {os.strerror(code)})"


def _make_memory(name: str, size: int) -> SharedMemory:
    """Make shared memory that is reserved: otherwise the first write to it may be a SIGBUS."""
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
    """The slots of a worker, on the side that writes them."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count = 0
        self._slots: dict[int, SharedMemory] = {}
        self._free: set[int] = set()
        self._dropped: list[int] = []

    def take(self, size: int) -> tuple[int, SharedMemory, list[int]]:
        """Take a free slot, or make one.

        Parameters
        ----------
        size : int
            Bytes that it has at least.

        Returns
        -------
        number : int
        memory : SharedMemory
        dropped : list of int
            Slots that were dropped for it, which the consumer has to drop too.

        Raises
        ------
        NoRoomError
            When the consumer returns or drops slots, there may be room: see `take_dropped`.
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
        # The next batch may be a little larger.
        for wanted in (size + size // 8, size):
            try:
                return _make_memory(name, wanted)
            except OSError as error:
                if error.errno not in (*_NO_MEMORY, *_NO_FILES):
                    raise
                code = error.errno
        raise NoRoomError(size, code)

    def take_dropped(self) -> list[int]:
        """Return the slots that were dropped and that the consumer still has open, each once."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def give_back(self, numbers: list[int]) -> None:
        """Mark slots as free."""
        self._free.update(number for number in numbers if number in self._slots)

    def drop(self, numbers: list[int]) -> None:
        """Close slots that are not written again."""
        self._free.difference_update(numbers)
        for number in numbers:
            if number in self._slots:
                self._slots.pop(number).close()


class _Lease:
    """Keeps a slot from being written again as long as this object lives."""

    def __init__(self, number: int, memory: SharedMemory, returned: deque[int]) -> None:
        self._number = number
        self._memory = memory
        self._returned = returned

    def __del__(self) -> None:  # on any thread
        self._returned.append(self._number)


class SlotReader:
    """The slots of a worker, on the side that reads them."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._opened: dict[int, tuple[SharedMemory, int]] = {}
        self._next = 0
        self._returned: deque[int] = deque()
        self._lent: set[int] = set()
        self._shared: set[int] = set()

    def read(self, number: int, size: int) -> _core.DeviceArray:
        """Return the first `size` bytes of a slot. The array keeps the slot from being reused.

        Raises
        ------
        NoRoomError
            This process has no file descriptor left.
        """
        memory, address = self._opened.get(number) or self._open(number, size)
        self._lent.add(number)
        lease = _Lease(number, memory, self._returned)
        return _core.borrow_memory(address, size, "cpu", lease)

    def _open(self, number: int, size: int) -> tuple[SharedMemory, int]:
        try:
            memory = SharedMemory(name_slot(self._prefix, number))
        except OSError as error:
            if error.errno in _NO_FILES:
                raise NoRoomError(size, error.errno) from None
            raise
        self._next = number + 1
        if sys.platform != "win32":
            memory.unlink()
        # Keep the address alone: a memory view would prevent closing the memory.
        self._opened[number] = memory, _core.address_of(_core.to_arrow_device(memory.buf or b""))
        return self._opened[number]

    def drop(self, numbers: list[int]) -> None:
        """Forget slots that the worker has dropped; their last user releases the memory."""
        for number in numbers:
            self._opened.pop(number, None)

    def take_returned(self) -> tuple[list[int], list[int]]:
        """Return the slots that nobody uses any more, each once.

        Returns
        -------
        returned : list of int
            Slots to reuse.
        dropped : list of int
            Slots to drop, since a forked child may still use them. They are dropped here.
        """
        numbers = {self._returned.popleft() for _ in range(len(self._returned))}
        self._lent -= numbers
        shared = numbers & self._shared
        self._shared -= shared
        self.drop(list(shared))
        return list(numbers - shared), list(shared)

    def trim(self, keep: int) -> tuple[list[int], list[int]]:
        """Drop idle slots but for `keep`, while the worker waits for the next epoch.

        Returns
        -------
        returned, dropped : list of int
            As of `take_returned`.
        """
        returned, dropped = self.take_returned()
        idle = sorted(self._opened.keys() - self._lent)
        extra = idle[: max(0, len(idle) - keep)]  # newer ones fit newer batches
        self.drop(extra)
        return [number for number in returned if number not in extra], dropped + extra

    def share(self) -> None:
        """Note before a fork that the child uses the slots too, and will not say when it ends."""
        self._shared |= self._lent

    def close(self, announced: int) -> None:
        """Unlink the slots that an ended worker made and nobody opened.

        Parameters
        ----------
        announced : int
            The most slots that it may have made besides those that were opened.
        """
        for number in range(self._next, self._next + announced):
            with contextlib.suppress(FileNotFoundError):
                _unlink(name_slot(self._prefix, number))
        self._opened.clear()


def _unlink(name: str) -> None:
    try:
        memory = SharedMemory(name)
    except ValueError:  # empty: its worker was killed before it set a size
        if sys.platform != "win32":
            from _posixshmem import shm_unlink

            shm_unlink(f"/{name}")
        return
    memory.unlink()
    memory.close()
