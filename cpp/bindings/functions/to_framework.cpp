// The functions to_torch, to_jax and to_numpy, and read_tensors.
#include <pybind11/pybind11.h>

#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "cast/shape_lists.hpp"
#include "classes/classes.hpp"
#include "compute/select_fields.hpp"
#include "export/converter.hpp"
#include "export/framework.hpp"
#include "export/read_column_options.hpp"
#include "functions/functions.hpp"
#include "functions/tensor_block.hpp"
#include "import/arrow.hpp"
#include "import/pyarrow.hpp"
#include "stream/select_columns.hpp"
#include "support/arguments.hpp"
#include "support/capsule.hpp"
#include "support/device_array_object.hpp"
#include "support/errors.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

constexpr const char* kFunctionNames[] = {"to_torch", "to_jax", "to_numpy"};
static_assert(std::size(kFunctionNames) == std::size(kFrameworkNames), "one per framework");

/// The arguments of to_torch, to_jax and to_numpy.
struct Arguments {
  PyObject* object;
  ColumnArguments columns;
  PyObject* device;
  PyObject* copy;
  PyObject* own;      ///< from arrowdl's own Python: the memory has no other user
  PyObject* options;  ///< from arrowdl's own Python: a ColumnOptions in the place of `columns`
};

ConvertOptions read_call(const Arguments& arguments, const char* framework) {
  ConvertOptions options;
  if (arguments.device != nullptr && arguments.device != Py_None) {
    options.device = read_device(arguments.device, framework);
  }
  if (arguments.copy != nullptr && arguments.copy != Py_None) {
    options.is_copy = read_bool("copy", arguments.copy);
    options.access = options.is_copy ? Access::kCopied : Access::kInPlace;
  }
  if (arguments.own != nullptr && read_bool("_own", arguments.own)) options.access = Access::kOwn;
  return options;
}

/// `array` copied to `options.device`, if that is another device. Host-readable arrays stay: the
/// Converter copies their tensors, into memory of the framework.
DeviceArray move_to(ConvertOptions& options, DeviceArray array) {
  const std::optional<Device>& device = options.device;
  if (!device || array.device() == *device || is_host_readable(array.device())) return array;
  if (options.access == Access::kInPlace) {
    raise_buffer_error("copy=False: the array is on ", to_string(array.device()), ", not on ",
                       to_string(*device), ": allow a copy with copy=None or copy=True");
  }
  if (options.access == Access::kCopied) options.access = Access::kOwn;
  const py::gil_scoped_release release;
  return copy_array(array, *device);
}

/// A pandas frame of NumPy numbers as an array of its memory; none for other objects.
DeviceArray read_frame(PyObject* object) {
  if (std::strcmp(Py_TYPE(object)->tp_name, "DataFrame") != 0) return {};
  return find_array(find_hook(Hook::kReadFrame)(py::handle(object)).ptr());
}

/// A table without pandas' index that has no name, and with its shaped lists as tensors; another
/// array as it is.
DeviceArray read_columns(const DeviceArray& array, Copy copy) {
  const std::vector<int64_t> columns = find_columns(array.type());
  if (columns.empty()) return shape_lists(array, copy);
  return shape_lists(select_fields(array, columns, select_schema(array.type(), columns)), copy);
}

/// The fields `names` of a struct.
DeviceArray select_named(const DeviceArray& array, const std::vector<std::string>& names) {
  std::vector<int64_t> fields;
  for (const std::string& name : names) fields.push_back(find_column(array.type(), name));
  return select_fields(array, fields, select_schema(array.type(), fields));
}

/// Each matrix under its name, and then the columns in no matrix.
py::object convert_matrices(const Framework& framework, const ConvertOptions& options,
                            const ColumnOptions& columns, const DeviceArray& array) {
  const std::vector<Type>& fields = array.type().children;
  require_columns(array.type());
  columns.check_names(list_names(fields));
  py::dict batch;
  for (const Matrix& matrix : columns.matrices) {
    const Converter converter(framework, options.with_forms(matrix.forms));
    batch[py::str(matrix.name)] = converter.stack(select_named(array, matrix.columns));
  }
  std::vector<int64_t> rest;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!columns.is_stacked(fields[i].name())) rest.push_back(static_cast<int64_t>(i));
  }
  if (rest.empty()) return std::move(batch);
  const DeviceArray others = select_fields(array, rest, select_schema(array.type(), rest));
  const py::object tensors = Converter(framework, options.with_forms(columns.rest)).convert(others);
  if (PyDict_Update(batch.ptr(), tensors.ptr()) != 0) throw py::error_already_set();
  return std::move(batch);
}

