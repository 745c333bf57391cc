// Folds the nulls of a struct into a field, with the kernels of a device.
#include "arrowdl/backends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "sync/stream_work.hpp"
#include "util/bit_util.hpp"

namespace arrowdl {

DeviceArray DeviceArray::with_nulls_on_device(const DeviceArray& parent) const {
  KernelOps* const kernels = find_kernels(device());
  if (kernels == nullptr) {
    raise_buffer_error(
        "the struct on ", to_string(device()), " may have nulls, and ",
        "no kernel of that device can fold them into its field \"", type_->name(),
        "\": use to_torch() or to_jax() with nulls=\"fill\", \"nan\" or \"mask\", or "
        "copy it to the CPU first");
  }
  StreamWork work(require_memory(device(), "fold nulls"), device(), std::nullopt, nullptr);
  work.hold(storage_);
  work.hold(parent.storage_);
  wait_event(device(), work.stream(), parent.sync_event());
  if (storage_ != parent.storage_) wait_event(device(), work.stream(), sync_event());
  const int64_t shift = offset_ % 8;
  const int64_t size = bitmap_size(shift + length_);
  const std::shared_ptr<DeviceMemory> bits = work.allocate(device(), size);
  kernels->and_bits(device(), bits->address(), shift, length_, {parent.validity(), parent.offset_},
                    {validity(), offset_}, work.stream());
  return replace_validity(Buffer(bits, bits->address(), size), -1, work.record());
}

}  // namespace arrowdl
