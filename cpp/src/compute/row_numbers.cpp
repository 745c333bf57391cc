// Numbers the rows of several arrays through, for the kernels that take rows.
#include "compute/row_numbers.hpp"

#include <numeric>

#include "arrowdl/copy.hpp"
#include "compute/allocate_elements.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The number of the first row of each array.
std::vector<int64_t> number_arrays(const std::vector<DeviceArray>& sources) {
  std::vector<int64_t> starts;
  starts.reserve(sources.size());
  int64_t start = 0;
  for (const DeviceArray& source : sources) {
    starts.push_back(start);
    start += source.length();
  }
  return starts;
}

/// `write` gets memory for `count` numbers.
template <typename Write>
DeviceArray make_numbers(const Device& device, int64_t count, const Write& write) {
  int64_t* target = nullptr;
  Buffer numbers = allocate_elements(count, &target);
  write(target);
  return copy_array(
      DeviceArray::make_primitive(*find_dtype("int64"), count, std::move(numbers), Device{}),
      device);
}

}  // namespace

DeviceArray number_rows(const std::vector<DeviceArray>& sources, RowIndices indices) {
  const std::vector<int64_t> starts = number_arrays(sources);
  return make_numbers(sources.front().device(), indices.count, [&](int64_t* target) {
    for (int64_t i = 0; i < indices.count; ++i) {
      const RowIndex& index = indices.begin[i];
      *target++ = starts[index.source] + index.row;
    }
  });
}

DeviceArray number_rows(const std::vector<DeviceArray>& sources,
                        const std::vector<RowRange>& ranges) {
  const std::vector<int64_t> starts = number_arrays(sources);
  return make_numbers(sources.front().device(), count_rows(ranges), [&](int64_t* target) {
    for (const RowRange& range : ranges) {
      std::iota(target, target + range.rows.length, starts[range.source] + range.rows.start);
      target += range.rows.length;
    }
  });
}

ARROWDL_END_NAMESPACE
