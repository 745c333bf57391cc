"""The rules that the checks of arrowdl.testing apply, each with the specification it comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Specification:
    """A published document.

    Attributes
    ----------
    title, url : str
    """

    title: str
    url: str


_ARROW = "https://arrow.apache.org/docs/format/"
_ARRAY_API = "https://data-apis.org/array-api/latest/API_specification/generated/array_api."

SPECIFICATIONS = {
    "dlpack.h": Specification("DLPack C API", "https://dmlc.github.io/dlpack/latest/c_api.html"),
    "dlpack-python": Specification(
        "DLPack Python specification", "https://dmlc.github.io/dlpack/latest/python_spec.html"
    ),
    "__dlpack__": Specification("Array API, __dlpack__", f"{_ARRAY_API}array.__dlpack__.html"),
    "__dlpack_device__": Specification(
        "Array API, __dlpack_device__", f"{_ARRAY_API}array.__dlpack_device__.html"
    ),
    "from_dlpack": Specification("Array API, from_dlpack", f"{_ARRAY_API}from_dlpack.html"),
    "columnar": Specification("Arrow columnar format", f"{_ARROW}Columnar.html"),
    "c-data": Specification("Arrow C data interface", f"{_ARROW}CDataInterface.html"),
    "c-stream": Specification("Arrow C stream interface", f"{_ARROW}CStreamInterface.html"),
    "c-device": Specification("Arrow C device interface", f"{_ARROW}CDeviceDataInterface.html"),
    "pycapsule": Specification(
        "Arrow PyCapsule interface", f"{_ARROW}CDataInterface/PyCapsuleInterface.html"
    ),
    "practice": Specification(
        "Practice, no specification",
        "https://github.com/dmlc/dlpack/issues",
    ),
}


@dataclass(frozen=True)
class Rule:
    """One sentence of a specification that a check applies.

    Attributes
    ----------
    id : str
        Stable; its first part says what it is about: ``dlpack`` (producers), ``from-dlpack``
        (consumers), ``exchange-api``, ``arrow`` (producers), ``from-arrow`` (consumers).
    specification : Specification
    section : str
        Where in the specification.
    sentence : str
        What it says, in our words.
    """

    id: str
    specification: Specification
    section: str
    sentence: str


# Id, specification, section, sentence.
_DLPACK_PRODUCER = [
    ("dlpack-methods", "from_dlpack", "Raises",
     "An array has both methods, __dlpack__ and __dlpack_device__."),
    ("dlpack-keywords", "__dlpack__", "Parameters",
     "__dlpack__ takes the keywords stream, max_version, dl_device and copy; None is the default."),
    ("dlpack-capsule-name", "dlpack-python", "Implementation",
     "The capsule is named dltensor, or dltensor_versioned if it holds a versioned tensor."),
    ("dlpack-capsule-releases", "dlpack-python", "Implementation",
     "A capsule that was not consumed calls the deleter once when it is deleted."),
    ("dlpack-capsule-used", "dlpack-python", "Implementation",
     "A capsule that was renamed to used_... does not call the deleter."),
    ("dlpack-again", "dlpack-python", "Semantics",
     "The array can still be used after an export, and exported again into a capsule of its own."),
    ("dlpack-legacy", "__dlpack__", "Notes",
     "Without max_version the consumer reads DLPack 0.x: a legacy capsule, or BufferError."),
    ("dlpack-versioned", "__dlpack__", "max_version",
     "For a consumer of 1.x a versioned tensor is recommended; legacy ones carry no flags."),
    ("dlpack-old-consumer", "__dlpack__", "Notes",
     "For a consumer of 0.x only a legacy capsule is of use; else BufferError is recommended."),
    ("dlpack-newer-consumer", "__dlpack__", "Notes",
     "A consumer that supports a newer version gets the producer's own newest version."),
    ("dlpack-version", "dlpack.h", "DLPackVersion",
     "The version is that of the struct: its major number is 1, as its layout."),
    ("dlpack-flags", "dlpack.h", "DLManagedTensorVersioned.flags",
     "Flags are 0 by default; only the bits that the version defines have a meaning."),
    ("dlpack-device", "__dlpack_device__", "Returns",
     "__dlpack_device__ returns a tuple of two integers: the type and the number of the device."),
    ("dlpack-device-agrees", "dlpack-python", "Syntax",
     "The tensor is on the device that __dlpack_device__ names."),
    ("dlpack-dl-device", "__dlpack__", "dl_device",
     "The capsule is on the device that dl_device requests; if that cannot be, BufferError."),
    ("dlpack-copy-true", "__dlpack__", "copy", "copy=True always copies."),
    ("dlpack-copied-flag", "__dlpack__", "copy", "A tensor that is a copy has the IS_COPIED flag."),
    ("dlpack-copy-false", "__dlpack__", "copy",
     "copy=False never copies: it shares the memory or raises BufferError."),
    ("dlpack-not-copied-flag", "dlpack.h", "DLPACK_FLAG_BITMASK_IS_COPIED",
     "IS_COPIED says that only the consumer owns the memory, so shared memory does not have it."),
    ("dlpack-read-only", "dlpack.h", "DLPACK_FLAG_BITMASK_READ_ONLY",
     "Memory that may not be written has the READ_ONLY flag, which a legacy tensor cannot have."),
    ("dlpack-stream-cpu", "__dlpack__", "stream",
     "On the CPU, and other devices without streams, only None is accepted."),
    ("dlpack-stream-zero", "__dlpack__", "stream",
     "On CUDA the stream 0 is not allowed, on ROCm 1 and 2 are not: each is ambiguous there."),
    ("dlpack-stream", "__dlpack__", "stream",
     "The stream is None, -1 (no synchronisation), a default stream's number or a handle."),
    ("dlpack-ndim", "dlpack.h", "DLTensor.shape",
     "ndim and extents are not negative, and shape is not NULL if there is a dimension."),
    ("dlpack-strides", "dlpack.h", "DLTensor.strides",
     "From version 1.2 on strides are not NULL if there is a dimension."),
    ("dlpack-negative-strides", "practice", "torch aborts the process on them",
     "Strides are signed, but several consumers cannot read negative ones."),
    ("dlpack-dtype", "dlpack.h", "DLDataTypeCode",
     "Code, bits and lanes are a type that DLPack defines."),
    ("dlpack-empty", "dlpack.h", "DLTensor.data", "A tensor of size 0 has NULL as its data."),
    ("dlpack-data", "dlpack.h", "DLTensor.data", "A tensor with elements has data."),
    ("dlpack-byte-offset", "practice", "paddle and dpnp ignore it",
     "byte_offset is allowed, but several consumers ignore it: add it to data."),
    ("dlpack-alignment", "dlpack.h", "DLTensor.data",
     "data is aligned, at least to the elements' size; libraries ignore the rule of 256 bytes."),
    ("dlpack-values", "dlpack.h", "DLTensor",
     "data, strides and dtype describe the values of the array."),
    ("dlpack-lifetime", "dlpack.h", "DLManagedTensor",
     "The memory stays valid until the deleter is called, whatever becomes of the array."),
    ("dlpack-releases-array", "dlpack.h", "DLManagedTensor.deleter",
     "The deleter gives back all that the export holds: nothing stays alive."),
    ("dlpack-deleter-thread", "dlpack-python", "Implementation",
     "The deleter can be called outside Python: it takes the interpreter lock if it needs it."),
    ("dlpack-threads", "practice", "consumers export from worker threads",
     "Several threads can export one array at the same time."),
]  # fmt: skip

_DLPACK_CONSUMER = [
    ("from-dlpack-reads", "from_dlpack", "Returns",
     "An array of a common type in row-major order is imported, with its values."),
    ("from-dlpack-dtype", "dlpack.h", "DLDataType",
     "The values are read as the type that code, bits and lanes say, or refused."),
    ("from-dlpack-strides", "dlpack.h", "DLTensor.strides",
     "The values are where the strides say (in elements), or the tensor is refused."),
    ("from-dlpack-null-strides", "dlpack.h", "DLTensor.strides",
     "Before version 1.2 NULL strides mean row-major order."),
    ("from-dlpack-byte-offset", "dlpack.h", "DLTensor.byte_offset",
     "The values begin byte_offset bytes after data."),
    ("from-dlpack-empty", "dlpack.h", "DLTensor.data",
     "A tensor of size 0 is imported with its shape; its data is NULL."),
    ("from-dlpack-zero-dim", "dlpack.h", "DLTensor.shape",
     "A tensor without dimensions is one value; its shape and strides may be NULL."),
    ("from-dlpack-alignment", "dlpack.h", "DLTensor.data",
     "Producers do not keep the alignment, so memory that is not aligned is read or refused."),
    ("from-dlpack-renames", "dlpack-python", "Implementation",
     "The consumer takes the tensor by renaming the capsule to used_..., once it owns it."),
    ("from-dlpack-used", "dlpack-python", "Implementation",
     "A capsule that was consumed is refused: it is consumed once."),
    ("from-dlpack-wrong-name", "dlpack-python", "Implementation",
     "A capsule with another name is refused."),
    ("from-dlpack-releases", "dlpack-python", "Implementation",
     "The deleter is called once, when the consumer no longer uses the memory."),
    ("from-dlpack-keeps", "dlpack.h", "DLManagedTensor",
     "The deleter is not called while the consumer's array uses the memory."),
    ("from-dlpack-null-deleter", "dlpack.h", "DLManagedTensorVersioned.deleter",
     "The deleter may be NULL: then there is nothing to call."),
    ("from-dlpack-null-context", "dlpack.h", "DLManagedTensorVersioned.manager_ctx",
     "manager_ctx is the producer's own, and may be NULL: the deleter is called all the same."),
    ("from-dlpack-thread", "practice", "arrays are dropped on any thread",
     "An array can be dropped on another thread than the one that imported it."),
    ("from-dlpack-major", "dlpack.h", "DLPackVersion",
     "A tensor with another major version is not read; its deleter is called."),
    ("from-dlpack-minor", "dlpack.h", "DLPackVersion",
     "A tensor with a newer minor version is read: the layout is the same."),
    ("from-dlpack-max-version", "__dlpack__", "Notes",
     "A consumer that reads versioned tensors passes max_version."),
    ("from-dlpack-fallback", "__dlpack__", "Notes",
     "If a producer does not know the new keywords (TypeError), it is asked without them."),
    ("from-dlpack-stream", "__dlpack__", "stream", "For memory of the CPU the stream is None."),
    ("from-dlpack-read-only", "__dlpack__", "Notes",
     "READ_ONLY memory is not written: the array is read-only, a copy, or the user's concern."),
    ("from-dlpack-copy", "from_dlpack", "copy",
     "copy=True always copies; copy=False never does."),
    ("from-dlpack-device", "dlpack-python", "Semantics",
     "Memory of a device that the consumer does not support is refused with BufferError."),
    ("from-dlpack-raises", "from_dlpack", "Raises",
     "An exception of __dlpack__ or __dlpack_device__ is propagated."),
    ("from-dlpack-methods", "from_dlpack", "Raises",
     "An object without the two methods raises AttributeError."),
    ("from-dlpack-refused", "dlpack-python", "Implementation",
     "A tensor that is refused is released once: by its capsule or by the consumer."),
]  # fmt: skip

_EXCHANGE_API = [
    ("exchange-api-type", "dlpack.h", "DLPackExchangeAPI",
     "The type has __dlpack_c_exchange_api__, a capsule named dlpack_exchange_api."),
    ("exchange-api-static", "dlpack.h", "DLPackExchangeAPI",
     "The table lives as long as the process: each look at the type finds the same one."),
    ("exchange-api-version", "dlpack.h", "DLPackExchangeAPIHeader.version",
     "Consumers read a table of major version 1; the exchange API is new in version 1.3."),
    ("exchange-api-chain", "dlpack.h", "DLPackExchangeAPIHeader.prev_api",
     "prev_api is NULL, or a table of an older version."),
    ("exchange-api-functions", "dlpack.h", "DLPackExchangeAPI",
     "All functions but dltensor_from_py_object_no_sync are not NULL."),
    ("exchange-api-from", "dlpack.h", "DLPackManagedTensorFromPyObjectNoSync",
     "It returns 0 and an owning tensor, or -1 and sets a Python exception."),
    ("exchange-api-agrees", "dlpack.h", "DLPackExchangeAPI",
     "The table exports the same tensor as __dlpack__: memory, device, type and shape."),
    ("exchange-api-releases", "dlpack.h", "DLManagedTensorVersioned.deleter",
     "The deleter of an exported tensor gives back all that the export holds."),
    ("exchange-api-borrow", "dlpack.h", "DLPackDLTensorFromPyObjectNoSync",
     "It describes the tensor without taking ownership."),
    ("exchange-api-to", "dlpack.h", "DLPackManagedTensorToPyObjectNoSync",
     "It makes an object of the type, which calls the deleter of the tensor once at its end."),
    ("exchange-api-stream", "dlpack.h", "DLPackCurrentWorkStream",
     "It returns 0 and the current stream of the device; for the CPU NULL is enough."),
    ("exchange-api-allocate", "dlpack.h", "DLPackManagedTensorAllocator",
     "It makes a tensor of the prototype's type, shape and device."),
    ("exchange-api-set-error", "dlpack.h", "DLPackManagedTensorAllocator",
     "SetError is called exactly when the allocation fails."),
    ("exchange-api-refuses", "dlpack.h", "DLPackManagedTensorFromPyObjectNoSync",
     "What __dlpack__ refuses is refused with an exception set, BufferError if possible."),
]  # fmt: skip

_ARROW_PRODUCER = [
    ("arrow-methods", "pycapsule", "Export Protocol",
     "An object exports data by __arrow_c_array__ or __arrow_c_stream__, or their device forms."),
    ("arrow-requested-schema", "pycapsule", "Schema Requests",
     "The methods take requested_schema, and honour it or return their own schema."),
    ("arrow-incompatible-request", "pycapsule", "Schema Requests",
     "A requested schema that does not fit the data, such as other fields, raises an exception."),
    ("arrow-request-kept", "c-data", "Release callback semantics",
     "The requested schema is released once: by its capsule, or by a producer that moved it."),
    ("arrow-capsules", "pycapsule", "PyCapsule Standard",
     "The methods return capsules with the names of their structs."),
    ("arrow-capsule-releases", "pycapsule", "Lifetime Semantics",
     "A capsule whose struct was not taken calls its release callback once."),
    ("arrow-capsule-moved", "pycapsule", "Lifetime Semantics",
     "A capsule whose struct was moved out (release is NULL) releases nothing."),
    ("arrow-again", "pycapsule", "ArrowArray Export",
     "An array can be exported again, into capsules of its own."),
    ("arrow-schema-agrees", "pycapsule", "ArrowSchema Export",
     "__arrow_c_schema__ is the schema of what the other methods export."),
    ("arrow-format", "c-data", "Data type description",
     "Each schema has a format that the specification defines."),
    ("arrow-schema-children", "c-data", "ArrowSchema.n_children",
     "A schema has as many children as its format says, none of them NULL."),
    ("arrow-schema-flags", "c-data", "ArrowSchema.flags",
     "Only the flags that are defined are set."),
    ("arrow-metadata", "c-data", "ArrowSchema.metadata",
     "Metadata are NULL, or a count and then keys and values with their lengths."),
    ("arrow-array-children", "c-data", "ArrowArray.n_children",
     "An array has the children of its schema, none of them NULL."),
    ("arrow-dictionary", "c-data", "ArrowArray.dictionary",
     "The array has a dictionary exactly if the schema has one."),
    ("arrow-n-buffers", "c-data", "ArrowArray.n_buffers",
     "An array has as many buffers as its type says."),
    ("arrow-length", "c-data", "ArrowArray.length",
     "length and offset are not negative."),
    ("arrow-null-count", "c-data", "ArrowArray.null_count",
     "null_count is the number of nulls, or -1 if it is not known."),
    ("arrow-null-buffer", "c-data", "ArrowArray.buffers",
     "A buffer is NULL only if it has no bytes, or if it is the bitmap and there are no nulls."),
    ("arrow-alignment", "c-data", "ArrowArray.buffers",
     "Buffers are best aligned to their values; consumers need not read others."),
    ("arrow-offsets", "columnar", "Variable-size Binary Layout",
     "Offsets are not negative, do not decrease, and end within the data."),
    ("arrow-child-length", "columnar", "Physical Memory Layout",
     "Children have the rows that offset, length and the type need."),
    ("arrow-dictionary-indices", "columnar", "Dictionary-encoded Layout",
     "Indices are within the dictionary."),
    ("arrow-not-nullable", "c-data", "ArrowSchema.flags",
     "A field that is not nullable has no nulls."),
    ("arrow-release-marks", "c-data", "Release callback semantics",
     "The release callback sets release to NULL."),
    ("arrow-release-children", "c-data", "Release callback semantics",
     "The release callback calls those of the children and of the dictionary."),
    ("arrow-moves", "c-data", "Moving an array",
     "A struct can be moved to another address and released there."),
    ("arrow-child-moves", "c-data", "Moving child arrays",
     "A child can be moved out and outlives its parent, which skips it."),
    ("arrow-release-thread", "practice", "consumers release on worker threads",
     "The release callback can be called on another thread and without the interpreter lock."),
    ("arrow-releases-data", "c-data", "Release callback semantics",
     "After its exports are released nothing keeps the object alive."),
    ("arrow-lifetime", "c-data", "Member allocation",
     "The memory stays valid until release, whatever becomes of the object."),
    ("arrow-threads", "practice", "consumers export from worker threads",
     "Several threads can export one array at the same time."),
    ("arrow-stream-callbacks", "c-stream", "The ArrowArrayStream structure",
     "A stream has get_schema, get_next, get_last_error and release."),
    ("arrow-stream-schema", "c-stream", "ArrowArrayStream.get_schema",
     "get_schema returns 0 and the schema of all arrays, each time."),
    ("arrow-stream-next", "c-stream", "ArrowArrayStream.get_next",
     "get_next returns 0 and an array, or an errno code."),
    ("arrow-stream-end", "c-stream", "ArrowArrayStream.get_next",
     "At the end get_next returns 0 and a released array, however often it is called."),
    ("arrow-stream-error", "c-stream", "ArrowArrayStream.get_last_error",
     "After a failure the code is positive, like errno, and get_last_error describes it."),
    ("arrow-stream-chunks", "c-stream", "Result lifetimes",
     "Arrays and schemas outlive the stream: each is released by itself."),
    ("arrow-stream-release", "c-stream", "Stream lifetime",
     "The release callback of a stream sets release to NULL, also before its end is read."),
    ("arrow-stream-lock", "practice", "Cython and Rust hold the interpreter lock, C++ does not",
     "The callbacks of a stream can be called with and without the interpreter lock."),
    ("arrow-device-keywords", "pycapsule", "Device Support",
     "Device methods ignore unknown keywords that are None; others raise NotImplementedError."),
    ("arrow-device-type", "c-device", "ArrowDeviceType",
     "The device type is one that is defined, the same for all arrays of a stream."),
    ("arrow-device-event", "c-device", "ArrowDeviceArray.sync_event",
     "The event has the type of the device; the CPU, VPI, WebGPU and Hexagon have none."),
    ("arrow-device-reserved", "c-device", "ArrowDeviceArray.reserved",
     "The reserved bytes are 0."),
]  # fmt: skip

_ARROW_CONSUMER = [
    ("from-arrow-reads", "c-data", "The ArrowArray structure",
     "An array of a common type is imported, with its values."),
    ("from-arrow-offset", "c-data", "ArrowArray.offset",
     "Rows begin at offset, at each level: in values, bits, offsets and children."),
    ("from-arrow-nulls", "columnar", "Validity bitmaps",
     "A row is null if its bit is 0; the bitmap begins at offset too."),
    ("from-arrow-null-count", "c-data", "ArrowArray.null_count",
     "null_count -1 means that the nulls have to be counted, not that there are none."),
    ("from-arrow-empty", "c-data", "ArrowArray.buffers",
     "Buffers without bytes may be NULL."),
    ("from-arrow-nested", "c-data", "ArrowArray.children",
     "Children have offsets and nulls of their own."),
    ("from-arrow-moves", "pycapsule", "Lifetime Semantics",
     "The consumer moves the struct out of the capsule and marks it as released."),
    ("from-arrow-releases", "c-data", "Release callback semantics",
     "Each struct is released once, when the consumer no longer uses it."),
    ("from-arrow-keeps", "c-data", "Member allocation",
     "An array is not released while the consumer uses its memory."),
    ("from-arrow-children", "c-data", "Release callback semantics",
     "A consumer does not call the release callbacks of children."),
    ("from-arrow-released", "c-data", "Released structure",
     "A struct that is released is refused."),
    ("from-arrow-wrong-capsule", "pycapsule", "PyCapsule Standard",
     "A capsule with the name of another struct is refused."),
    ("from-arrow-raises", "practice", "an error that is lost cannot be mended",
     "An exception of the producer is propagated."),
    ("from-arrow-refused", "c-data", "Release callback semantics",
     "What is refused is released once all the same."),
    ("from-arrow-thread", "practice", "arrays are dropped on any thread",
     "An array can be dropped on another thread than the one that imported it."),
    ("from-arrow-stream", "c-stream", "ArrowArrayStream.get_next",
     "All arrays of a stream are read, none and empty ones too, until one is released."),
    ("from-arrow-stream-error", "c-stream", "ArrowArrayStream.get_last_error",
     "An error code of a stream raises an exception with the text of get_last_error."),
    ("from-arrow-stream-use", "c-stream", "The ArrowArrayStream structure",
     "get_last_error is called only after an error, and nothing after release."),
    ("from-arrow-device", "c-device", "ArrowDeviceArray.device_type",
     "Memory of a device that the consumer does not support is refused, not read."),
]  # fmt: skip

RULES: dict[str, Rule] = {
    id: Rule(id, SPECIFICATIONS[specification], section, sentence)
    for table in (
        _DLPACK_PRODUCER,
        _DLPACK_CONSUMER,
        _EXCHANGE_API,
        _ARROW_PRODUCER,
        _ARROW_CONSUMER,
    )
    for id, specification, section, sentence in table
}
"""Every rule by its id."""
