"""What the core asks of each array framework, imported when a call first needs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arrowdl import _core

if TYPE_CHECKING:
    from arrowdl._core import DeviceArray


@dataclass(frozen=True)
class Framework:
    """How to make one framework's tensors.

    Attributes
    ----------
    tensor_type : type or None
        The class with the DLPack C exchange API, the fastest way in.
    from_dlpack : callable
        The way in for frameworks without it.
    from_offsets : callable
        The same for offsets and lengths, which may take a narrower type that holds them.
    make_jagged : callable
        ``(values, offsets)`` to the framework's ragged tensor.
    make_variable : callable
        ``(values, offsets, shapes, permutation)`` to tensors of varying shape.
    unpack_bits : callable
        ``(bytes, offset, length, repeat)`` to a bool tensor of ``length * repeat``: the bits from
        `offset` on, least significant first, each of them `repeat` times. This and what follows is
        for devices where arrowdl does not do it itself; pure, and done where its arguments lie.
    fill : callable
        ``(values, valid, item)`` to the values, `item` (0 or NaN) where they are not valid.
    all_valid : callable
        ``(values)`` to a bool tensor that is True everywhere.
    copy : callable
        ``(values)`` to the same in new memory: of what lies on a device that the host cannot read.
    arrange : callable
        ``(values, shape, axes)`` to the flat values in that shape, its axes then in that order.
    put : callable
        ``(tensor, name, id)`` to a copy on that device, for a `tensor` of the CPU: for frameworks
        without the exchange API, which allocates their memory.
    alignment : int
        Of memory on the CPU that the framework reads in place, in bytes: arrowdl copies other
        memory for it, where that is worth it. For frameworks without the exchange API.
    """

    tensor_type: type | None
    from_dlpack: Callable[[Any], Any]
    from_offsets: Callable[[Any], Any]
    make_jagged: Callable[[Any, Any], Any]
    make_variable: Callable[[Any, Any, Any, list[int]], Any]
    unpack_bits: Callable[[Any, int, int, int], Any]
    fill: Callable[[Any, Any, float], Any]
    all_valid: Callable[[Any], Any]
    copy: Callable[[Any], Any]
    arrange: Callable[[Any, list[int], list[int]], Any]
    put: Callable[[Any, str, int], Any]
    alignment: int = 1


def load(name: str) -> Framework:
    """Import the framework `name` ("torch", "jax" or "numpy")."""
    return _LOADERS[name]()


def to_array(array: DeviceArray, dtype: Any, copy: bool | None) -> Any:
    """`DeviceArray.__array__`: numpy's protocol, with its meaning of `copy`."""
    import numpy as np

    try:
        result = np.from_dlpack(array, copy=copy)
    except BufferError as error:
        if copy is False:  # numpy's word for a copy that was needed
            raise ValueError(str(error)) from error
        raise
    except RuntimeError:  # a type that numpy has not
        _core.to_numpy(array)  # says which
        raise
    if dtype is None or result.dtype == dtype:
        return result
    if copy is False:
        raise ValueError(
            f"an array of {result.dtype} cannot become {np.dtype(dtype)} without a copy: "
            "allow it with copy=None"
        )
    return result.astype(dtype)


