// Compares arrays by their memory.
#include "compute/same_memory.hpp"

#include <algorithm>

ARROWDL_BEGIN_NAMESPACE
namespace {

bool have_same_dictionaries(const DeviceArray& a, const DeviceArray& b) {
  if (a.type().dictionary != nullptr && !is_same_memory(a.dictionary(), b.dictionary())) {
    return false;
  }
  const auto child_count = static_cast<int64_t>(a.type().children.size());
  for (int64_t i = 0; i < child_count; ++i) {
    if (!have_same_dictionaries(a.child(i), b.child(i))) return false;
  }
  return true;
}

}  // namespace

bool is_same_memory(const DeviceArray& a, const DeviceArray& b) {
  if (a.length() != b.length() || a.offset() != b.offset() ||
      a.buffer_count() != b.buffer_count()) {
    return false;
  }
  for (int64_t i = 0; i < a.buffer_count(); ++i) {
    if (a.buffer(i) != b.buffer(i)) return false;
  }
  if (a.type().dictionary != nullptr && !is_same_memory(a.dictionary(), b.dictionary())) {
    return false;
  }
  const auto child_count = static_cast<int64_t>(a.type().children.size());
  for (int64_t i = 0; i < child_count; ++i) {
    if (!is_same_memory(a.child(i), b.child(i))) return false;
  }
  return true;
}

bool share_dictionaries(const std::vector<DeviceArray>& arrays) {
  return std::all_of(arrays.begin(), arrays.end(), [&](const DeviceArray& array) {
    return have_same_dictionaries(arrays.front(), array);
  });
}

ARROWDL_END_NAMESPACE
