"""What a stream says that fails, through layers of streams."""

from __future__ import annotations

import copy
import ctypes
import errno
from collections.abc import Callable, Iterator
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl import _core
from helpers.capsules import capsule_address

SCHEMA = pa.schema({"x": pa.int64()})


def failing(error: BaseException, batches: int = 1) -> pa.RecordBatchReader:
    """A stream of pyarrow's that ends in `error`."""

    def read() -> Iterator[pa.RecordBatch]:
        for i in range(batches):
            yield pa.record_batch({"x": [i]}, schema=SCHEMA)
        raise copy.copy(error)  # one that is raised again keeps each traceback, with all frames

    return pa.RecordBatchReader.from_batches(SCHEMA, read())


def give_rows() -> arrowdl.DeviceStream:
    return arrowdl.from_arrow_stream(pa.table({"x": range(10)}, schema=SCHEMA))


class ArrowArrayStream(ctypes.Structure):
    _fields_ = [
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


class Failing:
    """An Arrow stream whose get_next gives `code`, and whose last error is `message`."""

    def __init__(self, code: int, message: bytes | None = None) -> None:
        self._reader = pa.RecordBatchReader.from_batches(SCHEMA, [])
        self._inner = self._reader.__arrow_c_stream__()
        self._text = None if message is None else ctypes.create_string_buffer(message)
        stream = ArrowArrayStream.from_address(capsule_address(self._inner))
        address = None if self._text is None else ctypes.addressof(self._text)
        stream.get_next = self._next = stream._fields_[1][1](lambda *_: code)
        stream.get_last_error = self._last = stream._fields_[2][1](lambda *_: address)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._inner


def ask(stream: Any) -> tuple[int, bytes | None]:
    """The first failure of an exported stream, as C sees it."""
    capsule = stream.__arrow_c_stream__()
    exported = ArrowArrayStream.from_address(capsule_address(capsule))
    array = (ctypes.c_uint64 * 16)()
    code = exported.get_next(ctypes.addressof(exported), ctypes.addressof(array))
    text = exported.get_last_error(ctypes.addressof(exported))
    return code, None if text is None else ctypes.string_at(text)


CODES = [errno.ENOSYS, errno.EINVAL, errno.ENOMEM, errno.EIO, errno.ENOENT, errno.ENOTSUP, 12345]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("message", [b"the disk is on fire", None])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_what_a_producer_reports_goes_out_as_it_came(
    code: int, message: bytes | None, layers: int
) -> None:
    stream: Any = (source := Failing(code, message))  # whose callbacks live as long
    for _ in range(layers):
        stream = arrowdl.from_arrow_stream(Hidden(stream))
    assert ask(stream) == (code, message)
    del stream, source


class Hidden:
    """A stream of which nothing shows but Arrow's protocol."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._stream.__arrow_c_stream__(requested_schema)


ADAPTORS: dict[str, Callable[[arrowdl.DeviceStream], arrowdl.DeviceStream]] = {
    "none": lambda stream: stream,
    "select": lambda stream: stream.select(["x"]),
    "rebatch": lambda stream: stream.rebatch(3),
    "slice": lambda stream: stream.slice(0, 100),
    "shuffle": lambda stream: stream.shuffle(2, seed=1),
    "shard": lambda stream: stream.shard(1, 0),
    "to": lambda stream: stream.to("cpu"),
    "prefetch": lambda stream: stream.prefetch(2),
    "interleave": lambda stream: _core.interleave([stream, give_rows()], 1),
    "mix": lambda stream: _core.mix([give_rows(), stream], [[0, 0, 1, 0, 1, 1, 0]]),
}
ERRORS = [
    NotImplementedError("not in this life"),
    ValueError("that is not a value"),
    MemoryError("no more"),
    OSError("the disk is on fire"),
    TypeError("what is that"),
    KeyError("which"),
    IndexError("where"),
]


def outcome(read: Callable[[], Any]) -> tuple[type, str]:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        read()
    return caught.type, str(caught.value)


@pytest.mark.parametrize("adapt", ADAPTORS)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_pyarrow_reads_the_same_error_with_arrowdl_between(
    adapt: str, error: BaseException
) -> None:
    direct = pa.RecordBatchReader.from_stream(Hidden(failing(error)))
    through = ADAPTORS[adapt](arrowdl.from_arrow_stream(failing(error)))
    read = pa.RecordBatchReader.from_stream(Hidden(through))
    assert outcome(read.read_all) == outcome(direct.read_all)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NotImplementedError("as it was"), NotImplementedError),
        (MemoryError("as it was"), MemoryError),
        (OSError("as it was"), RuntimeError),
        (ValueError("as it was"), RuntimeError),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
def test_our_own_readers_say_once_who_failed(
    error: BaseException, expected: type[BaseException], layers: int
) -> None:
    stream: Any = failing(error)
    for _ in range(layers):
        stream = arrowdl.from_arrow_stream(Hidden(stream))
    assert pa.array(next(stream)).to_pylist() == [{"x": 0}]
    for _ in range(2):  # again and again
        with pytest.raises(expected) as caught:
            next(stream)
        assert caught.type is expected
        text = str(caught.value)
        assert text.startswith("the Arrow stream's producer failed to give its next array: ")
        assert text.count("producer failed") == text.count("(errno ") == 1


def test_whole_streams_fail_alike() -> None:
    for read in arrowdl.from_arrow, arrowdl.to_numpy:
        with pytest.raises(NotImplementedError, match="not yet"):
            read(failing(NotImplementedError("not yet")))
    loader = arrowdl.Loader(lambda: failing(NotImplementedError("not yet")), 1, framework="numpy")
    with pytest.raises(NotImplementedError, match="not yet"):
        list(loader)


def test_a_schema_that_cannot_be_given() -> None:
    stream = Failing(0)
    raw = ArrowArrayStream.from_address(capsule_address(stream._inner))
    kept = raw.get_schema
    refuse = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
        lambda *_: errno.ENOSYS
    )
    raw.get_schema = ctypes.cast(refuse, ctypes.c_void_p)
    with pytest.raises(NotImplementedError, match="failed to give its schema: Function not impl"):
        arrowdl.from_arrow_stream(stream)
    assert kept
