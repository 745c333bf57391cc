// The docstrings of DeviceArray.
#pragma once

namespace arrowdl::python::device_array_docs {

constexpr const char* kClass =
    R"(An Arrow array with its schema, on any device: owned, immutable, cheap to slice.

Made by `to_arrow_device`, `from_arrow` and `c_data`. Supports the Arrow PyCapsule protocols, DLPack
and its C exchange API, numpy's `__array__`, and on CUDA and SYCL devices their array interfaces.)";

constexpr const char* kField = R"(field($self, key, /)
--

Take a field of a struct array, without a copy.

Parameters
----------
key : str or int
    The name or the index of the field; a negative index counts from the end.

Returns
-------
DeviceArray
    Shares the memory. A row is also null where the struct is.

Raises
------
ValueError
    A name that no field has, or several have.
IndexError
    No such field.
TypeError
    Not a struct.)";

constexpr const char* kIsReady = R"(is_ready($self, /)
--

Say whether the memory is ready: the array has no event, or its event has completed.

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

The memory is kept until that work is done, as `record_stream` does.

Parameters
----------
stream : int or stream object
    A stream or queue of the array's device: its handle as in ``__dlpack__``, or the object of
    torch, cupy, numba, dpctl or pyopencl.

Raises
------
BufferError
    Not a stream of the device.)";

constexpr const char* kRecordStream = R"(record_stream($self, stream, /)
--

Keep the memory until the work that `stream` has now is done.

For streams that read the memory without arrowdl's knowledge. The stream must outlive the memory.

Parameters
----------
stream : int or stream object
    As in `wait`.

Raises
------
BufferError
    Not a stream of the device.)";

constexpr const char* kTo = R"(to($self, device, *, stream=None, non_blocking=True, pin_memory=True)
--

Copy the rows to another device.

Copies the bytes of these rows, nested values and dictionaries included, into one piece of new
memory. On a device it carries one event for all of them.

Parameters
----------
device : Device, str, tuple, torch.device or jax.Device
    ``Device("cuda", 0)``, ``"cuda:0"``, ``(2, 0)`` or ``torch.device("cuda")``.
stream : int or stream object, optional
    The stream that runs the copies, of the device that is not the CPU, or of the target if
    neither is. None: a stream of arrowdl's own.
non_blocking : bool
    Return while copies may be pending. Copies to the CPU are complete on return.
pin_memory : bool
    Copy pageable memory to CUDA and ROCm devices through pinned memory of arrowdl's, which is
    reused (see `config.staging_limit`): the source has been read on return, without a wait for
    the device. Otherwise the driver copies it. Memory that is known to be pinned is copied
    directly.

Returns
-------
DeviceArray
    The same memory if it is on `device` already. Host memory of a device (cuda_host,
    cuda_managed) becomes the CPU's without a copy.

Raises
------
BufferError
    A device without a runtime, a stream that is captured into a graph, string and binary views.)";

constexpr const char* kRelease = R"(release($self, /)
--

Drop this object's reference to the memory now. Exports made before stay valid.)";

constexpr const char* kArrowCSchema = R"(__arrow_c_schema__($self, /)
--

Arrow PyCapsule interface: export the schema.)";

constexpr const char* kArrowCArray = R"(__arrow_c_array__($self, requested_schema=None)
--

Arrow PyCapsule interface: export schema and array, of memory that the host can read.

Parameters
----------
requested_schema : PyCapsule, optional
    Cast the array to this schema if the same buffers or a cheap conversion are enough; otherwise
    export it as it is.

Returns
-------
tuple of PyCapsule
    (schema, array). The array shares the memory and keeps it alive.

Raises
------
ValueError
    A schema that is incompatible with the data, or has been consumed.
TypeError
    Not a schema capsule.
BufferError
    Memory that the host cannot read.)";

constexpr const char* kArrowCDeviceArray =
    R"(__arrow_c_device_array__($self, requested_schema=None, **kwargs)
--

Arrow PyCapsule interface: export schema and device array, without a wait.

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
    (schema, device array). The array shares the memory and keeps it alive.)";

constexpr const char* kDlpack =
    R"(__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)
--

DLPack: export the tensor, without a copy and read-only where the layout allows.

Parameters
----------
stream : int or stream object, optional
    The consumer's stream, which waits for the array's event. -1: no order. None: the host waits,
    and on CUDA and ROCm the default stream counts as the reader.
max_version : tuple of int, optional
    (major, minor) of the newest DLPack that the consumer reads. None: a legacy capsule.
dl_device : tuple of int, optional
    (device_type, device_id): the array's own device, or the CPU.
copy : bool, optional
    None copies if it has to, False never, True always.

Returns
-------
PyCapsule

Raises
------
BufferError
    Nulls, a type without a tensor, a copy that `copy` forbids, or another device.)";

constexpr const char* kDlpackDevice = R"(__dlpack_device__($self, /)
--

DLPack: (device_type, device_id).)";

constexpr const char* kArray = R"(__array__($self, dtype=None, copy=None)
--

Convert to a numpy array, which is read-only if it is not a copy.)";

constexpr const char* kDataFrame = R"(__dataframe__($self, nan_as_null=False, allow_copy=True)
--

Dataframe interchange protocol, for a struct: its fields are the columns.

Without a copy for numbers, booleans, dates and times, strings and dictionaries, on any device;
string views are gathered. Memory that the host cannot read has no ``ptr`` under
``allow_copy=False``, and that of a copy on the host otherwise; its ``__dlpack__`` is on the device.

Raises
------
TypeError
    An array that is not a struct.
BufferError
    ``nan_as_null=True``, which the protocol dropped; later, columns of types that it lacks.)";

constexpr const char* kReprHtml = R"(_repr_html_($self, /)
--

Return the representation for notebooks.)";

constexpr const char* kCopy = R"(__copy__($self, /)
--

Return the array itself, which is immutable.)";

constexpr const char* kDeepCopy = R"(__deepcopy__($self, memo, /)
--

Copy the rows into new memory of the same device, nested values, dictionaries and the data of views
included.)";

constexpr const char* kArrowCStream =
    "Only for structs: the method of the Arrow PyCapsule interface that exports a stream of this\n"
    "one array, of memory that the host can read.";
constexpr const char* kArrowCDeviceStream =
    "Only for structs: the method that exports a device stream of this one array.";
constexpr const char* kType = "The Arrow type, as text.";
constexpr const char* kSchema = "The Arrow schema.";
constexpr const char* kShape = "The shape of the tensor, or (len,) for types without one.";
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
constexpr const char* kIsReleased = "Whether release() was called.";

constexpr const char* kCudaArrayInterface =
    R"(The memory as the CUDA array interface, version 3, describes it.

Read-only. A consumer orders its work after ``stream``, which is None if the memory is ready, and
must keep this array alive.

Raises
------
AttributeError
    Other devices than cuda and cuda_managed, nulls, and types without a typestr.)";

constexpr const char* kSyclUsmArrayInterface =
    R"(The memory as dpctl's protocol for SYCL's unified shared memory, version 1, describes it.

Read-only. ``syclobj`` is dpctl's own queue of the device. The protocol has no order: the host waits
until the memory is ready. A consumer must keep this array alive.

Raises
------
AttributeError
    Other devices than oneapi, nulls, types without a typestr, and if dpctl cannot be imported.)";

}  // namespace arrowdl::python::device_array_docs
