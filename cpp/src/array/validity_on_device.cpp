// Folds the nulls of a struct into a field on a device: with its kernels, or else on the host.
#include "array/bits_on_device.hpp"
#include "array/replace_validity.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "sync/stream_work.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The AND of `a` and `b`, which begin at these bits; at least one is there.
Buffer and_on_host(const Buffer& a, int64_t a_offset, const Buffer& b, int64_t b_offset,
                   int64_t count) {
  uint8_t* target;
  Buffer both = Buffer::allocate(bitmap_size(count), &target);
  if (a.data() == nullptr || b.data() == nullptr) {
    const bool is_a = a.data() != nullptr;
    copy_bits(is_a ? a.data() : b.data(), is_a ? a_offset : b_offset, count, target);
  } else {
    and_bits(a.data(), a_offset, b.data(), b_offset, count, target);
  }
  return both;
}

void require_copies(const Device& device, const Type& field) {
  Backend* const backend = find_backend(device.type);
  if (backend != nullptr && backend->memory() != nullptr) return;
  raise_buffer_error("the struct on ", to_string(device), " may have nulls, and arrowdl cannot ",
                     "write there to fold them into its field \"", field.name(),
                     "\": use to_torch() or to_jax() with nulls=\"fill\", \"nan\" or \"mask\", or "
                     "copy it to the CPU in its own library first");
}

}  // namespace

DeviceArray DeviceArray::with_nulls_on_device(const DeviceArray& parent) const {
  require_copies(device(), *type_);
  KernelOps* const kernels = find_kernels(device());
  StreamWork work(require_memory(device(), "fold nulls"), device(), std::nullopt, nullptr);
  work.hold(storage_);
  work.hold(parent.storage_);
  wait_event(device(), work.stream(), parent.sync_event());
  if (storage_ != parent.storage_) wait_event(device(), work.stream(), sync_event());
  const int64_t shift = offset_ % 8;
  const int64_t size = bitmap_size(shift + length_);
  int64_t null_count = -1;
  const bool is_whole = parent.validity() == nullptr && validity() == nullptr;
  if (length_ == 0 || is_whole) return *this;
  const std::shared_ptr<DeviceMemory> bits = work.allocate(device(), size);
  if (kernels != nullptr) {
    kernels->and_bits(device(), bits->address(), shift, length_,
                      {parent.validity(), parent.offset_}, {validity(), offset_}, work.stream());
  } else {
    const Buffer theirs = download_bits(work, device(), parent.validity(), parent.offset_, length_);
    const Buffer ours = download_bits(work, device(), validity(), offset_, length_);
    work.wait();
    const Buffer both = and_on_host(theirs, parent.offset_ % 8, ours, shift, length_);
    null_count = length_ - count_set_bits(both.data(), 0, length_);
    const Buffer shifted = shift_bits(both, shift, length_);
    work.hold(shifted.owner());
    work.memory().copy(device(), bits->address(), Device{}, shifted.data(), size, work.stream());
  }
  return replace_validity(Buffer(bits, bits->address(), size), null_count, work.record());
}

ARROWDL_END_NAMESPACE
