"""NumPy's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from arrowdl import _core
from arrowdl._device_type import DeviceType
from arrowdl._frameworks import numpy_like
from arrowdl._frameworks.interface import Framework

if TYPE_CHECKING:
    from arrowdl._core import DeviceArray


def to_array(array: DeviceArray, dtype: Any, copy: bool | None) -> Any:
    """`DeviceArray.__array__`: numpy's protocol, with its meaning of `copy`.

    Raises
    ------
    ValueError
        ``copy=False``, and a copy is needed.
    BufferError
        The array has nulls, or numpy has no such type.
    """
    try:
        result = np.from_dlpack(array, copy=copy)
    except BufferError as error:
        if copy is False:  # numpy's protocol says ValueError for a copy that is needed
            raise ValueError(str(error)) from error
        raise
    except RuntimeError:  # a type that numpy does not have
        _core.to_numpy(array)  # its error names the type
        raise
    if dtype is None or result.dtype == dtype:
        return result
    if copy is False:
        raise ValueError(
            f"an array of {result.dtype} cannot become {np.dtype(dtype)} without a copy: "
            "allow it with copy=None"
        )
    return result.astype(dtype)


# Of DLPack's types. np.sctypeDict has more names when ml_dtypes was imported, and numpy's
# from_dlpack cannot read these.
_DTYPES = frozenset(
    ["bool", "float16", "float32", "float64", "complex64", "complex128"]
    + [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
)
_CPU = int(DeviceType.cpu)


def _from_dlpack(tensor: Any) -> Any:
    if tensor.dtype not in _DTYPES:
        raise BufferError(
            f"numpy has no {tensor.dtype}: use to_torch() or to_jax(), cast the data, or "
            + numpy_like.advise_bytes("numpy")
        )
    type_and_id = tensor.__dlpack_device__()
    if type_and_id[0] != _CPU:
        device = _core.Device(type_and_id)
        raise BufferError(
            f"numpy's arrays are on the CPU, the array is on {device.name}:{device.id}: copy it "
            'first, with array.to("cpu") or with the library that made it'
        )
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
