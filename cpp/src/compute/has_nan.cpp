// Looks for NaN in columns.
#include "compute/has_nan.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "array/host_access.hpp"
#include "util/parallel_for.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Values of one column that one thread looks at.
struct Part {
  const uint8_t* values;
  int64_t count;
  int64_t itemsize;
};

template <typename Number, typename Flag>
bool has_nan(const Number* values, int64_t count) {
  Flag found = 0;  // of the size of a number, so that the loop is vectorised
  for (int64_t i = 0; i < count; ++i) found |= values[i] != values[i];
  return found != 0;
}

bool has_nan(const Part& part) {
  if (part.itemsize == sizeof(double)) {
    return has_nan<double, int64_t>(reinterpret_cast<const double*>(part.values), part.count);
  }
  return has_nan<float, int32_t>(reinterpret_cast<const float*>(part.values), part.count);
}

void add_parts(const DeviceArray& column, std::vector<Part>* parts) {
  constexpr int64_t kMost = int64_t{1} << 18;  // bytes
  const int64_t itemsize = column.type().byte_width;
  const auto* values = column.buffer_as<uint8_t>(1) + column.offset() * itemsize;
  for (int64_t start = 0; start < column.length(); start += kMost / itemsize) {
    const int64_t count = std::min(kMost / itemsize, column.length() - start);
    parts->push_back({values + start * itemsize, count, itemsize});
  }
}

}  // namespace

bool has_nan(const DeviceArray& fields) {
  require_host_readable(fields, "look for NaN");
  std::vector<Part> parts;
  for (std::size_t i = 0; i < fields.type().children.size(); ++i) {
    const Type& type = fields.type().children[i];
    const bool is_float =
        type.dtype == find_dtype("float32") || type.dtype == find_dtype("float64");
    if (is_float && type.layout == Layout::kFixedWidth)
      add_parts(fields.child(static_cast<int64_t>(i)), &parts);
  }
  std::atomic<bool> found{false};
  parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t i) noexcept {
    if (!found && has_nan(parts[static_cast<std::size_t>(i)])) found = true;
  });
  return found;
}

ARROWDL_END_NAMESPACE
