"""Events of devices without a runtime here: carried, refused, or waited for by the user."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema

METAL = int(arrowdl.DeviceType.metal)
EVENT = ctypes.c_void_p(1)


def make_pending() -> arrowdl.DeviceArray:
    made = MadeArray(3, [None, np.arange(3, dtype="int32")])
    array = MadeDeviceArray(made, (METAL, 2), ctypes.addressof(EVENT))
    return arrowdl.from_arrow((MadeSchema("i").capsule(), array.capsule()))


@pytest.fixture
def calls() -> Iterator[list[tuple[int, int]]]:
    seen: list[tuple[int, int]] = []
    arrowdl.register_synchronizer(METAL, lambda event, id: seen.append((event, id)))
    yield seen
    arrowdl.register_synchronizer(METAL, None)


def test_without_an_event_the_memory_is_there() -> None:
    array = arrowdl.from_arrow(pa.array([1, 2]))
    assert array.sync_event is None
    assert array.is_ready()
    array.synchronize()


def test_an_event_that_nobody_can_wait_for_is_refused_by_name() -> None:
    pending = make_pending()
    assert pending.sync_event == ctypes.addressof(EVENT)
    for use in pending.is_ready, pending.synchronize, pending.__dlpack__:
        with pytest.raises(BufferError, match=r"metal:2.*register_synchronizer"):
            use()


def test_a_registered_synchronizer_waits(calls: list[tuple[int, int]]) -> None:
    pending = make_pending()
    assert not pending.is_ready()  # it can wait, and not ask
    pending.synchronize()
    assert calls == [(ctypes.addressof(EVENT), 2)]
    pending.__dlpack__()
    assert len(calls) == 2
    pending.__dlpack__(stream=-1)
    assert len(calls) == 2
    with pytest.raises(BufferError, match="is not a stream of metal"):
        arrowdl.to_arrow_device({"a": pending, "b": pending}).record_stream(5)


def test_a_synchronizer_that_fails_is_heard_of() -> None:
    pending = make_pending()

    def fail(event: int, id: int) -> None:
        raise OSError("the device is gone")

    arrowdl.register_synchronizer(METAL, fail)
    try:
        with pytest.raises(RuntimeError, match="the device is gone"):
            pending.synchronize()
    finally:
        arrowdl.register_synchronizer(METAL, None)
    with pytest.raises(BufferError):
        pending.synchronize()


@pytest.mark.parametrize(
    ("type", "says"),
    [(1, "no events for cpu"), (2, "itself"), (14, "itself"), (15, "webgpu"), (0, "unknown")],
)
def test_a_synchronizer_has_to_make_sense(type: int, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        arrowdl.register_synchronizer(type, lambda event, id: None)
    with pytest.raises(TypeError, match="function of"):
        arrowdl.register_synchronizer(METAL, 5)  # type: ignore[arg-type]


def test_a_synchronizer_that_is_replaced_is_dropped_under_no_lock() -> None:
    class Old:
        def __call__(self, event: int, id: int) -> None: ...

        def __del__(self) -> None:
            make_pending().is_ready()  # asks for the synchronizer while the last one goes

    arrowdl.register_synchronizer(METAL, Old())
    arrowdl.register_synchronizer(METAL, lambda event, id: None)
    arrowdl.register_synchronizer(METAL, None)


def test_lists_in_pinned_memory_are_read_as_the_cpus() -> None:
    values = MadeArray(4, [None, np.arange(4, dtype="int32")])
    lists = MadeArray(2, [None, np.array([0, 1, 4], "int32")], children=[values])
    schema = MadeSchema("+l", children=[MadeSchema("i", "item")])
    pinned = arrowdl.from_arrow((schema.capsule(), MadeDeviceArray(lists, (3, 0)).capsule()))
    read, offsets = arrowdl.to_numpy(pinned)
    assert (read.tolist(), offsets.tolist()) == ([0, 1, 2, 3], [0, 1, 4])
    assert [row.tolist() for row in arrowdl.to_torch(pinned).unbind()] == [[0], [1, 2, 3]]


def test_an_array_that_is_released_while_its_stream_is_read_stays_whole() -> None:
    made = MadeArray(3, [None, np.arange(3, dtype="int32")])
    array = arrowdl.from_arrow((MadeSchema("i").capsule(), MadeDeviceArray(made, (2, 0)).capsule()))

    class Stream:
        @property
        def cuda_stream(self) -> int:
            array.release()
            return 12345

    assert array.__dlpack__(stream=Stream()) is not None
    assert array.is_released


@pytest.mark.parametrize("stream", [0, 1, 12345])
def test_a_device_type_without_streams_takes_none(stream: int) -> None:
    made = MadeArray(3, [None, np.arange(3, dtype="int32")])
    array = arrowdl.from_arrow(
        (MadeSchema("i").capsule(), MadeDeviceArray(made, (METAL, 0)).capsule())
    )
    with pytest.raises(BufferError, match="is not a stream of metal:0"):
        array.__dlpack__(stream=stream)
