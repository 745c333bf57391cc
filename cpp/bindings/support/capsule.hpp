// The one place that knows capsule names: how each C struct travels in a PyCapsule.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/stream.hpp"

namespace arrowdl::python {

// Into Python. The capsule owns the struct and releases it unless a consumer took it.
// Sources: Arrow "PyCapsule Interface"; DLPack "Python Specification".
pybind11::object make_capsule(OwnedSchema schema);
pybind11::object make_capsule(OwnedArray array);
pybind11::object make_capsule(OwnedDeviceArray array);
pybind11::object make_capsule(OwnedArrayStream stream);
pybind11::object make_capsule(OwnedDeviceArrayStream stream);
/// "dltensor" or "dltensor_versioned" by the vintage of `tensor`.
pybind11::object make_capsule(OwnedTensor tensor);
/// "dlpack_exchange_api"; `api` lives as long as the process.
pybind11::object make_capsule(const DLPackExchangeAPI& api);

/// Where the tensor lies in a DLPack capsule that nobody has consumed; nothing for any other object
/// and for a version that arrowdl does not read.
std::optional<Device> peek_device(PyObject* capsule);

// Out of Python. Raises TypeError for anything but the right capsule, ValueError for one that has
// been consumed; the capsule keeps its struct then.
OwnedTensor take_tensor(PyObject* capsule);
/// Takes the pair of `__arrow_c_array__` or `__arrow_c_device_array__`, both or neither.
DeviceArray take_array(PyObject* schema_capsule, PyObject* array_capsule);
/// Moves the schema out of an "arrow_schema" capsule and parses it.
std::shared_ptr<const ParsedSchema> take_schema(PyObject* capsule);

/// The schema that a consumer asks for: a copy, so that the capsule may be passed again. nullptr
/// for None and for nullptr.
std::shared_ptr<const ParsedSchema> read_requested_schema(PyObject* capsule);

/// Moves the stream out of an "arrow_array_stream" or "arrow_device_array_stream" capsule.
OwnedStream open_stream(PyObject* capsule);

/// The newest table that `capsule` holds, of any version, or nullptr when it is not such a capsule.
const DLPackExchangeAPIHeader* find_exchange_api_header(PyObject* capsule) noexcept;

/// Whether `object` is a capsule of a DLPack tensor or an Arrow stream, consumed or not.
bool is_tensor_capsule(PyObject* object) noexcept;
bool is_stream_capsule(PyObject* object) noexcept;

/// A Releaser for arrays out of Python: producers exist whose release callback touches
/// Python objects without taking the GIL (pylibcudf), so it runs with the GIL held. Once the
/// interpreter is gone nothing is called and the memory goes with the process.
void release_with_gil(OwnedSchema* schema, OwnedDeviceArray* array) noexcept;
/// The same for streams.
void release_stream_with_gil(OwnedArrayStream* stream,
                             OwnedDeviceArrayStream* device_stream) noexcept;

}  // namespace arrowdl::python
