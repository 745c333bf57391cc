"""Types of the compiled core, with its docstrings: tools/stub_docstrings.py copies them."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, final, overload

from typing_extensions import Buffer, CapsuleType

from arrowdl.typing import (
    AllocatorLike,
    ArraysLike,
    ArrowLike,
    DeviceLike,
    DtypeLike,
    MaskLike,
    NullsLike,
    PaddedForm,
    RaggedForm,
    RaggedLike,
    SupportsArrowSchema,
    TensorLike,
)

__version__: str
dlpack_version: tuple[int, int]
device_type_numbers: dict[str, int]

@final
class Device:
    """A device that holds memory: a DLPack device type and an id.

    Compares and unpacks as the tuple of ``__dlpack_device__``. Immutable and hashable.

    Parameters
    ----------
    type : str, DeviceType, int, tuple, torch.device or jax.Device
        A `DeviceType`, its number or its name, a number of a later DLPack, or a type with the id: ``"cuda:1"``, a pair (type, id),
        a Device, or a framework's device object.
    id : int, optional
        The index of the device among those of its type. By default that of the current device, as in
        torch: of torch where it uses the GPU, else of the calling thread's context in the driver (what
        cupy and numba set), else of JAX, else 0. The CPU's id is always 0.

    Raises
    ------
    ValueError
        No type has this name, its number is below 1, the id is negative, or `type` already has an id.
    TypeError
        `type` names no device.
    BufferError
        Arrow and DLPack have no type for the framework's device.
    """
    def __init__(self, type: int | DeviceLike, id: int | None = None) -> None: ...
    @property
    def type(self) -> int:
        """The DLDeviceType, a number of `DeviceType`; ArrowDeviceType has the same numbers."""
    @property
    def id(self) -> int:
        """The index of the device among those of its type; 0 for the CPU."""
    @property
    def name(self) -> str:
        """The type's name, such as "cpu" or "cuda"; "device type 99" for a number without one."""
    def __iter__(self) -> Iterator[int]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __copy__(self) -> Device: ...
    def __deepcopy__(self, memo: Any, /) -> Device: ...
    def __hash__(self) -> int: ...

@final
class Schema:
    """An Arrow type with its name and metadata."""
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow PyCapsule interface: export the schema."""
    @property
    def name(self) -> str:
        """The field's name, or an empty string."""
    @property
    def format(self) -> str:
        """The format string of the Arrow C data interface."""
    @property
    def nullable(self) -> bool:
        """Whether the field may have nulls."""
    @property
    def metadata(self) -> dict[bytes, bytes]:
        """Key and value of each entry, as bytes."""
    @property
    def children(self) -> list[Schema]:
        """The schemas of nested fields."""
    @property
    def dictionary(self) -> Schema | None:
        """The schema of a dictionary's values, or None."""
    @property
    def ordered(self) -> bool:
        """Whether the values of the dictionary are ordered."""
    def __copy__(self) -> Schema: ...
    def __deepcopy__(self, memo: Any, /) -> Schema: ...

