// Refuses dictionaries whose values have nulls.
#include "array/check_dictionary.hpp"

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

void check_dictionary(const DeviceArray& array) {
  if (array.type().dictionary == nullptr || !array.dictionary().has_nulls()) return;
  raise_buffer_error("the dictionary of ", to_string(array.type()),
                     " has nulls among its values, which the codes alone would hide: decode it, or "
                     "take the codes as `indices` and the values as `dictionary`");
}

ARROWDL_END_NAMESPACE
