// Selects rows one level down.
#include "compute/selection.hpp"

#include <algorithm>

ARROWDL_BEGIN_NAMESPACE

std::vector<DeviceArray> select_child(const std::vector<DeviceArray>& sources, int64_t i) {
  std::vector<DeviceArray> children;
  children.reserve(sources.size());
  for (const DeviceArray& source : sources) children.push_back(source.child(i));
  return children;
}

bool has_bitmap(const std::vector<DeviceArray>& sources) {
  return std::any_of(sources.begin(), sources.end(),
                     [](const DeviceArray& source) { return source.validity() != nullptr; });
}

bool has_fixed_rows(const std::vector<DeviceArray>& sources, int64_t most_bytes, bool only_elements,
                    int64_t run) {
  const Type& type = sources.front().type();
  if (has_bitmap(sources) && (only_elements || run > 1)) return false;
  if (type.dictionary != nullptr && only_elements) return false;
  const auto has_fixed_child = [&](int64_t i, int64_t size) {
    return has_fixed_rows(select_child(sources, i), most_bytes, only_elements, run * size);
  };
  switch (type.layout) {
    case Layout::kBoolean:
      return run == 1 && !only_elements;
    case Layout::kFixedWidth:
      return run * type.byte_width <= most_bytes;
    case Layout::kFixedSizeList:
      return type.list_size > 0 && type.list_size <= most_bytes / run &&
             has_fixed_child(0, type.list_size);
    case Layout::kStruct:
      for (std::size_t i = 0; i < type.children.size(); ++i) {
        if (!has_fixed_child(static_cast<int64_t>(i), 1)) return false;
      }
      return true;
    default:
      return false;
  }
}

ARROWDL_END_NAMESPACE
