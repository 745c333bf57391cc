// Cuts a stream into arrays of a fixed number of rows.
#include <optional>

#include "arrowdl/concatenate.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "copy/staging_pool.hpp"
#include "stream/row_reader.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

class Rebatch final : public ArrayStream {
 public:
  Rebatch(RowReader reader, int64_t batch_size, bool drop_last)
      : ArrayStream(reader.schema(), reader.device_type()),
        reader_(std::move(reader)),
        batch_size_(batch_size),
        drop_last_(drop_last) {}

  DeviceArray next(int64_t) override {
    const std::vector<DeviceArray> parts = reader_.read(batch_size_);
    if (parts.empty()) return {};
    if (drop_last_ && count_rows(parts) < batch_size_) return {};
    if (!target_ || parts.size() == 1) return concatenate(parts);
    int64_t bytes = 0;
    for (const DeviceArray& part : parts) bytes += part.nbytes();
    const auto arena = make_pinned_arena(target_, schema()->type.children.size(), bytes);
    return concatenate(parts);
  }

  void gather_for(const Device& device) override {
    target_ = device;
    reader_.gather_for(device);
  }

  bool has_rows(int64_t rows) const override {
    return rows <= batch_size_ && reader_.has_rows(batch_size_);
  }

 private:
  static int64_t count_rows(const std::vector<DeviceArray>& parts) {
    int64_t count = 0;
    for (const DeviceArray& part : parts) count += part.length();
    return count;
  }

  std::optional<Device> target_;
  RowReader reader_;
  int64_t batch_size_;
  bool drop_last_;
};

}  // namespace

OwnedStream rebatch(OwnedStream&& stream, int64_t batch_size, bool drop_last) {
  if (batch_size < 1) raise_value_error("batch_size=", batch_size, ": a batch has 1 row or more");
  return std::make_unique<Rebatch>(RowReader(std::move(stream)), batch_size, drop_last);
}

ARROWDL_END_NAMESPACE
