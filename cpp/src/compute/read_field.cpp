// Reads a field of a struct with its run ends decoded.
#include "compute/read_field.hpp"

#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/device_array.hpp"
#include "compute/plain_rows.hpp"

ARROWDL_BEGIN_NAMESPACE

DeviceArray read_field(const DeviceArray& array, int64_t i) {
  if (array.type().layout != Layout::kStruct) return array.field(i);  // raises
  DeviceArray field = array.child(i);
  if (field.type().layout == Layout::kRunEndEncoded) field = decode_run_ends(field);
  field = plain_rows(field);
  if (array.known_null_count() == 0) return field;
  return field.with_nulls_of(array);
}

ARROWDL_END_NAMESPACE
