"""The rules that the checks of arrowdl.testing apply, each with the specification it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from arrowdl.testing._arrow_rules import ARROW_CONSUMER, ARROW_PRODUCER


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
        "Practice, no specification", "https://github.com/dmlc/dlpack/issues"
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
    advice : str
        What to do about most deviations from it.
    """

    id: str
    specification: Specification
    section: str
    sentence: str
    advice: str


# Id, specification, section, sentence, advice.
_DLPACK_PRODUCER = [
    ("dlpack-methods", "from_dlpack", "Raises",
     "An array has both methods, __dlpack__ and __dlpack_device__.",
     "add the method: consumers call both"),
    ("dlpack-keywords", "__dlpack__", "Parameters",
     "__dlpack__ takes the keywords stream, max_version, dl_device and copy; None is the default.",
     "accept the keyword with None as its default"),
    ("dlpack-capsule-name", "dlpack-python", "Implementation",
     "The capsule is named dltensor, or dltensor_versioned if it holds a versioned tensor.",
     'name it "dltensor" or "dltensor_versioned"'),
    ("dlpack-capsule-releases", "dlpack-python", "Implementation",
     "A capsule that was not consumed calls the deleter once when it is deleted.",
     "give the capsule a destructor that calls the deleter once"),
    ("dlpack-capsule-used", "dlpack-python", "Implementation",
     "A capsule that was renamed to used_... does not call the deleter.",
     "call it only if the capsule still has its first name: the consumer owns the rest"),
    ("dlpack-again", "dlpack-python", "Semantics",
     "The array can still be used after an export, and exported again into a capsule of its own.",
     "make a new struct and a new capsule for each call"),
    ("dlpack-legacy", "__dlpack__", "Notes",
     "Without max_version the consumer reads DLPack 0.x: a legacy capsule, or BufferError.",
     "return a legacy capsule, or raise BufferError"),
    ("dlpack-versioned", "__dlpack__", "max_version",
     "For a consumer of 1.x a versioned tensor is recommended; legacy ones carry no flags.",
     "return DLManagedTensorVersioned: only it can say that memory is read-only or a copy"),
    ("dlpack-old-consumer", "__dlpack__", "Notes",
     "For a consumer of 0.x only a legacy capsule is of use; else BufferError is recommended.",
     "return a legacy capsule or raise BufferError"),
    ("dlpack-newer-consumer", "__dlpack__", "Notes",
     "A consumer that supports a newer version gets the producer's own newest version.",
     "compare max_version with your own version, and return your own"),
    ("dlpack-version", "dlpack.h", "DLPackVersion",
     "The version is that of the struct: its major number is 1, as its layout.",
     "set version to that of the dlpack.h that you compile with"),
    ("dlpack-flags", "dlpack.h", "DLManagedTensorVersioned.flags",
     "Flags are 0 by default; only the bits that the version defines have a meaning.",
     "set only the bits that dlpack.h defines"),
    ("dlpack-device", "__dlpack_device__", "Returns",
     "__dlpack_device__ returns a tuple of two integers: the type and the number of the device.",
     "return (device_type, device_id), two integers of DLPack"),
    ("dlpack-device-agrees", "dlpack-python", "Syntax",
     "The tensor is on the device that __dlpack_device__ names.",
     "return one device in both"),
    ("dlpack-dl-device", "__dlpack__", "dl_device",
     "The capsule is on the device that dl_device requests; if that cannot be, BufferError.",
     "export on the requested device, or raise BufferError"),
    ("dlpack-copy-true", "__dlpack__", "copy", "copy=True always copies.",
     "copy, or raise BufferError"),
    ("dlpack-copied-flag", "__dlpack__", "copy", "A tensor that is a copy has the IS_COPIED flag.",
     "set it: its consumer may then write to the memory"),
    ("dlpack-copy-false", "__dlpack__", "copy",
     "copy=False never copies: it shares the memory or raises BufferError.",
     "share the memory, or raise BufferError"),
    ("dlpack-not-copied-flag", "dlpack.h", "DLPACK_FLAG_BITMASK_IS_COPIED",
     "IS_COPIED says that only the consumer owns the memory, so shared memory does not have it.",
     "set the flag on copies only: its consumer may write to the memory"),
    ("dlpack-read-only", "dlpack.h", "DLPACK_FLAG_BITMASK_READ_ONLY",
     "Memory that may not be written has the READ_ONLY flag, which a legacy tensor cannot have.",
     "set the flag exactly for memory that must not be written"),
    ("dlpack-stream-cpu", "__dlpack__", "stream",
     "On the CPU, and other devices without streams, only None is accepted.",
     "raise an exception: the consumer believes that the memory has a stream"),
    ("dlpack-stream-zero", "__dlpack__", "stream",
     "On CUDA the stream 0 is not allowed, on ROCm 1 and 2 are not: each is ambiguous there.",
     "raise an exception: it is not said which stream is meant"),
    ("dlpack-stream", "__dlpack__", "stream",
     "The stream is None, -1 (no synchronisation), a default stream's number or a handle.",
     "None is a valid stream everywhere"),
    ("dlpack-ndim", "dlpack.h", "DLTensor.shape",
     "ndim and extents are not negative, and shape is not NULL if there is a dimension.",
     "fill ndim and shape"),
    ("dlpack-strides", "dlpack.h", "DLTensor.strides",
     "From version 1.2 on strides are not NULL if there is a dimension.",
     "fill in strides, also for row-major order"),
    ("dlpack-negative-strides", "practice", "torch aborts the process on them",
     "Strides are signed, but several consumers cannot read negative ones.",
     "copy, or raise BufferError"),
    ("dlpack-dtype", "dlpack.h", "DLDataTypeCode",
     "Code, bits and lanes are a type that DLPack defines.",
     "use a code of DLDataTypeCode with its bits, and at least one lane"),
    ("dlpack-empty", "dlpack.h", "DLTensor.data", "A tensor of size 0 has NULL as its data.",
     "set data to NULL: consumers may not look at it"),
    ("dlpack-data", "dlpack.h", "DLTensor.data", "A tensor with elements has data.",
     "raise BufferError if there is no memory, as in tracing or for fake tensors"),
    ("dlpack-byte-offset", "practice", "paddle and dpnp ignore it",
     "byte_offset is allowed, but several consumers ignore it: add it to data.",
     "add the offset to data and set byte_offset to 0"),
    ("dlpack-alignment", "dlpack.h", "DLTensor.data",
     "data is aligned, at least to the elements' size; libraries ignore the rule of 256 bytes.",
     "copy to aligned memory, or raise BufferError"),
    ("dlpack-values", "dlpack.h", "DLTensor",
     "data, strides and dtype describe the values of the array.",
     "check data, strides (in elements, not bytes), dtype and pending operations"),
    ("dlpack-lifetime", "dlpack.h", "DLManagedTensor",
     "The memory stays valid until the deleter is called, whatever becomes of the array.",
     "let the export keep the memory alive until its deleter is called"),
    ("dlpack-releases-array", "dlpack.h", "DLManagedTensor.deleter",
     "The deleter gives back all that the export holds: nothing stays alive.",
     "let the deleter drop exactly the reference that the export took"),
    ("dlpack-deleter-thread", "dlpack-python", "Implementation",
     "The deleter can be called outside Python: it takes the interpreter lock if it needs it.",
     "take the interpreter lock in the deleter (PyGILState_Ensure) if it touches Python"),
    ("dlpack-threads", "practice", "consumers export from worker threads",
     "Several threads can export one array at the same time.",
     "protect what exports of one array share"),
]  # fmt: skip

