#include <algorithm>

#include "arrowdl/convert.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"

namespace arrowdl {
namespace {

/// Rows of several arrays end up in memory of the CPU, so slices of host memory are called that
/// too.
int32_t choose_device_type(int32_t source) noexcept {
  return is_host_readable(Device{source, 0}) ? kDLCPU : source;
}

class Rebatch final : public ArrayStream {
 public:
  Rebatch(OwnedStream source, int64_t rows, bool drop_last)
      : ArrayStream(source->schema(), choose_device_type(source->device_type())),
        source_(std::move(source)),
        rows_(rows),
        drop_last_(drop_last) {}

  DeviceArray next(int64_t) override {
    std::vector<DeviceArray> parts;
    int64_t missing = rows_;
    while (missing > 0 && fill(missing)) {
      const int64_t taken = std::min(missing, rest_.length());
      parts.push_back(rest_.slice(0, taken));
      rest_ = taken < rest_.length() ? rest_.slice(taken, rest_.length() - taken) : DeviceArray();
      missing -= taken;
    }
    if (parts.empty() || (drop_last_ && missing > 0)) return {};
    return concatenate(parts);
  }

 private:
  /// Whether there are rows in `rest_`, of which `missing` are wanted.
  bool fill(int64_t missing) {
    while (!rest_ || rest_.length() == 0) {
      rest_ = source_->next(missing);
      if (!rest_) return false;
      if (rest_.device().type != device_type()) rest_ = copy_to(rest_, Device{});
    }
    return true;
  }

  OwnedStream source_;
  int64_t rows_;
  bool drop_last_;
  DeviceArray rest_;
};

}  // namespace

OwnedStream rebatch(OwnedStream&& stream, int64_t rows, bool drop_last) {
  if (rows < 1) raise_value_error("rows=", rows, ": an array has at least 1 row");
  return std::make_unique<Rebatch>(std::move(stream), rows, drop_last);
}

}  // namespace arrowdl
