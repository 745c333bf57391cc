// Exports a tensor once, by the Python protocol of DLPack.
#include "export/tensor.hpp"

#include <pybind11/pybind11.h>

#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "export/consumer.hpp"
#include "support/arguments.hpp"
#include "support/capsule.hpp"
#include "support/device_streams.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"

namespace arrowdl::python {

namespace py = pybind11;

OwnedTensor read_on(const Device& device, const ReadTensor& read, const Order& order) {
  OwnedTensor tensor = read(order);
  const Device made = from_dl_device(tensor->device);
  if (made != device) {
    throw Error(ErrorKind::kRuntime,
                concat("arrowdl has made a tensor on ", to_string(made), " instead of ",
                       to_string(device), ": please report it"));
  }
  return tensor;
}

Tensor::Tensor(OwnedTensor tensor, bool in_place)
    : device_(from_dl_device(tensor->device)),
      dtype_(view_tensor(tensor).dtype),
      content_{nullptr, std::move(tensor)},
      in_place_(in_place) {}

Tensor::Tensor(const Device& device, const Dtype& dtype, ReadTensor read, bool in_place)
    : device_(device), dtype_(&dtype), content_{std::move(read), {}}, in_place_(in_place) {}

Tensor::Content Tensor::take(PyObject* self) {
  Content content;
  {
    const CriticalSection section(self);
    std::swap(content, content_);
  }
  if (!content.read && !content.tensor) {
    raise_value_error("this tensor has been consumed already");
  }
  return content;
}

Tensor Tensor::as_integers(PyObject* self, bool is_copied) {
  const auto bits = static_cast<uint8_t>(dtype_->itemsize() * 8);
  const Dtype* dtype = find_dtype(DLDataType{kDLUInt, bits, 1});
  if (dtype == nullptr) raise_buffer_error("no unsigned integer is as wide as ", dtype_->name);
  const auto as_integers = [dtype](OwnedTensor tensor) {
    TensorView view = view_tensor(tensor);
    view.dtype = dtype;
    return make_tensor(view, std::move(tensor));
  };
  if (in_place_ && is_copied) {
    raise_buffer_error("copy=False: values of ", dtype_->name,
                       " would be copied from their bytes: allow it with copy=None");
  }
  Content content = take(self);
  if (!content.read) return {as_integers(std::move(content.tensor)), false};
  return {device_, *dtype,
          [as_integers, read = std::move(content.read)](const Order& order) {
            return as_integers(read(order));
          },
          false};
}

py::object Tensor::dlpack(PyObject* self, PyObject* stream, bool is_versioned) {
  Content content = take(self);
  if (content.read) {
    try {
      const Order order = read_order(device_, stream);
      content.tensor = hold_for_consumer(read_on(device_, content.read, order), device_, order);
    } catch (...) {  // another stream may do
      const CriticalSection section(self);
      std::swap(content, content_);
      throw;
    }
  }
  if (!is_versioned) return make_capsule(to_legacy(std::move(content.tensor)));
  return make_capsule(std::move(content.tensor));
}

py::tuple Tensor::dlpack_device() const {
  const DLDevice device = to_dl_device(device_);
  return py::make_tuple(static_cast<int>(device.device_type), device.device_id);
}

namespace {

Tensor& get_tensor(PyObject* self) { return py::handle(self).cast<Tensor&>(); }

const Parameters<4> parameters("__dlpack__", {"stream", "max_version", "dl_device", "copy"});

PyObject* dlpack(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  return guarded([&] {
    const auto values = parameters.read(args, n, names);
    const bool is_versioned = values[1] != nullptr && values[1] != Py_None;
    return get_tensor(self).dlpack(self, values[0], is_versioned).release().ptr();
  });
}

PyObject* dlpack_device(PyObject* self, PyObject*) noexcept {
  return guarded([&] { return get_tensor(self).dlpack_device().release().ptr(); });
}

PyMethodDef methods[] = {{"__dlpack__", as_method(dlpack), kFastCall, nullptr},
                         {"__dlpack_device__", as_method(dlpack_device), METH_NOARGS, nullptr}};

}  // namespace

void register_tensor(py::module_& m) {
  py::class_<Tensor> type(m, "Tensor", py::is_final(),
                          "A tensor for one consumer: `__dlpack__` exports it once.");
  for (PyMethodDef& method : methods) {  // called for each tensor: pybind11's take thrice the time
    type.attr(method.ml_name) = py::reinterpret_steal<py::object>(
        PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &method));
  }
  type.def(
          "_as_integers",
          [](const py::object& self, bool is_copied) {
            return self.cast<Tensor&>().as_integers(self.ptr(), is_copied);
          },
          py::arg("is_copied"),
          "The memory as unsigned integers, packed values as bytes, in place of this tensor. "
          "Raises BufferError if the consumer copies it and must not.")
      .def_property_readonly("dtype", &Tensor::dtype, "The element type by name.");
}

}  // namespace arrowdl::python
