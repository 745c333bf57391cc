// Reads what to_torch, to_jax and to_numpy are asked for.
#include "export/convert_options.hpp"

#include <cstring>
#include <string_view>
#include <utility>

#include "arrowdl/error.hpp"
#include "support/arguments.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

constexpr std::pair<const char*, NullPolicy> kNulls[] = {{"raise", NullPolicy::kRaise},
                                                         {"fill", NullPolicy::kFill},
                                                         {"nan", NullPolicy::kNan},
                                                         {"mask", NullPolicy::kMask}};
constexpr std::pair<const char*, Ragged> kRagged[] = {
    {"jagged", Ragged::kJagged}, {"padded", Ragged::kPadded}, {"offsets", Ragged::kOffsets}};

std::string show(PyObject* value) { return py::repr(value).cast<std::string>(); }

/// "float32" of itself, of torch.float32, np.float32, np.dtype("float32") and jnp.float32.
std::string find_name(PyObject* value) {
  if (PyUnicode_Check(value)) {
    const char* name = PyUnicode_AsUTF8(value);
    PyErr_Clear();
    return name == nullptr ? "" : name;
  }
  for (const char* attribute : {"__name__", "name"}) {
    const py::object name = py::getattr(value, attribute, py::none());
    if (py::isinstance<py::str>(name)) return name.cast<std::string>();
  }
  const auto text = py::str(value).cast<std::string>();
  constexpr std::string_view kTorch = "torch.";
  return text.compare(0, kTorch.size(), kTorch) == 0 ? text.substr(kTorch.size()) : text;
}

int64_t read_length(const char* name, PyObject* value) {
  const int64_t length = read_int(name, value);
  if (length < 1) raise_value_error(name, "=", length, ": expected an int of at least 1");
  return length;
}

/// The mapping itself, or nullptr after `read(value)` for one value.
template <typename Read>
PyObject* read_each(PyObject* value, const Read& read) {
  if (value == nullptr) return nullptr;
  if (PyDict_Check(value)) return value;
  read(value);
  return nullptr;
}

template <typename Read>
void read_column(PyObject* mapping, PyObject* name, const Read& read) {
  if (mapping == nullptr) return;
  PyObject* value = PyDict_GetItemWithError(mapping, name);
  if (value != nullptr) return read(value);
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
}

/// Functions that set one option each.
struct Setters {
  ConvertOptions* options;
  CastWhich which;

  auto nulls() const {
    return [o = options](PyObject* value) { o->nulls = read_choice("nulls", value, kNulls); };
  }
  auto ragged() const {
    return [o = options](PyObject* value) { o->ragged = read_choice("ragged", value, kRagged); };
  }
  auto dtype() const {
    return [o = options, w = which](PyObject* value) {
      if (value == Py_None) return;
      o->dtype = read_dtype(value);
      o->cast_which = w;
    };
  }
  auto pad_value() const {
    return [o = options](PyObject* value) {
      if (!PyLong_Check(value) && !PyFloat_Check(value)) {
        raise_type_error("pad_value=", show(value), ": expected an int, a float or a bool");
      }
      o->pad_value = value;
    };
  }
  auto max_length() const {
    return [o = options](PyObject* value) {
      if (value != Py_None) o->max_length = read_length("max_length", value);
    };
  }
};

void require_padded(const ConvertOptions& options, const ByColumn& by_column) {
  const bool pads = options.pad_value != nullptr || options.max_length >= 0 ||
                    options.pad_multiple > 1 || by_column.pad_value != nullptr ||
                    by_column.max_length != nullptr;
  if (!pads || options.ragged == Ragged::kPadded || by_column.ragged != nullptr) return;
  raise_value_error(
      "pad_value=, max_length= and pad_to_multiple= are of padded rows: give ragged=\"padded\" "
      "too");
}

void check_names(const char* option, PyObject* mapping, const std::vector<Type>& columns) {
  if (mapping == nullptr) return;
  PyObject* key = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(mapping, &position, &key, nullptr) != 0) {
    const char* name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
    PyErr_Clear();
    bool is_known = false;
    std::string names;
    for (const Type& column : columns) {
      is_known = is_known || (name != nullptr && std::strcmp(name, column.name()) == 0);
    }
    if (is_known) continue;
    for (const Type& column : columns)
      names += concat(names.empty() ? "\"" : ", \"", column.name(), "\"");
    raise_value_error(option, "= names ", show(key), ", and the columns are ",
                      names.empty() ? "none" : names);
  }
}

