// The names of fields as Python strings.
#include "support/field_names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

}  // namespace

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

}  // namespace arrowdl::python
