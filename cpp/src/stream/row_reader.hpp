// A stream read by numbers of rows, whatever arrays they come in.
#pragma once

#include <vector>

#include "arrowdl/stream.hpp"

namespace arrowdl {

/// Cuts the arrays of a stream. Rows of several arrays are to end up in memory of the CPU, so host
/// memory of other device types is called that too.
class RowReader {
 public:
  explicit RowReader(OwnedStream source);

  const std::shared_ptr<const ParsedSchema>& schema() const noexcept { return source_->schema(); }
  /// Where the rows lie.
  int32_t device_type() const noexcept { return device_type_; }
  /// The next `rows` rows, or what is left: slices, none of them empty, of the arrays that have
  /// them. No slices at the end.
  std::vector<DeviceArray> read(int64_t rows);

 private:
  bool fill(int64_t missing);

  OwnedStream source_;
  int32_t device_type_;
  DeviceArray rest_;
};

}  // namespace arrowdl
