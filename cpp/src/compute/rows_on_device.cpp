// Finds and gathers rows of arrays with the kernels of a device.
#include "compute/rows_on_device.hpp"

#include <algorithm>
#include <utility>

#include "arrowdl/error.hpp"
#include "compute/row_range.hpp"
#include "device/device_pointer.hpp"
#include "schema/layout.hpp"
#include "util/bit_util.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using Sources = std::vector<DeviceArray>;

/// As in offsets.cu.
constexpr int64_t kRowsOfChunk = 64;

/// Arrays of this number of bytes are copied faster by the driver, one at a time, than by a kernel
/// that looks for the array of each element.
constexpr int64_t kLongCopy = int64_t{64} << 10;

/// More bytes than any device has: the data of binary has no size in the structs.
constexpr int64_t kMostBytes = int64_t{1} << 47;

/// The arrays as a kernel sees them: `Source` and `Sources` of rows.cuh.
struct SourceRow {
  int64_t start = 0;
  int64_t data = 0;
  int64_t offset = 0;
  int64_t limit = 0;
  int64_t base = 0;
  int64_t more = 0;
};

struct SourceTable {
  SourceRow only;
  int64_t all = 0;  ///< the address of several of them
  int64_t count = 0;
};

/// Launches `kernel`, whose last parameters are ROW_PARAMETERS of rows.cuh.
template <typename Target, typename... Args>
void launch_on_rows(KernelWork& work, Kernel kernel, Target target, int64_t size,
                    const SourceTable& table, const TakenRows& taken, Args... args) {
  const SourceRow& one = table.only;
  work.launch(kernel, target, size, args..., one.start, one.data, one.offset, one.limit, one.base,
              one.more, table.all, table.count, taken.rows, taken.starts, taken.ranges,
              taken.width);
}

void append(std::vector<int64_t>* numbers, const SourceRow& row) {
  numbers->insert(numbers->end(), {row.start, row.data, row.offset, row.limit, row.base, row.more});
}

/// The table of `sources`; `fill(source, &row)` sets the rest of each row.
template <typename Fill>
SourceTable make_table(KernelWork& work, const Sources& sources, const Fill& fill) {
  SourceTable table;
  table.count = static_cast<int64_t>(sources.size());
  std::vector<int64_t> numbers;
  int64_t start = 0;
  for (const DeviceArray& source : sources) {
    SourceRow row;
    row.start = start;
    row.offset = source.offset();
    fill(source, &row);
    if (table.count == 1) table.only = row;
    append(&numbers, row);
    start = add_rows(start, source.length());
  }
  if (table.count > 1) table.all = work.upload(std::move(numbers));
  return table;
}

void require_aligned(const DeviceArray& array, int64_t buffer, int64_t itemsize) {
  if (to_address(array.buffer(buffer)) % itemsize == 0) return;
  raise_buffer_error("the offsets of ", to_string(array.type()), " on ", to_string(array.device()),
                     " are not at a multiple of their size, and the kernels of the device cannot "
                     "read them: copy the array to the CPU first");
}

/// The table of lists, whose values are numbered through as well.
SourceTable make_list_table(KernelWork& work, const Sources& sources) {
  const LayoutRow& layout = layout_row(sources.front().type().layout);
  const bool is_list = layout.children != 0;
  int64_t values = 0;
  return make_table(work, sources, [&](const DeviceArray& source, SourceRow* row) {
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
  const int64_t chunks = count / kRowsOfChunk + (count % kRowsOfChunk == 0 ? 0 : 1);
  if (chunks == 0) return;
  const int64_t totals = to_address(work.allocate_integers(chunks)->address());
  work.launch(Kernel::kScanChunks, values, chunks, count, totals);
  if (chunks == 1) return;
  scan_on_device(work, totals, chunks);
  work.launch(Kernel::kAddTotals, values, count, totals);
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
  launch_on_rows(work, Kernel::kFindLists, offsets, taken.length, make_list_table(work, sources),
                 taken, found.first->address(), valid, element_width(type, 1), is_view, error);
  scan_on_device(work, offsets + kIntegerSize, taken.length);
  return found;
}

FoundValues find_runs(KernelWork& work, const Sources& sources, const TakenRows& taken,
                      uint8_t* ends, int64_t error) {
  const int64_t itemsize = sources.front().type().children[0].byte_width;
  int64_t values = 0;
  const SourceTable table =
      make_table(work, sources, [&](const DeviceArray& source, SourceRow* row) {
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
  launch_on_rows(work, Kernel::kFindRuns, found.first->address(), taken.length, table, taken, ends,
                 itemsize, error);
  return found;
}

Buffer gather_elements_on_device(KernelWork& work, const Sources& sources, const TakenRows& taken,
                                 int64_t buffer, int64_t width) {
  int64_t size = 0;
  if (!checked_multiply(taken.length, width, &size)) size = -1;  // no memory has this size
  const std::shared_ptr<DeviceMemory> target = work.allocate(size);
  if (taken.is_all() && size / static_cast<int64_t>(sources.size()) >= kLongCopy) {
    copy_elements(work, sources, buffer, width, target->address());
    return to_buffer(target, size);
  }
  std::vector<int64_t> numbers{width};
  const SourceTable table =
      make_table(work, sources, [&](const DeviceArray& source, SourceRow* row) {
        row->data = to_address(source.buffer(buffer));
        numbers.push_back(row->data);
      });
  const int64_t unit = find_unit(numbers);
  launch_on_rows(work, Kernel::kGatherElements, target->address(), size / unit, table, taken, unit,
                 width / unit);
  return to_buffer(target, size);
}

Buffer gather_bytes_on_device(KernelWork& work, const TakenRows& taken) {
  const std::shared_ptr<DeviceMemory> target = work.allocate(taken.length);
  SourceTable table;  // all addresses
  table.count = 1;
  launch_on_rows(work, Kernel::kGatherElements, target->address(), taken.length, table, taken,
                 int64_t{1}, int64_t{1});
  return to_buffer(target, taken.length);
}

Buffer gather_bits_on_device(KernelWork& work, const Sources& sources, const TakenRows& taken,
                             int64_t buffer) {
  const int64_t size = bitmap_size(taken.length);
  const std::shared_ptr<DeviceMemory> target = work.allocate(size);
  const SourceTable table =
      make_table(work, sources, [&](const DeviceArray& source, SourceRow* row) {
        row->data = to_address(buffer == 0 ? source.validity() : source.buffer(buffer));
      });
  launch_on_rows(work, Kernel::kGatherBits, target->address(), size, table, taken, taken.length);
  return to_buffer(target, size);
}

Buffer write_offsets_on_device(KernelWork& work, const std::shared_ptr<DeviceMemory>& offsets,
                               int64_t count, int64_t itemsize, bool is_sizes) {
  if (itemsize == kIntegerSize && !is_sizes) return to_buffer(offsets, count * itemsize);
  const std::shared_ptr<DeviceMemory> target = work.allocate(count * itemsize);
  work.launch(Kernel::kWriteOffsets, target->address(), count, itemsize, offsets->address(),
              int64_t{is_sizes ? 1 : 0});
  return to_buffer(target, count * itemsize);
}

ARROWDL_END_NAMESPACE
