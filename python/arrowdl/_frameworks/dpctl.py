"""dpctl's SYCL queues and devices, for the backend of oneAPI."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def find_work(interface: dict[str, Any]) -> tuple[Any, int]:
    """Return the queue that a ``__sycl_usm_array_interface__`` names, and its device's id.

    For a context, a device or a filter string, dpctl makes a new queue, which has no work.
    """
    dpctl = _import_dpctl()
    syclobj = interface["syclobj"]
    if isinstance(syclobj, dpctl.SyclDevice):
        interface = {**interface, "syclobj": dpctl.SyclQueue(syclobj)}
    try:
        # dpctl gets the dict that was read: a second read of the object may give another one.
        holder = SimpleNamespace(__sycl_usm_array_interface__=interface)
        memory = dpctl.memory.as_usm_memory(holder)
    except (TypeError, ValueError, dpctl.SyclQueueCreationError) as error:
        raise BufferError(
            f"dpctl does not find the memory of __sycl_usm_array_interface__ with the syclobj "
            f"{syclobj!r}: {error}"
        ) from error
    queue, device = memory.sycl_queue, memory.sycl_device
    if device.parent_device is not None:
        device = device.get_unpartitioned_parent_device()
    if queue.sycl_context != dpctl.get_device_cached_queue(device).sycl_context:
        raise BufferError(
            "the memory is bound to another SYCL context than the default one of its device, "
            "which is where Arrow and DLPack consumers look for it: copy it to a queue made by "
            "dpctl.SyclQueue(device)"
        )
    return queue, device.get_device_id()


def find_queue(device_id: int) -> Any:
    """Return dpctl's default queue of a device."""
    dpctl = _import_dpctl()
    devices = dpctl.get_devices()
    if device_id >= len(devices):
        raise BufferError(f"oneapi:{device_id} does not exist: dpctl has {len(devices)} devices")
    return dpctl.get_device_cached_queue(devices[device_id])


def _import_dpctl() -> Any:
    try:
        import dpctl
        import dpctl.memory
    except ImportError as error:
        raise BufferError(
            "arrowdl reaches SYCL through dpctl, which cannot be imported: install and import "
            f"dpctl first (pip install dpctl): {error}"
        ) from error
    return dpctl
