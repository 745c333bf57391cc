// Takes rows of a stream: a range of them, or one of several equal parts of each array.
#include <algorithm>

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "stream/row_reader.hpp"

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

  void gather_for(const Device& device) override { source_->gather_for(device); }

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
