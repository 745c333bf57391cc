// Numbers, measures, finds and gathers rows of arrays for the kernels of a device.
#include "compute/rows_on_device.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "compute/selection.hpp"
#include "device/device_pointer.hpp"
#include "schema/layout.hpp"
#include "util/bit_util.hpp"
#include "util/overflow.hpp"
#include "util/reserve.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using Sources = std::vector<DeviceArray>;

/// Arrays of this number of bytes are copied faster by the driver, one at a time, than by a kernel
/// that looks for the array of each element.
constexpr int64_t kLongCopy = int64_t{64} << 10;

/// More bytes than any device has: the data of binary has no size in the structs.
constexpr int64_t kMostBytes = int64_t{1} << 47;

/// Launches `kernel`, whose last parameters are ROW_PARAMETERS of rows.cuh.
template <typename Target, typename... Args>
void launch_on_rows(KernelWork& work, Kernel kernel, Target target, int64_t size,
                    const SourceTable& table, const TakenRows& taken, Args... args) {
  const SourceRow& one = table.only;
  work.launch(kernel, target, size, args..., one.start, one.data, one.offset, one.limit, one.base,
              one.more, table.all, table.count, taken.rows, taken.starts, taken.ranges, taken.width,
              taken.itemsize);
}

/// Appends the integers of `items`.
template <typename Item>
void append(std::vector<int64_t>* numbers, const std::vector<Item>& items) {
  if (items.empty()) return;
  const std::size_t count = items.size() * sizeof(Item) / sizeof(int64_t);
  numbers->resize(numbers->size() + count);
  std::memcpy(numbers->data() + numbers->size() - count, items.data(), count * sizeof(int64_t));
}

/// The rows of `sources`; `fill(source, &row)` sets the rest of each.
template <typename Fill>
std::vector<SourceRow> list_sources(const Sources& sources, const Fill& fill) {
  std::vector<SourceRow> rows;
  rows.reserve(sources.size());
  int64_t start = 0;
  for (const DeviceArray& source : sources) {
    SourceRow row;
    row.start = start;
    row.offset = source.offset();
    fill(source, &row);
    rows.push_back(row);
    start = add_rows(start, source.length());
  }
  return rows;
}

SourceTable upload(KernelWork& work, const std::vector<SourceRow>& rows) {
  if (rows.size() == 1) return {rows.front(), 0, 1};
  std::vector<int64_t> numbers;
  append(&numbers, rows);
  return {{}, work.upload(std::move(numbers)), static_cast<int64_t>(rows.size())};
}

void require_aligned(const DeviceArray& array, int64_t buffer, int64_t itemsize) {
  if (to_address(array.buffer(buffer)) % itemsize == 0) return;
  raise_buffer_error("the offsets of ", to_string(array.type()), " on ", to_string(array.device()),
                     " are not at a multiple of their size, and the kernels of the device cannot "
                     "read them: copy the array to the CPU first");
}

/// The rows of lists, whose values are numbered through as well.
std::vector<SourceRow> list_lists(const Sources& sources) {
  const LayoutRow& layout = layout_row(sources.front().type().layout);
  const bool is_list = layout.children != 0;
  int64_t values = 0;
  return list_sources(sources, [&](const DeviceArray& source, SourceRow* row) {
    row->data = to_address(source.buffer(1));
    require_aligned(source, 1, element_width(source.type(), 1));
    if (is_list) {
      row->limit = source.child(0).length();
      row->base = values;
      values = add_rows(values, row->limit);
    } else {
      row->limit = source.buffer(2) == nullptr ? 0 : kMostBytes;
      row->base = to_address(source.buffer(2));
    }
    if (is_list && !layout.has_offsets()) {
      require_aligned(source, 2, element_width(source.type(), 2));
      row->more = to_address(source.buffer(2));
    }
  });
}

