// Copies validity bitmaps.
#include "cast/copy_validity.hpp"

#include "util/bit_util.hpp"
#include "util/bitmap_writer.hpp"

ARROWDL_BEGIN_NAMESPACE

Buffer copy_validity(const DeviceArray& array, int64_t* null_count) {
  *null_count = 0;
  if (array.validity() == nullptr || array.length() == 0) return {};
  uint8_t* target = nullptr;
  Buffer bits = Buffer::allocate(bitmap_size(array.length()), &target);
  copy_bits(array.validity(), array.offset(), array.length(), target);
  *null_count = array.length() - count_set_bits(target, 0, array.length());
  return *null_count == 0 ? Buffer() : bits;
}

ARROWDL_END_NAMESPACE
