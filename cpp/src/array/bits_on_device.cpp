// Copies bitmaps of a device to the host.
#include "array/bits_on_device.hpp"

#include "arrowdl/backends.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE

Buffer download_bits(StreamWork& work, const Device& device, const uint8_t* bits, int64_t offset,
                     int64_t count) {
  if (bits == nullptr) return {};
  uint8_t* target;
  Buffer bytes = Buffer::allocate(bitmap_size(offset % 8 + count), &target);
  work.hold(bytes.owner());
  work.memory().copy(Device{}, target, device, bits + offset / 8, bytes.size(), work.stream());
  return bytes;
}

Buffer download_validity(const DeviceArray& array) {
  const Device device = array.device();
  StreamWork work(require_memory(device, "count nulls"), device, std::nullopt, nullptr);
  work.hold(array.storage());
  wait_event(device, work.stream(), array.sync_event());
  Buffer bits = download_bits(work, device, array.validity(), array.offset(), array.length());
  work.wait();
  return bits;
}

ARROWDL_END_NAMESPACE