/// Copies all elements, those of one array at a time.
void copy_elements(KernelWork& work, const Sources& sources, int64_t buffer, int64_t width,
                   uint8_t* target) {
  for (const DeviceArray& source : sources) {
    const int64_t size = source.length() * width;
    if (size == 0) continue;
    const uint8_t* const first =
        offset_pointer(work.device(), source.buffer(buffer), source.offset() * width);
    work.copy(target, first, size);
    target += size;
  }
}

}  // namespace

void scan_on_device(KernelWork& work, int64_t values, int64_t count) {
  if (count == 0) return;
  // A thread adds up few integers, but more where the card runs no more threads at once.
  const int64_t length = std::max<int64_t>(16, (count - 1) / count_threads(count) + 1);
  const int64_t chunks = (count - 1) / length + 1;
  const int64_t totals = to_address(work.allocate_integers(chunks)->address());
  work.launch(Kernel::kScanChunks, values, chunks, count, totals, length);
  if (chunks == 1) return;
  scan_on_device(work, totals, chunks);
  work.launch(Kernel::kAddTotals, values, count, totals, length);
}

FoundValues find_lists(KernelWork& work, const Sources& sources, const TakenRows& taken,
                       const uint8_t* valid, int64_t error) {
  const Type& type = sources.front().type();
  const LayoutRow& layout = layout_row(type.layout);
  FoundValues found;
  found.is_address = layout.children == 0;
  found.offsets = work.allocate_integers(add_rows(taken.length, 1));
  found.first = work.allocate_integers(taken.length);
  if (taken.length == 0) {  // the only offset is 0
    const int64_t zero = work.upload({0});
    work.copy(found.offsets->address(), reinterpret_cast<const void*>(zero), kIntegerSize);
    return found;
  }
  const int64_t is_view = layout.has_offsets() ? 0 : 1;
  const int64_t offsets = to_address(found.offsets->address());
  launch_on_rows(work, Kernel::kFindLists, offsets, taken.length, upload(work, list_lists(sources)),
                 taken, found.first->address(), valid, element_width(type, 1), is_view, error);
  scan_on_device(work, offsets + kIntegerSize, taken.length);
  return found;
}

FoundValues find_runs(KernelWork& work, const Sources& sources, const TakenRows& taken,
                      uint8_t* ends, int64_t error) {
  const int64_t itemsize = sources.front().type().children[0].byte_width;
  int64_t values = 0;
  const auto rows = list_sources(sources, [&](const DeviceArray& source, SourceRow* row) {
    const DeviceArray run_ends = source.child(0);
    const int64_t value_count = source.child(1).length();
    require_aligned(run_ends, 1, itemsize);
    row->data = to_address(run_ends.buffer(1));
    row->limit = std::min(run_ends.length(), value_count);
    row->base = values;
    row->more = run_ends.offset();
    values = add_rows(values, value_count);
  });
  FoundValues found;
  found.first = work.allocate_integers(taken.length);
  launch_on_rows(work, Kernel::kFindRuns, found.first->address(), taken.length, upload(work, rows),
                 taken, ends, itemsize, error);
  return found;
}

void ColumnGathers::add(Column column, int64_t size, const std::vector<SourceRow>& sources) {
  constexpr std::size_t kMostTable = std::size_t{64} << 10;  // a driver waits before it copies more
  if (size == 0) return;
  const std::size_t table = (columns_.size() + 2) * sizeof(Column) +
                            (sources_.size() + sources.size()) * sizeof(SourceRow);
  if (table > kMostTable) run();
  column.first = size_;
  size_ = add_rows(size_, size);
  column.sources.count = static_cast<int64_t>(sources.size());
  column.sources.only = sources.front();
  column.sources.all = static_cast<int64_t>(sources_.size());
  if (sources.size() > 1) sources_.insert(sources_.end(), sources.begin(), sources.end());
  columns_.push_back(column);
}

