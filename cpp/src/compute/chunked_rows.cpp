// Takes rows of several arrays by their row numbers.
#include "compute/chunked_rows.hpp"

#include <algorithm>
#include <limits>

#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/gather_on_device.hpp"
#include "compute/rows_on_device.hpp"
#include "compute/selection.hpp"
#include "compute/through_host.hpp"
#include "schema/make_schema.hpp"
#include "util/reserve.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The rows that a RowIndex can count.
constexpr int64_t kMaxRows = std::numeric_limits<uint32_t>::max();

/// Replaces the arrays in `indices` by their positions among those that have rows; returns these.
std::vector<uint32_t> renumber_arrays(std::vector<RowIndex>* indices) {
  std::vector<uint32_t> used;
  used.reserve(indices->size());
  for (const RowIndex& index : *indices) used.push_back(index.source);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (RowIndex& index : *indices) {
    const auto at = std::lower_bound(used.begin(), used.end(), index.source);
    index.source = static_cast<uint32_t>(at - used.begin());
  }
  return used;
}

std::vector<DeviceArray> select_arrays(const std::vector<DeviceArray>& arrays,
                                       const std::vector<uint32_t>& chosen) {
  std::vector<DeviceArray> selected;
  selected.reserve(chosen.size());
  for (const uint32_t i : chosen) selected.push_back(arrays[i]);
  return selected;
}

}  // namespace

RowStarts::RowStarts(std::vector<int64_t> starts) : starts_(std::move(starts)) {
  if (!std::is_sorted(starts_.begin(), starts_.end())) {
    raise_value_error("the row numbers at which parts start are not ascending");
  }
  if (size() > 1) usual_rows_ = std::max<int64_t>(1, starts_[1] - starts_[0]);
}

std::size_t RowStarts::find(int64_t number) const noexcept {
  // Most tables have chunks of one size.
  const auto guess = static_cast<std::size_t>((number - starts_[0]) / usual_rows_);
  if (guess < size() && contains(guess, number)) return guess;
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), number);
  return static_cast<std::size_t>(after - starts_.begin()) - 1;
}

ChunkedRows::ChunkedRows(std::shared_ptr<const ParsedSchema> schema,
                         std::vector<DeviceArray> arrays, const std::vector<int64_t>& starts)
    : schema_(std::move(schema)) {
  if (arrays.empty() || arrays.size() != starts.size()) {
    raise_value_error(starts.size(), " row numbers for ", arrays.size(),
                      " arrays: pass one or more arrays, and the number of the first row of each");
  }
  is_on_device_ = make_readable(&arrays, &home_, "take rows");
  std::vector<int64_t> cut_starts;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    DeviceArray array = std::move(arrays[i]);
    if (!is_on_device_) {
      if (array.device().type != kDLCPU) array = copy_array(array, Device{});  // as the results
    }
    if (i + 1 < starts.size() && starts[i + 1] - starts[i] < array.length()) {
      raise_value_error("array ", i, " of ", array.length(), " rows starts at row ", starts[i],
                        ", the next one at row ", starts[i + 1]);
    }
    int64_t start = 0;
    do {
      const int64_t length = std::min(kMaxRows, array.length() - start);
      cut_starts.push_back(starts[i] + start);
      arrays_.push_back(array.slice(start, length));
      start += length;
    } while (start < array.length());
  }
  starts_ = RowStarts(std::move(cut_starts));
  const Type& type = schema_->type;
  has_columns_ = type.layout == Layout::kStruct &&
                 std::all_of(arrays_.begin(), arrays_.end(),
                             [](const DeviceArray& array) { return array.validity() == nullptr; });
  if (has_columns_) {
    const auto count = static_cast<int64_t>(type.children.size());
    for (int64_t i = 0; i < count; ++i) columns_.push_back(select_child(arrays_, i));
  } else {
    columns_.push_back(arrays_);
  }
}

RowIndex ChunkedRows::locate(int64_t number) const {
  if (number >= starts_[0]) {
    const std::size_t i = starts_.find(number);
    const int64_t row = number - starts_[i];
    if (row < arrays_[i].length()) return {static_cast<uint32_t>(i), static_cast<uint32_t>(row)};
  }
  raise_index_error("no array has row ", number);
}

