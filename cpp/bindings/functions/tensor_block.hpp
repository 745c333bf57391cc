// Packs tensors into one block of memory with a table of their offsets, to send batches between
// processes.
#pragma once

#include <string_view>

#include "arrowdl/tensor_view.hpp"
#include "support/module.hpp"

namespace arrowdl::python {

/// Reads the table of a block, entry by entry.
class TableReader {
 public:
  /// The tensors are in the `size` bytes of `block`. Keeps a view of `table`.
  TableReader(std::string_view table, const uint8_t* block, int64_t size) noexcept
      : table_(table), block_(block), size_(size) {}

  /// Sets `view` to the tensor of the next entry; false if the entry has none. Raises ValueError at
  /// the end of the table, and for an entry that does not fit the block.
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