Buffer ColumnGathers::add_elements(const Sources& sources, const TakenRows& taken, int64_t buffer,
                                   int64_t width) {
  int64_t size = 0;
  if (!checked_multiply(taken.length, width, &size)) size = -1;  // no memory has this size
  const std::shared_ptr<DeviceMemory> target = work_.allocate(size);
  if (taken.is_all() && size / static_cast<int64_t>(sources.size()) >= kLongCopy) {
    copy_elements(work_, sources, buffer, width, target->address());
    return to_buffer(target, size);
  }
  std::vector<int64_t> numbers{width};
  const auto rows = list_sources(sources, [&](const DeviceArray& source, SourceRow* row) {
    row->data = to_address(source.buffer(buffer));
    numbers.push_back(row->data);
  });
  const int64_t unit = find_unit(numbers);
  add({0, to_address(target->address()), unit, width / unit, width, {}, taken}, size / unit, rows);
  return to_buffer(target, size);
}

Buffer ColumnGathers::add_bytes(const TakenRows& taken) {
  const std::shared_ptr<DeviceMemory> target = work_.allocate(taken.length);
  add({0, to_address(target->address()), 1, 1, 1, {}, taken}, taken.length, {SourceRow()});
  return to_buffer(target, taken.length);
}

Buffer ColumnGathers::add_bits(const Sources& sources, const TakenRows& taken, int64_t buffer) {
  const int64_t size = bitmap_size(taken.length);
  const std::shared_ptr<DeviceMemory> target = work_.allocate(size);
  const auto rows = list_sources(sources, [&](const DeviceArray& source, SourceRow* row) {
    row->data = to_address(buffer == 0 ? source.validity() : source.buffer(buffer));
  });
  add({0, to_address(target->address()), 0, taken.length, 0, {}, taken}, size, rows);
  return to_buffer(target, size);
}

void ColumnGathers::add_spaced(const uint8_t* source, int64_t count, int64_t width, uint8_t* target,
                               int64_t pitch) {
  SourceRow row;
  row.data = to_address(source);
  const int64_t unit = find_unit({row.data, to_address(target), width, pitch});
  add({0, to_address(target), unit, width / unit, pitch, {}, {count}}, count * (width / unit),
      {row});
}

void ColumnGathers::run() {
  std::vector<Column> columns = std::exchange(columns_, {});
  const std::vector<SourceRow> sources = std::exchange(sources_, {});
  const int64_t size = std::exchange(size_, 0);
  if (columns.empty()) return;
  const auto count = static_cast<int64_t>(columns.size());
  int64_t table = 0;
  if (count > 1 || !sources.empty()) {
    columns.push_back({size, 0, 0, 0, 0, {}, {}});  // the end of the last one
    std::vector<int64_t> numbers;
    append(&numbers, columns);
    append(&numbers, sources);
    table = work_.upload(std::move(numbers));
  }
  const Column& one = columns.front();
  launch_on_rows(work_, Kernel::kGatherColumns, table, size, one.sources, one.taken, count,
                 one.target, one.unit, one.units, one.pitch);
}

Buffer write_offsets_on_device(KernelWork& work, const std::shared_ptr<DeviceMemory>& offsets,
                               int64_t count, int64_t itemsize, bool is_sizes) {
  if (itemsize == kIntegerSize && !is_sizes) return to_buffer(offsets, count * itemsize);
  const std::shared_ptr<DeviceMemory> target = work.allocate(count * itemsize);
  work.launch(Kernel::kWriteOffsets, target->address(), count, itemsize, offsets->address(),
              kIntegerSize, int64_t{0}, int64_t{is_sizes ? 1 : 0});
  return to_buffer(target, count * itemsize);
}

Buffer rebase_offsets_on_device(KernelWork& work, const DeviceArray& lists, int64_t first) {
  const int64_t itemsize = element_width(lists.type(), 1);
  const int64_t count = lists.length() + 1;
  require_aligned(lists, 1, itemsize);
  const uint8_t* const offsets =
      offset_pointer(work.device(), lists.buffer(1), lists.offset() * itemsize);
  if (first == 0) return Buffer(lists.storage(), offsets, count * itemsize);
  const std::shared_ptr<DeviceMemory> target = work.allocate(count * itemsize);
  work.launch(Kernel::kWriteOffsets, target->address(), count, itemsize, to_address(offsets),
              itemsize, first, int64_t{0});
  return to_buffer(target, count * itemsize);
}

