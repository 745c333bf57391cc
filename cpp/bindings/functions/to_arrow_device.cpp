// to_arrow_device(tensor, *, copy, layout, bool_as, mask, stream)
#include <pybind11/stl.h>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_arrow.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "classes/device_array.hpp"
#include "functions/functions.hpp"
#include "import/arrow.hpp"
#include "import/tensor.hpp"
#include "support/arguments.hpp"
#include "support/errors.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

struct Arguments {
  ToArrowOptions options;
  PyObject* mask = nullptr;
  PyObject* stream = nullptr;
};

bool read_option(Arguments& arguments, std::string_view name, PyObject* value) {
  static constexpr std::pair<const char*, TensorLayout> kLayouts[] = {
      {"auto", TensorLayout::kAuto},
      {"fixed_shape_tensor", TensorLayout::kFixedShapeTensor},
      {"list", TensorLayout::kList}};
  static constexpr std::pair<const char*, BoolAs> kBoolAs[] = {{"bool8", BoolAs::kBool8},
                                                               {"bits", BoolAs::kBits}};
  if (name == "copy") {
    arguments.options.copy = read_copy(value);
  } else if (name == "layout") {
    arguments.options.layout = read_choice("layout", value, kLayouts);
  } else if (name == "bool_as") {
    arguments.options.bool_as = read_choice("bool_as", value, kBoolAs);
  } else if (name == "mask") {
    arguments.mask = value == Py_None ? nullptr : value;
  } else if (name == "stream") {
    arguments.stream = value;
  } else {
    return false;
  }
  return true;
}

/// dicts, TensorDicts and nested tensors: taken apart in Python, which calls back for each tensor.
py::object convert_container(PyObject* const* args, Py_ssize_t n, PyObject* names) {
  const py::handle hook = find_hook(Hook::kToArrow);
  return checked(PyObject_Vectorcall(hook.ptr(), args, static_cast<std::size_t>(n), names));
}

bool is_container(PyObject* object) {
  static PyObject* const items = interned("items");
  static PyObject* const is_nested = interned("is_nested");
  if (PyDict_Check(object) != 0) return true;
  const py::object nested = find_attribute(object, is_nested);
  if (nested) return nested.ptr() == Py_True;
  // A data frame has items as well, and is better off as the Arrow data that it also is.
  return !is_tensor(object) && !is_arrow(object) && find_attribute(object, items);
}

/// Whether `object`, of a class with `api`, is Arrow data, which says more than its tensor: type,
/// nulls, dictionary.
bool reads_as_arrow(PyObject* object, const DLPackExchangeAPI* api) {
  return find_array(object) || (api == nullptr && is_arrow(object));
}

bool is_default(const ToArrowOptions& options) {
  return options.copy != Copy::kAlways && options.layout == TensorLayout::kAuto &&
         options.bool_as == BoolAs::kBool8;
}

DeviceArray convert_tensor(PyObject* tensor, const DLPackExchangeAPI* api,
                           const Arguments& arguments) {
  const ToArrowOptions& options = arguments.options;
  TakenTensor taken = take_tensor_of(tensor, api, options.copy, arguments.stream);
  return to_arrow(std::move(taken.tensor), options, std::move(taken.event));
}

/// Whether `type` is all in its tensor: no unit, no categories, no meaning that a name gives.
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

DeviceArray convert(PyObject* tensor, const Arguments& arguments) {
  const DLPackExchangeAPI* api = find_exchange_api(Py_TYPE(tensor));
  if (!reads_as_arrow(tensor, api)) return convert_tensor(tensor, api, arguments);
  const bool has_stream = arguments.stream != nullptr && arguments.stream != Py_None;
  if (is_default(arguments.options) && !has_stream) return take_array_of(tensor);
  if (is_tensor(tensor) && is_tensor_type(take_array_of(tensor).type())) {
    return convert_tensor(tensor, api, arguments);
  }
  if (has_stream) {
    raise_buffer_error("stream=", py::repr(arguments.stream).cast<std::string>(),
                       " is for tensors; ", Py_TYPE(tensor)->tp_name,
                       " is Arrow data, which carries its own event: leave it out");
  }
  raise_buffer_error(
      "copy=True, layout= and bool_as= are for tensors; ", Py_TYPE(tensor)->tp_name,
      " is Arrow data that is more than its tensor, and shared as it is: leave them out");
}

/// A mask is a tensor of bool, or an Arrow array of booleans.
OwnedTensor take_mask(PyObject* mask) {
  if (reads_as_arrow(mask, find_exchange_api(Py_TYPE(mask)))) return to_dlpack(take_array_of(mask));
  if (!is_tensor(mask)) {
    raise_type_error("mask must be a tensor or an Arrow array of bool, got ",
                     Py_TYPE(mask)->tp_name);
  }
  TakenTensor taken = take_tensor_of(mask, Copy::kIfNeeded);
  synchronize_event(from_dl_device(taken.tensor->device), taken.event.handle());
  return std::move(taken.tensor);
}

