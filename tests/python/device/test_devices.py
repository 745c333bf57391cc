"""What names a device: `DeviceType`, and the device objects of frameworks."""

from __future__ import annotations

from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl import _core


def test_device_type_is_the_table_of_the_core() -> None:
    assert issubclass(arrowdl.DeviceType, IntEnum)
    members = {member.name: member.value for member in arrowdl.DeviceType}
    assert members == _core.device_type_numbers


def jax_device(platform: str, index: int | None, version: str = "") -> Any:
    client = SimpleNamespace(platform_version=version)
    return SimpleNamespace(platform=platform, local_hardware_id=index, client=client, id=7)


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (arrowdl.DeviceType.cuda, ("cuda", 0)),
        ("cuda:1", ("cuda", 1)),
        ((2, 1), ("cuda", 1)),
        (("rocm", None), ("rocm", 0)),
        (arrowdl.Device("cuda", 1), ("cuda", 1)),
        (jax_device("gpu", 1, "PJRT C API\ncuda 12080"), ("cuda", 1)),
        (jax_device("gpu", 0, "PJRT C API\nrocm 60300"), ("rocm", 0)),
        (jax_device("cpu", None), ("cpu", 0)),
    ],
    ids=str,
)
def test_a_device_is_named(device: Any, expected: tuple[str, int]) -> None:
    made = arrowdl.Device(device)
    assert (made.name, made.id) == expected


def test_devices_of_jax_and_torch_are_taken() -> None:
    import jax
    import torch

    numbers = pa.array([1, 2])
    for device in (jax.devices("cpu")[0], torch.device("cpu")):
        assert arrowdl.Device(device) == (1, 0)
        assert arrowdl.from_arrow(numbers).to(device).device == (1, 0)
        (array,) = arrowdl.from_arrow_stream(numbers).to(device)
        assert array.device == (1, 0)
        assert arrowdl.to_numpy(numbers, device=device).tolist() == [1, 2]
        loader = arrowdl.Loader(pa.table({"x": numbers}), 2, framework="numpy", device=device)
        assert [batch["x"].tolist() for batch in loader] == [[1, 2]]


def test_a_device_without_a_type_in_dlpack_is_refused() -> None:
    with pytest.raises(BufferError, match="of the platform 'tpu'"):
        arrowdl.Device(jax_device("tpu", 0))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (((2, 0), 1), "id=1 goes with a device type"),
        ((1.5,), r"a torch.device or a jax.Device, got 1.5"),
        ((None,), r"got None"),
    ],
)
def test_what_is_no_device_is_refused(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        arrowdl.Device(*arguments)
