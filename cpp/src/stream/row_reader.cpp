// Reads a stream by numbers of rows.
#include "stream/row_reader.hpp"

#include <algorithm>

#include "arrowdl/copy.hpp"

namespace arrowdl {

RowReader::RowReader(OwnedStream source)
    : source_(std::move(source)), device_type_(source_->device_type()) {
  if (is_host_readable(Device{device_type_, 0})) device_type_ = kDLCPU;
}

std::vector<DeviceArray> RowReader::read(int64_t rows) {
  std::vector<DeviceArray> parts;
  while (rows > 0 && fill(rows)) {
    const int64_t taken = std::min(rows, rest_.length());
    parts.push_back(rest_.slice(0, taken));
    rest_ = taken < rest_.length() ? rest_.slice(taken, rest_.length() - taken) : DeviceArray();
    rows -= taken;
  }
  return parts;
}

bool RowReader::has_rows(int64_t rows) const {
  if (rest_) return rows <= rest_.length();
  return device_type_ == source_->device_type() && source_->has_rows(rows);
}

/// Reads arrays until `rest_` has rows. Returns false at the end.
bool RowReader::fill(int64_t missing) {
  while (!rest_ || rest_.length() == 0) {
    rest_ = source_->next(missing);
    if (!rest_) return false;
    if (rest_.device().type != device_type_) rest_ = copy_array(rest_, Device{});
  }
  return true;
}

}  // namespace arrowdl