_DLPACK_CONSUMER = [
    ("from-dlpack-reads", "from_dlpack", "Returns",
     "An array of a common type in row-major order is imported, with its values.",
     "read both kinds of capsules: many producers have legacy ones only"),
    ("from-dlpack-dtype", "dlpack.h", "DLDataType",
     "The values are read as the type that code, bits and lanes say, or refused.",
     "compare code, bits and lanes with the types that you have; else raise BufferError"),
    ("from-dlpack-strides", "dlpack.h", "DLTensor.strides",
     "The values are where the strides say (in elements), or the tensor is refused.",
     "read the field, or raise BufferError"),
    ("from-dlpack-null-strides", "dlpack.h", "DLTensor.strides",
     "Before version 1.2 NULL strides mean row-major order.",
     "read the field, or raise BufferError"),
    ("from-dlpack-byte-offset", "dlpack.h", "DLTensor.byte_offset",
     "The values begin byte_offset bytes after data.",
     "read the field, or raise BufferError"),
    ("from-dlpack-empty", "dlpack.h", "DLTensor.data",
     "A tensor of size 0 is imported with its shape; its data is NULL.",
     "read the field, or raise BufferError"),
    ("from-dlpack-zero-dim", "dlpack.h", "DLTensor.shape",
     "A tensor without dimensions is one value; its shape and strides may be NULL.",
     "read the field, or raise BufferError"),
    ("from-dlpack-alignment", "dlpack.h", "DLTensor.data",
     "Producers do not keep the alignment, so memory that is not aligned is read or refused.",
     "read the field, or raise BufferError"),
    ("from-dlpack-renames", "dlpack-python", "Implementation",
     "The consumer takes the tensor by renaming the capsule to used_..., once it owns it.",
     "rename the capsule before you own the tensor, or leave both to the producer"),
    ("from-dlpack-used", "dlpack-python", "Implementation",
     "A capsule that was consumed is refused: it is consumed once.",
     "compare the name with PyCapsule_IsValid before the pointer is used"),
    ("from-dlpack-wrong-name", "dlpack-python", "Implementation",
     "A capsule with another name is refused.",
     "compare the name with PyCapsule_IsValid before the pointer is used"),
    ("from-dlpack-releases", "dlpack-python", "Implementation",
     "The deleter is called once, when the consumer no longer uses the memory.",
     "call the deleter once: when the memory is no longer used, and after a failure as well"),
    ("from-dlpack-keeps", "dlpack.h", "DLManagedTensor",
     "The deleter is not called while the consumer's array uses the memory.",
     "call the deleter when the array's memory is freed"),
    ("from-dlpack-null-deleter", "dlpack.h", "DLManagedTensorVersioned.deleter",
     "The deleter may be NULL: then there is nothing to call.",
     "import it, and call nothing at its end"),
    ("from-dlpack-null-context", "dlpack.h", "DLManagedTensorVersioned.manager_ctx",
     "manager_ctx is the producer's own, and may be NULL: the deleter is called all the same.",
     "call the deleter once: when the memory is no longer used, and after a failure as well"),
    ("from-dlpack-thread", "practice", "arrays are dropped on any thread",
     "An array can be dropped on another thread than the one that imported it.",
     "call the deleter once: when the memory is no longer used, and after a failure as well"),
    ("from-dlpack-major", "dlpack.h", "DLPackVersion",
     "A tensor with another major version is not read; its deleter is called.",
     "call the deleter and raise BufferError: the layout is another one"),
    ("from-dlpack-minor", "dlpack.h", "DLPackVersion",
     "A tensor with a newer minor version is read: the layout is the same.",
     "compare the major number only"),
    ("from-dlpack-max-version", "__dlpack__", "Notes",
     "A consumer that reads versioned tensors passes max_version.",
     "pass max_version=(1, 0): legacy tensors cannot say that memory is read-only"),
    ("from-dlpack-fallback", "__dlpack__", "Notes",
     "If a producer does not know the new keywords (TypeError), it is asked without them.",
     "after TypeError call __dlpack__ again without the new keywords"),
    ("from-dlpack-stream", "__dlpack__", "stream", "For memory of the CPU the stream is None.",
     "pass None, or no stream, if __dlpack_device__ says CPU"),
    ("from-dlpack-read-only", "__dlpack__", "Notes",
     "READ_ONLY memory is not written: the array is read-only, a copy, or the user's concern.",
     "make the array read-only, or copy; ignoring the flag is allowed, and left to the user"),
    ("from-dlpack-copy", "from_dlpack", "copy",
     "copy=True always copies; copy=False never does.",
     "copy if the producer did not, or raise"),
    ("from-dlpack-device", "dlpack-python", "Semantics",
     "Memory of a device that the consumer does not support is refused with BufferError.",
     "raise BufferError: the type says nothing about who can read it"),
    ("from-dlpack-raises", "from_dlpack", "Raises",
     "An exception of __dlpack__ or __dlpack_device__ is propagated.",
     "let the exception of the producer pass, with its text"),
    ("from-dlpack-methods", "from_dlpack", "Raises",
     "An object without the two methods raises AttributeError.",
     "raise AttributeError, which says that the object has no DLPack"),
    ("from-dlpack-refused", "dlpack-python", "Implementation",
     "A tensor that is refused is released once: by its capsule or by the consumer.",
     "call the deleter once: when the memory is no longer used, and after a failure as well"),
]  # fmt: skip

