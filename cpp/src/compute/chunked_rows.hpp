// Takes rows of several arrays by their row numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "compute/take.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Borrowed row numbers.
struct RowNumbers {
  const int64_t* begin = nullptr;
  int64_t count = 0;
};

/// Rows that were taken.
struct TakenArray {
  DeviceArray rows;
  bool is_shared = false;  ///< a window of one of the arrays, rather than new memory
};

/// Finds the part of a table that has a row.
class RowStarts {
 public:
  RowStarts() = default;
  /// `starts` are ascending: the number of the first row of each part. A part without rows has the
  /// number of the next one.
  explicit RowStarts(std::vector<int64_t> starts);

  /// Requires a number from the first of `starts` on.
  std::size_t find(int64_t number) const noexcept;
  int64_t operator[](std::size_t part) const noexcept { return starts_[part]; }
  std::size_t size() const noexcept { return starts_.size(); }

 private:
  bool contains(std::size_t part, int64_t number) const noexcept {
    return starts_[part] <= number && (part + 1 == size() || number < starts_[part + 1]);
  }

  std::vector<int64_t> starts_;
  int64_t usual_rows_ = 1;  // of a part
};

/// Arrays of one type whose rows are numbered. Immutable: many threads may take rows at once.
class ChunkedRows {
 public:
  /// Row 0 of array i has the number `starts[i]`; arrays do not overlap, and there is one or more.
  /// Raises BufferError if the host can neither read nor copy the arrays, ValueError for other
  /// `starts`. Requires arrays of `schema`, on one device. Without kernels for them, keeps copies
  /// of all rows on the host.
  ChunkedRows(std::shared_ptr<const ParsedSchema> schema, std::vector<DeviceArray> arrays,
              const std::vector<int64_t>& starts);

  ChunkedRows(const ChunkedRows&) = delete;
  ChunkedRows& operator=(const ChunkedRows&) = delete;

  /// The rows with `numbers`, in that order. Consecutive rows of one array are a window of it,
  /// others are gathered into new memory, with the shared buffers and the errors of `gather` (on
  /// a device, of `take_on_device`). Raises IndexError for a row that no array has.
  TakenArray take(RowNumbers numbers) const;

 private:
  RowIndex locate(int64_t number) const;
  std::vector<RowIndex> locate_all(RowNumbers numbers) const;
  /// The consecutive rows with `numbers`; empty if they are not in one array.
  DeviceArray find_window(RowNumbers numbers) const;
  DeviceArray gather_on_host(std::vector<RowIndex> indices) const;
  DeviceArray gather_on_device(const std::vector<RowIndex>& indices) const;

  std::shared_ptr<const ParsedSchema> schema_;
  std::vector<DeviceArray> arrays_;
  RowStarts starts_;
  /// The children of structs without nulls, by child and array: making them takes longer than a
  /// gather of few rows. Otherwise the arrays themselves.
  std::vector<std::vector<DeviceArray>> columns_;
  bool has_columns_ = false;
  bool is_on_device_ = false;
  Device home_;  ///< of the rows that are taken
};

/// Row numbers by the parts that have them.
struct PartedNumbers {
  std::vector<std::size_t> parts;  ///< ascending, each with rows
  std::vector<int64_t> ends;       ///< up to the end of each part, in `numbers`
  Buffer numbers;                  ///< int64, by parts, in the given order within a part
  Buffer order;                    ///< int64: number i of those given is at order[i] of `numbers`
};

/// Requires numbers from the first of `starts` on.
PartedNumbers group_by_part(RowNumbers numbers, const RowStarts& starts);

ARROWDL_END_NAMESPACE
