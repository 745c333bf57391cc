// Decodes run-end encoded arrays.
#include "arrowdl/decode_run_ends.hpp"

#include <algorithm>

#include "array/host_access.hpp"
#include "array/run_ends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/gather.hpp"
#include "compute/gather_on_device.hpp"
#include "compute/through_host.hpp"
#include "util/bit_util.hpp"
#include "util/reserve.hpp"
#include "util/visit_width.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// `length` rows equal to row `value` of the values.
struct Run {
  int64_t value;
  int64_t length;
};

std::vector<Run> read_runs(const DeviceArray& array) {
  std::vector<Run> runs;
  if (array.length() == 0) return runs;
  visit_run_ends(array.type(), [&](auto zero) {
    const RunReader<decltype(zero)> reader(array);
    const Range rows{0, array.length()};
    const Range found = reader.find_runs(rows);
    reserve(&runs, found.length);
    int64_t start = 0;
    for (int64_t run = found.start; run < found.end(); ++run) {
      const int64_t end = reader.end_within(run, rows);
      runs.push_back(Run{run, end - start});
      start = end;
    }
  });
  return runs;
}

Buffer repeat_bits(const uint8_t* bits, int64_t offset, const std::vector<Run>& runs,
                   int64_t length) {
  uint8_t* target = nullptr;
  Buffer buffer = Buffer::allocate(bitmap_size(length), &target);
  BitmapWriter writer(target);
  for (const Run& run : runs) writer.append_run(get_bit(bits, offset + run.value), run.length);
  return buffer;
}

Buffer repeat_validity(const DeviceArray& values, const std::vector<Run>& runs, int64_t length,
                       int64_t* null_count) {
  if (values.validity() == nullptr) return Buffer();
  const RowValidity is_valid(values);
  for (const Run& run : runs) *null_count += is_valid[run.value] ? 0 : run.length;
  if (*null_count == 0) return Buffer();
  return repeat_bits(values.validity(), values.offset(), runs, length);
}

template <typename T>
Buffer repeat_elements(const DeviceArray& values, const std::vector<Run>& runs, int64_t length) {
  T* target = nullptr;
  Buffer buffer = allocate_elements(length, &target);
  const ElementReader<T> elements(values, 1);
  for (const Run& run : runs) target = std::fill_n(target, run.length, elements[run.value]);
  return buffer;
}

/// The elements of a fixed-width type; no buffer unless numbers have its width.
Buffer repeat_fixed_width(const DeviceArray& values, const std::vector<Run>& runs, int64_t length) {
  Buffer elements;
  visit_width(values.type().byte_width, [&](auto width) {
    elements = repeat_elements<Element<width()>>(values, runs, length);
  });
  return elements;
}

/// The elements of the rows; no buffer for types that are gathered instead.
Buffer repeat_values(const DeviceArray& values, const std::vector<Run>& runs, int64_t length) {
  if (values.length() == 0 || values.type().dictionary != nullptr) return Buffer();
  switch (values.type().layout) {
    case Layout::kBoolean:
      return repeat_bits(values.buffer_as<uint8_t>(1), values.offset(), runs, length);
    case Layout::kFixedWidth:
      return repeat_fixed_width(values, runs, length);
    default:
      return Buffer();
  }
}

OwnedArray repeat_rows(const DeviceArray& values, const std::vector<Run>& runs, int64_t length) {
  ArrayParts parts;
  parts.length = length;
  Buffer elements = repeat_values(values, runs, length);
  if (elements.data() != nullptr) {
    Buffer validity = repeat_validity(values, runs, length, &parts.null_count);
    parts.buffers = {std::move(validity), std::move(elements)};
    return make_array(std::move(parts));
  }
  std::vector<RowRange> ranges;
  reserve(&ranges, length);
  for (const Run& run : runs) {
    const auto count = static_cast<std::size_t>(run.length);
    ranges.insert(ranges.end(), count, RowRange{0, Range{run.value, 1}});
  }
  return gather({values}, ranges);
}

/// The schema of the values, with the name of the array.
OwnedSchema make_decoded_schema(const DeviceArray& array, const DeviceArray& values) {
  return rename_schema(values.export_schema(), array.type().name());
}

DeviceArray decode_level(const DeviceArray& array) {
  const DeviceArray values = array.child(1);
  OwnedSchema schema = make_decoded_schema(array, values);
  if (is_read_by_kernels(array.device(), "decode run ends")) {
    return decode_run_ends_on_device(std::move(schema), array);
  }
  array.synchronize();
  return DeviceArray::import(std::move(schema),
                             repeat_rows(values, read_runs(array), array.length()));
}

}  // namespace

DeviceArray decode_run_ends(const DeviceArray& array) {
  if (array.type().layout != Layout::kRunEndEncoded) {
    raise_type_error("a run-end encoded array is needed, not ", to_string(array.type()));
  }
  if (goes_through_host(array.device())) {
    return copy_array(decode_run_ends(copy_array(array, Device{})), array.device());
  }
  DeviceArray decoded = decode_level(array);
  const bool is_nested = decoded.type().layout == Layout::kRunEndEncoded;
  return is_nested ? decode_run_ends(decoded) : decoded;
}

ARROWDL_END_NAMESPACE
