// The functions that make the tensors of each array framework.
#pragma once

#include <pybind11/cast.h>

#include <cstddef>
#include <string_view>

#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// The functions of one framework. Its exchange API, if it has one, makes its tensors, else its
/// `from_dlpack`. Never freed.
struct Framework {
  const DLPackExchangeAPI* api = nullptr;
  PyObject* from_dlpack = nullptr;
  PyObject* from_offsets = nullptr;   ///< the same for offsets and lengths; may change their dtype
  PyObject* make_jagged = nullptr;    ///< (values, offsets) -> object
  PyObject* make_variable = nullptr;  ///< (values, offsets, shapes, permutation) -> object
  PyObject* from_plain = nullptr;     ///< the same for `is_plain` tensors, or None
  PyObject* unpack_bits_on_device = nullptr;  ///< (bytes, offset, length, repeat) -> bool tensor
  PyObject* fill = nullptr;                   ///< (values, valid, item) -> tensor
  PyObject* all_valid = nullptr;              ///< (values) -> bool tensor
  PyObject* copy = nullptr;                   ///< (tensor) -> tensor in new memory
  PyObject* arrange = nullptr;                ///< (values, shape, axes) -> tensor
  PyObject* put = nullptr;    ///< (tensor, device name, id) -> tensor; if `api` is nullptr
  std::size_t alignment = 1;  ///< in bytes, of memory that the framework shares without a copy
  std::size_t device_alignment = 1;  ///< in bytes, of device memory that the framework can use
  bool donates = false;  ///< whether functions take over device memory: a copy is by `copy`
};

constexpr const char* kFrameworkNames[] = {"torch", "jax", "numpy"};

/// The framework kFrameworkNames[index], imported on first use.
const Framework& find_framework(std::size_t index);

/// The same by name. Raises ValueError for an unknown one.
const Framework& find_framework(std::string_view name);

}  // namespace arrowdl::python
