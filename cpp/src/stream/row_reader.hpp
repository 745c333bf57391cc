// Reads a stream by numbers of rows.
#pragma once

#include <vector>

#include "arrowdl/stream.hpp"

namespace arrowdl {

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

 private:
  bool fill(int64_t missing);

  OwnedStream source_;
  int32_t device_type_;
  DeviceArray rest_;
};

}  // namespace arrowdl
