// The docstrings of DeviceArray.
#pragma once

namespace arrowdl::python::device_array_docs {

constexpr const char* kClass =
    R"(An Arrow array with its schema, on any device: owned, immutable, cheap to slice.

`to_arrow_device`, `from_arrow` and the functions of `c_data` return it. It supports the Arrow
PyCapsule protocols, DLPack and its C exchange API, NumPy's ``__array__``, and on CUDA and SYCL
devices their array interfaces. `multiprocessing` sends arrays in memory of a GPU to other
processes.)";

constexpr const char* kField = R"(field($self, key, /)
--

Return a field of a struct array, zero-copy.

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
    The array is not a struct.)";

constexpr const char* kIsReady = R"(is_ready($self, /)
--

Return whether the memory is ready: the array has no event, or its event has completed.

Does not wait.

Returns
-------
bool)";

constexpr const char* kSynchronize = R"(synchronize($self, /)
--

Wait on the host until the memory is ready.)";

constexpr const char* kWait = R"(wait($self, stream, /)
--

Make later work on `stream` wait until the memory is ready; the host does not wait.

Keeps the memory alive until that work is done, as `record_stream` does.

Parameters
----------
stream : int or stream object
    A stream or queue of the array's device: a handle as in ``__dlpack__``, or an object of torch,
    cupy, numba, dpctl or pyopencl.

Raises
------
BufferError
    `stream` is not a stream of the array's device.)";

constexpr const char* kRecordStream = R"(record_stream($self, stream, /)
--

Keep the memory alive until the current work of `stream` is done.

For streams that read the memory without arrowdl's knowledge. The stream must outlive the memory.

Parameters
----------
stream : int or stream object
    As in `wait`.

Raises
------
BufferError
    `stream` is not a stream of the array's runtime.)";

constexpr const char* kTo =
    R"(to($self, device, *, stream=None, non_blocking=True, pin_memory=True, allocator=None)
--

Copy the rows to another device.

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
    `device` or `allocator` names none.)";

constexpr const char* kRelease = R"(release($self, /)
--

Drop this object's reference to the memory now.

Earlier exports stay valid. Later uses of this object raise ValueError.)";

constexpr const char* kArrowCSchema = R"(__arrow_c_schema__($self, /)
--

Arrow PyCapsule interface: export the schema.)";

constexpr const char* kArrowCArray = R"(__arrow_c_array__($self, requested_schema=None)
--

Arrow PyCapsule interface: export the schema and the array, in memory that the host can read.

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
    The host cannot read the memory.)";

constexpr const char* kArrowCDeviceArray =
    R"(__arrow_c_device_array__($self, requested_schema=None, **kwargs)
--

Arrow PyCapsule interface: export the schema and the device array, with its event.

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
    A keyword has a value other than None.)";

constexpr const char* kDlpack =
    R"(__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)
--

DLPack: export the tensor, without a copy where the layout allows. Shared memory is read-only.

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
    `dl_device` is another device.)";

constexpr const char* kDlpackDevice = R"(__dlpack_device__($self, /)
--

DLPack: return (device_type, device_id).)";

constexpr const char* kArray = R"(__array__($self, dtype=None, copy=None)
--

NumPy's protocol: return an array, read-only if it shares the memory.

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
    ``copy=False``, and a copy is needed.)";

constexpr const char* kReprHtml = R"(_repr_html_($self, /)
--

Return the representation for notebooks.)";

constexpr const char* kCopy = R"(__copy__($self, /)
--

Return the array itself, which is immutable.)";

constexpr const char* kDeepCopy = R"(__deepcopy__($self, memo, /)
--

Copy the rows into new memory on the same device, with nested values, dictionaries and the data of
views.)";

constexpr const char* kArrowCStream =
    "Arrow PyCapsule interface, of structs only: the method that exports a stream of this one "
    "array,\n"
    "in memory that the host can read.";
constexpr const char* kArrowCDeviceStream =
    "Arrow PyCapsule interface, of structs only: the method that exports a device stream of this "
    "one\n"
    "array.";
constexpr const char* kType = "The Arrow type, as text.";
constexpr const char* kSchema = "The Arrow schema.";
constexpr const char* kShape =
    "The shape of the tensor, rows first, in elements; (rows,) for types without a tensor.";
constexpr const char* kIsContiguous = R"(is_contiguous($self, /)
--

Return whether the tensor lies in C order, without gaps.

Consumers that read no strides ask for it (MAX). A permuted arrow.fixed_shape_tensor does not; for
types without a tensor it is True.)";
constexpr const char* kDtype =
    "The name of the tensor's element type, or None for types without a tensor.";
constexpr const char* kDevice = "The device that holds the memory.";
constexpr const char* kNbytes = "The size in bytes of these rows, in all buffers.";
constexpr const char* kSyncEvent =
    "The address of the event that completes when the memory is ready, of the type that Arrow\n"
    "defines for the device; None without one.";
constexpr const char* kNullCount = "The number of null rows. Nulls in nested values do not count.";
constexpr const char* kFieldNames = "The names of a struct's fields.";
constexpr const char* kValues =
    "The elements of a list, string or binary array (uint8 for the latter two).";
constexpr const char* kOffsets =
    "The index of each list's first element in `values`, and the end of the last list.";
constexpr const char* kIndices = "The indices of a dictionary array.";
constexpr const char* kDictionary = "The values of a dictionary array.";
constexpr const char* kValidity = "The validity bitmap as a boolean array, or None without one.";
constexpr const char* kIsReleased = "Whether `release` was called.";

constexpr const char* kCudaArrayInterface =
    R"(The memory as the CUDA array interface, version 3, describes it.

Read-only. A consumer orders its work after ``stream``, which is None if the memory is ready. The
consumer has to keep this array alive while it uses the memory.

Raises
------
AttributeError
    The device is not cuda or cuda_managed, or the array has nulls or a type without a typestr.)";

constexpr const char* kSyclUsmArrayInterface =
    R"(The memory as dpctl's protocol for SYCL's unified shared memory, version 1, describes it.

Read-only. ``syclobj`` is dpctl's own queue of the device. The protocol defines no ordering, so the
host waits until the memory is ready. The consumer has to keep this array alive while it uses the
memory.

Raises
------
AttributeError
    The device is not oneapi, the array has nulls or a type without a typestr, or dpctl cannot be
    imported.)";

}  // namespace arrowdl::python::device_array_docs
