// Converts structs and columns that are one tensor.
#include "export/converter.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "array/host_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "compute/plain_rows.hpp"
#include "util/explained_error.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

py::object decode(const char* name, std::size_t size) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(name, static_cast<Py_ssize_t>(size), nullptr));
}

#ifndef Py_GIL_DISABLED

/// Longer names are rare, and would take the memory of the process.
constexpr std::size_t kMostBytes = 64;

/// The latest name of each hash. The GIL guards it. It lives as long as the process: at the end of
/// the interpreter there is no time at which all users are gone.
std::array<PyObject*, 4096> kept;

std::size_t hash(const char* name, std::size_t size) noexcept {
  uint64_t value = size;
  for (std::size_t i = 0; i < size; ++i) {
    value = (value ^ static_cast<unsigned char>(name[i])) * 0x100000001b3U;  // FNV
  }
  return static_cast<std::size_t>(value ^ (value >> 32)) % kept.size();
}

bool is_same(PyObject* string, const char* name, std::size_t size) noexcept {
  return static_cast<std::size_t>(PyUnicode_GET_LENGTH(string)) == size &&
         std::memcmp(PyUnicode_1BYTE_DATA(string), name, size) == 0;
}

#endif

/// `name`, which is UTF-8. The same names come with each batch: short ones of ASCII are kept, so
/// that they are decoded and hashed once. Raises UnicodeDecodeError.
py::object intern_field_name(const char* name) {
  const std::size_t size = std::strlen(name);
#ifndef Py_GIL_DISABLED
  if (size <= kMostBytes) {
    PyObject*& slot = kept[hash(name, size)];
    if (slot != nullptr && is_same(slot, name, size)) {
      return py::reinterpret_borrow<py::object>(slot);
    }
    py::object made = decode(name, size);
    if (!made) throw py::error_already_set();
    if (PyUnicode_IS_COMPACT_ASCII(made.ptr())) {
      PyObject* before = slot;
      slot = py::object(made).release().ptr();
      Py_XDECREF(before);
    }
    return made;
  }
#endif
  py::object made = decode(name, size);
  if (!made) throw py::error_already_set();
  return made;
}

/// Whether rows are taken apart into values and offsets.
bool is_split(Layout layout) {
  switch (layout) {
    case Layout::kBinary:
    case Layout::kLargeBinary:
    case Layout::kBinaryView:
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
      return true;
    default:
      return false;
  }
}

/// Whether `cast_dtype` makes new values of an array of `type`.
bool is_changed(const Type& type, const Dtype& dtype) {
  if (type.layout == Layout::kFixedSizeList && type.extension != Extension::kDtype) {
    return is_changed(type.children[0], dtype);
  }
  return type.layout == Layout::kRunEndEncoded || !is_of(type, dtype);
}

/// Whether the rows of `type`, or its items, are runs.
bool has_runs(const Type& type) {
  return type.layout == Layout::kRunEndEncoded || has_inner_runs(type);
}

/// Names the field in an error of a framework, which keeps its class. Refusals of
/// arrowdl._frameworks begin with it, as those of the core; other errors keep their text.
void name_field_in(py::error_already_set& error, const char* name) {
  const py::object args = error.value().attr("args");
  const bool is_ours = error.type().ptr() == PyExc_BufferError && PyTuple_Check(args.ptr()) != 0 &&
                       PyTuple_GET_SIZE(args.ptr()) == 1 &&
                       PyUnicode_Check(PyTuple_GET_ITEM(args.ptr(), 0)) != 0;
  if (!is_ours) {
    error.value().attr("add_note")(concat("in the field \"", name, "\""));
    return;
  }
  const py::str field(concat("field \"", name, "\": "));
  error.value().attr("args") = py::make_tuple(field + args[py::int_(0)]);
  if (!py::hasattr(error.value(), "reason")) return;
  error.value().attr("column") = name;
  error.value().attr("reason") = field + error.value().attr("reason");
}

/// `convert()`; errors name the field.
template <typename Convert>
py::object naming_field(const char* name, const Convert& convert) {
  try {
    return convert();
  } catch (const Error& error) {
    throw name_field(error, name);
  } catch (py::error_already_set& error) {
    name_field_in(error, name);
    throw;
  }
}

}  // namespace

py::object Converter::convert(const DeviceArray& array) const {
  if (has_plain_rows(array.type())) return convert_rows(array);
  if (has_inner_runs(array.type())) require_copy_allowed(array, "its runs have to be decoded");
  return convert_rows(plain_rows(array));
}

/// `convert` of what `plain_rows` returns.
py::object Converter::convert_rows(const DeviceArray& array) const {
  const Type& type = array.type();
  const bool is_dictionary = type.dictionary != nullptr;
  if (type.extension == Extension::kRefused) raise_buffer_error(why_not_tensor(type));
  if (!is_dictionary && type.layout == Layout::kStruct &&
      type.extension != Extension::kVariableShapeTensor) {
    return convert_struct(array);
  }
  if (options.by_column != nullptr) {
    raise_value_error("options by column are for the fields of a struct or a table, this is ",
                      to_string(type));
  }
  if (!parents.empty() && type.layout == Layout::kRunEndEncoded) {  // has no bitmap for nulls
    return convert_run_ends(array);
  }
  const bool on_host = needs_host(array);
  if (!on_host) {
    if (options.dtype != nullptr && casts(type)) return after_cast().convert(cast(array));
    if (!parents.empty() && (is_dictionary || why_not_tensor(type).empty())) {
      return device().convert(array);
    }
    if (parents.empty()) return convert_column(array);
  }
  DeviceArray column = array;
  for (const DeviceArray& parent : parents) column = column.with_nulls_of(parent);
  if (!on_host) return convert_column(column);
  return for_copy_of(column).convert(copy_array(column, Device{}));
}

