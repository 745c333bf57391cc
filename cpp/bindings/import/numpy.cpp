// Reads the dtypes of NumPy's arrays.
#include <pybind11/pybind11.h>

#include <string_view>

#include "arrowdl/error.hpp"
#include "import/foreign_tensors.hpp"
#include "support/names.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

char read_kind(const py::object& dtype) { return dtype.attr("kind").cast<std::string>().at(0); }

/// The number of the first dtype that other packages add. Source: NPY_USERDEF of numpy's headers.
constexpr int kFirstUserType = 256;

/// Whether `dtype`, of NumPy, is one of its own numbers or bools.
bool is_builtin(const py::object& dtype, char kind) {
  return std::string_view("biufc").find(kind) != std::string_view::npos &&
         dtype.attr("num").cast<int>() < kFirstUserType;
}

bool is_instance(PyObject* object, const char* name) {
  const py::object numpy = find_module("numpy");
  if (!numpy) return false;
  const py::object type = numpy.attr(name);
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type.ptr())) != 0;
}

/// What an array of one of NumPy's kinds is told. Source: numpy.dtype.kind.
struct OtherKind {
  char kind;
  const char* what;
  const char* advice;
};

constexpr OtherKind kOtherKinds[] = {
    {'U', "text", "pass pyarrow.array(array)"},
    {'T', "text", "pass pyarrow.array(array)"},
    {'S', "bytes strings", "pass pyarrow.array(array)"},
    {'O', "Python objects", "pass pyarrow.array(array), or array.astype(\"float64\") of numbers"},
};

[[noreturn]] void refuse(const std::string& name, std::string_view what, std::string_view advice) {
  raise_buffer_error("a NumPy array of ", name, ", ", what, ", cannot become a tensor: ", advice);
}

/// The unit of a time, "ns" in "datetime64[ns]"; empty without one.
std::string_view read_unit(std::string_view name) {
  const std::size_t start = name.find('[');
  if (start == std::string_view::npos || name.back() != ']') return {};
  return name.substr(start + 1, name.size() - start - 2);
}

ElementView view_times(PyObject* array, const std::string& name, char kind) {
  const std::string_view unit = read_unit(name);
  const bool is_arrows = unit == "s" || unit == "ms" || unit == "us" || unit == "ns";
  const char* type = kind == 'M' ? "datetime64" : "timedelta64";
  if (!is_arrows) {
    raise_buffer_error("a NumPy array of ", name, " has no Arrow type: the units of ",
                       kind == 'M' ? "timestamps" : "durations",
                       " are s, ms, us and ns; cast it, as array.astype(\"", type, "[ns]\")");
  }
  ElementView view;
  view.integers = py::handle(array).attr("view")("int64");
  view.dtype = find_dtype("int64");
  view.time_format = kind == 'M' ? std::string("ts") + unit[0] + ':' : std::string("tD") + unit[0];
  return view;
}

/// The row of a type of ml_dtypes, or nullptr. A value of less than a byte has a byte of its own
/// there.
const Dtype* find_ml_dtype(const std::string& name, int64_t size) {
  const Dtype* padded = find_dtype(name + "_padded");
  const Dtype* dtype = padded != nullptr ? padded : find_dtype(name);
  if (dtype == nullptr || dtype->extension == nullptr || dtype->itemsize() != size) return nullptr;
  return dtype->code == kDLBool || dtype->code == kDLComplex || dtype->values > 1 ? nullptr : dtype;
}

void check_kind(const py::object& dtype, const std::string& name, char kind) {
  for (const OtherKind& row : kOtherKinds) {
    if (row.kind == kind) refuse(name, row.what, row.advice);
  }
  if (!dtype.attr("names").is_none()) {
    refuse(name, "structs",
           "pass a dict of its fields, {name: array[name].copy() for name in array.dtype.names}");
  }
  if (!dtype.attr("isnative").cast<bool>()) {
    refuse(name, "in the other byte order",
           "change it, array.astype(array.dtype.newbyteorder(\"=\"))");
  }
}

}  // namespace

bool is_shared_dtype(const py::object& dtype) {
  return is_instance(dtype.ptr(), "dtype") && !is_builtin(dtype, read_kind(dtype));
}

bool is_numpy_array(PyObject* object) { return is_instance(object, "ndarray"); }

py::object find_numpy_scalar(PyObject* object) {
  if (PyBytes_Check(object) != 0 || !has_in_class(object, names::dtype)) return {};
  if (!is_instance(object, "generic")) return {};
  return find_module("numpy").attr("asarray")(py::handle(object));
}

std::optional<ElementView> view_numpy(PyObject* array, const py::object& dtype) {
  const auto name = py::str(dtype).cast<std::string>();
  const char kind = read_kind(dtype);
  check_kind(dtype, name, kind);
  if (kind == 'M' || kind == 'm') return view_times(array, name, kind);
  const auto size = dtype.attr("itemsize").cast<int64_t>();
  if ((kind == 'f' && size > 8) || (kind == 'c' && size > 16)) {
    refuse(name, "long doubles",
           kind == 'f' ? "cast it, array.astype(\"float64\")"
                       : "cast it, array.astype(\"complex128\")");
  }
  if (const Dtype* found = find_ml_dtype(name, size)) {
    return ElementView{py::handle(array).attr("view")(size == 1 ? "u1" : "u2"), found, {}};
  }
  if (is_builtin(dtype, kind)) return {};
  refuse(name, "a type that Arrow and DLPack lack",
         "cast it, or pass its bytes, array.view(\"uint8\")");
}

}  // namespace arrowdl::python
