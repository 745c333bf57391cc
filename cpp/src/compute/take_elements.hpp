// Takes elements of a fixed width, in any order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/row_indices.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Elements up to this width are copied one by one with loads of a fixed size.
constexpr int64_t kMostElementBytes = 64;

/// Takes elements at the same indices from several columns. All columns are written together, by
/// several threads if they are large.
class ElementTakes {
 public:
  /// The indices must live until `run`.
  explicit ElementTakes(RowIndices indices) noexcept : indices_(indices) {}

  /// New memory for the elements of `width` bytes at the indices. Element 0 of source i is at
  /// `first[i]`, which is not read if no index is of source i. It and the memory must live until
  /// `run`, which writes the elements.
  Buffer add(std::vector<const uint8_t*> first, int64_t width);

  /// Writes the elements of all columns. Called once.
  void run() const;

 private:
  struct Column {
    std::vector<const uint8_t*> first;
    int64_t width;
    uint8_t* target;
  };

  RowIndices indices_;
  std::vector<Column> columns_;
  int64_t bytes_ = 0;         // of an element of each column
  int64_t widest_bytes_ = 1;  // of an element
};

/// Writes the elements of `width` bytes at `rows`, `count` of them, to `target`. Element 0 is at
/// `source`.
void take_elements(const uint8_t* source, const uint32_t* rows, int64_t count, int64_t width,
                   uint8_t* target) noexcept;

ARROWDL_END_NAMESPACE
