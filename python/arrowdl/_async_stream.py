"""`AsyncDeviceStream`: arrays that a producer pushes, for coroutines."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from arrowdl import _core


class AsyncDeviceStream:
    """Receives an asynchronous Arrow stream: an async iterator of `DeviceArray`.

    ``async for array in stream`` of a `DeviceStream` makes one. For a producer in another library,
    pass it `handler`, the C struct of Arrow's async device stream interface::

        stream = arrowdl.AsyncDeviceStream()
        start_query(stream.handler)  # a C function
        async for array in stream:
            ...

    One task at a time reads a stream, in an event loop of asyncio. A stream that is dropped before
    its end is cancelled.

    Parameters
    ----------
    depth : int
        Arrays that the producer may send ahead, at least 1.

    Raises
    ------
    ValueError
        `depth` is less than 1.
    """

    def __init__(self, depth: int = 2) -> None:
        self._receiver = _core.AsyncReceiver(depth)
        self._is_read = self._is_closed = False

    @property
    def handler(self) -> int:
        """The address of the ArrowAsyncDeviceStreamHandler, for one producer.

        The struct lives until the producer calls its ``release``.
        """
        return self._receiver.handler

    def release_handler(self) -> None:
        """Release the handler in place of a producer that did not start."""
        self._receiver.release_handler()

    async def read_schema(self) -> _core.Schema:
        """Wait for the schema.

        Returns
        -------
        Schema

        Raises
        ------
        RuntimeError
            The producer failed, or another task reads the stream.
        """
        while True:
            seen = self._receiver.changes()
            if (schema := self._receiver.schema()) is not None:
                return schema
            await self._wait(seen)

    def __aiter__(self) -> AsyncDeviceStream:
        return self

    async def __anext__(self) -> _core.DeviceArray:
        while not self._is_closed:
            seen = self._receiver.changes()
            if (ready := self._receiver.poll()) is not None:
                (array,) = ready
                if array is None:
                    raise StopAsyncIteration
                return array
            await self._wait(seen)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancel the stream: drop the arrays that wait, and ask the producer to stop.

        The iteration ends.
        """
        self._is_closed = True
        self._receiver.cancel()

    def to_stream(self) -> _core.DeviceStream:
        """Return the arrays as a stream that waits for them.

        Waits for the schema.

        Returns
        -------
        DeviceStream

        Raises
        ------
        RuntimeError
            The producer failed.
        """
        return self._receiver.open_stream()

    async def _wait(self, seen: int) -> None:
        """Wait until the producer has changed something since `changes` returned `seen`."""
        import asyncio

        if self._is_read:
            raise RuntimeError("another task reads this AsyncDeviceStream: one task at a time")
        loop = asyncio.get_running_loop()
        changed: asyncio.Future[None] = loop.create_future()

        def wake() -> None:  # on a thread of the producer
            with suppress(RuntimeError):  # the loop is closed, and does not wait
                loop.call_soon_threadsafe(_finish, changed)

        self._is_read = True
        try:
            if self._receiver.notify(seen, wake):
                await changed
        finally:
            self._is_read = False
            self._receiver.notify(self._receiver.changes(), None)  # lets go of the task


def iterate(stream: _core.DeviceStream) -> AsyncDeviceStream:
    """Return the arrays of a stream, which a thread reads ahead."""
    receiver = AsyncDeviceStream()
    try:
        stream._send(receiver.handler)
    except BaseException:
        receiver.release_handler()
        raise
    return receiver


def _finish(future: Any) -> None:
    if not future.done():
        future.set_result(None)
