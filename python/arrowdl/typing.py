"""Protocols and aliases for what arrowdl takes, for type checkers.

Importing this module imports no library: each protocol is one that objects of many libraries
implement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsFloat, TypeAlias

from arrowdl._device_type import DeviceType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Buffer, CapsuleType


class SupportsArrowSchema(Protocol):
    """Arrow PyCapsule interface: exports a schema."""

    def __arrow_c_schema__(self) -> Any: ...


class SupportsArrowArray(Protocol):
    """Arrow PyCapsule interface: exports an array in host memory."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


class SupportsArrowDeviceArray(Protocol):
    """Arrow PyCapsule interface: exports an array on any device."""

    def __arrow_c_device_array__(self, requested_schema: Any = None) -> Any: ...


class SupportsArrowStream(Protocol):
    """Arrow PyCapsule interface: exports a stream of arrays in host memory."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class SupportsArrowDeviceStream(Protocol):
    """Arrow PyCapsule interface: exports a stream of arrays on any device."""

    def __arrow_c_device_stream__(self, requested_schema: Any = None) -> Any: ...


class SupportsDataFrame(Protocol):
    """Dataframe interchange protocol."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any: ...


class SupportsDLPack(Protocol):
    """DLPack's Python protocol. arrowdl prefers the C exchange API if the class has it."""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...


class SupportsCudaArrayInterface(Protocol):
    """CUDA array interface, versions 0 to 3."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


class SupportsSyclUsmArrayInterface(Protocol):
    """dpctl's interface of SYCL's unified shared memory, version 1."""

    @property
    def __sycl_usm_array_interface__(self) -> Any: ...


class TypedDevice(Protocol):
    """`arrowdl.Device`."""

    @property
    def type(self) -> int: ...
    @property
    def id(self) -> int: ...


class TorchDevice(Protocol):
    """`torch.device`."""

    @property
    def type(self) -> str: ...
    @property
    def index(self) -> Any: ...


class JaxDevice(Protocol):
    """`jax.Device`."""

    @property
    def platform(self) -> str: ...
    @property
    def local_hardware_id(self) -> int | None: ...


ArrowArrayLike: TypeAlias = "SupportsArrowArray | SupportsArrowDeviceArray"
ArrowStreamLike: TypeAlias = "SupportsArrowStream | SupportsArrowDeviceStream"

ArrowLike: TypeAlias = (
    "ArrowArrayLike | ArrowStreamLike | SupportsDataFrame | CapsuleType | tuple[Any, Any]"
)
"""What `from_arrow` takes: Arrow data, a frame, a stream capsule, or capsules (schema, array)."""

ArrayInterfaceLike: TypeAlias = "SupportsCudaArrayInterface | SupportsSyclUsmArrayInterface"

# One string each: pyright does not read a type that is joined from several.
TensorLike: TypeAlias = (
    "SupportsDLPack | ArrayInterfaceLike | Buffer | CapsuleType | Mapping[str, Any]"
)
"""What `to_arrow_device` takes besides Arrow data."""

MaskLike: TypeAlias = "TensorLike | ArrowLike"
"""A tensor or an Arrow array of bool, of shape (rows,)."""

ArraysLike: TypeAlias = "ArrowLike | Sequence[ArrowLike]"
"""A stream, an array, or a list of arrays."""

DeviceLike: TypeAlias = (
    "TypedDevice | str | tuple[DeviceType | int | str, int | None] | TorchDevice | JaxDevice"
)
"""What every ``device=`` takes."""


class MemoryResource(Protocol):
    """A memory resource of RMM."""

    @property
    def allocate(self) -> Callable[..., Any]: ...
    @property
    def deallocate(self) -> Callable[..., Any]: ...


AllocatorLike: TypeAlias = (
    "Literal['auto', 'pool'] | type[Any] | MemoryResource | Callable[[int], Any]"
)
"""What allocates device memory: see `config.allocator`."""

NullPolicy: TypeAlias = Literal["raise", "fill", "nan", "mask"]
NullsLike: TypeAlias = "NullPolicy | SupportsFloat | Mapping[str, NullPolicy | SupportsFloat]"
"""What becomes of nulls: one policy or number, or that of each column."""


class PaddedForm(Protocol):
    """`Padded`: how rows of lists are padded."""

    @property
    def value(self) -> SupportsFloat: ...
    @property
    def max_length(self) -> int | None: ...
    @property
    def multiple(self) -> int | None: ...


RaggedForm: TypeAlias = "Literal['jagged', 'padded', 'offsets'] | PaddedForm"
RaggedLike: TypeAlias = "RaggedForm | Mapping[str, RaggedForm]"
"""What becomes of lists: one form, or that of each column."""

DtypeLike: TypeAlias = Any
"""What names a dtype: ``"float32"``, ``torch.float32``, ``np.float32``, ``jnp.float32``, or, of
times, their unit: ``"timestamp[us]"``."""

__all__ = [
    "AllocatorLike",
    "ArraysLike",
    "ArrowArrayLike",
    "ArrowLike",
    "ArrowStreamLike",
    "DeviceLike",
    "DtypeLike",
    "JaxDevice",
    "MaskLike",
    "MemoryResource",
    "NullPolicy",
    "NullsLike",
    "PaddedForm",
    "RaggedForm",
    "RaggedLike",
    "SupportsArrowArray",
    "SupportsArrowDeviceArray",
    "SupportsArrowDeviceStream",
    "SupportsArrowSchema",
    "SupportsArrowStream",
    "SupportsCudaArrayInterface",
    "SupportsDLPack",
    "SupportsDataFrame",
    "SupportsSyclUsmArrayInterface",
    "TensorLike",
    "TorchDevice",
    "TypedDevice",
]
