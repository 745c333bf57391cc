"""Copies of batches to a device, ahead of the training."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.pack import Message, pack
from arrowdl.loader._batches.padding import Counts
from arrowdl.loader._clock import Clock


class Packer:
    """Converts arrays on the host, and copies each batch to a device as one block."""

    def __init__(
        self,
        convert: Callable[[_core.DeviceArray], Any],  # makes a batch of tensors from an array
        device: Any,
        count: Callable[[_core.DeviceArray], Counts],  # counts the padding of the batch of an array
        clock: Clock,  # of the thread
        *,
        keeps_rows: bool,  # whether messages keep the arrays
    ) -> None:
        self._convert = convert
        self._device = device
        self._count = count
        self._clock = clock
        self._keeps_rows = keeps_rows

    def __call__(self, array: _core.DeviceArray) -> Message:
        with self._clock.measure("conversion"):
            packed = pack(self._convert(array), len(array), self._count(array), self._device)
            with self._clock.measure("copy"):
                packed = packed.to(self._device)
        return replace(packed, array=array) if self._keeps_rows else packed


def pack_ahead(
    arrays: _core.DeviceStream,  # arrays in host memory. A native thread reads and converts them
    copy: Callable[[_core.DeviceArray], Message],
    depth: int,  # batches that are copied ahead; 0 uses no thread
) -> Iterator[Message]:
    """Convert each array on the host, and copy the batch to a device as one block."""
    first = next(arrays, None)
    if first is None:
        return
    messages = deque([copy(first)])
    del first
    if not depth:
        yield messages.popleft()
        yield from map(copy, arrays)
        return

    def copy_blocks() -> Iterator[_core.DeviceArray]:
        yield messages[0].block
        for array in arrays:
            messages.append(copy(array))
            del array
            yield messages[-1].block

    with closing(_core.from_arrow_stream(copy_blocks()).prefetch(depth)) as blocks:
        for block in blocks:
            del block
            yield messages.popleft()


def copy_ahead(
    messages: Iterator[Message],
    is_ready: Callable[[], bool],  # whether the next message has arrived
    device: Any,
    depth: int,
    clock: Clock,  # of the caller's thread
) -> Iterator[Message]:
    """Copy each message to `device`, up to `depth` of them ahead of the training.

    Only messages that have arrived are copied ahead: this never waits for a message while it can
    yield another.
    """
    copied: deque[Message] = deque()
    try:
        for message in messages:
            with clock.measure("copy"):
                copied.append(message.to(device))
            del message
            while len(copied) > depth or (copied and not is_ready()):
                yield copied.popleft()
    except Exception:
        yield from copied  # they came before the error
        raise
    yield from copied
