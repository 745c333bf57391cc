// Reads a stream by numbers of rows.
#pragma once

#include <vector>

#include "arrowdl/stream.hpp"
#include "stream/permuted_rows.hpp"

ARROWDL_BEGIN_NAMESPACE

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
