// Reads the arguments of raw METH_FASTCALL | METH_KEYWORDS functions, without a dict.
#pragma once

#include <pybind11/cast.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/error.hpp"
#include "support/names.hpp"

namespace arrowdl::python {

/// The parameters of a METH_FASTCALL | METH_KEYWORDS function. Names are interned, as the names in
/// a caller's code are, and compared by address first. Only for variables of a namespace.
template <std::size_t n>
class Parameters {
 public:
  using Values = std::array<PyObject*, n>;

  /// The first `positional` may be passed by position, the first `positional_only` only so.
  Parameters(const char* function, const char* const (&names)[n], Py_ssize_t positional = 0,
             Py_ssize_t positional_only = 0)
      : Parameters(function, names, positional, positional_only, std::make_index_sequence<n>()) {}

  /// The arguments in the order of the parameters, nullptr for omitted ones. Raises TypeError for
  /// arguments that the function does not take.
  Values read(PyObject* const* args, Py_ssize_t count, PyObject* names) const {
    return read(args, count, names, [this](PyObject* name, PyObject*) {
      raise_type_error(function_, "() got an unexpected keyword argument '",
                       pybind11::str(name).cast<std::string>(), "'");
    });
  }

  /// The same; calls other(name, value) for each keyword argument that is not a parameter.
  template <typename Other>
  Values read(PyObject* const* args, Py_ssize_t count, PyObject* names, const Other& other) const {
    if (count > positional_) {
      raise_type_error(function_, "() takes ", positional_, " positional arguments, got ", count);
    }
    Values values{};
    std::copy_n(args, count, values.begin());
    const Py_ssize_t n_keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < n_keywords; ++i) {
      PyObject* const name = PyTuple_GET_ITEM(names, i);
      const std::size_t index = find(name);
      if (index == n) {
        other(name, args[count + i]);
        continue;
      }
      if (values[index] != nullptr) {
        raise_type_error(function_, "() got several values for the argument '",
                         pybind11::str(name).cast<std::string>(), "'");
      }
      values[index] = args[count + i];
    }
    return values;
  }

 private:
  template <std::size_t... i>
  Parameters(const char* function, const char* const (&names)[n], Py_ssize_t positional,
             Py_ssize_t positional_only, std::index_sequence<i...>)
      : function_(function),
        positional_(positional),
        positional_only_(positional_only),
        names_{InternedName(names[i])...} {}

  /// The index of the parameter, or `n`.
  std::size_t find(PyObject* name) const {
    for (auto i = static_cast<std::size_t>(positional_only_); i < n; ++i) {
      if (names_[i] == name) return i;
    }
    for (auto i = static_cast<std::size_t>(positional_only_); i < n; ++i) {
      if (PyUnicode_Compare(names_[i], name) == 0) return i;
    }
    return n;
  }

  const char* function_;
  Py_ssize_t positional_;
  Py_ssize_t positional_only_;
  InternedName names_[n];
};

constexpr int kFastCall = METH_FASTCALL | METH_KEYWORDS;

/// A function for PyMethodDef, whose flags name its signature.
template <typename Function>
PyCFunction as_method(Function function) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

/// copy=None, True or False.
Copy read_copy(PyObject* value);

/// True or False; the error names `name`.
bool read_bool(const char* name, PyObject* value);

/// An integer, or an object with __index__ (a framework's enum); empty if it does not fit int64.
std::optional<int64_t> find_int(const char* what, PyObject* value);

/// The same. Raises ValueError if it does not fit int64.
int64_t read_int(const char* what, PyObject* value);

/// The same for int32: a DLPack device type or id.
int32_t read_int32(const char* what, PyObject* value);

/// One of `choices` by its name. Raises ValueError for other names.
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
