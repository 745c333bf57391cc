"""Arrow's C streams, read through ctypes by a consumer that holds the interpreter lock, or not."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import arrowdl
import pyarrow as pa
from arrowdl import _core

from helpers.arrow import ArrowArray, ArrowDeviceArray, ArrowSchema
from helpers.capsules import capsule_address


class ArrowArrayStream(ctypes.Structure):
    """The functions as addresses: who calls decides how."""

    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class ArrowDeviceArrayStream(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), *ArrowArrayStream._fields_)


# What makes a foreign function of an address: with the lock, as Cython's and most of PyO3's
# callers have it, and without it.
CALLERS: dict[str, Callable[..., Any]] = {
    "with the lock": ctypes.PYFUNCTYPE,
    "without the lock": ctypes.CFUNCTYPE,
}


class Reader:
    """A consumer of `stream` by its "__arrow_c_stream__" or its "__arrow_c_device_stream__"."""

    def __init__(self, stream: Any, method: str, caller: str) -> None:
        self._capsule = getattr(stream, method)()
        self._make = CALLERS[caller]
        is_plain = method == "__arrow_c_stream__"
        self._Array = ArrowArray if is_plain else ArrowDeviceArray
        Struct = ArrowArrayStream if is_plain else ArrowDeviceArrayStream
        self.stream = Struct.from_address(capsule_address(self._capsule))

    def _call(self, name: str, *structs: Any, result: Any = ctypes.c_int) -> Any:
        function = self._make(result, *[ctypes.c_void_p] * (1 + len(structs)))
        pointers = [ctypes.byref(struct) for struct in (self.stream, *structs)]
        return function(getattr(self.stream, name))(*pointers)

    def _release(self, struct: Any) -> None:
        address = ctypes.cast(struct.release, ctypes.c_void_p).value
        self._make(None, ctypes.c_void_p)(address)(ctypes.byref(struct))
        assert not struct.release

    def read_schema(self) -> str:
        schema = ArrowSchema()
        assert self._call("get_schema", schema) == 0
        text = f"{schema.format.decode()}{schema.n_children}"
        self._release(schema)
        return text

    def read_next(self) -> int | None:
        """The length of the next array, which is released; None at the end."""
        made = self._Array()
        if self._call("get_next", made) != 0:
            raise RuntimeError(self._call("get_last_error", result=ctypes.c_char_p).decode())
        array = getattr(made, "array", made)
        if not array.release:
            return None
        length: int = array.length
        self._release(array)
        return length

    def __iter__(self) -> Iterator[int]:
        return iter(self.read_next, None)

    def close(self) -> None:
        self._call("release", result=None)
        assert not self.stream.release


def make_batches(count: int = 5) -> list[pa.RecordBatch]:
    return [
        pa.record_batch({"a": [i, i + 1, i + 2], "b": ["x", None, "z"], "c": [[i], [], [i, i]]})
        for i in range(count)
    ]


def yield_batches() -> Iterator[pa.RecordBatch]:
    for batch in make_batches():
        sum(range(100))  # gives other threads a chance to ask for the lock
        yield batch


def from_batches() -> arrowdl.DeviceStream:
    """A second stream, for adaptors of several."""
    return arrowdl.from_arrow_stream(yield_batches())


# Each needs the interpreter lock somewhere: to run, or to be released.
SOURCES: dict[str, Callable[[], Any]] = {
    "a table": lambda: pa.Table.from_batches(make_batches()),
    "an iterator": yield_batches,
    "a reader of an iterator": lambda: pa.RecordBatchReader.from_batches(
        make_batches()[0].schema, yield_batches()
    ),
}


def _double(column: Any) -> Any:
    return column * 2


ADAPTORS: dict[str, Callable[[Any], Any]] = {
    "stream": lambda stream: stream,
    "select": lambda stream: stream.select(["b", "a"]),
    "rebatch": lambda stream: stream.rebatch(4),
    "slice": lambda stream: stream.slice(2, 9),
    "shuffle": lambda stream: stream.shuffle(5, 7),
    "shard": lambda stream: stream.shard(2, 1),
    "to": lambda stream: stream.to("cpu"),
    "prefetch": lambda stream: stream.prefetch(),
    "pack": lambda stream: stream.pack("c", 4),
    "pack by best_fit": lambda stream: stream.pack("c", 4, "best_fit", buffer_size=2),
    "chain": lambda stream: _core.chain(list(stream)),
    "interleave": lambda stream: _core.interleave([stream, from_batches()], 2, 1),
    "map": lambda stream: stream.map(_double, columns="a", framework="numpy"),
    "mix": lambda stream: _core.mix([stream, from_batches()], [[0, 0, 1, 0, 1, 2, 0]]),
    "all": lambda stream: (
        stream.prefetch(1)
        .select(["a"])
        .rebatch(4)
        .prefetch()
        .shuffle(5, 7)
        .shard(2, 1)
        .to("cpu")
        .slice(1, 5)
        .prefetch(1)
    ),
}


def every_stream() -> Iterator[tuple[str, list[int], Any]]:
    """A name, the lengths of its arrays and the stream, for every source and adaptor."""
    for source, make in SOURCES.items():
        for adaptor, adapt in ADAPTORS.items():
            lengths = [len(array) for array in adapt(arrowdl.from_arrow_stream(make()))]
            yield f"{adaptor} of {source}", lengths, adapt(arrowdl.from_arrow_stream(make()))


@contextmanager
def running(loop: Callable[[], None]) -> Iterator[None]:
    """Another thread calls `loop` all the time, which wants the lock."""
    import threading

    is_over = threading.Event()

    def run() -> None:
        while not is_over.is_set():
            loop()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
