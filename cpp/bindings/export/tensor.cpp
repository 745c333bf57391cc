// Exports a tensor once, by the Python protocol of DLPack.
#include "export/tensor.hpp"

#include <pybind11/pybind11.h>

#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "export/consumer.hpp"
#include "support/capsule.hpp"
#include "support/device_streams.hpp"

namespace arrowdl::python {

namespace py = pybind11;

Tensor::Tensor(OwnedTensor tensor, bool in_place)
    : device_(from_dl_device(tensor->device)),
      dtype_(view_tensor(tensor).dtype),
      tensor_(std::move(tensor)),
      in_place_(in_place) {}

Tensor::Tensor(const Device& device, const Dtype& dtype, ReadTensor read, bool in_place)
    : device_(device), dtype_(&dtype), read_(std::move(read)), in_place_(in_place) {}

Tensor Tensor::as_bytes() {
  const auto as_bytes = [](OwnedTensor tensor) {
    TensorView view = view_tensor(tensor);
    view.dtype = find_dtype("uint8");
    return make_tensor(view, std::move(tensor));
  };
  if (!read_ && !tensor_) raise_value_error("this tensor has been consumed already");
  if (in_place_) {
    raise_buffer_error("copy=False: values of ", dtype_->name,
                       " would be copied from their bytes: allow it with copy=None");
  }
  if (!read_) return {as_bytes(std::move(tensor_)), false};
  return {device_, *find_dtype("uint8"),
          [as_bytes, read = std::exchange(read_, nullptr)](const Order& order) {
            return as_bytes(read(order));
          },
          false};
}

py::object Tensor::dlpack(const py::object& stream, const py::object& max_version,
                          const py::object&, const py::object&) {
  if (read_) {
    const Order order = read_order(device_, stream.ptr());
    tensor_ = hold_for_consumer(read_(order), device_, order);
    read_ = nullptr;
  }
  if (!tensor_) raise_value_error("this tensor has been consumed already");
  if (max_version.is_none()) return make_capsule(to_legacy(std::move(tensor_)));
  return make_capsule(std::move(tensor_));
}

py::tuple Tensor::dlpack_device() const {
  const DLDevice device = to_dl_device(device_);
  return py::make_tuple(static_cast<int>(device.device_type), device.device_id);
}

void register_tensor(py::module_& m) {
  py::class_<Tensor>(m, "Tensor", py::is_final(),
                     "A tensor for one consumer: `__dlpack__` exports it once.")
      .def("__dlpack__", &Tensor::dlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack_device__", &Tensor::dlpack_device)
      .def("_as_bytes", &Tensor::as_bytes,
           "The memory of values of less than a byte as uint8, in place of this tensor.")
      .def_property_readonly("dtype", &Tensor::dtype, "The element type by name.");
}

}  // namespace arrowdl::python
