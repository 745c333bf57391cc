// Imports tensors by Python's buffer protocol.
#include "import/buffer_protocol.hpp"

#include <memory>
#include <string_view>

#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "support/gil.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// The DLPack code of a format. Source: Python's struct module, format characters; PEP 3118 for Z.
DLDataTypeCode find_code(std::string_view format) {
  constexpr auto kNone = static_cast<DLDataTypeCode>(kDLOpaqueHandle);
  if (format == "Zf" || format == "Zd") return kDLComplex;
  if (format.size() != 1) return kNone;
  if (format == "?") return kDLBool;
  if (std::string_view("bhilqn").find(format[0]) != std::string_view::npos) return kDLInt;
  if (std::string_view("BHILQN").find(format[0]) != std::string_view::npos) return kDLUInt;
  if (std::string_view("efd").find(format[0]) != std::string_view::npos) return kDLFloat;
  return kNone;
}

const Dtype& find_element(const Py_buffer& buffer) {
  std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
  const std::string_view native = "@=<";  // of a little-endian machine
  if (format.size() > 1 && native.find(format[0]) != std::string_view::npos)
    format.remove_prefix(1);
  const DLDataType type{static_cast<uint8_t>(find_code(format)),
                        static_cast<uint8_t>(buffer.itemsize <= 16 ? buffer.itemsize * 8 : 0), 1};
  const Dtype* dtype = find_dtype(type);
  if (dtype == nullptr) {
    raise_buffer_error("a buffer of format \"", buffer.format,
                       "\" has no tensor type: cast it to "
                       "native integers, floating point numbers or bools");
  }
  return *dtype;
}

TensorView view_buffer(const Py_buffer& buffer) {
  TensorView view;
  view.dtype = &find_element(buffer);
  view.data = static_cast<const uint8_t*>(buffer.buf);
  for (int i = 0; i < buffer.ndim; ++i) {
    if (buffer.strides[i] % buffer.itemsize != 0) {
      raise_buffer_error("a buffer with a stride of ", buffer.strides[i],
                         " bytes between elements "
                         "of ",
                         buffer.itemsize, ": copy it first");
    }
    view.push_dim(buffer.shape[i]);
    view.strides[i] = buffer.strides[i] / buffer.itemsize;
  }
  return view;
}

/// Returns the buffer to its exporter, a Python object. Takes the GIL, on any thread.
void release_buffer(Py_buffer* buffer) noexcept {
  with_gil([buffer] {
    PyBuffer_Release(buffer);
    delete buffer;
  });
}

}  // namespace

OwnedTensor take_buffer(PyObject* object) {
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object, buffer.get(), PyBUF_RECORDS_RO) != 0) {
    throw py::error_already_set();
  }
  const std::shared_ptr<Py_buffer> owner(buffer.release(), release_buffer);
  return make_tensor(view_buffer(*owner), owner, DLPACK_FLAG_BITMASK_READ_ONLY);
}

}  // namespace arrowdl::python
