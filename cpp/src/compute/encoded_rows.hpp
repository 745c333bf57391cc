// Encodes rows of any type as byte strings that are equal if and only if the rows are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The encoded rows of one array in host memory. Floating-point values are compared by their bits,
/// so NaN equals itself. Values under a null are ignored.
class EncodedRows {
 public:
  explicit EncodedRows(const DeviceArray& array);

  int64_t length() const noexcept { return static_cast<int64_t>(ends_.size()); }
  std::string_view operator[](int64_t i) const noexcept;

  friend bool operator==(const EncodedRows& a, const EncodedRows& b) {
    return a.ends_ == b.ends_ && a.bytes_ == b.bytes_;
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

ARROWDL_END_NAMESPACE