/// The tensors of `object`, as `call` and `columns` say.
PyObject* convert_object(std::size_t index, PyObject* object, const ConvertOptions& call,
                         const ColumnOptions& columns) {
  const Framework& framework = find_framework(index);
  ConvertOptions options = call.with_forms(columns.forms);
  const bool is_stacked = columns.is_matrix || !columns.matrices.empty();
  if (options.nulls == Nulls::kRaise && !is_stacked && options.dtype == nullptr &&
      options.by_column == nullptr && options.access == Access::kShared) {
    if (OwnedTensor tensor = take_pyarrow_numbers(object)) {
      return Converter(framework, options).convert(std::move(tensor)).release().ptr();
    }
  }
  const Copy copy = options.access == Access::kInPlace ? Copy::kNever : Copy::kIfNeeded;
  DeviceArray frame = read_frame(object);
  const DeviceArray array = move_to(
      options, frame ? std::move(frame)
                     : read_columns(take_array_of(object, copy, kFunctionNames[index]), copy));
  if (!columns.matrices.empty()) {
    return convert_matrices(framework, options, columns, array).release().ptr();
  }
  const Converter converter(framework, options);
  py::object result = columns.is_matrix ? converter.stack(array) : converter.convert(array);
  return result.release().ptr();
}

/// The options of the columns where none are given. To make them takes as long as a small tensor.
const ColumnOptions& default_columns() {
  static const ColumnOptions columns;
  return columns;
}

template <std::size_t index>
const Parameters<12> framework_parameters(kFunctionNames[index],
                                          {"obj", "nulls", "ragged", "stack", "device", "copy",
                                           "_own", "_options", "dtype", "pad_value", "max_length",
                                           "pad_to_multiple"},
                                          1, 1);

template <std::size_t index>
PyObject* to_framework(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  return guarded([&] {
    if (n == 0) raise_type_error(kFunctionNames[index], "() needs an Arrow object");
    if (n == 1 && names == nullptr) return convert_object(index, args[0], {}, default_columns());
    const auto values = framework_parameters<index>.read(args, n, names);
    const Arguments arguments{
        values[0], {values[1], values[2], values[8], values[3], values[9], values[10], values[11]},
        values[4], values[5],
        values[6], values[7]};
    const ConvertOptions call = read_call(arguments, kFrameworkNames[index]);
    if (arguments.options != nullptr) {
      return convert_object(index, arguments.object, call, find_column_options(arguments.options));
    }
    if (!arguments.columns.has_any()) {
      return convert_object(index, arguments.object, call, default_columns());
    }
    return convert_object(index, arguments.object, call, read_column_options(arguments.columns));
  });
}

/// The tensors of a block, each of its framework; None for an entry without one.
py::list read_tensors(const py::object& block, const py::bytes& table,
                      const py::sequence& frameworks) {
  const DeviceArray array = take_array_of(block.ptr());
  if (array.type().layout != Layout::kFixedWidth || array.type().byte_width != 1) {
    raise_type_error("a block of tensors is an array of bytes, got ", to_string(array.type()));
  }
  if (is_host_readable(array.device())) array.synchronize();
  TableReader reader(table, array.buffer_as<uint8_t>(1) + array.offset(), array.length());
  const ConvertOptions options;
  py::list tensors(frameworks.size());
  for (std::size_t i = 0; i < frameworks.size(); ++i) {
    TensorView view;
    py::object tensor = py::none();
    if (reader.next(&view)) {
      tensor = Converter(find_framework(py::cast<std::string_view>(frameworks[i])), options)
                   .convert(array, view);
    }
    PyList_SET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(i), tensor.release().ptr());
  }
  return tensors;
}

/// The names of the columns of a table, or None where all fields are.
py::object list_columns(const py::object& schema) {
  const auto parsed = read_requested_schema(schema.attr("__arrow_c_schema__")().ptr());
  const std::vector<int64_t> columns = find_columns(parsed->type);
  if (columns.empty()) return py::none();
  py::list names;
  for (const int64_t i : columns) {
    names.append(parsed->type.children[static_cast<std::size_t>(i)].name());
  }
  return std::move(names);
}

