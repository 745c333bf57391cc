"""DLPack's device types as an enum that type checkers see."""

from __future__ import annotations

from enum import IntEnum


class DeviceType(IntEnum):
    """DLPack's device types (DLDeviceType), which have the numbers of Arrow's ArrowDeviceType.

    `Device` and every ``device=`` take a member, its number or its name. A `Device` may have
    another number: arrays on such devices are passed on, and their memory is not read.
    """

    cpu = 1
    cuda = 2
    cuda_host = 3
    opencl = 4
    vulkan = 7
    metal = 8
    vpi = 9
    rocm = 10
    rocm_host = 11
    ext_dev = 12
    cuda_managed = 13
    oneapi = 14
    webgpu = 15
    hexagon = 16
    maia = 17
    trainium = 18
    tpu = 19
    tpu_host = 20
    ascend = 21
