"""Device types of a later DLPack, and numbers that no version has: passed on as metadata.

Sources: dlpack.h after version 1.3, DLDeviceType (19 to 21, dmlc/dlpack pull request 189); Arrow "C
Device Data Interface", which has numbers up to 16.
"""

from __future__ import annotations

import ctypes
from typing import Any

import arrowdl
import numpy as np
import pytest
from arrowdl.testing._dlpack_consumer import RawProducer
from helpers.arrow import ArrowDeviceArray, MadeArray, MadeDeviceArray, MadeSchema
from helpers.capsules import capsule_address
from helpers.dlpack import MadeTensor, read_capsule

DEVICES = [(19, 0), (20, 1), (21, 3), (5, 0), (99, 7), (2**31 - 1, 2**31 - 1)]
NAMES = {19: "tpu", 20: "tpu_host", 21: "ascend"}


def name_of(type: int) -> str:
    return NAMES.get(type, f"device type {type}")


def made_on(device: tuple[int, int], shape: tuple[int, ...] = (6,)) -> MadeTensor:
    return MadeTensor(np.arange(6, dtype=np.int32), shape, device=device)


def from_arrow_on(device: tuple[int, int], event: int | None = None) -> arrowdl.DeviceArray:
    made = MadeDeviceArray(MadeArray(3, [None, np.arange(3, dtype=np.int32)], null_count=0), device)
    made.struct.sync_event = event
    return arrowdl.from_arrow((MadeSchema("i", "x").capsule(), made.capsule()))


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_dlpack_to_arrow_and_back(device: tuple[int, int]) -> None:
    made = made_on(device, (2, 3))
    array = arrowdl.to_arrow_device(RawProducer(made, device=device), copy=False)
    assert tuple(array.device) == device
    assert array.__dlpack_device__() == device
    assert array.sync_event is None
    assert array.is_ready()
    assert array.schema.metadata[b"ARROW:extension:name"] == b"arrow.fixed_shape_tensor"
    assert f"device {name_of(device[0])}:{device[1]}" in repr(array).replace(", ", " device ")
    schema, struct = array.__arrow_c_device_array__()
    root = ArrowDeviceArray.from_address(capsule_address(struct))
    assert (root.device_type, root.device_id, root.sync_event) == (*device, None)
    again = arrowdl.from_arrow((schema, struct))
    for one in (array, again):
        for options in ({}, {"dl_device": device}):
            tensor = read_capsule(one.__dlpack__(max_version=(1, 3), **options)).dl_tensor
            assert (tensor.device.device_type, tensor.device.device_id) == device
            assert tensor.data == made.tensor.data
    del array, again, one
    assert made.released == 1


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_slices(device: tuple[int, int]) -> None:
    """An address may be a handle, as OpenCL's: a tensor that begins elsewhere is refused."""
    array = arrowdl.to_arrow_device(made_on(device).capsule())
    assert array[:4].__dlpack__() is not None
    part = array[2:5]
    assert (len(part), tuple(part.device)) == (3, device)
    _, struct = part.__arrow_c_device_array__()
    assert ArrowDeviceArray.from_address(capsule_address(struct)).array.offset == 2
    if device[0] in (20, 21):  # addresses of the host, and of Ascend's runtime
        assert part.__dlpack__() is not None
    else:
        with pytest.raises(BufferError, match="an offset of 8 bytes into memory on"):
            part.__dlpack__()


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_memory_is_not_touched(device: tuple[int, int]) -> None:
    says = f"{name_of(device[0])}:{device[1]}"
    array = arrowdl.to_arrow_device(made_on(device).capsule())
    uses: list[Any] = [
        lambda: arrowdl.to_numpy(array),
        lambda: array.to("cpu"),
        lambda: arrowdl.to_arrow_device(np.arange(3)).to(arrowdl.Device(*device)),
        lambda: array.__dlpack__(dl_device=(1, 0)),
        lambda: array.__dlpack__(copy=True),
        lambda: array.record_stream(5),
        lambda: arrowdl.to_arrow_device(made_on(device).capsule(), copy=True),
    ]
    for use in uses:
        with pytest.raises(BufferError, match=says) as caught:
            use()
        assert "synchronizer" not in str(caught.value)
    for use in uses[:2]:
        with pytest.raises(BufferError, match="with the library that made"):
            use()
    with pytest.raises(BufferError):
        array.__arrow_c_array__()


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_devices_are_named(device: tuple[int, int]) -> None:
    type, id = device
    one = arrowdl.Device(type, id)
    assert (one.type, one.id, one.name) == (type, id, name_of(type))
    assert one == device
    assert tuple(one) == device
    assert arrowdl.Device(device) == one
    assert hash(one) == hash(device)
    shown = f'"{NAMES[type]}"' if type in NAMES else str(type)
    assert repr(one) == f"Device({shown}, {id})"
    assert eval(repr(one), {"Device": arrowdl.Device}) == one
    assert arrowdl.Device(type).id == 0


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_events_are_passed_on_and_waited_for_by_a_function(device: tuple[int, int]) -> None:
    event = ctypes.c_int64(1)
    array = from_arrow_on(device, ctypes.addressof(event))
    assert array.sync_event == ctypes.addressof(event)
    _, struct = array.__arrow_c_device_array__()
    root = ArrowDeviceArray.from_address(capsule_address(struct))
    assert root.sync_event == ctypes.addressof(event)
    with pytest.raises(BufferError, match="register a synchronizer"):
        array.synchronize()
    waited = []
    arrowdl.register_synchronizer(device[0], lambda event, id: waited.append((event, id)))
    try:
        array.synchronize()
    finally:
        arrowdl.register_synchronizer(device[0], None)
    assert waited == [(ctypes.addressof(event), device[1])]


@pytest.mark.parametrize("device", DEVICES[:5], ids=str)
def test_streams(device: tuple[int, int]) -> None:
    array = from_arrow_on(device)
    stream = arrowdl.from_arrow_stream(arrowdl._core.chain([array]))
    assert stream.device_type == device[0]
    assert name_of(device[0]) in repr(stream)
    assert tuple(next(stream).device) == device
    with pytest.raises(ValueError, match=f"the stream on {name_of(device[0])}"):
        arrowdl._core.chain([array, arrowdl.to_arrow_device(np.arange(3, dtype=np.int32))])


@pytest.mark.parametrize("type", [0, -1, -(2**31)])
def test_numbers_below_one_are_refused(type: int) -> None:
    with pytest.raises(ValueError, match=f"device type {type} is unknown"):
        arrowdl.to_arrow_device(made_on((type, 0)).capsule())
    with pytest.raises(ValueError, match=f"device type {type} is unknown"):
        from_arrow_on((type, 0))
    with pytest.raises(ValueError, match="is unknown"):
        arrowdl.Device(type)
