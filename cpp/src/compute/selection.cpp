// Selects rows one level down.
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

std::vector<DeviceArray> select_child(const std::vector<DeviceArray>& sources, int64_t i) {
  std::vector<DeviceArray> children;
  children.reserve(sources.size());
  for (const DeviceArray& source : sources) children.push_back(source.child(i));
  return children;
}

ARROWDL_END_NAMESPACE
