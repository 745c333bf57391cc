// Replaces the validity bitmap of an array.
#include "array/replace_validity.hpp"

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "device/device_pointer.hpp"
#include "schema/layout.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE

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

ARROWDL_END_NAMESPACE