std::vector<RowIndex> ChunkedRows::locate_all(RowNumbers numbers) const {
  std::vector<RowIndex> indices;
  reserve(&indices, numbers.count);
  indices.resize(static_cast<std::size_t>(numbers.count));
  const int64_t start = starts_[0];
  const int64_t length = arrays_.front().length();
  const bool is_single = arrays_.size() == 1;
  for (int64_t i = 0; i < numbers.count; ++i) {
    const int64_t row = numbers.begin[i] - start;
    const bool is_found = is_single && row >= 0 && row < length;
    indices[static_cast<std::size_t>(i)] =
        is_found ? RowIndex{0, static_cast<uint32_t>(row)} : locate(numbers.begin[i]);
  }
  return indices;
}

DeviceArray ChunkedRows::find_window(RowNumbers numbers) const {
  if (numbers.count == 0) return arrays_.front().slice(0, 0);
  for (int64_t i = 1; i < numbers.count; ++i) {
    if (numbers.begin[i] != numbers.begin[0] + i) return {};
  }
  const RowIndex first = locate(numbers.begin[0]);
  const DeviceArray& array = arrays_[first.source];
  if (numbers.count > array.length() - first.row) return {};
  return array.slice(first.row, numbers.count);
}

TakenArray ChunkedRows::take(RowNumbers numbers) const {
  if (const DeviceArray window = find_window(numbers)) {
    DeviceArray rows = is_on_device_ ? window : copy_array(window, home_);
    return {rows, rows.storage() == window.storage()};
  }
  std::vector<RowIndex> indices = locate_all(numbers);
  if (is_on_device_) return {gather_on_device(indices), false};
  return {copy_array(gather_on_host(std::move(indices)), home_), false};
}

DeviceArray ChunkedRows::gather_on_host(std::vector<RowIndex> indices) const {
  ArrayParts parts;
  parts.length = static_cast<int64_t>(indices.size());
  parts.buffers.emplace_back();
  const RowIndices chosen{indices.data(), parts.length};
  if (arrays_.size() > indices.size()) {  // few rows of many arrays
    const std::vector<uint32_t> used = renumber_arrays(&indices);
    std::vector<std::vector<DeviceArray>> selected;
    selected.reserve(columns_.size());
    for (const auto& column : columns_) selected.push_back(select_arrays(column, used));
    parts.children = take_columns(selected, chosen);
  } else {
    parts.children = take_columns(columns_, chosen);
  }
  return DeviceArray::import(
      schema_, has_columns_ ? make_array(std::move(parts)) : std::move(parts.children.front()));
}

DeviceArray ChunkedRows::gather_on_device(const std::vector<RowIndex>& indices) const {
  const RowIndices chosen{indices.data(), static_cast<int64_t>(indices.size())};
  return take_on_device(copy_schema(*schema_->type.schema), arrays_, number_rows(arrays_, chosen));
}

PartedNumbers group_by_part(RowNumbers numbers, const RowStarts& starts) {
  const auto count = static_cast<std::size_t>(numbers.count);
  std::vector<std::size_t> part_of(count);
  std::vector<int64_t> ends(starts.size() + 1);  // first the number of rows of each part
  for (std::size_t i = 0; i < count; ++i) {
    part_of[i] = starts.find(numbers.begin[i]);
    ++ends[part_of[i] + 1];
  }
  PartedNumbers parted;
  for (std::size_t part = 0; part < starts.size(); ++part) {
    const bool has_rows = ends[part + 1] != 0;
    ends[part + 1] += ends[part];
    if (!has_rows) continue;
    parted.parts.push_back(part);
    parted.ends.push_back(ends[part + 1]);
  }
  int64_t* by_part = nullptr;
  int64_t* order = nullptr;
  parted.numbers = allocate_elements(numbers.count, &by_part);
  parted.order = allocate_elements(numbers.count, &order);
  for (std::size_t i = 0; i < count; ++i) {
    const int64_t at = ends[part_of[i]]++;  // of the part before: where the next row goes
    by_part[at] = numbers.begin[i];
    order[i] = at;
  }
  return parted;
}

ARROWDL_END_NAMESPACE
