// What every converter knows: the framework, and what the call is asked for.
#include "export/conversion.hpp"

#include "arrowdl/error.hpp"

namespace arrowdl::python {

Conversion Conversion::for_new() const {
  Conversion conversion = *this;
  if (options.access == Access::kCopied) conversion.options.access = Access::kOwn;
  conversion.options.is_new = true;
  return conversion;
}

void Conversion::require_copy_allowed(const DeviceArray& array, const char* reason) const {
  if (options.access != Access::kInPlace) return;
  raise_buffer_error("an array of ", to_string(array.type()),
                     " cannot become a tensor without a copy, since ", reason,
                     ": allow it with copy=None or copy=True");
}

}  // namespace arrowdl::python
