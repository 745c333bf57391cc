// The function to_arrow_device.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_arrow.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "functions/functions.hpp"
#include "import/arrow.hpp"
#include "import/classify.hpp"
#include "import/tensor.hpp"
#include "support/arguments.hpp"
#include "support/device_array_object.hpp"
#include "support/errors.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

constexpr std::pair<const char*, TensorLayout> kLayouts[] = {
    {"auto", TensorLayout::kAuto},
    {"fixed_shape_tensor", TensorLayout::kFixedShapeTensor},
    {"list", TensorLayout::kList}};
constexpr std::pair<const char*, BoolAs> kBoolAs[] = {{"bool8", BoolAs::kBool8},
                                                      {"bits", BoolAs::kBits}};

ToArrowOptions read_options(PyObject* copy, PyObject* layout, PyObject* bool_as,
                            PyObject* extensions) {
  ToArrowOptions options;
  options.copy = read_copy(copy);
  if (layout != nullptr) options.layout = read_choice("layout", layout, kLayouts);
  if (bool_as != nullptr) options.bool_as = read_choice("bool_as", bool_as, kBoolAs);
  if (extensions == nullptr || extensions == Py_True) return options;
  if (extensions != Py_False) {
    raise_type_error("extensions must be a bool, got ", Py_TYPE(extensions)->tp_name);
  }
  if (options.layout == TensorLayout::kFixedShapeTensor ||
      (bool_as != nullptr && options.bool_as == BoolAs::kBool8)) {
    raise_value_error(
        "extensions=False makes lists and bits: leave out layout=\"fixed_shape_tensor\" and "
        "bool_as=\"bool8\", which are extension types");
  }
  options.extensions = false;
  options.layout = TensorLayout::kList;
  options.bool_as = BoolAs::kBits;
  return options;
}

/// Converts dicts, TensorDicts and nested tensors in Python, which calls back for each tensor.
py::object convert_container(PyObject* const* args, Py_ssize_t n, PyObject* names) {
  const py::handle hook = find_hook(Hook::kToArrow);
  return checked(PyObject_Vectorcall(hook.ptr(), args, static_cast<std::size_t>(n), names));
}

bool is_default(const ToArrowOptions& options) {
  return options.copy != Copy::kAlways && options.layout == TensorLayout::kAuto &&
         options.bool_as == BoolAs::kBool8;
}

DeviceArray convert_tensor(PyObject* tensor, const DLPackExchangeAPI* api,
                           const ToArrowOptions& options, PyObject* stream) {
  TakenTensor taken = take_tensor_of(tensor, api, options.copy, stream, Elements::kArrows);
  if (taken.time_format.empty()) {
    return to_arrow(std::move(taken.tensor), options, std::move(taken.event));
  }
  ToArrowOptions of_times = options;
  of_times.time_format = std::move(taken.time_format);
  return to_arrow(std::move(taken.tensor), of_times, std::move(taken.event));
}

/// Whether a tensor carries all of `type`: it has no unit, dictionary, or unknown extension.
bool is_tensor_type(const Type& type) {
  const bool has_name = find_metadata(*type.schema, kExtensionNameKey).has_value();
  if (type.dictionary != nullptr || (has_name && type.extension == Extension::kNone)) return false;
  if (type.tensor != nullptr && !type.tensor->dim_names.empty()) return false;
  switch (type.layout) {
    case Layout::kBoolean:
      return true;
    case Layout::kFixedWidth:
      return type.dtype != nullptr && std::string_view(type.schema->format) == type.dtype->format;
    case Layout::kFixedSizeList:
      return type.dtype != nullptr || is_tensor_type(type.children[0]);
    default:
      return false;
  }
}

/// Whether `type`, or a part of it, has the name of an extension type.
bool has_extension(const Type& type) {
  if (find_metadata(*type.schema, kExtensionNameKey)) return true;
  if (type.dictionary != nullptr && has_extension(*type.dictionary)) return true;
  return std::any_of(type.children.begin(), type.children.end(), has_extension);
}

/// arrow.bool8 of the host as bits, also with nulls, which no tensor has. Empty for others.
DeviceArray pack_bools(const DeviceArray& array) {
  const Type& type = array.type();
  if (type.layout != Layout::kFixedWidth || type.dtype != find_dtype("bool")) return {};
  DeviceArray bits = cast_to_schema(array, share_schema(make_nested_schema("b", {})));
  return has_extension(bits.type()) ? DeviceArray() : bits;
}

