// What every converter knows: the framework, and what the call is asked for.
#pragma once

#include <pybind11/cast.h>

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "export/convert_options.hpp"
#include "export/framework.hpp"

namespace arrowdl::python {

/// The size in bytes from which a copy releases the GIL.
constexpr int64_t kLargeSize = 64 << 10;

struct Conversion {
  const Framework& framework;
  ConvertOptions options;
  std::vector<DeviceArray> parents = {};  ///< structs whose nulls are not in their fields

  bool is_masked() const { return options.nulls == NullPolicy::kMask; }
  Nulls nulls() const { return to_nulls(options.nulls); }
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
