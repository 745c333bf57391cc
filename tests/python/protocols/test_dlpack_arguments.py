"""`dl_device=` and `stream=` of `__dlpack__` as consumers of all kinds pass them."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema
from helpers.capsules import capsule_name


def on_device(device: tuple[int, int]) -> arrowdl.DeviceArray:
    made = MadeDeviceArray(MadeArray(3, [None, np.arange(3)], null_count=0), device)
    return arrowdl.from_arrow((MadeSchema("l").capsule(), made.capsule()))


@pytest.mark.parametrize("device", [(1, 0), (2, 0)], ids=["cpu", "cuda"])
@pytest.mark.parametrize(
    "dl_device", [(99, 0), (0, 0), (-1, 0), (5, 0), (6, 0), (22, 0), (2**31 - 1, 0), (99, None)]
)
def test_devices_of_no_known_type_are_a_buffer_error(device: Any, dl_device: Any) -> None:
    """As in numpy, torch and jax: a consumer may ask for another one then."""
    array = on_device(device)
    with pytest.raises(BufferError, match=f"device type {dl_device[0]} is unknown"):
        array.__dlpack__(dl_device=dl_device)
    with pytest.raises(BufferError):
        np.arange(3).__dlpack__(dl_device=(dl_device[0], 0), max_version=(1, 0))


@pytest.mark.parametrize("device", [(1, 0), (2, 0), (3, 0)], ids=["cpu", "cuda", "cuda_host"])
@pytest.mark.parametrize("dl_device", [(1, 2**30), (1, -1), (1, 2**31 - 1), (2, -1), (2, -(2**31))])
def test_devices_of_no_possible_number(device: Any, dl_device: Any) -> None:
    with pytest.raises(BufferError, match=r"there is no such device, the CPU is \(1, 0\)"):
        on_device(device).__dlpack__(dl_device=dl_device)


@pytest.mark.parametrize("dl_device", [(2**70, 0), (1, 2**70), (1, -(2**70))])
def test_numbers_that_are_none_of_a_device(dl_device: Any) -> None:
    with pytest.raises(
        ValueError, match=r"dl_device\[[01]\] is -?\d{22}, which does not fit int64"
    ):
        on_device((1, 0)).__dlpack__(dl_device=dl_device)


@pytest.mark.parametrize("stream", [-1, np.int64(-1), np.int8(-1), np.array(-1)], ids=repr)
@pytest.mark.parametrize("device", [(1, 0), (2, 0)], ids=["cpu", "cuda"])
def test_no_stream_in_any_kind_of_integer(device: Any, stream: Any) -> None:
    assert capsule_name(on_device(device).__dlpack__(stream=stream)) == "dltensor"


@pytest.mark.parametrize("stream", [2**70, -(2**70), 2**63, np.uint64(2**64 - 1), -2], ids=repr)
def test_integers_that_are_no_stream(stream: Any) -> None:
    with pytest.raises(BufferError, match=r"stream=.*: CPU memory has no streams, pass None"):
        arrowdl.from_arrow(pa.array([1])).__dlpack__(stream=stream)
    with pytest.raises(BufferError, match=r"stream=.* is not a stream of cuda:0: pass its handle"):
        on_device((2, 0)).__dlpack__(stream=stream)
    with pytest.raises(BufferError, match=r"stream=.*"):
        arrowdl.to_arrow_device(np.arange(3), stream=stream)
