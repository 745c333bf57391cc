#include "arrowdl/convert.hpp"

namespace arrowdl {

DeviceArray read_field(const DeviceArray& array, int64_t i) {
  if (array.type().layout != Layout::kStruct) return array.field(i);  // raises
  const DeviceArray child = array.child(i);
  if (child.type().layout != Layout::kRunEndEncoded) return array.field(i);
  return decode_run_ends(child).with_nulls_of(array);
}

}  // namespace arrowdl
