"""Asynchronous streams: in coroutines, and between C structs."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl import c_data

TABLE = pa.table({"x": range(40)})


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main, 60))


def batches(size: int = 4) -> arrowdl.DeviceStream:
    return arrowdl.from_arrow_stream(TABLE.to_batches(max_chunksize=size))


async def read(stream: Any) -> list[int]:
    return [row async for array in stream for row in arrowdl.to_numpy(array)["x"]]


async def read_exported(source: Any, depth: int = 2) -> list[int]:
    stream = arrowdl.AsyncDeviceStream(depth)
    c_data.export_async_stream(source, stream.handler)
    return await read(stream)


def test_a_stream_is_read_in_a_coroutine() -> None:
    assert run(read(batches())) == list(range(40))


@pytest.mark.parametrize("depth", [1, 3, 100])
def test_a_stream_is_pushed_to_a_handler(depth: int) -> None:
    assert run(read_exported(batches(), depth)) == list(range(40))
    assert run(read_exported(TABLE, depth)) == list(range(40))
    assert run(read_exported([TABLE, TABLE.slice(0, 1)], depth)) == [*range(40), 0]
    assert run(read_exported(TABLE.slice(0, 0), depth)) == []


def test_other_tasks_run_while_one_waits() -> None:
    gate = threading.Event()

    def source() -> Iterator[pa.Table]:
        yield TABLE.slice(0, 1)
        assert gate.wait(60)
        yield TABLE.slice(1, 1)

    async def main() -> list[int]:
        reader = asyncio.create_task(read(arrowdl.from_arrow_stream(source())))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not reader.done()
        gate.set()
        return await reader

    assert run(main()) == [0, 1]


def test_the_schema_comes_before_the_arrays() -> None:
    async def main() -> None:
        stream = aiter(batches())
        schema = await stream.read_schema()
        assert pa.schema(schema) == TABLE.schema
        assert await read(stream) == list(range(40))
        assert pa.schema(await stream.read_schema()) == TABLE.schema

    run(main())


def test_errors_come_after_the_arrays_before_them() -> None:
    def source() -> Iterator[pa.Table]:
        yield TABLE
        raise KeyError("gone")

    async def main() -> None:
        stream = aiter(arrowdl.from_arrow_stream(source()))
        assert len(await anext(stream)) == 40
        with pytest.raises(KeyError, match="gone"):
            await anext(stream)
        with pytest.raises(RuntimeError, match="was raised before"):
            await anext(stream)

    run(main())


def test_a_producer_s_error_has_its_text() -> None:
    def source() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()
        raise ValueError("the disk is gone")

    failing = pa.RecordBatchReader.from_batches(TABLE.schema, source())
    with pytest.raises(RuntimeError, match="the disk is gone"):
        run(read_exported(failing))


def test_the_end_stays() -> None:
    async def main() -> None:
        stream = aiter(batches(40))
        assert len(await anext(stream)) == 40
        for _ in range(2):
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    run(main())


def endless(is_closed: threading.Event) -> Iterator[pa.Table]:
    try:
        while True:
            yield TABLE
    finally:
        is_closed.set()


async def leave(stream: Any) -> None:
    async for _ in stream:
        break


async def close(stream: Any) -> None:
    async with contextlib.aclosing(aiter(stream)) as arrays:
        await anext(arrays)


@pytest.mark.parametrize("end", [leave, close])
def test_a_stream_that_is_left_is_cancelled(end: Callable[[Any], Any]) -> None:
    is_closed = threading.Event()
    run(end(arrowdl.from_arrow_stream(endless(is_closed))))
    gc.collect()
    # A free-threaded Python closes a generator of this thread in this thread, once it runs.
    deadline = time.monotonic() + 60
    while not is_closed.wait(0.01) and time.monotonic() < deadline:
        pass
    assert is_closed.is_set()


def test_a_closed_stream_ends() -> None:
    async def main() -> None:
        stream = aiter(batches())
        await anext(stream)
        await stream.aclose()
        assert await read(stream) == []
        waiting = arrowdl.AsyncDeviceStream()
        waiting_handler = waiting.handler
        task = asyncio.ensure_future(read(waiting))
        await asyncio.sleep(0)
        await waiting.aclose()
        assert await task == []
        c_data.export_async_stream(TABLE, waiting_handler)  # it is told to stop

    run(main())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_may_not_read() -> None:
    stream = aiter(batches())
    asyncio.run(stream.read_schema())
    child = os.fork()
    if child == 0:
        status = 1
        try:
            asyncio.run(read(stream))
        except RuntimeError as error:
            status = 0 if "in another process" in str(error) else 2
        asyncio.run(stream.aclose())
        os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert asyncio.run(read(stream)) == list(range(40))


def test_a_cancelled_task_loses_no_array() -> None:
    gate = threading.Event()

    def source() -> Iterator[pa.Table]:
        yield TABLE.slice(0, 1)
        assert gate.wait(60)
        yield TABLE.slice(1, 1)

    async def main() -> None:
        stream = aiter(arrowdl.from_arrow_stream(source()))
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.set()
        assert await read(stream) == [1]

    run(main())


def test_one_task_reads() -> None:
    async def main() -> None:
        stream = arrowdl.AsyncDeviceStream()
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="one task at a time"):
            await anext(stream)
        c_data.export_async_stream(TABLE, stream.handler)
        assert len(await first) == 40

    run(main())


def test_a_loop_that_is_closed_is_not_called() -> None:
    gate = threading.Event()

    def source() -> Iterator[pa.Table]:
        yield TABLE
        gate.wait(60)

    loop = asyncio.new_event_loop()
    stream = aiter(arrowdl.from_arrow_stream(source()))
    loop.run_until_complete(anext(stream))
    task = loop.create_task(anext(stream))
    loop.run_until_complete(asyncio.sleep(0))
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()
    gate.set()
    assert asyncio.run(read(stream)) == []


def test_the_arrays_are_read_as_a_stream_that_waits() -> None:
    stream = arrowdl.AsyncDeviceStream()
    c_data.export_async_stream(batches(), stream.handler)
    assert pa.table(stream.to_stream()).equals(TABLE)


class _Handler(ctypes.Structure):
    """An ArrowAsyncDeviceStreamHandler."""

    _fields_ = tuple(
        (name, ctypes.c_void_p)
        for name in ("on_schema", "on_next_task", "on_error", "release", "producer", "private_data")
    )


@pytest.mark.parametrize("how", ["read_schema", "arrays", "to_stream"])
def test_an_end_before_the_schema_is_an_error(how: str) -> None:
    stream = arrowdl.AsyncDeviceStream()
    handler = _Handler.from_address(stream.handler)
    address = ctypes.c_void_p
    send = ctypes.CFUNCTYPE(ctypes.c_int, address, address, address)(handler.on_next_task)
    release = ctypes.CFUNCTYPE(None, address)(handler.release)
    assert send(stream.handler, None, None) != 0
    release(stream.handler)

    use = {
        "read_schema": lambda: run(stream.read_schema()),
        "arrays": lambda: run(read(stream)),
        "to_stream": stream.to_stream,
    }
    with pytest.raises(ValueError, match="the end before the schema"):
        use[how]()


def test_handlers_are_checked() -> None:
    with pytest.raises(ValueError, match="depth=0"):
        arrowdl.AsyncDeviceStream(0)
    with pytest.raises(ValueError, match="handler=0"):
        c_data.export_async_stream(TABLE, 0)
    unused = arrowdl.AsyncDeviceStream()
    address = unused.handler
    unused.release_handler()
    stream = batches()
    with pytest.raises(ValueError, match="it was released"):
        c_data.export_async_stream(stream, address)


def test_a_stream_that_was_taken_is_refused() -> None:
    stream = batches()
    stream.rebatch(2)
    with pytest.raises(ValueError, match="can be read once"):
        aiter(stream)


def test_an_array_on_a_device_keeps_its_device() -> None:
    async def main() -> None:
        array = arrowdl.from_arrow(TABLE)
        stream = arrowdl.AsyncDeviceStream()
        c_data.export_async_stream([array], stream.handler)
        (received,) = [item async for item in stream]
        assert received.device == array.device
        assert arrowdl.to_numpy(received)["x"].ctypes.data == (
            arrowdl.to_numpy(array)["x"].ctypes.data
        )

    run(main())