/// Whether the tensors of `array` are made of a copy on the host, since neither kernels nor single
/// operations of the framework make them where it is.
bool Converter::needs_host(const DeviceArray& array) const {
  if (!is_read_as_copy(array.device())) return false;
  const Type& type = array.type();
  const Type* values = &type;  // that are cast
  while (is_split(values->layout) && !values->children.empty()) values = &values->children[0];
  if (options.dtype != nullptr && casts(*values)) return true;
  if (type.dictionary != nullptr) return false;
  if (type.layout == Layout::kStruct) return true;  // of variable shape
  if (find_kernels(array.device()) != nullptr) return false;
  if (is_split(type.layout) || type.layout == Layout::kRunEndEncoded) return true;
  return options.nulls != Nulls::kRaise && why_not_tensor(type).empty() &&
         describe_tensor(type, 0).dtype->values != 1;
}

/// A converter of a copy of `array` on the host, which copies each tensor to the device of `array`.
Converter Converter::for_copy_of(const DeviceArray& array) const {
  require_copy_allowed(array, "the CPU makes it of a copy on the host");
  Conversion conversion{framework, options};
  conversion.options.device = array.device();
  return Converter(std::move(conversion));
}

py::object Converter::convert(const DeviceArray& array, TensorView view) const {
  const bool is_on_host = is_host_readable(array.device());
  view.device = is_on_host ? Device{} : array.device();
  return is_on_host ? host().make(make_tensor(view, array.storage(), 0))
                    : device().share_view(array, view);
}

/// Converts an array that is not a struct of columns.
py::object Converter::convert_column(const DeviceArray& array) const {
  const Type& type = array.type();
  if (type.dictionary == nullptr) {
    if (type.layout == Layout::kStruct) return convert_variable(array);
    if (is_split(type.layout)) return convert_list(array);
    if (type.layout == Layout::kRunEndEncoded) return convert_run_ends(array);
  }
  return is_host_readable(array.device()) ? host().convert(array) : device().convert(array);
}

py::object Converter::convert_run_ends(const DeviceArray& array) const {
  require_copy_allowed(array, "its runs have to be decoded");
  return Converter(for_new()).convert(decode_run_ends(array));
}

py::object Converter::convert_struct(const DeviceArray& array) const {
  py::dict fields;
  const std::vector<Type>& children = array.type().children;
  const ColumnForms* by_column = options.by_column;
  if (by_column != nullptr) by_column->check_names(list_names(children));
  for (std::size_t i = 0; i < children.size(); ++i) {
    const char* name = children[i].name();
    const py::object key = intern_field_name(name);
    const auto index = static_cast<int64_t>(i);
    const py::object value = by_column == nullptr
                                 ? convert_field_of(array, index, name)
                                 : Converter(with_options(options.for_column(name)))
                                       .convert_field_of(array, index, name);
    if (PyDict_SetItem(fields.ptr(), key.ptr(), value.ptr()) != 0) throw py::error_already_set();
    if (fields.size() != i + 1) {
      raise_value_error("several fields are named \"", name,
                        "\", and a dict holds only one: rename or select columns first");
    }
  }
  return std::move(fields);
}

/// `convert(array)`; errors name the field.
py::object Converter::convert_field(const DeviceArray& array, const char* name) const {
  return naming_field(name, [&] { return convert(array); });
}

/// Converts field `i` of a struct.
py::object Converter::convert_field_of(const DeviceArray& array, int64_t i,
                                       const char* name) const {
  if (py::object made = naming_field(name, [&] { return host().share_field(array, i); })) {
    return made;
  }
  const Device from = array.device();
  const bool has_nulls = !parents.empty() || array.known_null_count() != 0;
  if (has_nulls && !is_host_readable(from) && find_kernels(from) == nullptr) {
    // Only the framework can apply the nulls of the struct to its fields.
    Converter converter(*this);
    converter.parents.push_back(array);
    return converter.convert_field(array.child(i), name);
  }
  if (has_runs(array.type().children[static_cast<std::size_t>(i)])) {
    naming_field(name, [&] {
      require_copy_allowed(array.child(i), "its runs have to be decoded");
      return py::object();
    });
  }
  return convert_field(read_field(array, i), name);
}

/// Whether `type` is of values that are cast, or refused; lists and structs cast their parts.
bool Converter::casts(const Type& type) const {
  const bool has_parts = is_split(type.layout) || type.layout == Layout::kStruct;
  if (type.dictionary == nullptr && has_parts) return false;
  return options.cast_which == CastWhich::kAll ||
         has_numbers(type, *options.dtype, options.cast_which);
}

/// The values of `array` as the dtype that is asked for.
DeviceArray Converter::cast(const DeviceArray& array) const {
  if (is_changed(array.type(), *options.dtype)) {
    require_copy_allowed(array, "its numbers have to be cast");
  }
  std::optional<py::gil_scoped_release> release;
  if (array.nbytes() >= kLargeSize) release.emplace();
  return cast_dtype(array, *options.dtype, options.cast_which);
}

/// For what `cast` returns.
Converter Converter::after_cast() const {
  Converter converter(*this);
  converter.options.dtype = nullptr;
  return converter;
}

}  // namespace arrowdl::python