namespace {

/// The most rows that the host measures.
constexpr int64_t kMostRows = int64_t{1} << 16;

template <typename Offset>
std::optional<ListSizes> measure(const DeviceArray& lists, bool empty_nulls) {
  constexpr int64_t kWidth = sizeof(Offset);
  const bool is_list = !lists.type().children.empty();
  const int64_t limit = is_list ? lists.child(0).length() : std::numeric_limits<int64_t>::max();
  const int64_t rows = lists.length();
  const Buffer read = lists.read_ahead(1, lists.offset() * kWidth, (rows + 1) * kWidth,
                                       (lists.node_end() + 1) * kWidth);
  const auto* const offsets = reinterpret_cast<const Offset*>(read.data());
  const int64_t first = lists.offset() % 8;
  Buffer valid;
  if (empty_nulls && lists.validity() != nullptr) {
    valid = lists.read_ahead(0, lists.offset() / 8, bitmap_size(first + rows),
                             bitmap_size(lists.node_end()));
  }
  ListSizes sizes{offsets[0], offsets[rows]};
  if (sizes.start < 0 || sizes.end > limit) return {};
  for (int64_t i = 0; i < rows; ++i) {
    if (offsets[i + 1] < offsets[i]) return {};
    if (valid.data() != nullptr && !get_bit(valid.data(), first + i)) continue;
    const int64_t length = offsets[i + 1] - offsets[i];
    sizes.total += length;
    sizes.longest = std::max(sizes.longest, length);
  }
  return sizes;
}

}  // namespace

std::optional<ListSizes> measure_lists(const DeviceArray& lists, bool empty_nulls) {
  const bool has_offsets = layout_row(lists.type().layout).has_offsets();
  if (!has_offsets || lists.length() == 0 || lists.length() > kMostRows) return {};
  return visit_offset(lists.type(),
                      [&](auto zero) { return measure<decltype(zero)>(lists, empty_nulls); });
}

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

template <typename Number>
DeviceArray send(const Device& device, const char* dtype, std::vector<Number> numbers) {
  const auto owner = std::make_shared<std::vector<Number>>(std::move(numbers));
  const auto count = static_cast<int64_t>(owner->size());
  Buffer memory(owner, owner->data(), count * int64_t{sizeof(Number)});
  return copy_array(
      DeviceArray::make_primitive(*find_dtype(dtype), count, std::move(memory), Device{}), device);
}

}  // namespace

DeviceArray number_rows(const std::vector<DeviceArray>& sources, RowIndices indices) {
  const std::vector<int64_t> starts = number_arrays(sources);
  std::vector<int64_t> numbers;
  reserve(&numbers, indices.count);
  for (int64_t i = 0; i < indices.count; ++i) {
    numbers.push_back(starts[indices.begin[i].source] + indices.begin[i].row);
  }
  return send(sources.front().device(), "int64", std::move(numbers));
}

DeviceArray number_rows(const Device& device, std::vector<uint32_t> numbers) {
  return send(device, "uint32", std::move(numbers));
}

DeviceArray number_rows(const std::vector<DeviceArray>& sources,
                        const std::vector<RowRange>& ranges) {
  const std::vector<int64_t> starts = number_arrays(sources);
  std::vector<int64_t> numbers(static_cast<std::size_t>(count_rows(ranges)));
  int64_t* target = numbers.data();
  for (const RowRange& range : ranges) {
    std::iota(target, target + range.rows.length, starts[range.source] + range.rows.start);
    target += range.rows.length;
  }
  return send(sources.front().device(), "int64", std::move(numbers));
}

ARROWDL_END_NAMESPACE