def _load_torch() -> Framework:
    import torch

    def make_jagged(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        if not isinstance(values, torch.Tensor) or values.is_nested:
            raise BufferError(
                "torch's jagged tensors have one ragged dimension of plain elements: read lists of "
                'lists, of strings or of structs with ragged="offsets", as (values, offsets)'
            )
        # The kernels of nested tensors index with int64.
        return torch.nested.nested_tensor_from_jagged(values, offsets.to(torch.int64))

    def make_variable(
        values: torch.Tensor, offsets: torch.Tensor, shapes: torch.Tensor, permutation: list[int]
    ) -> torch.Tensor:
        # Offsets need not be int64, and no rows would still be split into one part.
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

    def unpack_bits(packed: torch.Tensor, offset: int, length: int, repeat: int) -> torch.Tensor:
        shifts = torch.arange(8, dtype=torch.uint8, device=packed.device)
        bits = ((packed.unsqueeze(-1) >> shifts) & 1).flatten()[offset : offset + length]
        return bits.to(torch.bool).unsqueeze(-1).expand(-1, repeat).flatten()

    def fill(values: torch.Tensor, valid: torch.Tensor, item: float) -> torch.Tensor:
        part = complex(item, item) if values.is_complex() else item
        return values.where(valid, torch.full_like(values, part))

    return Framework(
        torch.Tensor,
        torch.from_dlpack,
        torch.from_dlpack,
        make_jagged,
        make_variable,
        unpack_bits,
        fill,
        lambda values: torch.ones_like(values, dtype=torch.bool),
        torch.clone,
        lambda values, shape, axes: values.reshape(shape).permute(axes),
        lambda tensor, name, index: tensor.to(f"{_TORCH_NAMES.get(name, name)}:{index}"),
    )


def _load_jax() -> Framework:
    import jax

    def from_dlpack(tensor: Any) -> jax.Array:
        # Without x64 jax would cut 64-bit values down on import, and say nothing.
        narrowed = jax.dtypes.canonicalize_dtype(tensor.dtype).name
        if narrowed != tensor.dtype:
            raise BufferError(
                f"jax would cut {tensor.dtype} down to {narrowed}: call "
                'jax.config.update("jax_enable_x64", True) first, or cast the data'
            )
        return jax.dlpack.from_dlpack(tensor)

    def from_offsets(tensor: Any) -> jax.Array:
        import numpy as np

        if tensor.dtype == "int64" and not jax.config.jax_enable_x64:
            positions = np.from_dlpack(tensor)
            if positions.size == 0 or positions.max() <= np.iinfo(np.int32).max:
                return jax.numpy.asarray(positions.astype(np.int32))
            raise BufferError(
                "the offsets of this list array need int64: call "
                'jax.config.update("jax_enable_x64", True) first'
            )
        return jax.dlpack.from_dlpack(tensor)

    def put(array: jax.Array, name: str, index: int) -> jax.Array:
        try:
            device = next(
                one for one in jax.devices(name) if one.local_hardware_id in {index, None}
            )
        except (RuntimeError, StopIteration) as error:
            raise BufferError(f"jax has no device {name}:{index}: {error}") from error
        return jax.device_put(array, device)

    operations = _array_operations(jax.numpy)
    return Framework(None, from_dlpack, from_offsets, _pair, _parts, *operations, put, alignment=64)


def _load_numpy() -> Framework:
    import numpy as np

    def from_dlpack(tensor: Any) -> Any:
        # ml_dtypes gives numpy more names than its from_dlpack reads.
        if tensor.dtype not in np.sctypeDict or np.dtype(tensor.dtype).isbuiltin != 1:
            raise BufferError(
                f"numpy has no {tensor.dtype}: use to_torch() or to_jax(), or cast the data"
            )
        return np.from_dlpack(tensor)

    def put(array: Any, name: str, index: int) -> Any:
        raise BufferError(f"numpy's arrays lie on the CPU, not on {name}:{index}")

    return Framework(None, from_dlpack, np.from_dlpack, _pair, _parts, *_array_operations(np), put)


def _array_operations(xp: Any) -> tuple[Any, Any, Any, Any, Any]:
    """`unpack_bits` to `arrange` for what has numpy's functions."""

    def unpack_bits(packed: Any, offset: int, length: int, repeat: int) -> Any:
        bits = packed[:, None] >> xp.arange(8, dtype=xp.uint8) & 1
        rows = xp.reshape(bits != 0, (-1,))[offset : offset + length]
        return xp.reshape(xp.broadcast_to(rows[:, None], (length, repeat)), (-1,))

    def fill(values: Any, valid: Any, item: float) -> Any:
        part = complex(item, item) if values.dtype.kind == "c" else item
        return xp.where(valid, values, xp.asarray(part, dtype=values.dtype))

    return (
        unpack_bits,
        fill,
        lambda values: xp.ones(values.shape, dtype=bool),
        lambda values: xp.array(values, copy=True),
        lambda values, shape, axes: xp.permute_dims(xp.reshape(values, shape), axes),
    )


def _pair(values: Any, offsets: Any) -> tuple[Any, Any]:
    return values, offsets


def _parts(values: Any, offsets: Any, shapes: Any, permutation: list[int]) -> tuple[Any, ...]:
    if permutation:
        raise BufferError(
            "a permuted variable_shape_tensor has no reading as (values, offsets, shapes), which "
            'are in the order of memory: use to_torch(), or take its fields "data" and "shape" for '
            "what they are"
        )
    return values, offsets, shapes


def find_device(device: Any) -> tuple[str, int]:
    """Return the name and the id of the device that a `torch.device` or `jax.Device` names.

    Without an index, a `torch.device` names torch's current device of its type.
    """
    return _find_jax_device(device) if hasattr(device, "platform") else _find_torch_device(device)


def _find_torch_device(device: Any) -> tuple[str, int]:
    import torch

    index = device.index
    if index is None:
        try:
            index = 0 if device.type == "cpu" else torch.get_device_module(device).current_device()
        except Exception as error:
            raise BufferError(f"torch has no current device for {device!r}: {error}") from error
    is_rocm = device.type == "cuda" and torch.version.hip is not None
    names = {name: ours for ours, name in _TORCH_NAMES.items() if ours != "rocm" or is_rocm}
    return names.get(device.type, device.type), index


def _find_jax_device(device: Any) -> tuple[str, int]:
    # jax says "gpu" for NVIDIA's and AMD's, and which in the version, as jax.dlpack reads it.
    name = device.platform
    if name == "gpu":
        name = "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"
    if name not in {"cpu", "cuda", "rocm", "metal"}:
        raise BufferError(
            f"Arrow and DLPack have no device type for {device!r}, of the platform {name!r}: "
            "supported are cpu, cuda, rocm and metal"
        )
    return name, device.local_hardware_id or 0


_TORCH_NAMES = {"oneapi": "xpu", "metal": "mps", "rocm": "cuda"}


_LOADERS: dict[str, Callable[[], Framework]] = {
    "torch": _load_torch,
    "jax": _load_jax,
    "numpy": _load_numpy,
}
