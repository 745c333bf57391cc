// Tensors side by side in one block of memory, and the table that says where they lie: how batches
// go from one process to another.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "arrowdl/tensor_view.hpp"

namespace arrowdl::python {

/// Reads the table of a block, entry by entry.
class TableReader {
 public:
  /// `block` of `size` bytes is the memory that the entries are of; `table` has to stay.
  TableReader(std::string_view table, const uint8_t* block, int64_t size) noexcept
      : table_(table), block_(block), size_(size) {}

  /// Sets `view` to the next entry's tensor; false where it has none. Raises ValueError for a table
  /// that has ended, or that is not of a block of this size.
  bool next(TensorView* view);

 private:
  int64_t read_number();

  std::string_view table_;
  const uint8_t* const block_;
  const int64_t size_;
};

/// Adds the class TensorBlock, which writes blocks, to the module.
void register_tensor_block(pybind11::module_& m);

}  // namespace arrowdl::python
