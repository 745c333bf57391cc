"""Times DLPack deleters of device memory: nothing pending, work pending, and waiting for it.

    LD_LIBRARY_PATH=build/dev/tests/cpp/fake_driver/fake_cuda python -m benchmarks.deferred_release

On the fake CUDA driver of the tests, whose streams are threads: the times are those of arrowdl and
of threads, without a GPU's driver.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

import arrowdl
from arrowdl import debug
from arrowdl.testing._managed import Exported

_ROUNDS, _TENSORS = 31, 64


class _Memory:
    """Device memory with an array interface, of `stream`."""

    def __init__(self, address: int, stream: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (16,),
            "typestr": "<i4",
            "data": (address, False),
            "version": 3,
            "stream": stream,
        }


class _Driver:
    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.library.arrowdl_fake_close_gate.argtypes = [ctypes.c_void_p]
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxPushCurrent_v2", context)

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise OSError(f"{name} says {status}")

    def make(self, name: str, *arguments: Any) -> int:
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made.value or 0


def _export(driver: _Driver, stream: int) -> list[Exported]:
    """Tensors that a consumer on `stream` has taken, which nothing else refers to."""
    exports = []
    for _ in range(_TENSORS):
        address = driver.make("cuMemAlloc_v2", ctypes.c_size_t(64))
        array = arrowdl.to_arrow_device(_Memory(address, stream))
        made = Exported(array.__dlpack__(stream=stream, max_version=(1, 3)))
        made.take()
        exports.append(made)
    return exports


def _delete(exports: list[Exported]) -> float:
    """Seconds for each call of a deleter."""
    begun = time.perf_counter()
    for made in exports:
        made.delete(with_lock=False)
    return (time.perf_counter() - begun) / len(exports)


def _settle() -> None:
    while debug.pending_releases():
        time.sleep(0.0001)


def _time_host(_driver: _Driver, _stream: int) -> float:
    """Without events: what a deleter costs at least."""
    exports = []
    for _ in range(_TENSORS):
        array = arrowdl.to_arrow_device(bytearray(64))
        made = Exported(array.__dlpack__(max_version=(1, 3)))
        made.take()
        exports.append(made)
    return _delete(exports)


def _time_idle(driver: _Driver, stream: int) -> float:
    exports = _export(driver, stream)
    driver.call("cuStreamSynchronize", ctypes.c_void_p(stream))
    return _delete(exports)


def _time_pending(driver: _Driver, stream: int) -> float:
    exports = _export(driver, stream)
    gate = driver.library.arrowdl_fake_close_gate(stream)
    seconds = _delete(exports)
    driver.library.arrowdl_fake_open_gate(gate)
    _settle()
    return seconds


def _time_until_free(driver: _Driver, stream: int) -> float:
    """Seconds from the end of the work until all memory has been given back."""
    exports = _export(driver, stream)
    gate = driver.library.arrowdl_fake_close_gate(stream)
    _delete(exports)
    begun = time.perf_counter()
    driver.library.arrowdl_fake_open_gate(gate)
    _settle()
    return time.perf_counter() - begun


def main() -> None:
    driver = _Driver()
    stream = driver.make("cuStreamCreate", 1)
    cases: dict[str, Callable[[_Driver, int], float]] = {
        "deleter, memory of the host": _time_host,
        "deleter, nothing pending": _time_idle,
        "deleter, work pending": _time_pending,
        f"{_TENSORS} tensors given back after the work": _time_until_free,
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(_ROUNDS):
        for name, run in cases.items():
            times[name].append(run(driver, stream))
    for name, seconds in times.items():
        median, least = statistics.median(seconds[1:]), min(seconds)
        print(f"{name:45} median {median * 1e6:8.2f} us, least {least * 1e6:8.2f} us")


if __name__ == "__main__":
    main()
