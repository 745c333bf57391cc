// Reads a stream by numbers of rows, also rows that it has not copied yet, and slices blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/stream.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A stream whose rows are made in blocks of several arrays' worth.
class BlockStream : public ArrayStream {
 public:
  DeviceArray next(int64_t max_rows) final;
  bool has_rows(int64_t rows) const final;

 protected:
  using ArrayStream::ArrayStream;

  /// Whether rows of the last block are left.
  bool has_block() const noexcept { return static_cast<bool>(block_); }

  /// The next block, for arrays of `max_rows`; an empty DeviceArray at the end.
  virtual DeviceArray make_block(int64_t max_rows) = 0;

 private:
  DeviceArray block_;  // what is left of the last one
};

/// Rows of arrays in host memory that is ready, in an order of their own: `count` of `order`, from
/// `start` on.
struct PermutedRows {
  std::vector<DeviceArray> arrays;
  std::vector<RowIndex> order;
  int64_t start = 0;
  int64_t count = 0;

  const RowIndex& operator[](int64_t row) const noexcept {
    return order[static_cast<std::size_t>(start + row)];
  }
};

/// Slices the arrays of a stream. Labels host-readable memory of other device types as CPU memory,
/// since rows of several arrays are gathered in CPU memory.
class RowReader {
 public:
  explicit RowReader(OwnedStream source);

  const std::shared_ptr<const ParsedSchema>& schema() const noexcept { return source_->schema(); }
  /// The device type of the rows.
  int32_t device_type() const noexcept { return device_type_; }
  /// The next `rows` rows, or the rest, as slices that are not empty. No slices at the end.
  std::vector<DeviceArray> read(int64_t rows);
  /// Whether `read(rows)` returns one slice, and neither reads nor copies.
  bool has_rows(int64_t rows) const;
  /// Up to `rows` of the next rows, those that are in one array; none at the end. They stay the
  /// next rows. Reads an array of the stream if none is at hand.
  DeviceArray peek(int64_t rows);
  /// The next rows where they are, if the stream has only to copy them: those of
  /// `ArrayStream::next_permuted`.
  PermutedRows next_permuted();
  /// `ArrayStream::gather_for`.
  void gather_for(const Device& device) { source_->gather_for(device); }

 private:
  bool fill(int64_t missing);

  OwnedStream source_;
  int32_t device_type_;
  DeviceArray rest_;
};

/// Readers of one or more streams of one type and device type. Raises ValueError, "cannot `verb` no
/// streams", for others; the caller keeps the streams then.
std::vector<RowReader> open_readers(std::vector<OwnedStream>&& streams, const char* verb);

/// The bytes of the rows, without what all rows share, such as dictionaries.
int64_t count_own_bytes(const DeviceArray& array);

ARROWDL_END_NAMESPACE
