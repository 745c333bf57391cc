"""Batches that are on their way to a device before the training asks for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from arrowdl import _core
from arrowdl.loader._workers.wire import Message, pack


def pack_ahead(
    arrays: _core.DeviceStream,
    convert: Callable[[_core.DeviceArray], Any],
    device: Any,
    depth: int,
) -> Iterator[Message]:
    """What `convert` makes of each array, on `device`, up to `depth` later ones there already.

    Parameters
    ----------
    arrays : DeviceStream
        In host memory. They are read, and the tensors made, by a native thread.
    convert : callable
    device : device
    depth : int
        0 for no thread.
    """

    def copy(array: _core.DeviceArray) -> Message:
        return pack(convert(array), len(array)).to(device)

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
    messages: Iterator[Message], is_ready: Callable[[], bool], device: Any, depth: int
) -> Iterator[Message]:
    """The messages on `device`, each with the copies of up to `depth` later ones under way.

    Those are of messages that are there: nothing waits for one as long as another can be given.
    """
    copied: deque[Message] = deque()
    try:
        for message in messages:
            copied.append(message.to(device))
            del message
            while len(copied) > depth or (copied and not is_ready()):
                yield copied.popleft()
    except Exception:
        yield from copied  # they came before it
        raise
    yield from copied
