// What every converter knows: the framework, and what the call is asked for.
#pragma once

#include <pybind11/cast.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "arrowdl/device.hpp"
#include "arrowdl/device_array.hpp"
#include "export/column_options.hpp"
#include "export/framework.hpp"

namespace arrowdl::python {

/// Whose memory the tensors are in.
enum class Access {
  kShared,   ///< copy=None: the array's, read-only, or new memory
  kInPlace,  ///< copy=False: the array's, or BufferError
  kCopied,   ///< copy=True: new memory of the caller's own
  kOwn,      ///< the array's, which is the caller's own, or new memory
};

struct ConvertOptions : ColumnForm {
  Access access = Access::kShared;
  std::optional<Device> device = {};
  const ColumnForms* by_column = nullptr;  ///< borrowed; nullptr: all columns have the same form
  bool is_new = false;                     ///< the array is in memory made for these tensors
  bool is_copy = false;                    ///< copy=True was passed, whatever `access` becomes

  /// The same for columns of these forms.
  ConvertOptions with_forms(const ColumnForms& forms) const {
    ConvertOptions own = with_form(forms.for_all());
    if (forms.has_names()) own.by_column = &forms;
    return own;
  }

  /// The options of the column named `name`.
  ConvertOptions for_column(std::string_view name) const {
    return by_column == nullptr ? *this : with_form(by_column->for_column(name));
  }

 private:
  ConvertOptions with_form(const ColumnForm& form) const {
    ConvertOptions own = *this;
    static_cast<ColumnForm&>(own) = form;
    own.by_column = nullptr;
    return own;
  }
};

/// The size in bytes from which a copy releases the GIL.
constexpr int64_t kLargeSize = 64 << 10;

struct Conversion {
  const Framework& framework;
  ConvertOptions options;
  std::vector<DeviceArray> parents = {};  ///< structs whose nulls are not in their fields

  bool is_masked() const { return options.nulls == Nulls::kKeep; }
  /// The same with other options.
  Conversion with_options(const ConvertOptions& other) const { return {framework, other, parents}; }
  /// The same for an array in new memory.
  Conversion for_new() const;
  /// Raises BufferError, naming the reason for a copy, if copies are refused.
  void require_copy_allowed(const DeviceArray& array, const char* reason) const;
};

/// Calls a framework's function.
template <typename... Args>
pybind11::object call_framework(PyObject* function, const Args&... args) {
  PyObject* result = PyObject_CallFunctionObjArgs(function, args.ptr()..., nullptr);
  if (result == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(result);
}

inline pybind11::list to_list(const std::vector<int64_t>& numbers) {
  pybind11::list list;
  for (const int64_t number : numbers) list.append(number);
  return list;
}

}  // namespace arrowdl::python
