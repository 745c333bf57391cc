"""Shared memory between a worker process and its consumer, in slots that are reused.

The worker makes a slot when no free one is large enough, and sends its number and a descriptor of
its memory. The memory has no name: it lasts as long as a process has it mapped, and is released
however these processes end. A slot returns to the worker when nothing uses its memory any more.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections import deque

from arrowdl import _core
from arrowdl.loader._workers.anonymous_memory import make_memory, map_memory
from arrowdl.loader._workers.available_memory import MemoryGuard
from arrowdl.loader._workers.no_room import NoRoomError, is_no_room


class Slot:
    """Memory of a worker."""

    def __init__(
        self,
        size: int,  # bytes, at least 1
    ) -> None:
        # to be sent to the consumer; None once it was
        self.descriptor: int | None = make_memory(size)
        try:
            self.memory = map_memory(self.descriptor)
        except BaseException:
            self.close_descriptor()
            raise

    def close_descriptor(self) -> None:
        """Close the descriptor, which the consumer has received or never will."""
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        """Release the memory, unless the consumer has it mapped."""
        self.close_descriptor()
        self.memory.close()


class SlotPool:
    """The slots of a worker, on the side that writes them."""

    def __init__(self) -> None:
        self._count = 0
        self._slots: dict[int, Slot] = {}
        self._free: set[int] = set()
        self._dropped: list[int] = []
        self._guard = MemoryGuard()

    def take(
        self,
        size: int,  # bytes that it has at least
    ) -> tuple[int, Slot, list[int]]:
        """Take a free slot, or make one.

        Returns its number, the slot, and the slots that were dropped for it, which the consumer has
        to drop too. Raises NoRoomError: when the consumer returns or drops slots, there may be
        room: see `take_dropped`.
        """
        fitting = [number for number in self._free if len(self._slots[number].memory) >= size]
        if fitting:
            number = min(fitting, key=lambda number: len(self._slots[number].memory))
            self._free.remove(number)
            return number, self._slots[number], []
        for number in self._free:
            self._slots.pop(number).close()
        self._dropped += self._free
        self._free.clear()
        number = self._count
        self._slots[number] = self._make(max(1, size))
        self._count += 1
        return number, self._slots[number], self.take_dropped()

    def _make(self, size: int) -> Slot:
        # The next batch may be a little larger.
        for wanted in (size + size // 8, size):
            try:
                self._guard.check(wanted)
                return Slot(wanted)
            except OSError as error:
                if not is_no_room(error):
                    raise
                # Not the error: with it, the frames that it refers to, and the batch in them, would
                # stay until the garbage collector runs.
                code, folder = error.errno or 0, error.filename
        raise NoRoomError(size, code, folder)

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

    def __init__(self, number: int, memory: mmap.mmap, returned: deque[int]) -> None:
        self._number = number
        self._memory = memory
        self._returned = returned

    def __del__(self) -> None:  # on any thread
        self._returned.append(self._number)


class SlotReader:
    """The slots of a worker, on the side that reads them."""

    def __init__(self) -> None:
        self._opened: dict[int, tuple[mmap.mmap, int]] = {}
        self._returned: deque[int] = deque()
        self._lent: set[int] = set()
        self._shared: set[int] = set()

    def read(
        self,
        number: int,
        size: int,
        # of the slot, if this is its first batch; closed here. None in a first batch if this
        # process may have no more descriptors
        descriptor: int | None,
    ) -> _core.DeviceArray:
        """Return the first `size` bytes of a slot. The array keeps the slot from being reused."""
        memory, address = self._opened.get(number) or self._open(number, size, descriptor)
        self._lent.add(number)
        lease = _Lease(number, memory, self._returned)
        return _core.borrow_memory(address, size, "cpu", lease)

    def _open(self, number: int, size: int, descriptor: int | None) -> tuple[mmap.mmap, int]:
        if descriptor is None:
            raise NoRoomError(size, errno.EMFILE)
        try:
            memory = map_memory(descriptor)
        except OSError as error:
            if not is_no_room(error):
                raise
            raise NoRoomError(size, error.errno or 0) from None
        finally:
            os.close(descriptor)
        # Keep the address alone: a memory view would prevent closing the memory.
        self._opened[number] = memory, _core.address_of(_core.to_arrow_device(memory))
        return self._opened[number]

    def drop(self, numbers: list[int]) -> None:
        """Forget slots that the worker has dropped; their last user releases the memory."""
        for number in numbers:
            self._opened.pop(number, None)

    def take_returned(self) -> tuple[list[int], list[int]]:
        """Return the slots that are not used any more, each once.

        The first list has the slots to reuse, the second one those to drop, since a forked child
        may still use them. They are dropped here.
        """
        numbers = {self._returned.popleft() for _ in range(len(self._returned))}
        self._lent -= numbers
        shared = numbers & self._shared
        self._shared -= shared
        self.drop(list(shared))
        return list(numbers - shared), list(shared)

    def trim(self, keep: int) -> tuple[list[int], list[int]]:
        """Drop idle slots but for `keep` between epochs; return lists as `take_returned` does."""
        returned, dropped = self.take_returned()
        idle = sorted(self._opened.keys() - self._lent)
        extra = idle[: max(0, len(idle) - keep)]  # newer ones fit newer batches
        self.drop(extra)
        return [number for number in returned if number not in extra], dropped + extra

    def share(self) -> None:
        """Note before a fork that the child uses the slots too, and will not say when it ends."""
        self._shared |= self._lent

    def close(self) -> None:
        """Forget all slots; those that batches use last as long as these."""
        self._opened.clear()