@final
class DeviceArray:
    """An Arrow array with its schema, on any device: owned, immutable, cheap to slice.

    `to_arrow_device`, `from_arrow` and the functions of `c_data` return it. It supports the Arrow
    PyCapsule protocols, DLPack and its C exchange API, NumPy's ``__array__``, and on CUDA and SYCL
    devices their array interfaces. `multiprocessing` sends arrays in memory of a GPU to other
    processes.
    """

    __dlpack_c_exchange_api__: CapsuleType
    # description
    @property
    def type(self) -> str:
        """The Arrow type, as text."""
    @property
    def schema(self) -> Schema:
        """The Arrow schema."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor, rows first, in elements; (rows,) for types without a tensor."""
    def is_contiguous(self) -> bool:
        """Return whether the tensor lies in C order, without gaps.

        Consumers that read no strides ask for it (MAX). A permuted arrow.fixed_shape_tensor does not; for
        types without a tensor it is True.
        """
    @property
    def dtype(self) -> str | None:
        """The name of the tensor's element type, or None for types without a tensor."""
    @property
    def device(self) -> Device:
        """The device that holds the memory."""
    @property
    def nbytes(self) -> int:
        """The size in bytes of these rows, in all buffers."""
    @property
    def sync_event(self) -> int | None:
        """The address of the event that completes when the memory is ready, of the type that Arrow
        defines for the device; None without one.
        """
    @property
    def null_count(self) -> int:
        """The number of null rows. Nulls in nested values do not count."""
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str:
        """Return the representation for notebooks."""
    # parts
    def __getitem__(self, key: slice | str, /) -> DeviceArray: ...
    def field(self, key: str | int, /) -> DeviceArray:
        """Return a field of a struct array, zero-copy.

        Parameters
        ----------
        key : str or int
            The name or the index of the field; a negative index counts from the end.

        Returns
        -------
        DeviceArray
            Shares the memory. Its rows are null where the struct is null.

        Raises
        ------
        ValueError
            No field has the name, or several fields have it.
        IndexError
            The index is out of range.
        TypeError
            The array is not a struct.
        """
    @property
    def field_names(self) -> list[str]:
        """The names of a struct's fields."""
    @property
    def values(self) -> DeviceArray:
        """The elements of a list, string or binary array (uint8 for the latter two)."""
    @property
    def offsets(self) -> DeviceArray:
        """The index of each list's first element in `values`, and the end of the last list."""
    @property
    def indices(self) -> DeviceArray:
        """The indices of a dictionary array."""
    @property
    def dictionary(self) -> DeviceArray:
        """The values of a dictionary array."""
    @property
    def validity(self) -> DeviceArray | None:
        """The validity bitmap as a boolean array, or None without one."""
    # protocols
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow PyCapsule interface: export the schema."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow PyCapsule interface: export the schema and the array, in memory that the host can read.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            The schema to cast to: the same buffers, or an exact, cheap conversion. On a device the array
            keeps its own schema if the cast needs new memory.

        Returns
        -------
        tuple of PyCapsule
            (schema, array). The array shares the memory and keeps it alive.

        Raises
        ------
        ValueError
            The data cannot be cast to the schema, or the capsule was consumed before.
        TypeError
            `requested_schema` is not a schema capsule.
        BufferError
            The host cannot read the memory.
        """
    def __arrow_c_device_array__(
        self, requested_schema: CapsuleType | None = None, **kwargs: Any
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow PyCapsule interface: export the schema and the device array, with its event.

        Does not wait.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            As in ``__arrow_c_array__``.
        **kwargs
            Keywords of later protocol versions, which must be None: other values raise
            NotImplementedError.

        Returns
        -------
        tuple of PyCapsule
            (schema, device array). The array shares the memory and keeps it alive.

        Raises
        ------
        ValueError, TypeError
            As in ``__arrow_c_array__``.
        NotImplementedError
            A keyword has a value other than None.
        """
    @property  # structs only: AttributeError otherwise
    def __arrow_c_stream__(self) -> Callable[..., CapsuleType]:
        """Arrow PyCapsule interface, of structs only: the method that exports a stream of this one array,
        in memory that the host can read.
        """
    @property
    def __arrow_c_device_stream__(self) -> Callable[..., CapsuleType]:
        """Arrow PyCapsule interface, of structs only: the method that exports a device stream of this one
        array.
        """
    def __dlpack__(
        self,
        *,
        stream: int | Any | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """DLPack: export the tensor, without a copy where the layout allows. Shared memory is read-only.

        Parameters
        ----------
        stream : int or stream object, optional
            The consumer's stream, which waits for the array's event. -1: no order. None: the host waits,
            and on CUDA and ROCm the default stream counts as the reader.
        max_version : tuple of int, optional
            (major, minor) of the newest DLPack version that the consumer reads. None: a legacy capsule,
            which has no read-only flag.
        dl_device : tuple of int, optional
            (device_type, device_id): the array's own device, or the CPU.
        copy : bool, optional
            None copies if needed, False never, True always.

        Returns
        -------
        PyCapsule
            Owns the tensor until a consumer takes it. The tensor keeps the memory alive.

        Raises
        ------
        BufferError
            The array has nulls, its type is not one tensor, `copy` forbids a copy that is needed, or
            `dl_device` is another device.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack: return (device_type, device_id)."""
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """NumPy's protocol: return an array, read-only if it shares the memory.

        Parameters
        ----------
        dtype : numpy.dtype, optional
            The type to convert to.
        copy : bool, optional
            None copies if needed, False never, True always.

        Returns
        -------
        numpy.ndarray

        Raises
        ------
        BufferError
            The array has nulls, or NumPy has no such type.
        TypeError
            The CPU cannot read the memory: copy it first, ``array.to("cpu")``.
        ValueError
            ``copy=False``, and a copy is needed.
        """
    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """Dataframe interchange protocol: return a frame with the fields of a struct as its columns.

        Numbers, booleans, dates, times, strings and dictionaries are shared, on any device. String views
        are gathered. ``ptr`` of a buffer that the host cannot read is the address of a host copy; its
        ``__dlpack__`` exports the memory on the device.

        Parameters
        ----------
        nan_as_null : bool
            Only False: the protocol deprecates True.
        allow_copy : bool
            False raises BufferError where exporting a column, or ``ptr`` of a buffer, needs a copy.

        Returns
        -------
        object
            A frame of the protocol, which shares the memory and keeps it alive.

        Raises
        ------
        TypeError
            The array is not a struct.
        BufferError
            ``nan_as_null=True``. Accessing a column raises it if the protocol lacks the column's type.
        """
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory as the CUDA array interface, version 3, describes it.

        Read-only. A consumer orders its work after ``stream``, which is None if the memory is ready. The
        consumer has to keep this array alive while it uses the memory.

        Raises
        ------
        AttributeError
            The device is not cuda or cuda_managed, or the array has nulls or a type without a typestr.
        """
    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """The memory as dpctl's protocol for SYCL's unified shared memory, version 1, describes it.

        Read-only. ``syclobj`` is dpctl's own queue of the device. The protocol defines no ordering, so the
        host waits until the memory is ready. The consumer has to keep this array alive while it uses the
        memory.

        Raises
        ------
        AttributeError
            The device is not oneapi, the array has nulls or a type without a typestr, or dpctl cannot be
            imported.
        """
    # lifetime and devices
    def __copy__(self) -> DeviceArray:
        """Return the array itself, which is immutable."""
    def __deepcopy__(self, memo: Any, /) -> DeviceArray:
        """Copy the rows into new memory on the same device, with nested values, dictionaries and the data of
        views.
        """
    def is_ready(self) -> bool:
        """Return whether the memory is ready: the array has no event, or its event has completed.

        Does not wait.

        Returns
        -------
        bool
        """
    def synchronize(self) -> None:
        """Wait on the host until the memory is ready."""
    def wait(self, stream: Any, /) -> None:
        """Make later work on `stream` wait until the memory is ready; the host does not wait.

        Keeps the memory alive until that work is done, as `record_stream` does.

        Parameters
        ----------
        stream : int or stream object
            A stream or queue of the array's device: a handle as in ``__dlpack__``, or an object of torch,
            cupy, numba, dpctl or pyopencl.

        Raises
        ------
        BufferError
            `stream` is not a stream of the array's device.
        """
    def record_stream(self, stream: Any, /) -> None:
        """Keep the memory alive until the current work of `stream` is done.

        For streams that read the memory without arrowdl's knowledge. The stream must outlive the memory.

        Parameters
        ----------
        stream : int or stream object
            As in `wait`.

        Raises
        ------
        BufferError
            `stream` is not a stream of the array's runtime.
        """
    def to(
        self,
        device: DeviceLike,
        *,
        stream: Any = None,
        non_blocking: bool = True,
        pin_memory: bool = True,
        allocator: AllocatorLike | None = None,
    ) -> DeviceArray:
        """Copy the rows to another device.

        Copies the bytes of these rows, with nested values and dictionaries, into one block of new memory.
        On a device, the result has one event for all copies.

        Parameters
        ----------
        device : Device, str, tuple, torch.device or jax.Device
            ``Device("cuda", 0)``, ``"cuda:0"``, ``(2, 0)`` or ``torch.device("cuda")``; ``"cuda"`` is the
            current device (see `Device`).
        stream : int or stream object, optional
            Runs the copies. A stream of the device that is not the CPU, or of the target if neither is the
            CPU. None: arrowdl's own stream.
        non_blocking : bool
            Return before the copies are complete. Copies to the CPU are always complete on return.
        pin_memory : bool
            Copy pageable memory to CUDA and ROCm devices through arrowdl's pinned memory, which is reused
            (see `config.staging_limit`): the source has been read on return, and the host does not wait for
            the device. False: the driver copies. Pinned memory is always copied directly. Copies to the CPU
            go through pinned memory too.
        allocator : str, class, memory resource or callable, optional
            What allocates the memory on a cuda or rocm device; None: `config.allocator`, which lists them.

        Returns
        -------
        DeviceArray
            Shares the memory if it already is on `device`. cuda_host memory becomes CPU memory without a
            copy, and so does cuda_managed memory where the CPU may read it while the GPU works.

        Raises
        ------
        BufferError
            The device has no runtime, `stream` is being captured into a graph, the array has string or
            binary views, or the allocator fails.
        MemoryError
            The device has no memory, though the caches that `config.allocator` names were emptied.
        TypeError, ValueError
            `device` or `allocator` names none.
        """
    def release(self) -> None:
        """Drop this object's reference to the memory now.

        Earlier exports stay valid. Later uses of this object raise ValueError.
        """
    @property
    def is_released(self) -> bool:
        """Whether `release` was called."""

@final
class DeviceStream:
    """A stream of Arrow arrays of one type, on one type of device.

    `from_arrow_stream` returns it. It is an iterator of `DeviceArray`, and an Arrow stream for any
    consumer (``__arrow_c_stream__``, ``__arrow_c_device_stream__``). Adaptors and consumers consume the
    stream: it can be read once. Each adaptor returns a new DeviceStream. Reading starts with the first
    array that is requested, and releases the GIL. One thread at a time reads a stream; others wait.
    """
    def __iter__(self) -> DeviceStream: ...
    def __next__(self) -> DeviceArray: ...
    def _send(self, handler: int, /) -> None: ...
    def __aiter__(self) -> AsyncIterator[DeviceArray]:
        """Iterate in a coroutine: a thread reads ahead, and the event loop does not wait.

        Consumes this object.

        Returns
        -------
        AsyncDeviceStream
        """
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow PyCapsule interface: export the schema."""
    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType:
        """Arrow PyCapsule interface: export the stream, in memory that the host can read.

        Consumes this object.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            The schema to cast to, as in ``DeviceArray.__arrow_c_array__``. Reading raises ValueError at an
            array whose values cannot be cast.

        Returns
        -------
        PyCapsule
            Named ``arrow_array_stream``. Owns the stream until a consumer takes it.

        Raises
        ------
        ValueError
            The schema is incompatible, or the stream was consumed before.
        """
    def __arrow_c_device_stream__(
        self, requested_schema: CapsuleType | None = None, **kwargs: Any
    ) -> CapsuleType:
        """Arrow PyCapsule interface: export the stream, on its device. Consumes this object.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            As in ``__arrow_c_stream__``.
        **kwargs
            Reserved by the protocol; every value has to be None.

        Returns
        -------
        PyCapsule
            Named ``arrow_device_array_stream``. Owns the stream until a consumer takes it.

        Raises
        ------
        ValueError
            As in ``__arrow_c_stream__``.
        NotImplementedError
            A keyword has a value other than None.
        """
    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """Dataframe interchange protocol: read a stream of structs to its end, and return a frame.

        Consumes this object.

        Parameters
        ----------
        nan_as_null, allow_copy : bool
            As in `DeviceArray`.

        Returns
        -------
        object
            A frame of the protocol with a chunk for each array.

        Raises
        ------
        TypeError
            The arrays are not structs.
        BufferError
            As in `DeviceArray`.
        """
    @property
    def schema(self) -> Schema:
        """The Arrow schema of every array."""
    @property
    def device_type(self) -> int:
        """The device type of every array, a number of `DeviceType`."""
    def select(self, columns: Sequence[str]) -> DeviceStream:
        """Select columns by name, in the given order, zero-copy.

        Parameters
        ----------
        columns : sequence of str

        Returns
        -------
        DeviceStream

        Raises
        ------
        ValueError
            No column has the name, or several columns have it.
        TypeError
            The arrays are not structs.
        """
    def rebatch(self, batch_size: int, *, drop_last: bool = False) -> DeviceStream:
        """Cut the rows into arrays of `batch_size` rows; the last one may have fewer.

        An array whose rows are in one source array is a slice of it. An array whose rows are in several is
        a copy.

        Parameters
        ----------
        batch_size : int
            Rows, at least 1.
        drop_last : bool
            Drop an incomplete last array.

        Returns
        -------
        DeviceStream

        Raises
        ------
        BufferError
            During iteration: rows of several arrays are on a device that the host cannot read. Rebatch
            first, then copy with `to`.
        """
    def slice(self, start: int, length: int | None = None) -> DeviceStream:
        """Take the rows `start` to ``start + length`` of the whole stream.

        Parameters
        ----------
        start : int
            The index of the first row, 0 or more.
        length : int, optional
            Rows, 0 or more. None: all rows that follow.

        Returns
        -------
        DeviceStream
        """
    def shuffle(
        self, buffer_size: int, seed: int, *, first_window: int = 0, in_place: bool = False
    ) -> DeviceStream:
        """Permute the rows within windows of `buffer_size` consecutive rows.

        The order depends only on `seed`, `buffer_size` and the index of a row, not on the machine or on how
        the source divides its rows into arrays. Holds one window in memory.

        Parameters
        ----------
        buffer_size : int
            Rows, 1 to 2**32 - 1.
        seed : int
            0 to 2**64 - 1.
        first_window : int
            The index of the window that this stream starts with, to resume a longer stream.
        in_place : bool
            Whether the rows of this stream are in memory that may be written to and has no other user. They
            are permuted in it where that is faster: columns of numbers, many of them.

        Returns
        -------
        DeviceStream

        Raises
        ------
        BufferError
            During iteration: the host cannot read the memory.
        """
    def shard(self, num_shards: int, index: int, *, pad: bool = False) -> DeviceStream:
        """Take one shard of every array: one of `num_shards` parts, whose lengths differ by one row at most.

        Parameters
        ----------
        num_shards : int
            At least 1.
        index : int
            0 to ``num_shards - 1``.
        pad : bool
            If an array has fewer rows than `num_shards`, repeat its last row for the shards without a row.
            False: those shards get an empty array.

        Returns
        -------
        DeviceStream
        """
    def pack(
        self,
        column: str,
        length: int,
        strategy: Literal["concat", "best_fit"] = "concat",
        *,
        buffer_size: int = 256,
        long: Literal["split", "truncate", "drop", "raise"] = "split",
        pad_value: float | Mapping[str, float] = 0,
        drop_last: bool = False,
        aligned: Sequence[str] | None = None,
        add: Sequence[str] = ("position_ids", "segment_ids", "cu_seqlens"),
        resume_from: Sequence[int] = (0, 0, 0),
    ) -> DeviceStream:
        """Pack sequences, such as the tokens of documents, into blocks of `length` items.

        Each row of the result is a block. The packed columns become fixed-size lists of `length`, so that
        a batch of n blocks is a tensor of shape (n, length). The other columns become lists with one
        value for each sequence of the block, or part of a sequence that is cut. Rows without items are
        left out. The columns keep their order and names; those of `add` follow.

        The blocks depend only on the rows and the arguments, not on how the source divides its rows into
        arrays.

        Parameters
        ----------
        column : str
            The lists of tokens: lists, large lists, list views or fixed-size lists, of items with a fixed
            width.
        length : int
            Items of a block, 1 to 2**30.
        strategy : {"concat", "best_fit"}
            ``"concat"``: sequences follow one another. The end of a block cuts the sequence that crosses
            it, and the rest continues in the next block. Only the last block has padding.
            ``"best_fit"``: no sequence is cut. The sequences of a window are placed together: each block
            takes the longest one that is left, then again and again the longest one that fits. Their
            order within a block is that of the source, and blocks are in the order of their first
            sequence, but the block of the window with the most padding comes last.
        buffer_size : int
            For ``"best_fit"``: a window ends with the row that completes `buffer_size` blocks' worth of
            items. It is held in memory. About one block of a window is padding; larger windows have less
            of it.
        long : {"split", "truncate", "drop", "raise"}
            What happens to a sequence of more than `length` items: ``"split"`` makes several sequences of
            it, ``"truncate"`` drops the items at its end, ``"drop"`` drops the row, ``"raise"`` raises
            ValueError.
        pad_value : int, float, bool, or mapping of str to these
            The padding of the packed columns, or of each of them by name: zeros for columns without a
            name.
        drop_last : bool
            Drop the last block of the stream unless it is full.
        aligned : sequence of str, optional
            The columns with an item for each token, such as labels or loss masks, which are packed in the
            same way. None: all columns of lists whose items have a fixed width; fixed-size lists only if
            `column` has lists of that size.
        add : sequence of str
            The columns that are added: ``"position_ids"``, ``"segment_ids"``, ``"cu_seqlens"`` and
            ``"resume_from"``, in any order.

            ``position_ids``, int32 of shape (n, length): the index of an item in its sequence. It starts
            at 0 for each sequence, each part of one that is cut, and the padding.
            ``segment_ids``, int32 of shape (n, length): 1, 2, ... for the items of the sequences of a
            block, and 0 for padding.
            ``cu_seqlens``, a list of int32 for each block: the offsets of its sequences, from 0 to
            `length`. Padding counts as the last sequence. `flatten_cu_seqlens` joins those of several
            blocks.
            ``resume_from``, int64 of shape (n, 3): where a stream starts that continues after this block.
        resume_from : sequence of three ints
            The ``resume_from`` of the last block that was used, to get the blocks after it. This stream
            has to start at row ``resume_from[0]`` of the rows that were packed (`slice`), with the same
            arguments.

        Returns
        -------
        DeviceStream

        Raises
        ------
        ValueError
            No column has a name, an argument is out of range, or `resume_from` is of another strategy.
            During iteration: a list or an item of it is null; a row has different numbers of items in
            packed columns; a sequence is too long for ``long="raise"``; the stream does not fit
            `resume_from`.
        TypeError
            The arrays are not structs, or a column cannot be packed.
        BufferError
            The host cannot read the memory: pack first, then copy with `to`.
        """
    def to(
        self,
        device: DeviceLike,
        *,
        pin_memory: bool = True,
        allocator: AllocatorLike | None = None,
    ) -> DeviceStream:
        """Copy the arrays to `device`, as `DeviceArray.to` does.

        arrowdl's own stream runs the copies, with one event for each array. The host does not wait.

        Parameters
        ----------
        device : Device, str, tuple, torch.device or jax.Device
        pin_memory : bool
            Copy pageable memory to CUDA and ROCm devices through arrowdl's pinned memory, which is reused:
            see `config.staging_limit`.
        allocator : str, class, memory resource or callable, optional
            What allocates the memory on a cuda or rocm device; None: `config.allocator`, which lists them.

        Returns
        -------
        DeviceStream
        """
    def map(
        self,
        model: Callable[[Any], Any],
        *,
        columns: str | Sequence[str] | None = None,
        keep: Sequence[str] | None = None,
        batch_size: int | None = None,
        device: DeviceLike | None = None,
        output_device: DeviceLike | None = None,
        framework: Literal["torch", "jax", "numpy"] = "torch",
        names: str | Sequence[str] = "output",
        schema: SupportsArrowSchema | None = None,
        prefetch: int = 2,
        writable: bool = True,
        nulls: NullsLike = "raise",
        ragged: RaggedLike | PaddedForm | Mapping[str, RaggedForm | PaddedForm] = "jagged",
        dtype: DtypeLike | Mapping[str, DtypeLike] | None = None,
        stack: bool | Mapping[str, Sequence[str]] | None = None,
        layout: Literal["auto", "fixed_shape_tensor", "list"] = "auto",
        bool_as: Literal["bool8", "bits"] = "bits",
    ) -> DeviceStream:
        """Call `model` with the tensors of each batch of rows, and add the tensors that it returns as columns.

        The result has the columns that are kept and those of the model, in the order of the rows. The model
        is called when the stream is read: for the first batch as soon as the stream, its schema or an
        adaptor of it is used. It runs on a native thread of the stream, always the same one, under
        ``torch.no_grad()`` if torch is loaded. Meanwhile other threads read, convert and copy the next
        batches, and copy the results back.

        Parameters
        ----------
        model : callable
            Takes a batch as a `Loader` makes it: a dict of tensors by column. Returns a tensor, a dict of
            them by the name of a new column, or a tuple of them (see `names`). The first dimension of a
            tensor is the rows of the batch. A torch jagged tensor, or a pair (values, offsets), becomes a
            column of lists. A list has a value for each row: a text, a number, a tensor of any length.
            Arrow arrays are columns. Gradients are dropped.
        columns : str or sequence of str, optional
            The columns that the model gets, all by default. It gets the tensor of one column for a str, and
            a dict for a sequence.
        keep : sequence of str, optional
            The columns of the source that the result has too, all by default. They are not copied.
        batch_size : int, optional
            Rows of a batch, as of `rebatch`; the last one may have fewer. None: the arrays as they are.
        device : device, optional
            Copies the batches there, as in `Loader`. None: where the arrays are.
        output_device : device, optional
            Where the arrays of the result are. None: where those of the source are.
        framework : {'torch', 'jax', 'numpy'}
            Whose tensors the model gets. It may return those of any library.
        names : str or sequence of str
            The name of the column if the model returns one tensor; the names of those of a tuple.
        schema : Arrow schema, optional
            The columns that the model makes. With it the model is not called before an array is read, and
            columns are cast to these types as by ``__arrow_c_stream__``, such as rows of a matrix to lists.
            Without it, the first batch decides; of a stream without rows, the model is called with a batch
            without rows.
        prefetch : int
            Batches that are ready ahead of the model, and results ahead of the consumer. 0 uses no thread:
            the model runs in the thread that reads the stream.
        writable : bool
            Whether the model may write to its batch, and again to the memory of what it returned. For that,
            rows of shared memory are copied, and so are results. With False, neither is, and neither may
            be written to.
        nulls, ragged, dtype, stack
            How columns become tensors, as in `Loader`.
        layout, bool_as
            How tensors become columns, as in `to_arrow_device`; but bools become Arrow's booleans.

        Returns
        -------
        DeviceStream

        Raises
        ------
        TypeError
            The arrays are not structs, or an option has a wrong type. While reading: the model returned
            something else.
        ValueError
            A column is missing, or an option has a wrong value. While reading: the model returned another
            number of rows, other columns or types than for the first batch, or a column that is kept.
        Exception
            While reading: what the model or a conversion raises, with the rows as a note. Consumers of the
            exported stream get its type, text and notes as the message.
        """
    def prefetch(self, depth: int = 2) -> DeviceStream:
        """Read up to `depth` arrays ahead in a native thread.

        An error of the source is raised after the arrays that precede it. The thread starts when the first
        array is requested, and ends with the stream.

        Parameters
        ----------
        depth : int
            Arrays, at least 1.

        Returns
        -------
        DeviceStream

        Raises
        ------
        RuntimeError
            During iteration in a forked child, which does not have the thread.
        """
    def close(self) -> None:
        """Release what the stream holds, its threads included. Arrays that it returned stay valid."""

@final
class AsyncReceiver:
    """The queue behind an `arrowdl.AsyncDeviceStream`."""
    def __init__(self, depth: int) -> None: ...
    @property
    def handler(self) -> int:
        """The address of the ArrowAsyncDeviceStreamHandler."""
    def release_handler(self) -> None:
        """Release the handler in place of a producer that did not start."""
    def schema(self) -> Schema | None:
        """Return the schema, or None if it has not arrived."""
    def poll(self) -> tuple[DeviceArray | None] | None:
        """Return the next array in a tuple of one, (None,) at the end, or None if no array is ready."""
    def changes(self) -> int:
        """Return how often the producer has changed what `schema` or `poll` return."""
    def notify(self, seen: int, callback: Callable[[], object] | None) -> bool:
        """Call `callback` once after the next change, on any thread; None: never. Return False instead if `changes()` is not `seen`."""
    def open_stream(self) -> DeviceStream:
        """Return the arrays as a DeviceStream. Waits for the schema."""
    def cancel(self) -> None:
        """Drop the arrays that wait, and ask the producer to stop."""

@final
class Tensor:
    """A tensor for one consumer: `__dlpack__` exports it once."""
    @property
    def dtype(self) -> str:
        """The element type by name."""
    def __dlpack__(
        self,
        *,
        stream: int | Any | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def _as_integers(self, is_copied: bool) -> Tensor:
        """The memory as unsigned integers, packed values as bytes, in place of this tensor. Raises BufferError if the consumer copies it and must not."""

@final
class TensorBlock:
    """Host tensors that `write` copies into one block of memory.

    `frameworks` has None where a leaf is no tensor.
    """
    def __init__(self, leaves: Sequence[Any], frameworks: Sequence[str | None]) -> None: ...
    @property
    def nbytes(self) -> int:
        """The size of the block in bytes."""
    @property
    def table(self) -> bytes:
        """Offset, dtype and shape of each tensor in the block, for `read_tensors`."""
    @property
    def left_out(self) -> list[int]:
        """The indices of the leaves that are not in the block: those that are no tensors, or that the host cannot read."""
    def write(self, target: Buffer) -> None:
        """Copy the tensors into a writable, contiguous buffer of `nbytes`."""

def read_row_numbers(rows: Any, num_rows: int, /) -> DeviceArray:
    """Return row numbers from 0, as int64 in host memory. `rows` is a slice, or a sequence, tensor or Arrow array of integers, of which negative ones count from the end."""

def number_rows(arrays: Sequence[DeviceArray], starts: DeviceArray, /) -> object:
    """Return the rows of arrays of one schema, for `take_rows`. Row 0 of each has the number in `starts`, of `read_row_numbers`."""

def take_rows(rows: object, numbers: DeviceArray, /) -> tuple[DeviceArray, bool]:
    """Return the rows of `number_rows` with the numbers of `read_row_numbers`, and whether they are a window of one of the arrays. Other rows are in new memory. Many threads may take rows."""

def group_rows(
    numbers: DeviceArray, starts: DeviceArray, /
) -> tuple[dict[int, DeviceArray], DeviceArray]:
    """Return the parts that have rows with `numbers`, each with its numbers, and where each row is among those of all parts. `starts` has the number of the first row of each part."""

def read_tensors(block: DeviceArray, table: bytes, frameworks: Sequence[str | None]) -> list[Any]:
    """Return the tensors that a `TensorBlock` wrote, as views of `block`, an array of its bytes on any device. `frameworks` names the framework of each; None for those left out."""

def to_arrow_device(
    tensor: TensorLike | ArrowLike,
    /,
    *,
    copy: bool | None = None,
    layout: Literal["auto", "fixed_shape_tensor", "list"] = "auto",
    bool_as: Literal["bool8", "bits"] = "bool8",
    mask: MaskLike | None = None,
    stream: Any = None,
) -> DeviceArray:
    """Convert a tensor, or a dict of tensors, to an Arrow array on the same device.

    Parameters
    ----------
    tensor : tensor, mapping of str to tensor, or DLPack capsule
        An object with ``__dlpack__`` or the DLPack C exchange API; otherwise with
        ``__cuda_array_interface__``, ``__sycl_usm_array_interface__`` or the buffer protocol. A tensor
        of shape (rows, ...) becomes an array of that many rows, a 0-D tensor one row. NumPy's
        datetime64 and timedelta64 in s, ms, us and ns become timestamps and durations, NaT becomes
        null; NumPy arrays of ml_dtypes become the ``arrowdl.*`` types. Dicts and
        TensorDicts become structs, a torch jagged nested tensor becomes a list array. Arrow data is
        imported as by `from_arrow`; options of tensors raise BufferError if it has more than a tensor
        has: a unit, a dictionary, names of dimensions, an unknown extension type.
    copy : bool, optional
        None copies if the layout requires it (strided rows), False raises BufferError then, True always
        copies.
    layout : {'auto', 'fixed_shape_tensor', 'list'}
        The type of tensors with 2 and more dimensions: arrow.fixed_shape_tensor ('auto' too, unless
        elements are of arrowdl.* types and not permuted), or nested FixedSizeLists.
    bool_as : {'bool8', 'bits'}
        arrow.bool8, zero-copy, or Arrow's bit-packed booleans, a copy.
    mask : tensor or Arrow array of bool, shape (rows,), optional
        True where a row is valid; becomes the validity bitmap. Null rows stay null.
    stream : int or stream object, optional
        The GPU stream or queue that runs the tensor's work, if it is not the one that the tensor's
        library names. The result has an event for that work; the host does not wait. CPU tensors have
        no streams.

    Returns
    -------
    DeviceArray
        Shares the tensor's memory and keeps it alive, unless it is a copy.

    Raises
    ------
    BufferError
        Arrow cannot represent the type, `copy` forbids a copy that is needed, or the tensor requires
        grad.
    ValueError
        The tensor is malformed, the lengths in a dict differ, or the mask has another shape.
    TypeError
        `tensor` is neither a tensor nor Arrow data.
    """

def from_arrow(obj: ArrowLike, /, *, copy: bool | None = None) -> DeviceArray:
    """Import Arrow data of any library, on any device, as one array.

    Parameters
    ----------
    obj : DeviceArray, Arrow producer, data frame, or capsules
        An object with ``__arrow_c_device_array__``, ``__arrow_c_array__``,
        ``__arrow_c_device_stream__`` or ``__arrow_c_stream__`` (tried in that order), a tuple of
        capsules (schema, array), or a stream capsule. A stream is read to its end: one chunk is shared,
        several are gathered into one array. Otherwise an object with ``__dataframe__``, the dataframe
        interchange protocol, becomes a struct of its columns.
    copy : bool, optional
        None copies if needed. False raises BufferError if several chunks or the layout of a frame's
        columns need a copy, and passes ``allow_copy=False`` to a frame. It does not affect copies that
        other producers make.

    Returns
    -------
    DeviceArray
        Shares the producer's memory and keeps it alive, unless it is a copy.

    Raises
    ------
    TypeError
        `obj` has no Arrow protocol and is no frame.
    ValueError
        A struct or frame is malformed, a capsule was consumed before, or ``copy=True``.
    BufferError
        `copy` forbids a copy that is needed, or the host cannot read the memory to copy.
    RuntimeError
        The producer of a stream failed; its message is in the error.
    """

def import_schema(schema: int) -> Schema:
    """Import an Arrow schema from its C struct.

    Parameters
    ----------
    schema : int
        The address of an ArrowSchema. The struct is moved from: it is marked released on return, also
        on errors.

    Returns
    -------
    Schema

    Raises
    ------
    ValueError
        The struct is malformed or released. Whether an address holds a struct cannot be checked.
    """

def import_array(array: int, schema: int) -> DeviceArray:
    """Import an array in host memory from its C structs, zero-copy.

    Parameters
    ----------
    array : int
        The address of an ArrowArray.
    schema : int
        The address of its ArrowSchema. Both structs are moved from: they are marked released on
        return, also on errors, except if an address is NULL or not aligned.

    Returns
    -------
    DeviceArray
        Owns the memory, and calls the producer's ``release`` when the last reference to it is dropped.

    Raises
    ------
    ValueError
        The structs are malformed, released, or contradict each other. Whether an address holds a
        struct cannot be checked.
    """

def import_device_array(array: int, schema: int) -> DeviceArray:
    """Import an array on any device from its C structs, zero-copy and without waiting.

    Parameters
    ----------
    array : int
        The address of an ArrowDeviceArray. Uses of the memory wait for its ``sync_event``.
    schema : int
        The address of its ArrowSchema. Both structs are moved from: they are marked released on
        return, also on errors, except if an address is NULL or not aligned.

    Returns
    -------
    DeviceArray
        Owns the memory, and calls the producer's ``release`` when the last reference to it is dropped.

    Raises
    ------
    ValueError
        The structs are malformed, released, or contradict each other, or have an unknown device type.
    """

def import_stream(stream: int) -> DeviceStream:
    """Take a stream of arrays in host memory from its C struct.

    Parameters
    ----------
    stream : int
        The address of an ArrowArrayStream. It is moved from: marked released on return, on failure too.

    Returns
    -------
    DeviceStream
        Owns the producer's stream. Its schema has been read, its arrays have not.

    Raises
    ------
    ValueError
        A released struct, or a malformed schema.
    RuntimeError
        The producer failed; its message is in the error.
    """

def import_device_stream(stream: int) -> DeviceStream:
    """Take a stream of arrays on any device from its C struct.

    Parameters
    ----------
    stream : int
        The address of an ArrowDeviceArrayStream. It is moved from: marked released on return, on failure too.

    Returns
    -------
    DeviceStream
        Owns the producer's stream. Its schema has been read, its arrays have not.

    Raises
    ------
    ValueError
        A released struct, or a malformed schema.
    RuntimeError
        The producer failed; its message is in the error.
    """

def export_schema(source: SupportsArrowSchema | ArrowLike, schema: int) -> None:
    """Write an Arrow schema into a C struct.

    Parameters
    ----------
    source : object with ``__arrow_c_schema__``, or what `from_arrow` takes
    schema : int
        The address of an uninitialised or released ArrowSchema, which owns the schema afterwards.
        Errors leave it unchanged.

    Raises
    ------
    ValueError
        `schema` is NULL or not aligned.
    TypeError
        `source` has no schema.
    """

def export_array(source: ArrowLike, array: int, schema: int | None = None) -> None:
    """Write an array in host memory into C structs, zero-copy.

    Parameters
    ----------
    source : DeviceArray or Arrow producer
        What `from_arrow` takes.
    array : int
        The address of an uninitialised or released ArrowArray, which shares the memory of `source`
        afterwards and keeps it alive until its ``release`` is called.
    schema : int, optional
        The address of an uninitialised or released ArrowSchema. Errors leave both
        structs unchanged.

    Raises
    ------
    BufferError
        The host cannot read the memory: use `export_device_array`.
    ValueError
        An address is NULL or not aligned.
    TypeError
        `source` is not Arrow data.
    """

def export_device_array(source: ArrowLike, array: int, schema: int | None = None) -> None:
    """Write an array on any device into C structs, zero-copy.

    Parameters
    ----------
    source : DeviceArray or Arrow producer
        What `from_arrow` takes.
    array : int
        The address of an uninitialised or released ArrowDeviceArray, which shares the memory of
        `source` afterwards and keeps it alive until its ``release`` is called. A consumer waits for
        its ``sync_event`` before it reads the memory.
    schema : int, optional
        The address of an uninitialised or released ArrowSchema. Errors leave both
        structs unchanged.

    Raises
    ------
    ValueError
        An address is NULL or not aligned.
    TypeError
        `source` is not Arrow data.
    """

def export_stream(source: ArraysLike, stream: int) -> None:
    """Write a stream of arrays in host memory into a C struct.

    Parameters
    ----------
    source : DeviceStream, Arrow producer, or list of arrays
        A stream in its own chunks, an array as one chunk, or each item of a list as a chunk. A
        DeviceStream is consumed.
    stream : int
        The address of an uninitialised or released ArrowArrayStream, which owns the stream afterwards. It stays
        untouched on errors.

    Raises
    ------
    BufferError
        Memory that the host cannot read: use `export_device_stream`.
    ValueError
        Not the address of a struct, an empty list, or arrays of several schemas or devices.
    TypeError
        `source` is not Arrow data.
    """

def export_async_stream(source: ArraysLike, handler: int) -> None:
    """Pass a stream of arrays on any device to an asynchronous consumer.

    A thread calls the handler: with the schema at once, then with as many arrays as the consumer
    requests. It reads one array ahead.

    Parameters
    ----------
    source : DeviceStream, Arrow producer, or list of arrays
        A stream in its own chunks, an array as one chunk, or each item of a list as a chunk. A
        DeviceStream is consumed.
    handler : int
        The address of an ArrowAsyncDeviceStreamHandler that nothing else uses. It must live until its
        ``release`` is called, the last callback, which follows the end, an error or a cancellation.

    Raises
    ------
    ValueError
        Not the address of a handler, a callback that is NULL, or an empty list. No callback is called.
    RuntimeError
        No thread can start. No callback is called.
    TypeError
        `source` is not Arrow data.
    """

def export_device_stream(source: ArraysLike, stream: int) -> None:
    """Write a stream of arrays on any device into a C struct.

    Parameters
    ----------
    source : DeviceStream, Arrow producer, or list of arrays
        A stream in its own chunks, an array as one chunk, or each item of a list as a chunk. A
        DeviceStream is consumed.
    stream : int
        The address of an uninitialised or released ArrowDeviceArrayStream, which owns the stream afterwards. It stays
        untouched on errors.

    Raises
    ------
    ValueError
        Not the address of a struct, an empty list, or arrays of several schemas or devices.
    TypeError
        `source` is not Arrow data.
    """

def from_arrow_stream(obj: ArrowLike | Iterable[ArrowLike], /) -> DeviceStream:
    """Read an Arrow stream of any library, array by array.

    Parameters
    ----------
    obj : DeviceStream, Arrow producer, capsule, dataset, lazy frame, or iterable
        An object with ``__arrow_c_device_stream__`` or ``__arrow_c_stream__`` (tried in that order), a
        stream capsule, an array that `from_arrow` takes (a stream of one array), a dataset or scanner
        of pyarrow or Lance, a dataset of Hugging Face, a LazyFrame of polars, or an iterable of such
        arrays, which must have one type and one device type.

    Returns
    -------
    DeviceStream
        `obj` itself if it is one.

    Raises
    ------
    TypeError
        `obj` is none of these; the error says what to pass instead.
    ValueError
        `obj` is an empty iterable.
    RuntimeError
        The producer failed; its message is in the error.
    """

def flatten_cu_seqlens(column: ArrowLike, /) -> DeviceArray:
    """Return the offsets of the sequences of several blocks, as flash attention takes them.

    Its functions for variable lengths (``flash_attn_varlen_func``) take the tokens of a batch as one
    sequence after the other, ``tokens.flatten()``. The longest sequence (``max_seqlen``) has at most
    the length of a block.

    Parameters
    ----------
    column : DeviceArray or Arrow array
        The column ``cu_seqlens`` that `DeviceStream.pack` adds, of any number of blocks.

    Returns
    -------
    DeviceArray
        int32, in new memory: 0, then the end of each sequence, also of the padding of each block.

    Raises
    ------
    TypeError
        `column` is not of lists of int32.
    ValueError
        The offsets of a block do not ascend from 0.
    BufferError
        The blocks have 2**31 tokens or more, or the host cannot read the memory: call it before
        `to`.
    """

def chain(arrays: Sequence[DeviceArray]) -> DeviceStream:
    """Return a stream of one or more DeviceArrays, without Python between them."""

def interleave(streams: Sequence[DeviceStream], rows: int, skip: int = 0) -> DeviceStream:
    """Return a stream of `rows` rows of each DeviceStream in turn, in new memory; between its turns, each loses `skip` rows."""

def fill_nulls(stream: DeviceStream, zeros: Sequence[str], nans: Sequence[str]) -> DeviceStream:
    """Return a stream with zero in place of the nulls of the columns `zeros`, and NaN in `nans`, if these are of numbers. Its memory must have no other user: it is written to."""

def mix(streams: Sequence[DeviceStream], phases: Sequence[Sequence[int]]) -> DeviceStream:
    """Return a stream of the rows of DeviceStreams in turn, in new memory. A phase is a list: its rows, and the index, weight and progress of each stream."""

def open_later(opener: Callable[[], DeviceStream]) -> DeviceStream:
    """Return a stream that `opener`, which returns a DeviceStream, opens when the stream or its type is first used."""

def read_arrays(iterator: Iterator[Any], schema: Any, device_type: int) -> DeviceStream:
    """Return a stream of the arrays of an iterator, none of which is read before it is requested."""

def permute(count: int, seed: int) -> list[int]:
    """Return the numbers 0 to count - 1 in an order that depends only on `seed` and `count`."""

# The result depends on the data: a tensor, a pair, or a dict by field names. Only stack=True with
# nulls="mask" always returns a pair: a matrix and its mask.
@overload
def to_torch(
    obj: ArrowLike,
    /,
    *,
    nulls: Literal["mask"],
    ragged: RaggedLike = "jagged",
    stack: Literal[True],
    device: DeviceLike | None = None,
    copy: bool | None = None,
    dtype: DtypeLike | Mapping[str, DtypeLike] | None = None,
    pad_value: float | Mapping[str, float] = 0,
    max_length: int | Mapping[str, int] | None = None,
    pad_to_multiple: int | None = None,
) -> tuple[Any, Any]:
    """Convert an Arrow array or table to torch tensors, zero-copy where the layout allows.

    Parameters
    ----------
    obj : DeviceArray or Arrow producer
        What `from_arrow` takes. A tensor has shape (rows, ...).
    nulls : {'raise', 'fill', 'nan', 'mask'} or mapping of str to these
        Nulls raise BufferError, become zeros (False, empty rows) or NaN (floating types only), or
        make each tensor a pair (values, mask), where the mask is True for valid values. A mapping has
        the policies of columns by name; other columns raise.
    ragged : {'jagged', 'padded', 'offsets'} or mapping of str to these
        Lists, strings and binary as torch jagged nested tensors,
        or as (padded, lengths) with zeros after each row's end, or as (values, offsets).
    stack : bool
        The fields of a struct as one matrix (rows, columns); they must have one dtype, or
        `dtype`.
    device : Device, str, tuple, device object or None
        The device of the tensors, as in `DeviceArray.to`; data on another device is copied. The
        framework allocates the memory for data that the CPU can read. None: the device of `obj`.
    copy : bool, optional
        None: tensors share the memory of `obj` where the layout allows; do not write to them.
        True: tensors are in new memory, which the caller may write to. False: raise BufferError
        if values need a copy (unpacked booleans, replaced nulls, decoded runs, joined chunks).
    dtype : dtype, str, mapping of str to these, or None
        What integers and floats are cast to, also in lists and structs: a dtype of torch,
        NumPy or JAX, or its name. Bools and dictionary codes are cast in a matrix, and where
        a mapping names their column. Integers and floats are rounded to the nearest float.
    pad_value : int, float, bool, or mapping of str to these
        What padded rows end with.
    max_length : int, mapping of str to int, or None
        Values of a padded row that are kept: longer rows are cut, and so are the lengths.
    pad_to_multiple : int, optional
        The width of padded rows is rounded up to a multiple of this, also above `max_length`.

    Returns
    -------
    tensor, tuple or dict
        A dict by field name for structs, record batches and tables; nested structs nest.

    Raises
    ------
    BufferError
        The data has nulls and nulls='raise', no tensor type matches, copy=False forbids a copy
        that is needed, or the framework and arrowdl cannot copy to `device`.
    ValueError
        `obj` is malformed; a value does not fit `dtype` (beyond its range, or no whole number for
        an integer type), with its field and row; or an option names a column that `obj` lacks.
    TypeError
        `obj` is not Arrow data.
    """

@overload
def to_torch(
    obj: ArrowLike,
    /,
    *,
    nulls: NullsLike = "raise",
    ragged: RaggedLike = "jagged",
    stack: bool = False,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    dtype: DtypeLike | Mapping[str, DtypeLike] | None = None,
    pad_value: float | Mapping[str, float] = 0,
    max_length: int | Mapping[str, int] | None = None,
    pad_to_multiple: int | None = None,
) -> Any: ...
@overload
def to_jax(
    obj: ArrowLike,
    /,
    *,
    nulls: Literal["mask"],
    ragged: RaggedLike = "jagged",
    stack: Literal[True],
    device: DeviceLike | None = None,
    copy: bool | None = None,
    dtype: DtypeLike | Mapping[str, DtypeLike] | None = None,
    pad_value: float | Mapping[str, float] = 0,
    max_length: int | Mapping[str, int] | None = None,
    pad_to_multiple: int | None = None,
) -> tuple[Any, Any]:
    """Convert an Arrow array or table to JAX arrays, zero-copy where the layout allows.

    Parameters
    ----------
    obj : DeviceArray or Arrow producer
        What `from_arrow` takes. A tensor has shape (rows, ...).
    nulls : {'raise', 'fill', 'nan', 'mask'} or mapping of str to these
        Nulls raise BufferError, become zeros (False, empty rows) or NaN (floating types only), or
        make each tensor a pair (values, mask), where the mask is True for valid values. A mapping has
        the policies of columns by name; other columns raise.
    ragged : {'jagged', 'padded', 'offsets'} or mapping of str to these
        Lists, strings and binary as pairs (values, offsets),
        or as (padded, lengths) with zeros after each row's end, or as (values, offsets).
    stack : bool
        The fields of a struct as one matrix (rows, columns); they must have one dtype, or
        `dtype`.
    device : Device, str, tuple, device object or None
        The device of the tensors, as in `DeviceArray.to`; data on another device is copied. The
        framework allocates the memory for data that the CPU can read. None: the device of `obj`.
    copy : bool, optional
        None: tensors share the memory of `obj` where the layout allows; do not write to them.
        True: tensors are in new memory, which the caller may write to. False: raise BufferError
        if values need a copy (unpacked booleans, replaced nulls, decoded runs, joined chunks).
    dtype : dtype, str, mapping of str to these, or None
        What integers and floats are cast to, also in lists and structs: a dtype of torch,
        NumPy or JAX, or its name. Bools and dictionary codes are cast in a matrix, and where
        a mapping names their column. Integers and floats are rounded to the nearest float.
    pad_value : int, float, bool, or mapping of str to these
        What padded rows end with.
    max_length : int, mapping of str to int, or None
        Values of a padded row that are kept: longer rows are cut, and so are the lengths.
    pad_to_multiple : int, optional
        The width of padded rows is rounded up to a multiple of this, also above `max_length`.

    Returns
    -------
    tensor, tuple or dict
        A dict by field name for structs, record batches and tables; nested structs nest.

    Raises
    ------
    BufferError
        The data has nulls and nulls='raise', no tensor type matches, copy=False forbids a copy
        that is needed, or the framework and arrowdl cannot copy to `device`.
    ValueError
        `obj` is malformed; a value does not fit `dtype` (beyond its range, or no whole number for
        an integer type), with its field and row; or an option names a column that `obj` lacks.
    TypeError
        `obj` is not Arrow data.
    """

@overload
def to_jax(
    obj: ArrowLike,
    /,
    *,
    nulls: NullsLike = "raise",
    ragged: RaggedLike = "jagged",
    stack: bool = False,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    dtype: DtypeLike | Mapping[str, DtypeLike] | None = None,
    pad_value: float | Mapping[str, float] = 0,
    max_length: int | Mapping[str, int] | None = None,
    pad_to_multiple: int | None = None,
) -> Any: ...
@overload
def to_numpy(
    obj: ArrowLike,
    /,
    *,
    nulls: Literal["mask"],
    ragged: RaggedLike = "jagged",
    stack: Literal[True],
    device: DeviceLike | None = None,
    copy: bool | None = None,
    dtype: DtypeLike | Mapping[str, DtypeLike] | None = None,
    pad_value: float | Mapping[str, float] = 0,
    max_length: int | Mapping[str, int] | None = None,
    pad_to_multiple: int | None = None,
) -> tuple[Any, Any]:
    """Convert an Arrow array or table to NumPy arrays, zero-copy where the layout allows.

    Parameters
    ----------
    obj : DeviceArray or Arrow producer
        What `from_arrow` takes. A tensor has shape (rows, ...).
    nulls : {'raise', 'fill', 'nan', 'mask'} or mapping of str to these
        Nulls raise BufferError, become zeros (False, empty rows) or NaN (floating types only), or
        make each tensor a pair (values, mask), where the mask is True for valid values. A mapping has
        the policies of columns by name; other columns raise.
    ragged : {'jagged', 'padded', 'offsets'} or mapping of str to these
        Lists, strings and binary as pairs (values, offsets),
        or as (padded, lengths) with zeros after each row's end, or as (values, offsets).
    stack : bool
        The fields of a struct as one matrix (rows, columns); they must have one dtype, or
        `dtype`.
    device : Device, str, tuple, device object or None
        The device of the tensors, as in `DeviceArray.to`; data on another device is copied. The
        framework allocates the memory for data that the CPU can read. None: the device of `obj`.
    copy : bool, optional
        None: tensors share the memory of `obj` where the layout allows; do not write to them.
        True: tensors are in new memory, which the caller may write to. False: raise BufferError
        if values need a copy (unpacked booleans, replaced nulls, decoded runs, joined chunks).
    dtype : dtype, str, mapping of str to these, or None
        What integers and floats are cast to, also in lists and structs: a dtype of torch,
        NumPy or JAX, or its name. Bools and dictionary codes are cast in a matrix, and where
        a mapping names their column. Integers and floats are rounded to the nearest float.
    pad_value : int, float, bool, or mapping of str to these
        What padded rows end with.
    max_length : int, mapping of str to int, or None
        Values of a padded row that are kept: longer rows are cut, and so are the lengths.
    pad_to_multiple : int, optional
        The width of padded rows is rounded up to a multiple of this, also above `max_length`.

    Returns
    -------
    tensor, tuple or dict
        A dict by field name for structs, record batches and tables; nested structs nest.

    Raises
    ------
    BufferError
        The data has nulls and nulls='raise', no tensor type matches, copy=False forbids a copy
        that is needed, or the framework and arrowdl cannot copy to `device`.
    ValueError
        `obj` is malformed; a value does not fit `dtype` (beyond its range, or no whole number for
        an integer type), with its field and row; or an option names a column that `obj` lacks.
    TypeError
        `obj` is not Arrow data.
    """

@overload
def to_numpy(
    obj: ArrowLike,
    /,
    *,
    nulls: NullsLike = "raise",
    ragged: RaggedLike = "jagged",
    stack: bool = False,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    dtype: DtypeLike | Mapping[str, DtypeLike] | None = None,
    pad_value: float | Mapping[str, float] = 0,
    max_length: int | Mapping[str, int] | None = None,
    pad_to_multiple: int | None = None,
) -> Any: ...
def dtype_name(dtype: DtypeLike) -> str:
    """The name of a dtype that numbers are cast to, given as that name or as a dtype of torch, NumPy or JAX."""

def list_columns(schema: SupportsArrowSchema) -> list[str] | None:
    """Return the names of the fields of a table that are columns, without pandas' index that has no name; None if all are."""

def make_struct(names: Sequence[str], arrays: Sequence[Any]) -> DeviceArray:
    """Return a struct array that shares the memory of `arrays`."""

def make_list(values: Any, offsets: Any) -> DeviceArray:
    """Return a list array of `values`, divided at `offsets` (int32: List, int64: LargeList)."""

def apply_mask(array: Any, mask: Any, valid: bool = True) -> DeviceArray:
    """Return `array` with its rows valid where the bool tensor `mask` is `valid`."""

def assemble(
    format: str,
    length: int,
    offset: int,
    buffers: Sequence[DeviceArray | None],
    dictionary: DeviceArray | None = None,
    is_ordered: bool = False,
) -> DeviceArray:
    """Return an array of `format` that shares the memory of `buffers`, arrays or None."""

def share_buffer(array: Any, i: int, allow_copy: bool = True) -> DeviceArray | None:
    """Return buffer `i` of `array`, from the first row of its memory, as an array; or None."""

def borrow_memory(address: int, size: int, device: Any, owner: object) -> DeviceArray:
    """Return the `size` bytes at `address` as an array of uint8 that keeps `owner` alive."""

def make_shared_copy(array: Any) -> tuple[bytes, int]:
    """Copy `array` to memory that other processes can open: its description for them, and a file descriptor of the memory that the caller closes, -1 for no memory."""

def open_shared_copy(description: bytes, descriptor: int) -> DeviceArray:
    """Return the array that `make_shared_copy` of any process described; leaves the descriptor open."""

def address_of(array: Any) -> int:
    """Return the address of the first element of `array`."""

def offset_of(array: Any) -> int:
    """Return the number of rows in the memory of `array` before its first row."""

def list_metadata(source: Any) -> list[tuple[bytes, bytes]]:
    """Return key and value of each entry of a schema's metadata, also of entries with one key."""

def is_host_readable(device: Any) -> bool:
    """Return whether the CPU can read memory on `device`."""

def read_device(device: Any, framework: str = "") -> Device:
    """The Device that `device` names; without an id the current one of `framework`."""

def set_allocator(allocator: Any) -> None: ...
def null_where(array: Any, item: bytes | None) -> DeviceArray:
    """Return `array` with more nulls: elements with the bytes `item`, or NaN if it is None."""

def concatenate(arrays: Sequence[Any]) -> DeviceArray:
    """Return the rows of all arrays as one array."""

def relocate(array: Any, address: int, block: Any) -> DeviceArray:
    """Return the rows of `array` in memory that may be written to: in `block`, an array of the bytes at `address`, where their memory is a part of these bytes, else in a copy."""

def plain_strings(array: Any) -> DeviceArray:
    """Return strings or string views as strings with offsets; gathers the bytes of views."""

def register_synchronizer(device_type: int, function: Callable[[int, int], object] | None) -> None:
    """Support events on a device type for which arrowdl has no backend.

    Parameters
    ----------
    device_type : DeviceType or int
    function : callable or None
        ``function(sync_event, device_id)`` waits on the host for the event at the address
        `sync_event`. arrowdl calls it on any thread that waits, with the GIL. None removes the
        function.

    Raises
    ------
    ValueError
        The type's events are always NULL, or the type has a backend.
    TypeError
        `function` is not callable.
    """

def list_backends() -> list[dict[str, Any]]:
    """Return what each device runtime finds on this machine.

    Returns
    -------
    list of dict
        For each runtime ``types`` (names) and ``problem`` (empty if it works); if it works also
        ``name``, ``version`` and ``device_count``.
    """

def make_borrowed_capsule(address: int, name: str) -> Any:
    """Make a capsule of a C struct that its caller owns, and keeps until the capsule is deleted.

    Parameters
    ----------
    address : int
        Of an ArrowSchema, ArrowArray, DLManagedTensor or another struct that has capsules.
    name : str
        The name of such capsules.

    Returns
    -------
    capsule
        It calls the release callback or the deleter when it is deleted, unless a consumer took the
        struct.
    """

def blocking_release() -> bool: ...
def set_blocking_release(value: bool) -> None: ...
def release_limit() -> int: ...
def set_release_limit(value: int) -> None: ...
def staging_limit() -> int: ...
def set_staging_limit(value: int) -> None: ...
def num_threads() -> int: ...
def set_num_threads(value: int) -> None: ...
def stream_copy_seconds() -> float: ...
def staging_bytes() -> int:
    """Return the size of the pinned memory that arrowdl keeps for copies to devices.

    Returns
    -------
    int
        Bytes, in use or idle; at most ``arrowdl.config.staging_limit`` while no copy runs.
    """

def live_objects() -> int:
    """Count the objects that own foreign or exported memory.

    Returns
    -------
    int
        0 if no array, stream or export is alive and nothing leaks.
    """

def abandoned_releases() -> int:
    """Count the arrays of this process whose memory was never released.

    Their device or GPU stream failed, or can no longer be queried.

    Returns
    -------
    int
        0 if nothing failed.
    """

def pending_releases() -> int:
    """Count the memory blocks that wait for work of GPU streams before they are released.

    Returns
    -------
    int
    """