template <typename Number>
std::array<uint8_t, 16> cast_number(const char* own, Number number, const Dtype& dtype) {
  uint8_t* bytes = nullptr;
  Buffer buffer = Buffer::allocate(sizeof(number), &bytes);
  std::memcpy(bytes, &number, sizeof(number));
  const DeviceArray array =
      DeviceArray::make_primitive(*find_dtype(own), 1, std::move(buffer), Device{});
  const DeviceArray cast = cast_dtype(array, dtype, CastWhich::kNumbers);
  std::array<uint8_t, 16> element{};
  std::memcpy(element.data(), cast.buffer(1), static_cast<std::size_t>(dtype.itemsize()));
  return element;
}

std::array<uint8_t, 16> read_element(PyObject* value, const Dtype& dtype) {
  if (PyFloat_Check(value)) return cast_number("float64", PyFloat_AS_DOUBLE(value), dtype);
  if (const std::optional<int64_t> number = find_int("pad_value", value)) {
    return cast_number("int64", *number, dtype);
  }
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value));
  const uint64_t large = number ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
  if (PyErr_Occurred() == nullptr) return cast_number("uint64", large, dtype);
  PyErr_Clear();
  raise_value_error("pad_value=", show(value), " is no int64 or uint64");
}

}  // namespace

const Dtype* read_dtype(PyObject* value) {
  const Dtype* dtype = find_dtype(find_name(value));
  if (dtype != nullptr && can_cast_to(*dtype)) return dtype;
  std::string supported;
  for (const Dtype& row : Dtypes()) {
    if (can_cast_to(row)) supported += concat(supported.empty() ? "\"" : ", \"", row.name, "\"");
  }
  raise_value_error("dtype=", show(value), " is no dtype that numbers are cast to: give ",
                    supported, ", or the dtype of torch, NumPy or JAX of that name");
}

ConvertOptions ConvertOptions::for_column(PyObject* name) const {
  ConvertOptions own = *this;
  own.by_column = nullptr;
  if (by_column == nullptr) return own;
  const Setters set{&own, CastWhich::kAll};
  read_column(by_column->nulls, name, set.nulls());
  read_column(by_column->ragged, name, set.ragged());
  read_column(by_column->dtype, name, set.dtype());
  read_column(by_column->pad_value, name, set.pad_value());
  read_column(by_column->max_length, name, set.max_length());
  return own;
}

void read_options(const ConvertArguments& arguments, ConvertOptions* options, ByColumn* by_column) {
  const Setters set{options, CastWhich::kNumbers};
  by_column->nulls = read_each(arguments.nulls, set.nulls());
  by_column->ragged = read_each(arguments.ragged, set.ragged());
  by_column->dtype = read_each(arguments.dtype, set.dtype());
  by_column->pad_value = read_each(arguments.pad_value, set.pad_value());
  by_column->max_length = read_each(arguments.max_length, set.max_length());
  if (arguments.pad_to_multiple != nullptr && arguments.pad_to_multiple != Py_None) {
    options->pad_multiple = read_length("pad_to_multiple", arguments.pad_to_multiple);
  }
  if (!by_column->is_empty()) options->by_column = by_column;
  require_padded(*options, *by_column);
}

void check_columns(const ByColumn& by_column, const std::vector<Type>& columns) {
  check_names("nulls", by_column.nulls, columns);
  check_names("ragged", by_column.ragged, columns);
  check_names("dtype", by_column.dtype, columns);
  check_names("pad_value", by_column.pad_value, columns);
  check_names("max_length", by_column.max_length, columns);
}

Padding read_padding(const ConvertOptions& options, const Dtype& dtype) {
  Padding padding;
  padding.max_length = options.max_length;
  padding.multiple = options.pad_multiple;
  if (options.pad_value == nullptr) return padding;
  const bool is_bool = dtype.code == kDLBool;
  const Dtype& stored = is_bool ? *find_dtype("uint8") : dtype;
  try {
    if (!can_cast_to(stored)) raise_value_error("no number");
    padding.element = read_element(options.pad_value, stored);
  } catch (const Error&) {  // says it of the first row of an array
    raise_value_error("pad_value=", show(options.pad_value), " is no value of ", dtype.name);
  }
  if (is_bool && padding.element[0] > 1) {
    raise_value_error("pad_value=", show(options.pad_value), " is no value of bool: give 0 or 1");
  }
  return padding;
}

}  // namespace arrowdl::python
