// Takes one of several equal parts of each array of a stream.
#include <algorithm>

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

class Shard final : public ArrayStream {
 public:
  Shard(OwnedStream source, int64_t num_shards, int64_t index, bool pad)
      : ArrayStream(source->schema(), source->device_type()),
        source_(std::move(source)),
        num_shards_(num_shards),
        index_(index),
        pad_(pad) {}

  DeviceArray next(int64_t) override {
    const DeviceArray array = source_->next();
    if (!array) return {};
    const int64_t smaller = array.length() / num_shards_;
    const int64_t larger_parts = array.length() % num_shards_;
    const int64_t start = index_ * smaller + std::min(index_, larger_parts);
    const int64_t length = smaller + (index_ < larger_parts ? 1 : 0);
    if (length == 0 && pad_ && array.length() > 0) return array.slice(array.length() - 1, 1);
    return array.slice(start, length);
  }

 private:
  OwnedStream source_;
  int64_t num_shards_;
  int64_t index_;
  bool pad_;
};

}  // namespace

OwnedStream shard(OwnedStream&& stream, int64_t num_shards, int64_t index, bool pad) {
  if (index < 0 || index >= num_shards) {
    raise_value_error("num_shards=", num_shards, ", index=", index,
                      ": the index of a shard is 0 to num_shards - 1");
  }
  return std::make_unique<Shard>(std::move(stream), num_shards, index, pad);
}

ARROWDL_END_NAMESPACE
