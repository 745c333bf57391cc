// Replaces validity bitmaps, and folds the nulls of a struct into its fields.
#include "array/validity.hpp"

#include "arrowdl/backends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "device/device_pointer.hpp"
#include "schema/layout.hpp"
#include "sync/stream_work.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE

DeviceArray DeviceArray::field(int64_t i) const {
  if (type_->layout != Layout::kStruct) {
    raise_type_error("fields are parts of a struct, this is ", to_string(*type_));
  }
  return child(i).with_nulls_of(*this);
}

DeviceArray DeviceArray::with_nulls_of(const DeviceArray& parent) const {
  const bool is_here = is_host_readable(parent.device());
  const int64_t null_count = is_here ? parent.null_count() : parent.known_null_count();
  if (null_count == 0 || type_->layout == Layout::kNull) return *this;
  if (!type_->has_validity()) {
    raise_buffer_error("the struct has nulls and its field \"", type_->name(), "\" of type ",
                       to_string(*type_),
                       " has no validity bitmap to take them: fill or "
                       "drop the nulls first");
  }
  if (!is_here) return with_nulls_on_device(parent);
  parent.synchronize();
  uint8_t* target;
  Buffer bits = Buffer::allocate(bitmap_size(length_), &target);
  if (const uint8_t* own = validity(); own != nullptr) {
    and_bits(parent.validity(), parent.offset_, own, offset_, length_, target);
  } else {
    copy_bits(parent.validity(), parent.offset_, length_, target);
  }
  return with_validity(bits, length_ - count_set_bits(bits.data(), 0, length_));
}

namespace {

/// The `count` bits of `bits`, in host memory, moved up by `shift` bits, 0 to 7.
Buffer shift_bits(const Buffer& bits, int64_t shift, int64_t count) {
  if (bits.data() == nullptr || shift == 0) return bits;
  const int64_t source_size = bitmap_size(count);
  const int64_t size = bitmap_size(count + shift);
  uint8_t* target;
  Buffer shifted = Buffer::allocate(size, &target);
  for (int64_t i = 0; i < size; ++i) {
    const int low = i > 0 ? bits.data()[i - 1] >> (8 - shift) : 0;
    const int high = i < source_size ? bits.data()[i] << shift : 0;
    target[i] = static_cast<uint8_t>(low | high);
  }
  return shifted;
}

/// The `count` bits of a device that begin at bit `offset` of `bits`, on the host from
/// `work.wait()` on, where they begin at bit `offset % 8`. None for none: all are set.
Buffer download_bits(StreamWork& work, const Device& device, const uint8_t* bits, int64_t offset,
                     int64_t count) {
  if (bits == nullptr) return {};
  uint8_t* target;
  Buffer bytes = Buffer::allocate(bitmap_size(offset % 8 + count), &target);
  work.hold(bytes.owner());
  work.memory().copy(Device{}, target, device, bits + offset / 8, bytes.size(), work.stream());
  return bytes;
}

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

void require_validity(const Type& type) {
  if (type.has_validity()) return;
  raise_buffer_error("an array of ", to_string(type),
                     " has no validity bitmap to hold a mask: cast it to a type that has");
}

DeviceArray DeviceArray::with_validity(Buffer validity, int64_t null_count) const {
  require_validity(*type_);
  return replace_validity(shift_bits(validity, offset_ % 8, length_), null_count, {});
}

DeviceArray DeviceArray::replace_validity(Buffer bits, int64_t null_count, OwnedEvent event) const {
  const int64_t kept = offset_ % 8;  // bits that an address in the bitmap cannot skip
  const int64_t moved = offset_ - kept;
  ArrayParts parts;
  parts.length = length_;
  parts.null_count = bits.data() == nullptr ? 0 : null_count;
  parts.offset = kept;
  parts.buffers.push_back(std::move(bits));
  for (int64_t i = 1; i < node_->n_buffers; ++i) {
    parts.buffers.push_back(
        Buffer(storage_, offset_pointer(device(), buffer(i), byte_offset(*type_, i, moved)), 0));
  }
  const DeviceArray whole(storage_, type_, node_, moved, kept + length_);
  for (int64_t i = 0; i < node_->n_children; ++i) {
    parts.children.push_back(share_array(whole.child(i)));
  }
  if (type_->dictionary != nullptr) parts.dictionary = share_array(dictionary());
  OwnedSchema schema = export_schema();
  if (null_count != 0) schema->flags |= ARROW_FLAG_NULLABLE;
  OwnedArray made = make_array(std::move(parts));
  return event ? import(std::move(schema), std::move(made), device(), std::move(event))
               : derive(std::move(schema), std::move(made));
}

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
