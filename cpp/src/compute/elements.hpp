// Copies elements of a fixed width: ranges of rows, or rows in any order.
#pragma once

#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The addresses of element 0, of `width` bytes, in buffer `buffer` of each source.
std::vector<const uint8_t*> find_first(const std::vector<DeviceArray>& sources, int64_t buffer,
                                       int64_t width);

/// New memory with the elements of `ranges`, `length` in all, of `width` bytes each. Element 0 of
/// source i is at `first[i]`, which is not read if no range is of source i. Large copies are shared
/// among threads.
Buffer gather_elements(const std::vector<const uint8_t*>& first,
                       const std::vector<RowRange>& ranges, int64_t length, int64_t width);

/// The selected elements of `width` bytes in buffer `buffer`.
Buffer gather_elements(const Selection& selection, int64_t buffer, int64_t width);

/// Gathers elements of several columns. All are written together, by several threads if they are
/// large.
class ElementGathers {
 public:
  ElementGathers();
  ~ElementGathers();
  ElementGathers(const ElementGathers&) = delete;
  ElementGathers& operator=(const ElementGathers&) = delete;

  /// As `gather_elements`. `run` writes the memory; until then it, the memory of the sources and
  /// the ranges must live.
  Buffer add(const Selection& selection, int64_t buffer, int64_t width);

  /// Holds ranges until `run`, for `add`.
  const std::vector<RowRange>& keep(std::vector<RowRange> ranges);

  /// Writes the elements of all columns. Called once.
  void run() const;

 private:
  class Column;

  std::vector<Column> columns_;
  std::vector<int64_t> chunk_ends_;  // by column: the chunks up to its last one
  std::list<std::vector<RowRange>> kept_;
  int64_t bytes_ = 0;
};

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
