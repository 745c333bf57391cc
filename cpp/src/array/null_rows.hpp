// Finds null rows, also those whose value in a dictionary is null.
#pragma once

#include <optional>
#include <vector>

#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Which rows of an array in host memory are null: by the validity bit, the dictionary value, the
/// value of the run or that of the union's member. Keeps what it reads, so that it is found once.
class NullRows {
 public:
  explicit NullRows(const DeviceArray& array);

  /// Whether row `i` is null. Raises ValueError for malformed indices, run ends and type ids.
  bool operator[](int64_t i) const;

 private:
  bool is_null_value(int64_t i) const;

  DeviceArray array_;
  RowValidity is_valid_;
  std::vector<NullRows> values_;  ///< the dictionary, the values of runs, or a union's members
};

/// Whether a row is null, as NullRows says. Empty if that takes reading memory of a device. Waits
/// for the event of host-readable memory. Raises ValueError as NullRows does.
std::optional<bool> has_null_rows(const DeviceArray& array);

/// Raises BufferError if a valid row of `array`, if it has a dictionary, refers to a null value,
/// which the codes alone would hide; on a device that the host cannot read, if there is one.
void check_dictionary(const DeviceArray& array);

ARROWDL_END_NAMESPACE
