// Copies arrays that neither the CPU nor kernels can read to the host, and results back.
#include "compute/through_host.hpp"

#include <algorithm>
#include <utility>

#include "array/host_access.hpp"
#include "array/validity.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Whether kernels gather rows of `type`.
bool has_gather_kernel(const Type& type) {
  if (type.layout == Layout::kDenseUnion || type.layout == Layout::kBinaryView) return false;
  return std::all_of(type.children.begin(), type.children.end(), has_gather_kernel);
}

bool are_gathered_on_host(const std::vector<DeviceArray>& arrays) {
  const DeviceArray& first = arrays.front();
  if (!is_read_as_copy(first.device())) return false;
  return find_kernels(first.device()) == nullptr || !has_gather_kernel(first.type()) ||
         !share_dictionaries(arrays);
}

}  // namespace

bool make_readable(std::vector<DeviceArray>* arrays, Device* home, const char* verb) {
  const Device device = arrays->front().device();
  const bool are_together =
      std::all_of(arrays->begin(), arrays->end(),
                  [&](const DeviceArray& array) { return array.device() == device; });
  if (are_together && are_gathered_on_host(*arrays)) {
    for (DeviceArray& array : *arrays) array = copy_array(array, Device{});
    *home = device;
    return false;
  }
  const bool by_kernels = are_read_by_kernels(*arrays, verb);
  *home = by_kernels ? device : Device{};
  return by_kernels;
}

DeviceArray with_nulls_of_host(const DeviceArray& rows, Buffer bits, int64_t offset,
                               int64_t null_count) {
  require_validity(rows.type());
  ArrayParts parts;  // rows of nothing but their nulls
  parts.length = rows.length();
  parts.offset = offset;
  parts.null_count = null_count;
  parts.buffers.push_back(std::move(bits));
  const DeviceArray marks =
      DeviceArray::import(make_nested_schema("+s", {}), make_array(std::move(parts)));
  return rows.with_nulls_of(copy_array(marks, rows.device()));
}

DeviceArray with_nulls_of_host(const DeviceArray& rows, const DeviceArray& copy) {
  const int64_t null_count = copy.null_count();
  if (null_count == 0) return rows;
  const Buffer bits(copy.storage(), copy.validity(), 0);
  return with_nulls_of_host(rows, bits, copy.offset(), null_count);
}

ARROWDL_END_NAMESPACE