/// Takes Arrow data as it is. The options of tensors apply only to a type that a tensor carries.
DeviceArray convert_arrow(PyObject* object, const DLPackExchangeAPI* api,
                          const ToArrowOptions& options, PyObject* stream) {
  const bool has_stream = stream != nullptr && stream != Py_None;
  if (is_default(options) && !has_stream) return take_array_of(object);
  if (!options.extensions && !has_stream) {
    DeviceArray array = take_array_of(object);
    if (options.copy != Copy::kNever) {
      if (DeviceArray bits = pack_bools(array)) return bits;
    }
    if (options.copy != Copy::kAlways && !has_extension(array.type())) return array;
  }
  if (is_tensor(object)) {
    DeviceArray array = take_array_of(object);
    if (is_tensor_type(array.type())) {
      if (api != nullptr) return convert_tensor(object, api, options, stream);
      // Libraries export fewer types by DLPack than arrowdl, pyarrow no extension types.
      return convert_tensor(wrap(std::move(array)).ptr(), nullptr, options, stream);
    }
  }
  if (has_stream) {
    raise_buffer_error("stream=", py::repr(stream).cast<std::string>(), " is for tensors; ",
                       Py_TYPE(object)->tp_name,
                       " is Arrow data, which carries its own event: leave it out");
  }
  raise_buffer_error(
      "copy=True, layout=, bool_as= and extensions= are for tensors; ", Py_TYPE(object)->tp_name,
      " is Arrow data whose type a tensor cannot carry, and is shared as it is: leave them out");
}

/// A mask is a tensor of bool, or an Arrow array of booleans.
TakenTensor take_mask(PyObject* mask) {
  const auto [kind, api] = classify(mask);
  if (kind == Kind::kArrow) return {to_dlpack(take_array_of(mask)), {}};
  if (kind != Kind::kTensor) {
    raise_type_error("mask must be a tensor or an Arrow array of bool, got ",
                     Py_TYPE(mask)->tp_name);
  }
  return take_tensor_of(mask, api, Copy::kIfNeeded, nullptr);
}

DeviceArray mask_rows(const DeviceArray& array, PyObject* mask, bool valid) {
  TakenTensor taken = take_mask(mask);
  return apply_mask(array, std::move(taken.tensor), valid, std::move(taken.event));
}

const Parameters<7> to_arrow_parameters("to_arrow_device",
                                        {"tensor", "copy", "layout", "bool_as", "extensions",
                                         "mask", "stream"},
                                        1, 1);

PyObject* to_arrow_device(PyObject*, PyObject* const* args, Py_ssize_t n,
                          PyObject* names) noexcept {
  return guarded([&] {
    if (n == 0) raise_type_error("to_arrow_device() needs a tensor");
    const auto [tensor, copy, layout, bool_as, extensions, mask, stream] =
        to_arrow_parameters.read(args, n, names);
    const ToArrowOptions options = read_options(copy, layout, bool_as, extensions);
    if (PyType_Check(tensor) != 0) raise_unread("to_arrow_device", tensor);
    const auto [kind, api] = classify(tensor);
    if (kind == Kind::kContainer) return convert_container(args, n, names).release().ptr();
    DeviceArray array = kind == Kind::kArrow ? convert_arrow(tensor, api, options, stream)
                                             : convert_tensor(tensor, api, options, stream);
    if (mask != nullptr && mask != Py_None) array = mask_rows(array, mask, true);
    return wrap(std::move(array)).release().ptr();
  });
}

py::object make_struct_of(const std::vector<std::string>& names, const py::sequence& arrays) {
  std::vector<DeviceArray> fields;
  for (const py::object item : arrays) fields.push_back(take_array_of(item.ptr()));
  return wrap(make_struct(names, fields));
}

py::object make_list_of(const py::object& values, const py::object& offsets) {
  return wrap(make_list(take_array_of(values.ptr()), take_array_of(offsets.ptr())));
}

py::object apply_mask_to(const py::object& array, const py::object& mask, bool valid) {
  return wrap(mask_rows(take_array_of(array.ptr()), mask.ptr(), valid));
}

constexpr const char* kToArrowDeviceDoc =
    R"(to_arrow_device(tensor, /, *, copy=None, layout='auto', bool_as='bool8', extensions=True, mask=None, stream=None)
--

Convert a tensor, or a dict of tensors, to an Arrow array on the same device.

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
extensions : bool
    False makes no extension type, for engines that compute on the result: ``layout='list'`` and
    ``bool_as='bits'``, and BufferError for elements that Arrow has only as an extension type
    (bfloat16, float8, complex). Only bools and permuted rows are copied.
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
    `tensor` is neither a tensor nor Arrow data.)";

PyMethodDef to_arrow_device_functions[] = {
    {"to_arrow_device", as_method(to_arrow_device), kFastCall, kToArrowDeviceDoc},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void register_to_arrow(py::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), to_arrow_device_functions) != 0) throw py::error_already_set();
  m.def("make_struct", &make_struct_of, py::arg("names"), py::arg("arrays"),
        "Return a struct array that shares the memory of `arrays`.");
  m.def("apply_mask", &apply_mask_to, py::arg("array"), py::arg("mask"), py::arg("valid") = true,
        "Return `array` with its rows valid where the bool tensor `mask` is `valid`.");
  m.def("make_list", &make_list_of, py::arg("values"), py::arg("offsets"),
        "Return a list array of `values`, divided at `offsets` (int32: List, int64: LargeList).");
}

}  // namespace arrowdl::python