#define ARROWDL_TO_FRAMEWORK_DOC(name, tensor, ragged)                                             \
  "to_" name                                                                                       \
  "(obj, /, *, nulls='raise', ragged='jagged', stack=False, device=None, copy=None, "              \
  "dtype=None, pad_value=0, max_length=None, pad_to_multiple=None)\n--\n\n"                        \
  "Convert an Arrow array or table to " tensor                                                     \
  ", zero-copy where the layout allows.\n\n"                                                       \
  "Parameters\n----------\n"                                                                       \
  "obj : DeviceArray or Arrow producer\n"                                                          \
  "    What `from_arrow` takes. A tensor has shape (rows, ...).\n"                                 \
  "nulls : {'raise', 'fill', 'nan', 'mask'}, number, or mapping of str to these\n"                 \
  "    Nulls raise BufferError, become zeros (False, empty rows), NaN (floating types only) or\n"  \
  "    the number, which the type has to hold, or make each tensor a pair (values, mask), where\n" \
  "    the mask is True for valid values. A mapping has the policies of columns by name; other\n"  \
  "    columns raise.\n"                                                                           \
  "ragged : {'jagged', 'padded', 'offsets'}, Padded, or mapping of str to these\n"                 \
  "    Lists, strings and binary as " ragged                                                       \
  ",\n"                                                                                            \
  "    or as (padded, lengths) with zeros after each row's end, or as (values, offsets).\n"        \
  "stack : bool or mapping of str to lists of str\n"                                               \
  "    The fields of a struct as one matrix (rows, columns); they must have one dtype, or\n"       \
  "    `dtype`. A mapping has the columns of each of several matrices.\n"                          \
  "device : Device, str, tuple, device object or None\n"                                           \
  "    The device of the tensors, as in `DeviceArray.to`; data on another device is copied. The\n" \
  "    framework allocates the memory for data that the CPU can read. None: the device of "        \
  "`obj`.\n"                                                                                       \
  "copy : bool, optional\n"                                                                        \
  "    None: tensors share the memory of `obj` where the layout allows; do not write to them.\n"   \
  "    True: tensors are in new memory, which the caller may write to. False: raise BufferError\n" \
  "    if values need a copy (unpacked booleans, replaced nulls, decoded runs, joined "            \
  "chunks).\n"                                                                                     \
  "dtype : dtype, str, mapping of str to these, or None\n"                                         \
  "    What integers, floats and decimals are cast to, also in lists and structs: a dtype of\n"    \
  "    torch, NumPy or JAX, or its name. Bools and dictionary codes are cast in a matrix, and\n"   \
  "    where a mapping names their column. Numbers are rounded to the nearest float. Times are\n"  \
  "    cast to a unit, 'timestamp[us]' or 'duration[us]', exactly.\n"                              \
  "pad_value : int, float, bool, or mapping of str to these\n"                                     \
  "    What padded rows end with.\n"                                                               \
  "max_length : int, mapping of str to int, or None\n"                                             \
  "    Values of a padded row that are kept: longer rows are cut, and so are the lengths.\n"       \
  "pad_to_multiple : int, optional\n"                                                              \
  "    The width of padded rows is rounded up to a multiple of this, also above "                  \
  "`max_length`.\n\n"                                                                              \
  "Returns\n-------\n"                                                                             \
  "tensor, tuple or dict\n"                                                                        \
  "    A dict by field name for structs, record batches and tables; nested structs nest.\n\n"      \
  "Raises\n------\n"                                                                               \
  "BufferError\n"                                                                                  \
  "    The data has nulls and nulls='raise', no tensor type matches, copy=False forbids a copy\n"  \
  "    that is needed, or the framework and arrowdl cannot copy to `device`.\n"                    \
  "ValueError\n"                                                                                   \
  "    `obj` is malformed; a value does not fit `dtype` (beyond its range, or no whole number "    \
  "for\n"                                                                                          \
  "    an integer type), with its field and row; or an option names a column that `obj` lacks.\n"  \
  "TypeError\n"                                                                                    \
  "    `obj` is not Arrow data."

PyMethodDef to_framework_functions[] = {
    {"to_torch", as_method(to_framework<0>), kFastCall,
     ARROWDL_TO_FRAMEWORK_DOC("torch", "torch tensors", "torch jagged nested tensors")},
    {"to_jax", as_method(to_framework<1>), kFastCall,
     ARROWDL_TO_FRAMEWORK_DOC("jax", "JAX arrays", "pairs (values, offsets)")},
    {"to_numpy", as_method(to_framework<2>), kFastCall,
     ARROWDL_TO_FRAMEWORK_DOC("numpy", "NumPy arrays", "pairs (values, offsets)")},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void register_to_framework(py::module_& m) {
  m.def("list_columns", &list_columns, py::arg("schema"),
        "Return the names of the fields of a table that are columns, without pandas' index that "
        "has no name; None if all are.");
  m.def("read_tensors", &read_tensors, py::arg("block"), py::arg("table"), py::arg("frameworks"),
        "Return the tensors that a `TensorBlock` wrote, as views of `block`, an array of its bytes "
        "on any device. `frameworks` names the framework of each; None for those left out.");
  if (PyModule_AddFunctions(m.ptr(), to_framework_functions) != 0) throw py::error_already_set();
}

}  // namespace arrowdl::python
