// How arrowdl makes the tensors of each array framework.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <string_view>

#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// How tensors of one framework are made: by its exchange API where it has one, else by its
/// `from_dlpack`. Kept for the life of the process.
struct Framework {
  const DLPackExchangeAPI* api = nullptr;
  PyObject* from_dlpack = nullptr;
  PyObject* from_offsets = nullptr;   ///< the same for offsets and lengths, whose dtype is free
  PyObject* make_jagged = nullptr;    ///< (values, offsets) -> object
  PyObject* make_variable = nullptr;  ///< (values, offsets, shapes, permutation) -> object
  PyObject* unpack_bits_on_device = nullptr;  ///< (bytes, offset, length, repeat) -> bool tensor
  PyObject* fill = nullptr;                   ///< (values, valid, item) -> tensor
  PyObject* all_valid = nullptr;              ///< (values) -> bool tensor
  PyObject* copy = nullptr;                   ///< (tensor) -> tensor in new memory
  PyObject* arrange = nullptr;                ///< (values, shape, axes) -> tensor
  PyObject* put = nullptr;    ///< (tensor, device name, id) -> tensor; without an API
  std::size_t alignment = 1;  ///< of memory that is read in place, in bytes
};

constexpr const char* kFrameworkNames[] = {"torch", "jax", "numpy"};

/// The framework kFrameworkNames[index], imported on first use.
const Framework& find_framework(std::size_t index);

/// The same by name. Raises ValueError for an unknown one.
const Framework& find_framework(std::string_view name);

}  // namespace arrowdl::python
