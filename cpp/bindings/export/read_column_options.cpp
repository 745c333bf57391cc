// Reads the options of columns from what Python gives.
#include "export/read_column_options.hpp"

#include <set>
#include <string_view>

#include "arrowdl/error.hpp"
#include "convert/fill_value.hpp"
#include "support/arguments.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// A value of an option: of all columns, or of one in a mapping.
struct Given {
  const char* option;
  PyObject* column;  ///< nullptr: all
  PyObject* value;
};

std::string show(PyObject* value) { return py::repr(value).cast<std::string>(); }

/// The value as it was given: `nulls='drop'`, or `nulls={'x': 'drop'}`.
std::string show(const Given& given) {
  if (given.column == nullptr) return concat(given.option, "=", show(given.value));
  return concat(given.option, "={", show(given.column), ": ", show(given.value), "}");
}

/// The name of a column or a matrix. Arrow's names are UTF-8, so a str with surrogates names none.
std::string read_name(const Given& given, PyObject* name) {
  if (!PyUnicode_Check(name)) raise_type_error(show(given), ": a column is named by a str");
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (text != nullptr) return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  raise_value_error(show(given), ": no column is named ", show(name),
                    ", which has surrogates: names are UTF-8");
}

/// Calls `visit(name, given)` with each item of a mapping from names.
template <typename Visit>
void visit_items(const char* option, PyObject* mapping, const Visit& visit) {
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(mapping, &position, &key, &value) != 0) {
    const Given given{option, key, value};
    visit(read_name(given, key), given);
  }
}

/// Sets an option to `read(given)` of its value, or of each value of a mapping.
template <typename T, typename Read>
void read_option(const char* name, PyObject* value, ColumnOption<T>* option, const Read& read) {
  if (value == nullptr) return;
  const py::object mapping = copy_mapping(value);
  if (!PyDict_Check(mapping.ptr())) {
    option->all = read(Given{name, nullptr, value});
    return;
  }
  option->is_mapping = true;
  visit_items(name, mapping.ptr(), [&](const std::string& column, const Given& given) {
    option->named.emplace(column, read(given));
  });
}

template <typename Choice, std::size_t n>
Choice choose(const Given& given, const std::pair<const char*, Choice> (&choices)[n],
              const char* others = "") {
  const char* text = PyUnicode_Check(given.value) ? PyUnicode_AsUTF8(given.value) : nullptr;
  PyErr_Clear();
  for (const auto& [choice, result] : choices) {
    if (text != nullptr && std::string_view(text) == choice) return result;
  }
  std::string supported;
  for (const auto& [choice, result] : choices) {
    supported += concat(supported.empty() ? "'" : ", '", choice, "'");
  }
  raise_value_error(show(given), ": expected one of ", supported, others,
                    ", or a mapping from column names to these");
}