_EXCHANGE_API = [
    ("exchange-api-type", "dlpack.h", "DLPackExchangeAPI",
     "The type has __dlpack_c_exchange_api__, a capsule named dlpack_exchange_api.",
     'set it on the type, a PyCapsule named "dlpack_exchange_api"'),
    ("exchange-api-static", "dlpack.h", "DLPackExchangeAPI",
     "The table lives as long as the process: each look at the type finds the same one.",
     "use a static table: consumers keep its address"),
    ("exchange-api-version", "dlpack.h", "DLPackExchangeAPIHeader.version",
     "Consumers read a table of major version 1; the exchange API is new in version 1.3.",
     "set the version of your dlpack.h, and put a table of version 1 in prev_api"),
    ("exchange-api-chain", "dlpack.h", "DLPackExchangeAPIHeader.prev_api",
     "prev_api is NULL, or a table of an older version.",
     "link older tables behind newer ones, and end with NULL"),
    ("exchange-api-functions", "dlpack.h", "DLPackExchangeAPI",
     "All functions but dltensor_from_py_object_no_sync are not NULL.",
     "implement the function: consumers call it without a check"),
    ("exchange-api-from", "dlpack.h", "DLPackManagedTensorFromPyObjectNoSync",
     "It returns 0 and an owning tensor, or -1 and sets a Python exception.",
     "return 0 and a tensor, or -1 with an exception set"),
    ("exchange-api-agrees", "dlpack.h", "DLPackExchangeAPI",
     "The table exports the same tensor as __dlpack__: memory, device, type and shape.",
     "make both from one function"),
    ("exchange-api-releases", "dlpack.h", "DLManagedTensorVersioned.deleter",
     "The deleter of an exported tensor gives back all that the export holds.",
     "let the deleter drop exactly the reference that the export took"),
    ("exchange-api-borrow", "dlpack.h", "DLPackDLTensorFromPyObjectNoSync",
     "It describes the tensor without taking ownership.",
     "fill the struct with pointers that the array owns"),
    ("exchange-api-to", "dlpack.h", "DLPackManagedTensorToPyObjectNoSync",
     "It makes an object of the type, which calls the deleter of the tensor once at its end.",
     "own the tensor, and call its deleter with the last reference to the memory"),
    ("exchange-api-stream", "dlpack.h", "DLPackCurrentWorkStream",
     "It returns 0 and the current stream of the device; for the CPU NULL is enough.",
     "return 0 and NULL for devices without streams"),
    ("exchange-api-allocate", "dlpack.h", "DLPackManagedTensorAllocator",
     "It makes a tensor of the prototype's type, shape and device.",
     "use dtype, ndim, shape and device of the prototype"),
    ("exchange-api-set-error", "dlpack.h", "DLPackManagedTensorAllocator",
     "SetError is called exactly when the allocation fails.",
     "call SetError once if it fails, never if it succeeds"),
    ("exchange-api-refuses", "dlpack.h", "DLPackManagedTensorFromPyObjectNoSync",
     "What __dlpack__ refuses is refused with an exception set, BufferError if possible.",
     "check what __dlpack__ checks, such as gradients, lazy negation and memory that is missing"),
]  # fmt: skip

RULES: dict[str, Rule] = {
    id: Rule(id, SPECIFICATIONS[specification], *texts)
    for table in (_DLPACK_PRODUCER, _DLPACK_CONSUMER, _EXCHANGE_API, ARROW_PRODUCER, ARROW_CONSUMER)
    for id, specification, *texts in table
}
"""Every rule by its id."""
