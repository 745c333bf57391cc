// Folds the nulls of a struct into its fields.
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
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

ARROWDL_END_NAMESPACE
