"""PyTorch's tensors, and what names a device in PyTorch."""

from __future__ import annotations

import torch

from arrowdl._frameworks.interface import Framework

# DLPack's names of device types that torch names otherwise.
_DEVICE_NAMES = {"oneapi": "xpu", "metal": "mps", "rocm": "cuda"}

_LEAVE_OUT = "install a build that has it, or leave device= out"


def find_device(device: torch.device) -> tuple[str, int]:
    """Return the name and the id of a `torch.device`, of torch's current one without an index."""
    index = device.index
    if index is None:
        try:
            index = 0 if device.type == "cpu" else torch.get_device_module(device).current_device()
        except Exception as error:
            raise BufferError(f"torch has no current device for {device!r}: {error}") from error
    if device.type == "xpu":  # DLPack counts SYCL's devices, torch those that it uses
        return "oneapi", torch.empty(0, device=torch.device("xpu", index)).__dlpack_device__()[1]
    is_rocm = device.type == "cuda" and torch.version.hip is not None
    names = {name: ours for ours, name in _DEVICE_NAMES.items() if ours != "rocm" or is_rocm}
    return names.get(device.type, device.type), index


def explain_device(name: str, index: int) -> str:
    """Return why torch cannot allocate on a device; an empty string if it has this device."""
    build = f"this torch, {torch.__version__}, is built without"
    wanted = {"cuda": torch.version.cuda, "rocm": torch.version.hip}
    if name in wanted and wanted[name] is None:
        return f"{build} {name.upper().replace('ROCM', 'ROCm')}: {_LEAVE_OUT}"
    module = {"cuda": "cuda", "rocm": "cuda", "oneapi": "xpu", "metal": "mps"}.get(name)
    if module is None:
        return f"torch has no device type {name!r}: {_LEAVE_OUT}"
    if name == "oneapi" and not torch.xpu._is_compiled():
        return f"{build} XPU: {_LEAVE_OUT}"
    if name == "metal" and not torch.backends.mps.is_built():
        return f"{build} MPS: {_LEAVE_OUT}"
    devices = getattr(torch, module)
    if not devices.is_available():
        return (
            f"torch.{module}.is_available() is False: look at the driver of this machine, or leave "
            "device= out"
        )
    count = devices.device_count()
    return "" if index < count else f"torch has {count} of these devices, counted from 0"


def _make_jagged(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    if not isinstance(values, torch.Tensor) or values.is_nested:
        raise BufferError(
            "torch's jagged tensors have one ragged dimension of plain elements: read lists of "
            'lists, of strings or of structs with ragged="offsets", as (values, offsets)'
        )
    # The kernels of nested tensors index with int64.
    return torch.nested.nested_tensor_from_jagged(values, offsets.to(torch.int64))


def _make_variable(
    values: torch.Tensor, offsets: torch.Tensor, shapes: torch.Tensor, permutation: list[int]
) -> torch.Tensor:
    # Sizes, not offsets: tensor_split needs int64, and splits no rows into one part.
    parts = values.split(offsets.diff().tolist())
    rows = [
        row.reshape(shape).permute(permutation or tuple(range(len(shape))))
        for row, shape in zip(parts, shapes.tolist(), strict=True)
    ]
    if not rows:
        no_values = values.reshape(0, *[0] * (shapes.shape[1] - 1))
        return torch.nested.nested_tensor_from_jagged(no_values, offsets.to(torch.int64))
    only_first_varies = all(row.shape[1:] == rows[0].shape[1:] for row in rows)
    layout = torch.jagged if only_first_varies else torch.strided
    return torch.nested.as_nested_tensor(rows, layout=layout)


def _unpack_bits(packed: torch.Tensor, offset: int, length: int, repeat: int) -> torch.Tensor:
    shifts = torch.arange(8, dtype=torch.uint8, device=packed.device)
    bits = ((packed.unsqueeze(-1) >> shifts) & 1).flatten()[offset : offset + length]
    return bits.to(torch.bool).unsqueeze(-1).expand(-1, repeat).flatten()


def _fill(values: torch.Tensor, valid: torch.Tensor, item: float) -> torch.Tensor:
    part = complex(item, item) if values.is_complex() else item
    return values.where(valid, torch.full_like(values, part))


def _put(tensor: torch.Tensor, name: str, index: int) -> torch.Tensor:
    if name == "oneapi":
        devices = [torch.device("xpu", i) for i in range(torch.xpu.device_count())]
        for device in devices:
            if find_device(device) == (name, index):
                return tensor.to(device)
        raise BufferError(f"torch has no device {name}:{index} among {devices}")
    return tensor.to(f"{_DEVICE_NAMES.get(name, name)}:{index}")


FRAMEWORK = Framework(
    tensor_type=torch.Tensor,
    from_dlpack=torch.from_dlpack,
    from_offsets=torch.from_dlpack,
    make_jagged=_make_jagged,
    make_variable=_make_variable,
    unpack_bits=_unpack_bits,
    fill=_fill,
    all_valid=lambda values: torch.ones_like(values, dtype=torch.bool),
    copy=torch.clone,
    arrange=lambda values, shape, axes: values.reshape(shape).permute(axes),
    put=_put,
)
