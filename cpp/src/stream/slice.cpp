// Takes a range of rows of a stream.
#include <algorithm>

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "stream/permuted_rows.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

class Slice final : public ArrayStream {
 public:
  Slice(OwnedStream source, int64_t start, int64_t length)
      : ArrayStream(source->schema(), source->device_type()),
        source_(std::move(source)),
        skip_(start),
        left_(length) {}

  DeviceArray next(int64_t max_rows) override {
    while (left_ > 0) {
      const DeviceArray array = source_->next(skip_ > 0 ? skip_ : std::min(left_, max_rows));
      if (!array) break;
      const int64_t skipped = std::min(skip_, array.length());
      skip_ -= skipped;
      const int64_t taken = std::min(left_, array.length() - skipped);
      if (taken == 0) continue;
      left_ -= taken;
      return array.slice(skipped, taken);
    }
    left_ = 0;
    source_.reset();
    return {};
  }

  PermutedRows next_permuted() override {
    while (left_ > 0) {
      PermutedRows rows = source_->next_permuted();
      if (rows.count == 0) break;
      const int64_t skipped = std::min(skip_, rows.count);
      skip_ -= skipped;
      rows.start += skipped;
      rows.count = std::min(left_, rows.count - skipped);
      if (rows.count == 0) continue;
      left_ -= rows.count;
      return rows;
    }
    return {};
  }

  bool has_rows(int64_t rows) const override {
    return skip_ == 0 && rows <= left_ && source_->has_rows(rows);
  }

 private:
  OwnedStream source_;
  int64_t skip_;
  int64_t left_;
};

}  // namespace

OwnedStream slice_stream(OwnedStream&& stream, int64_t start, int64_t length) {
  if (start < 0 || length < 0) {
    raise_value_error("rows ", start, " to ", start, " + ", length, " of a stream: count from 0");
  }
  return std::make_unique<Slice>(std::move(stream), start, length);
}

ARROWDL_END_NAMESPACE
