// Arguments of raw METH_FASTCALL | METH_KEYWORDS functions, read without building a dict.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/error.hpp"

namespace arrowdl::python {

/// Calls assign(name, value) for each keyword argument. Raises TypeError for positional arguments
/// beyond `max_positional`.
template <typename Assign>
void read_keywords(const char* function, Py_ssize_t n_positional, Py_ssize_t max_positional,
                   PyObject* const* args, PyObject* names, const Assign& assign) {
  if (n_positional > max_positional) {
    raise_type_error(function, "() takes ", max_positional, " positional arguments, got ",
                     n_positional);
  }
  const Py_ssize_t n_keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < n_keywords; ++i) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, i), &size);
    if (text == nullptr) throw pybind11::error_already_set();
    const std::string_view name(text, static_cast<std::size_t>(size));
    if (!assign(name, args[n_positional + i])) {
      raise_type_error(function, "() got an unexpected keyword argument '", name, "'");
    }
  }
}

/// The keyword arguments of a function that every tensor passes: names interned, since what a
/// caller's code spells is then the same object, and found by its address.
template <std::size_t n>
class Keywords {
 public:
  Keywords(const char* function, const char* const (&names)[n]) : function_(function) {
    for (std::size_t i = 0; i < n; ++i) names_[i] = PyUnicode_InternFromString(names[i]);
  }

  /// Sets values[i] to the argument named names[i]. Raises TypeError for any other.
  void read(Py_ssize_t n_positional, PyObject* const* args, PyObject* names,
            PyObject* (&values)[n]) const {
    if (n_positional > 0) {
      raise_type_error(function_, "() takes 0 positional arguments, got ", n_positional);
    }
    const Py_ssize_t n_keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < n_keywords; ++i) {
      values[find(PyTuple_GET_ITEM(names, i))] = args[i];
    }
  }

 private:
  std::size_t find(PyObject* name) const {
    for (std::size_t i = 0; i < n; ++i) {
      if (names_[i] == name) return i;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (PyUnicode_Compare(names_[i], name) == 0) return i;
    }
    raise_type_error(function_, "() got an unexpected keyword argument '",
                     pybind11::str(name).cast<std::string>(), "'");
  }

  const char* function_;
  PyObject* names_[n];
};

/// copy=None, True or False.
Copy read_copy(PyObject* value);

/// True or False; `name` for the error.
bool read_bool(const char* name, PyObject* value);

/// An integer, or something with __index__ (an enum of a framework); nothing if it is no int64.
std::optional<int64_t> find_int(const char* what, PyObject* value);

/// The same. Raises ValueError if it is no int64.
int64_t read_int(const char* what, PyObject* value);

/// The same, of 32 bits: a DLPack device type or id.
int32_t read_int32(const char* what, PyObject* value);

/// One of `choices` by its name.
template <typename Choice, std::size_t n>
Choice read_choice(const char* name, PyObject* value,
                   const std::pair<const char*, Choice> (&choices)[n]) {
  const char* text = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : nullptr;
  for (const auto& [choice, result] : choices) {
    if (text != nullptr && std::string_view(text) == choice) return result;
  }
  PyErr_Clear();
  std::string supported;
  for (const auto& [choice, result] : choices) {
    supported += concat(supported.empty() ? "\"" : ", \"", choice, "\"");
  }
  raise_value_error(name, "=", pybind11::repr(value).cast<std::string>(), " is not one of ",
                    supported);
}

}  // namespace arrowdl::python
