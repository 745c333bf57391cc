// Takes one of several equal parts of each array of a stream.
#include <algorithm>

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"

namespace arrowdl {
namespace {

class Shard final : public ArrayStream {
 public:
  Shard(OwnedStream source, int64_t index, int64_t count, bool pad)
      : ArrayStream(source->schema(), source->device_type()),
        source_(std::move(source)),
        index_(index),
        count_(count),
        pad_(pad) {}

  DeviceArray next(int64_t) override {
    const DeviceArray array = source_->next();
    if (!array) return {};
    const int64_t smaller = array.length() / count_;
    const int64_t larger_parts = array.length() % count_;
    const int64_t start = index_ * smaller + std::min(index_, larger_parts);
    const int64_t length = smaller + (index_ < larger_parts ? 1 : 0);
    if (length == 0 && pad_ && array.length() > 0) return array.slice(array.length() - 1, 1);
    return array.slice(start, length);
  }

 private:
  OwnedStream source_;
  int64_t index_;
  int64_t count_;
  bool pad_;
};

}  // namespace

OwnedStream shard(OwnedStream&& stream, int64_t index, int64_t count, bool pad) {
  if (count < 1 || index < 0 || index >= count) {
    raise_value_error("shard ", index, " of ", count, ": count from 0 to the number of shards - 1");
  }
  return std::make_unique<Shard>(std::move(stream), index, count, pad);
}

}  // namespace arrowdl
