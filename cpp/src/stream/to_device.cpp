// Copies the arrays of a stream to a device.
#include <atomic>
#include <chrono>

#include "arrowdl/copy.hpp"
#include "arrowdl/stream.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<Clock::rep> spent{0};

class CopyTo final : public ArrayStream {
 public:
  CopyTo(OwnedStream source, const Device& device, bool pin, Allocator allocator)
      : ArrayStream(source->schema(), device.type), source_(std::move(source)), device_(device) {
    options_.pin = pin;
    options_.allocator = std::move(allocator);
    if (pin) source_->gather_for(device);
  }

  DeviceArray next(int64_t max_rows) override {
    const DeviceArray array = source_->next(max_rows);
    if (!array) return {};
    const Clock::time_point begin = Clock::now();
    DeviceArray copy = copy_array(array, device_, options_);
    spent += (Clock::now() - begin).count();
    return copy;
  }

 private:
  OwnedStream source_;
  Device device_;
  CopyOptions options_;
};

}  // namespace

double stream_copy_seconds() noexcept {
  return std::chrono::duration<double>(Clock::duration(spent.load())).count();
}

OwnedStream copy_stream_to(OwnedStream&& stream, const Device& device, bool pin,
                           Allocator allocator) {
  return std::make_unique<CopyTo>(std::move(stream), device, pin, std::move(allocator));
}

ARROWDL_END_NAMESPACE
