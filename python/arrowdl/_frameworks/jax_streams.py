"""The streams that JAX passes to ``__dlpack__``, and the one on which it computes.

XLA's GPU client makes an array wait for one of a few streams in turn, computes on another stream,
and calls the deleter of foreign memory before its computations have read it. Sources:
``LocalDeviceState::GetExternalReadyEventStream``, ``kComputeSynchronized`` and
``~TrackedDeviceBuffer`` in XLA's ``xla/pjrt``.

The functions are called for arrays on a GPU, when JAX has been imported.
"""

from __future__ import annotations

import sys
from typing import Any

from arrowdl._device_type import DeviceType

_PLATFORMS = {int(DeviceType.cuda): "cuda", int(DeviceType.rocm): "rocm"}

# More than XLA has for a device (kNumExternalReadyEventStreams is 4).
_MAX_STREAMS = 16

_streams: dict[Any, set[int]] = {}
_probes: dict[Any, tuple[Any, Any]] = {}


def _find_device(type: int, index: int) -> Any:
    """Return the `jax.Device`; None if there is none, or JAX has not started its backends."""
    # No public function tells whether backends are initialized. Another thread may be in the middle
    # of importing JAX.
    xla_bridge: Any = sys.modules.get("jax._src.xla_bridge")
    is_initialized = getattr(xla_bridge, "backends_are_initialized", None)
    if is_initialized is None or not is_initialized():
        return None
    client = xla_bridge.backends().get(_PLATFORMS.get(type, ""))
    if client is None:
        return None
    devices = client.local_devices()
    return next((one for one in devices if (one.local_hardware_id or 0) == index), None)


def is_stream(type: int, index: int, stream: int) -> bool:
    """Return whether `stream` is one that JAX passes to ``__dlpack__`` for a device."""
    device = _find_device(type, index)
    if device is None:
        return False
    import jax

    streams = _streams.get(device, set())
    try:
        if device.get_stream_for_external_ready_events() not in streams:  # at first, a new client
            streams = {device.get_stream_for_external_ready_events() for _ in range(_MAX_STREAMS)}
    except jax.errors.JaxRuntimeError:  # UNIMPLEMENTED: JAX passes no stream then
        return False
    _streams[device] = streams
    return stream in streams


def order_after_compute(type: int, index: int, stream: int) -> None:
    """Make `stream` wait for all computations that JAX has dispatched on a device.

    XLA runs the computations of a device in order, on one stream: one that is dispatched now, and
    whose result `stream` waits for, ends after them.
    """
    import jax
    import numpy as np

    device = _find_device(type, index)
    if device is None:
        raise RuntimeError(f"JAX has no device of type {type} with index {index} any more")
    with jax.transfer_guard("allow"):  # whatever the user forbids for the training
        if device not in _probes:
            _probes[device] = jax.jit(lambda value: value + 1), jax.device_put(np.int32(0), device)
        compute, value = _probes[device]
        compute(value).__dlpack__(stream=stream)
