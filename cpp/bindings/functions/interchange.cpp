// Makes arrays of buffers, for the dataframe interchange protocol in arrowdl's own Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "arrowdl/concatenate.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/to_arrow.hpp"
#include "classes/classes.hpp"
#include "compute/pack_bits.hpp"
#include "compute/relocate.hpp"
#include "functions/functions.hpp"
#include "import/arrow.hpp"
#include "interchange/array_from_buffers.hpp"
#include "support/device_array_object.hpp"
#include "support/gil.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

DeviceArray take_optional(const py::handle& array) {
  return array.is_none() ? DeviceArray() : take_array_of(array.ptr());
}

/// A schema without children. `format` is a format of the C data interface, or "bool8".
OwnedSchema make_flat_schema(const std::string& format) {
  return format == "bool8" ? make_schema(*find_dtype("bool"))
                           : make_nested_schema(format.c_str(), {});
}

py::object assemble_buffers(const std::string& format, int64_t length, int64_t offset,
                            const py::sequence& buffers, const py::object& dictionary,
                            bool is_ordered) {
  BufferParts parts;
  parts.length = length;
  parts.offset = offset;
  for (const py::object buffer : buffers) parts.buffers.push_back(take_optional(buffer));
  parts.dictionary = take_optional(dictionary);
  return wrap(array_from_buffers(make_flat_schema(format), std::move(parts), is_ordered));
}

/// An array of the `size` bytes at `address`, which `owner` keeps alive.
py::object borrow_memory(uintptr_t address, int64_t size, const py::object& device,
                         const py::object& owner) {
  if (size < 0 || (address == 0 && size > 0)) {
    raise_value_error(size, " bytes at address ", address);
  }
  TensorView view;
  view.data = reinterpret_cast<const uint8_t*>(address);
  view.device = read_device(device.ptr());
  view.dtype = find_dtype("uint8");
  view.push_dim(size);
  view.set_contiguous_strides();
  return wrap(
      to_arrow(make_tensor(view, share_object(owner.ptr()), DLPACK_FLAG_BITMASK_READ_ONLY)));
}

/// The address of the first element of a fixed-width array. Waits for host-readable memory.
uintptr_t address_of(const py::object& object) {
  const DeviceArray array = take_array_of(object.ptr());
  if (array.type().layout != Layout::kFixedWidth) {
    raise_type_error("the elements of ", to_string(array.type()), " are not at one address");
  }
  if (is_host_readable(array.device())) array.synchronize();
  const auto start = static_cast<int64_t>(reinterpret_cast<uintptr_t>(array.buffer(1)));
  return static_cast<uintptr_t>(start + array.offset() * array.type().byte_width);
}

py::object null_where(const py::object& object, const std::optional<py::bytes>& item) {
  const DeviceArray array = take_array_of(object.ptr());
  if (!item) return wrap(nan_to_null(array));
  return wrap(values_to_null(array, std::string_view(*item)));
}

py::object concatenate_all(const py::sequence& arrays) {
  std::vector<DeviceArray> parts;
  for (const py::object array : arrays) parts.push_back(take_array_of(array.ptr()));
  if (parts.empty()) raise_value_error("no arrays to concatenate: pass at least one");
  return wrap(concatenate(parts));
}

py::object relocate_to(const py::object& array, uintptr_t address, const py::object& block) {
  return wrap(relocate(take_array_of(array.ptr()), reinterpret_cast<const void*>(address),
                       take_array_of(block.ptr())));
}

}  // namespace

void register_buffers(py::module_& m) {
  m.def("assemble", &assemble_buffers, py::arg("format"), py::arg("length"), py::arg("offset"),
        py::arg("buffers"), py::arg("dictionary") = py::none(), py::arg("is_ordered") = false,
        "Return an array of `format` that shares the memory of `buffers`, arrays or None.");
  m.def("borrow_memory", &borrow_memory, py::arg("address"), py::arg("size"), py::arg("device"),
        py::arg("owner"),
        "Return the `size` bytes at `address` as an array of uint8 that keeps `owner` alive.");
  m.def("address_of", &address_of, py::arg("array"),
        "Return the address of the first element of `array`.");
  m.def(
      "is_host_readable",
      [](const py::object& device) { return is_host_readable(read_device(device.ptr())); },
      py::arg("device"), "Return whether the CPU can read memory on `device`.");
  m.def("null_where", &null_where, py::arg("array"), py::arg("item"),
        "Return `array` with more nulls: elements with the bytes `item`, or NaN if it is None.");
  m.def("concatenate", &concatenate_all, py::arg("arrays"),
        "Return the rows of all arrays as one array.");
  m.def("relocate", &relocate_to, py::arg("array"), py::arg("address"), py::arg("block"),
        "Return the rows of `array` in memory that may be written to: in `block`, an array of the "
        "bytes at `address`, where their memory is a part of these bytes, else in a copy.");
}

}  // namespace arrowdl::python
