// Copies the arrays of a stream to a device.
#include "arrowdl/copy.hpp"
#include "arrowdl/stream.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

class CopyTo final : public ArrayStream {
 public:
  CopyTo(OwnedStream source, const Device& device, bool pin, Allocator allocator)
      : ArrayStream(source->schema(), device.type), source_(std::move(source)), device_(device) {
    options_.pin = pin;
    options_.allocator = std::move(allocator);
  }

  DeviceArray next(int64_t max_rows) override {
    const DeviceArray array = source_->next(max_rows);
    return array ? copy_array(array, device_, options_) : DeviceArray();
  }

 private:
  OwnedStream source_;
  Device device_;
  CopyOptions options_;
};

}  // namespace

OwnedStream copy_stream_to(OwnedStream&& stream, const Device& device, bool pin,
                           Allocator allocator) {
  return std::make_unique<CopyTo>(std::move(stream), device, pin, std::move(allocator));
}

ARROWDL_END_NAMESPACE