/// "float32" of itself, of torch.float32, np.float32, np.dtype("float32") and jnp.float32.
std::string find_dtype_name(PyObject* value) {
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

const Dtype* read_dtype(const Given& given) {
  if (given.column == nullptr && given.value == Py_None) return nullptr;
  const std::string name = find_dtype_name(given.value);
  if (const Dtype* time = find_time_unit(name)) return time;
  const Dtype* dtype = find_dtype(name);
  if (dtype != nullptr && can_cast_to(*dtype)) return dtype;
  std::string supported;
  for (const Dtype& row : Dtypes()) {
    if (can_cast_to(row)) supported += concat(supported.empty() ? "\"" : ", \"", row.name, "\"");
  }
  raise_value_error(show(given), " is not a dtype that numbers are cast to: give ", supported,
                    ", the dtype of torch, NumPy or JAX of that name, or for times "
                    "\"timestamp[us]\" or \"duration[us]\", with the unit s, ms, us or ns");
}

/// A number of NumPy as the same one of Python; another object as it is.
py::object unwrap_number(PyObject* value) {
  const std::string_view type = Py_TYPE(value)->tp_name;
  const bool is_of_numpy = type.substr(0, 6) == "numpy." && type != "numpy.ndarray";
  if (is_of_numpy && PyUnicode_Check(value) == 0 && PyObject_HasAttrString(value, "item") != 0) {
    return py::handle(value).attr("item")();
  }
  return py::reinterpret_borrow<py::object>(value);
}

PadValue read_pad_value(const Given& given) {
  const py::object item = unwrap_number(given.value);
  PadValue value{{}, show(given)};
  if (PyFloat_Check(item.ptr())) {
    value.number = PyFloat_AS_DOUBLE(item.ptr());
  } else if (!PyLong_Check(item.ptr())) {
    raise_type_error(value.text, ": expected an int, a float or a bool");
  } else if (const auto number = find_int(given.option, item.ptr())) {
    value.number = *number;
  } else {
    const uint64_t large = PyLong_AsUnsignedLongLong(item.ptr());
    if (PyErr_Occurred() == nullptr) value.number = large;
    PyErr_Clear();
  }
  return value;
}

/// A bool is the value of a column of bools: `nulls=True` for all columns says nothing.
Nulls read_nulls(const Given& given) {
  const py::object item = unwrap_number(given.value);
  const bool is_switch = PyBool_Check(item.ptr()) && given.column == nullptr;
  const bool is_number = PyLong_Check(item.ptr()) || PyFloat_Check(item.ptr());
  if (!is_number || is_switch) return choose(given, kNullPolicies, ", an int or a float");
  const PadValue value = read_pad_value(given);
  if (value.number.index() == 0) raise_value_error(value.text, " is not a value of any type");
  return Nulls(value.number);
}

int64_t read_length(const Given& given) {
  const int64_t length = read_int(given.option, given.value);
  if (length < 1) raise_value_error(show(given), ": expected an int of at least 1");
  return length;
}

/// Reads lists as `Padded` says: an object with `value`, `max_length` and `multiple`.
class PaddedReader {
 public:
  explicit PaddedReader(ColumnForms* forms) : forms_(forms) {}

  Ragged operator()(const Given& given) {
    const bool is_object = !PyUnicode_Check(given.value) &&
                           PyObject_HasAttrString(given.value, "max_length") != 0 &&
                           PyObject_HasAttrString(given.value, "multiple") != 0;
    if (is_object) return read(given);
    const Ragged form = choose(given, kRaggedForms, " or arrowdl.Padded(...)");
    if (form == Ragged::kPadded) multiples_.insert(1);
    return form;
  }

  /// Raises ValueError if columns are padded to several multiples, or if other arguments say how
  /// they are padded.
  void finish(PyObject* ragged, bool pads) {
    if (!has_objects_) return;
    if (pads) {
      raise_value_error("ragged=", show(ragged),
                        " says how rows are padded: leave out pad_value=, max_length= and "
                        "pad_to_multiple=");
    }
    if (multiples_.size() > 1) {
      raise_value_error("ragged=", show(ragged),
                        ": the columns of a batch are padded to one multiple, give the same "
                        "Padded.multiple to all of them");
    }
    forms_->pad_multiple = *multiples_.begin();
  }

 private:
  Ragged read(const Given& given) {
    has_objects_ = true;
    const auto get = [&](const char* name) {
      return checked(PyObject_GetAttrString(given.value, name));
    };
    const PadValue value = read_pad_value({"Padded.value", nullptr, get("value").ptr()});
    if (!is_zero(value.number)) set(given, &forms_->pad_value, value);
    if (const py::object length = get("max_length"); !length.is_none()) {
      set(given, &forms_->max_length, read_length({"Padded.max_length", nullptr, length.ptr()}));
    }
    const py::object multiple = get("multiple");
    const Given own{"Padded.multiple", nullptr, multiple.ptr()};
    multiples_.insert(multiple.is_none() ? 1 : read_length(own));
    return Ragged::kPadded;
  }

  template <typename T>
  static void set(const Given& given, ColumnOption<T>* option, const T& value) {
    if (given.column == nullptr) {
      option->all = value;
      return;
    }
    option->is_mapping = true;
    option->named.emplace(read_name(given, given.column), value);
  }

  ColumnForms* forms_;
  std::set<int64_t> multiples_;
  bool has_objects_ = false;
};

PyObject* none_as_missing(PyObject* value) { return value == Py_None ? nullptr : value; }

ColumnForms read_forms(const ColumnArguments& arguments) {
  ColumnForms forms;
  PyObject* const most = none_as_missing(arguments.max_length);
  PyObject* const multiple = none_as_missing(arguments.pad_to_multiple);
  read_option("nulls", arguments.nulls, &forms.nulls, read_nulls);
  read_option("dtype", arguments.dtype, &forms.dtype, read_dtype);
  read_option("pad_value", arguments.pad_value, &forms.pad_value, read_pad_value);
  read_option("max_length", most, &forms.max_length,
              [](const Given& given) { return given.value == Py_None ? -1 : read_length(given); });
  if (multiple != nullptr) {
    forms.pad_multiple = read_length({"pad_to_multiple", nullptr, multiple});
  }
  const bool pads = arguments.pad_value != nullptr || most != nullptr || forms.pad_multiple > 1;
  PaddedReader read_ragged(&forms);
  read_option("ragged", arguments.ragged, &forms.ragged,
              [&](const Given& given) { return read_ragged(given); });
  read_ragged.finish(arguments.ragged, pads);
  if (pads && !forms.ragged.is_mapping && forms.ragged.all != Ragged::kPadded) {
    raise_value_error(
        "pad_value=, max_length= and pad_to_multiple= are of padded rows: give ragged=\"padded\" "
        "too");
  }
  return forms;
}

std::vector<std::string> read_matrix(const Given& given) {
  const bool is_list = !PyUnicode_Check(given.value) && PySequence_Check(given.value) != 0;
  const auto columns =
      is_list ? py::list(py::reinterpret_borrow<py::object>(given.value)) : py::list();
  std::vector<std::string> names;
  for (const py::handle column : columns) names.push_back(read_name(given, column.ptr()));
  if (names.empty()) raise_type_error(show(given), ": give a list of at least one column");
  return names;
}

void read_stack(PyObject* value, ColumnOptions* options) {
  if (value == nullptr || value == Py_None || value == Py_False) return;
  options->is_matrix = value == Py_True;
  if (options->is_matrix) return;
  const py::object mapping = copy_mapping(value);
  if (!PyDict_Check(mapping.ptr())) {
    raise_type_error("stack=", show(value),
                     ": give True, or names and their columns, {\"x\": [\"a\"]}");
  }
  Names names;
  visit_items("stack", mapping.ptr(), [&](const std::string& name, const Given& given) {
    std::vector<std::string> columns = read_matrix(given);
    ColumnForms forms = options->forms.for_matrix(columns, name);
    options->matrices.push_back({name, std::move(columns), std::move(forms)});
  });
  for (const Matrix& matrix : options->matrices) {
    names.push_back(matrix.name);
    names.insert(names.end(), matrix.columns.begin(), matrix.columns.end());
  }
  options->rest = options->forms.without(names);
}

}  // namespace

py::object copy_mapping(PyObject* value) {
  if (PyDict_Check(value)) return checked(PyDict_Copy(value));
  const auto object = py::reinterpret_borrow<py::object>(value);
  if (PyUnicode_Check(value) || PyMapping_Check(value) == 0) return object;
  return PyObject_HasAttrString(value, "keys") == 0 ? object : py::dict(object);
}

ColumnOptions read_column_options(const ColumnArguments& arguments) {
  ColumnOptions options{read_forms(arguments)};
  read_stack(arguments.stack, &options);
  return options;
}

}  // namespace arrowdl::python
