// Imports pyarrow's arrays, and caches the schemas of their types.
#include "import/pyarrow.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string_view>

#include "support/capsule.hpp"
#include "support/names.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

// Set by `prepare_pyarrow`, never freed.
PyObject* metadata_keyword = nullptr;
PyObject* version_keyword = nullptr;
PyObject* newest_version = nullptr;

bool is_py_true(PyObject* object) { return object == Py_True; }

/// Whether pyarrow's comparison sees every difference between two such types. Extension types
/// define equality themselves, and names and metadata in a dictionary's values are not compared
/// (pyarrow 26).
bool is_comparable(const Type& type) {
  if (type.dictionary != nullptr) return false;
  if (find_metadata(*type.schema, kExtensionNameKey)) return false;
  return std::all_of(type.children.begin(), type.children.end(), is_comparable);
}

/// A cache of the schemas of pyarrow types: exporting and parsing one takes longer than the rest of
/// an import. pyarrow compares the types, which is quick for arrays that share theirs.
class SchemaCache {
 public:
  /// The schema of `type`, the DataType or Schema of an object of class `of`.
  std::shared_ptr<const ParsedSchema> find_or_read(PyTypeObject* of, PyObject* type) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row row = read(i);
      if (row.of == of && is_equal(row.type, type)) return row.schema;
    }
    std::shared_ptr<const ParsedSchema> schema = export_schema(type);
    if (is_comparable(schema->type)) write(of, type, schema);
    return schema;
  }

 private:
  struct Row {
    PyTypeObject* of = nullptr;
    py::object type;
    std::shared_ptr<const ParsedSchema> schema;
  };

  static bool is_equal(const py::object& known, PyObject* type) {
    if (known.ptr() == type) return true;
    PyObject* const arguments[] = {known.ptr(), type, Py_True};
    return is_py_true(
        checked(PyObject_VectorcallMethod(names::equals, arguments, 2, metadata_keyword)).ptr());
  }

  static std::shared_ptr<const ParsedSchema> export_schema(PyObject* type) {
    return take_schema(checked(PyObject_CallMethodNoArgs(type, names::arrow_c_schema)).ptr());
  }

  Row read(std::size_t i) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return rows_[i];
  }

  void write(PyTypeObject* of, PyObject* type, std::shared_ptr<const ParsedSchema> schema) {
    Row row{of, py::reinterpret_borrow<py::object>(type), std::move(schema)};
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(rows_[next_], row);
    next_ = (next_ + 1) % rows_.size();
  }

  std::mutex mutex_;
  std::array<Row, 8> rows_;
  std::size_t next_ = 0;
};

/// Never freed: an array may outlive the static objects of the process.
SchemaCache& schema_cache() {
  static auto* const cache = new SchemaCache;
  return *cache;
}

/// The DataType of an array, the Schema of a record batch.
py::object find_type(PyObject* object) {
  return find_attribute(object, has_in_class(object, names::type) ? names::type : names::schema);
}

bool is_numbers(PyObject* object) {
  static constexpr std::string_view kNumbers[] = {
      "pyarrow.lib.DoubleArray", "pyarrow.lib.FloatArray",  "pyarrow.lib.HalfFloatArray",
      "pyarrow.lib.Int64Array",  "pyarrow.lib.Int32Array",  "pyarrow.lib.Int16Array",
      "pyarrow.lib.Int8Array",   "pyarrow.lib.UInt64Array", "pyarrow.lib.UInt32Array",
      "pyarrow.lib.UInt16Array", "pyarrow.lib.UInt8Array",
  };
  const std::string_view name = Py_TYPE(object)->tp_name;
  return std::find(std::begin(kNumbers), std::end(kNumbers), name) != std::end(kNumbers);
}

}  // namespace

void prepare_pyarrow() {
  const auto keyword = [](const char* name) {
    return py::make_tuple(py::str(name)).release().ptr();
  };
  metadata_keyword = keyword("check_metadata");
  version_keyword = keyword("max_version");
  newest_version = py::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION).release().ptr();
}

DeviceArray take_pyarrow_array(PyObject* object) {
  if (std::strncmp(Py_TYPE(object)->tp_name, "pyarrow.lib.", 12) != 0) return {};
  if (!has_in_class(object, names::export_to_c_device)) return {};
  auto schema = schema_cache().find_or_read(Py_TYPE(object), find_type(object).ptr());
  OwnedDeviceArray array;
  const py::int_ address(reinterpret_cast<uintptr_t>(array.get()));
  checked(PyObject_CallMethodOneArg(object, names::export_to_c_device, address.ptr()));
  return DeviceArray::import(std::move(schema), std::move(array), release_with_gil);
}

OwnedTensor take_pyarrow_numbers(PyObject* object) {
  if (!is_numbers(object)) return {};
  PyObject* const arguments[] = {object, newest_version};
  try {
    return take_tensor(
        checked(PyObject_VectorcallMethod(names::dlpack, arguments, 1, version_keyword)).ptr());
  } catch (const py::error_already_set& refusal) {
    if (!refusal.matches(PyExc_Exception)) throw;  // KeyboardInterrupt and the like
    return {};
  }
}

}  // namespace arrowdl::python
