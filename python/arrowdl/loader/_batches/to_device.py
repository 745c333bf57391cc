"""Copies of batches to a device, ahead of the training."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.pack import Message, pack
from arrowdl.loader._batches.padding import Counts
from arrowdl.loader._clock import Clock


def pack_ahead(
    arrays: _core.DeviceStream,
    convert: Callable[[_core.DeviceArray], Any],
    device: Any,
    depth: int,
    count: Callable[[_core.DeviceArray], Counts],
    clock: Clock,
) -> Iterator[Message]:
    """Convert each array on the host, and copy the batch to `device` as one block.

    Parameters
    ----------
    arrays : DeviceStream
        Arrays in host memory. A native thread reads and converts them.
    convert : callable
        Makes a batch of tensors from an array.
    device : device
    depth : int
        Batches that are copied ahead; 0 uses no thread.
    count : callable
        Counts the padding of the batch of an array.
    clock : Clock
        Of the thread.
    """

    def copy(array: _core.DeviceArray) -> Message:
        with clock.measure("conversion"):
            message = pack(convert(array), len(array), count(array))
            with clock.measure("copy"):
                return message.to(device)

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
    is_ready: Callable[[], bool],
    device: Any,
    depth: int,
    clock: Clock,
) -> Iterator[Message]:
    """Copy each message to `device`, up to `depth` of them ahead of the training.

    Only messages that have arrived are copied ahead: this never waits for a message while it can
    yield another.

    Parameters
    ----------
    messages : iterator of Message
    is_ready : callable
        Whether the next message has arrived.
    device : device
    depth : int
    clock : Clock
        Of the caller's thread.
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
