"""NumPy's arrays."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from arrowdl import _core
from arrowdl._device_type import DeviceType
from arrowdl._frameworks import numpy_like
from arrowdl._frameworks.interface import Framework

if TYPE_CHECKING:
    from arrowdl._core import DeviceArray


def to_array(array: DeviceArray, dtype: Any, copy: bool | None) -> Any:
    """`DeviceArray.__array__`: numpy's protocol, with its meaning of `copy`."""
    device = array.device
    if not _core.is_host_readable(device):
        raise TypeError(
            f"the array is on {device.name}:{device.id}, and numpy's protocol does not copy "
            'between devices: pass array.to("cpu")'
        )
    try:
        is_numpys = array.dtype is None or (array.dtype in _DTYPES and device.type == _CPU)
        take = np.from_dlpack if is_numpys else _core.to_numpy  # its error names the type
        result: Any = take(array, copy=copy)
    except BufferError as error:
        if copy is False:  # numpy's protocol says ValueError for a copy that is needed
            raise ValueError(str(error)) from error
        raise
    if dtype is None or result.dtype == dtype:
        return result
    if copy is False:
        raise ValueError(
            f"an array of {result.dtype} cannot become {np.dtype(dtype)} without a copy: "
            "allow it with copy=None"
        )
    return result.astype(dtype)


# The names of DLPack's types. np.sctypeDict has more when ml_dtypes was imported, and numpy's
# from_dlpack cannot read these.
_DTYPES = frozenset(
    ["bool", "float16", "float32", "float64", "complex64", "complex128"]
    + [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
)
_CPU = int(DeviceType.cpu)


def _find_ml_dtype(name: str) -> Any:
    """Return the dtype of ml_dtypes, where that is imported and has it: it has no packed values."""
    ml_dtypes = sys.modules.get("ml_dtypes")
    is_floating = name.startswith(("bfloat", "float8"))
    if ml_dtypes is None or not (is_floating or name.endswith("_padded")):
        return None
    return getattr(ml_dtypes, name.removesuffix("_padded"), None)


def _from_dlpack(tensor: Any) -> Any:
    dtype = None if tensor.dtype in _DTYPES else _find_ml_dtype(tensor.dtype)
    if tensor.dtype not in _DTYPES and dtype is None:
        raise BufferError(
            f"numpy has no {tensor.dtype}: import ml_dtypes, which may have it, use to_torch() or "
            "to_jax(), cast the data, or " + numpy_like.advise_bytes("numpy")
        )
    type_and_id = tensor.__dlpack_device__()
    if type_and_id[0] != _CPU:
        device = _core.Device(type_and_id)
        raise BufferError(
            f"numpy's arrays are on the CPU, the array is on {device.name}:{device.id}: copy it "
            'first, with array.to("cpu") or with the library that made it'
        )
    if dtype is not None:
        return np.from_dlpack(tensor._as_integers(is_copied=False)).view(dtype)
    return np.from_dlpack(tensor)


def _put(array: Any, name: str, index: int) -> NoReturn:
    raise BufferError(
        f"numpy's arrays are on the CPU, not on {name}:{index}: copy the array there first, with "
        'array.to("cpu"), and leave device= out'
    )


FRAMEWORK = Framework(
    from_dlpack=_from_dlpack,
    from_plain=np.from_dlpack,
    from_offsets=np.from_dlpack,
    make_jagged=numpy_like.make_jagged,
    make_variable=numpy_like.make_variable,
    **numpy_like.make_operations(np),
    put=_put,
)