PyObject* to_arrow_device(PyObject*, PyObject* const* args, Py_ssize_t n,
                          PyObject* names) noexcept {
  return guarded([&] {
    if (n == 0) raise_type_error("to_arrow_device() needs a tensor");
    Arguments arguments;
    read_keywords("to_arrow_device", n, 1, args, names,
                  [&](std::string_view name, PyObject* value) {
                    return read_option(arguments, name, value);
                  });
    if (is_container(args[0])) {
      return convert_container(args, n, names).release().ptr();
    }
    DeviceArray array = convert(args[0], arguments);
    if (arguments.mask != nullptr) {
      array = apply_mask(array, take_mask(arguments.mask));
    }
    return wrap(std::move(array)).release().ptr();
  });
}

py::object make_struct_of(const std::vector<std::string>& names, const py::sequence& arrays) {
  std::vector<DeviceArray> fields;
  for (const py::handle item : arrays) fields.push_back(take_array_of(item.ptr()));
  return wrap(make_struct(names, fields));
}

py::object make_list_of(const py::object& values, const py::object& offsets) {
  return wrap(make_list(take_array_of(values.ptr()), take_array_of(offsets.ptr())));
}

py::object apply_mask_to(const py::object& array, const py::object& mask, bool valid) {
  return wrap(apply_mask(take_array_of(array.ptr()), take_mask(mask.ptr()), valid));
}

PyMethodDef functions[] = {
    {"to_arrow_device",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(to_arrow_device)),
     METH_FASTCALL | METH_KEYWORDS,
     "to_arrow_device(tensor, /, *, copy=None, layout='auto', bool_as='bool8', mask=None, "
     "stream=None)\n--\n\n"
     "Turn a tensor, or a dict of tensors, into an Arrow array on the same device.\n\n"
     "Parameters\n----------\n"
     "tensor : tensor, mapping of str to tensor, or DLPack capsule\n"
     "    Anything with ``__dlpack__`` or the DLPack C exchange API; without those\n"
     "    ``__cuda_array_interface__``, ``__sycl_usm_array_interface__`` or the buffer protocol.\n"
     "    Dicts and TensorDicts become structs, a torch jagged nested tensor a list array.\n"
     "    Dimension 0 becomes the rows; a 0-D tensor becomes one row. Kept alive by the result.\n"
     "    Arrow data is taken as `from_arrow` takes it, and the options that follow are for it\n"
     "    only where its tensor is all that it is: no unit, no dictionary, no name of a type.\n"
     "copy : bool, optional\n"
     "    None copies where the memory has no Arrow reading (strided rows), False raises\n"
     "    BufferError then, True always copies.\n"
     "layout : {'auto', 'fixed_shape_tensor', 'list'}\n"
     "    How 2-D and more are written: arrow.fixed_shape_tensor, or nested FixedSizeLists.\n"
     "bool_as : {'bool8', 'bits'}\n"
     "    arrow.bool8 without a copy, or Arrow's own bit-packed booleans with one.\n"
     "mask : tensor or Arrow array of bool, shape (rows,), optional\n"
     "    True where a row is valid; becomes the validity bitmap. Nulls that are there stay.\n"
     "stream : int or stream object, optional\n"
     "    The stream or queue that the tensor's work is on, where it is not the one that its\n"
     "    library names. The result carries an event for that work; nobody waits. CPU tensors\n"
     "    have no streams.\n\n"
     "Returns\n-------\nDeviceArray\n\n"
     "Raises\n------\n"
     "BufferError\n    A type or layout that Arrow cannot carry, or that `copy` forbids.\n"
     "ValueError\n    A malformed tensor, unequal lengths in a dict, a mask of the wrong shape.\n"
     "TypeError\n    Neither a tensor nor Arrow data."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void register_to_arrow(py::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw py::error_already_set();
  m.def("make_struct", &make_struct_of, py::arg("names"), py::arg("arrays"),
        "A struct array of `arrays`, which share their memory with it.");
  m.def("apply_mask", &apply_mask_to, py::arg("array"), py::arg("mask"), py::arg("valid") = true,
        "`array` with the rows valid where the bool tensor `mask` is `valid`.");
  m.def("make_list", &make_list_of, py::arg("values"), py::arg("offsets"),
        "A list array of `values` cut at `offsets` (int32: List, int64: LargeList).");
}

}  // namespace arrowdl::python
