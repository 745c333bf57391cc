// Counts the nulls of an array, and reads bitmaps and other parts of buffers of a device.
#include <algorithm>
#include <numeric>

#include "array/host_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "device/device_pointer.hpp"
#include "sync/stream_work.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Whether kernels count the nulls.
bool counts_on_device(const Device& device) {
  return !is_host_readable(device) && find_kernels(device) != nullptr;
}

/// Waits for the result.
int64_t count_nulls_on_device(const DeviceArray& array) {
  KernelWork work(array.device(), "count nulls");
  work.use(array.storage(), array.sync_event());
  const int64_t results = work.make_results();
  const int64_t length = array.length();
  work.launch(Kernel::kCountBits, results, count_threads(length / kBlockBytes + 1),
              array.validity(), array.offset(), length);
  const std::vector<int64_t> counts = work.read_results(results);
  return length - std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

/// Waits for the copy.
Buffer download(const DeviceArray& array, int64_t i, int64_t first, int64_t size) {
  const Device device = array.device();
  uint8_t* target;
  Buffer bytes = Buffer::allocate(size, &target);
  StreamWork work(require_memory(device, "read memory"), device, std::nullopt, nullptr);
  work.hold(array.storage());
  work.hold(bytes.owner());
  wait_event(device, work.stream(), array.sync_event());
  const uint8_t* const source = offset_pointer(device, array.buffer(i), first);
  work.memory().copy(Device{}, target, device, source, size, work.stream());
  work.wait();
  return bytes;
}

/// The bitmap of `array` on the host, in which bit `array.offset() % 8` is the first row's. Waits
/// for it.
Buffer download_validity(const DeviceArray& array) {
  if (array.validity() == nullptr) return {};
  const int64_t size = bitmap_size(array.offset() % 8 + array.length());
  return download(array, 0, array.offset() / 8, size);
}

}  // namespace

int64_t DeviceArray::known_null_count() const noexcept {
  if (type_->layout == Layout::kNull) return length_;
  if (validity() == nullptr || length_ == 0) return 0;
  const bool whole = offset_ == node_->offset && length_ == node_->length;
  return whole && node_->null_count >= 0 ? node_->null_count : -1;
}

int64_t DeviceArray::null_count() const {
  if (const int64_t known = known_null_count(); known >= 0) return known;
  if (counts_on_device(device())) return count_nulls_on_device(*this);
  int64_t first = 0;
  const Buffer bits = read_validity(&first);
  return length_ - count_set_bits(bits.data(), first, length_);
}

bool DeviceArray::has_nulls() const {
  if (const int64_t known = known_null_count(); known >= 0) return known > 0;
  if (counts_on_device(device())) return count_nulls_on_device(*this) > 0;
  int64_t first = 0;
  const Buffer bits = read_validity(&first);
  return has_unset_bits(bits.data(), first, length_);
}

bool DeviceArray::is_known_to_be_valid() const {
  if (const int64_t known = known_null_count(); known >= 0) return known == 0;
  if (!is_host_readable(device())) return false;
  const bool can_ask = !sync_event() || find_backend(device().type) != nullptr;
  return can_ask && is_ready() && !has_unset_bits(validity(), offset_, length_);
}

Buffer DeviceArray::read_validity(int64_t* first) const {
  if (is_read_as_copy(device())) {
    *first = offset_ % 8;
    return download_validity(*this);
  }
  if (!is_host_readable(device())) {
    raise_buffer_error(
        "the nulls of an array on ", to_string(device()),
        " are not counted, and the host cannot read its validity bitmap: give the "
        "producer's array a null_count, copy it to the CPU first, or convert it with "
        "nulls=\"fill\", \"nan\" or \"mask\", which need no count");
  }
  synchronize();
  *first = offset_;
  return Buffer(storage_, validity(), 0);
}

Buffer DeviceArray::read_ahead(int64_t i, int64_t first, int64_t size, int64_t end) const {
  constexpr int64_t kAhead = int64_t{512} << 10;
  HostParts& known = storage_->host_parts;
  std::unique_lock<std::mutex> lock(known.mutex);
  for (const HostParts::Part& part : known.parts) {
    const int64_t at = first - part.first;
    if (part.buffer == buffer(i) && at >= 0 && size <= part.bytes.size() - at) {
      return Buffer(part.bytes.owner(), part.bytes.data() + at, size);
    }
  }
  lock.unlock();
  Buffer bytes = download(*this, i, first, std::max(size, std::min(kAhead, end - first)));
  if (bytes.size() == size) return bytes;  // nothing was read ahead
  Buffer part(bytes.owner(), bytes.data(), size);
  lock.lock();
  const auto is_same = [&](const HostParts::Part& one) { return one.buffer == buffer(i); };
  known.parts.erase(std::remove_if(known.parts.begin(), known.parts.end(), is_same),
                    known.parts.end());
  known.parts.push_back({buffer(i), first, std::move(bytes)});
  return part;
}

ARROWDL_END_NAMESPACE
