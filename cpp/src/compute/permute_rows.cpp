// Permutes the rows of arrays in their own memory, a column at a time.
#include "compute/permute_rows.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "compute/allocate_elements.hpp"
#include "compute/elements.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using Parts = std::vector<DeviceArray>;

/// Appends the elements of `parts`, of which `run` are in a row. Returns false if they cannot be
/// permuted.
bool append_elements(const Parts& parts, int64_t run, std::vector<Elements>* columns) {
  const Type& type = parts.front().type();
  if (std::any_of(parts.begin(), parts.end(),
                  [](const DeviceArray& part) { return part.validity() != nullptr; })) {
    return false;
  }
  if (type.layout == Layout::kFixedWidth) {
    Elements elements{{}, run * type.byte_width};
    if (elements.width > kMostElementBytes) return false;
    elements.parts.reserve(parts.size());
    for (const DeviceArray& part : parts) {
      // The caller owns what it asks for.
      auto* first = const_cast<uint8_t*>(part.buffer_as<uint8_t>(1));
      elements.parts.push_back(first + part.offset() * type.byte_width);
    }
    columns->push_back(std::move(elements));
    return true;
  }
  if (type.layout == Layout::kFixedSizeList) {
    if (type.list_size < 1 || type.list_size > kMostElementBytes / run) return false;
    return append_elements(select_child(parts, 0), run * type.list_size, columns);
  }
  if (type.layout != Layout::kStruct) return false;
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    if (!append_elements(select_child(parts, static_cast<int64_t>(i)), run, columns)) return false;
  }
  return true;
}

/// Whether no two of `columns` share memory.
bool are_disjoint(const Parts& parts, const std::vector<Elements>& columns) {
  std::vector<std::pair<const uint8_t*, const uint8_t*>> ranges;
  ranges.reserve(columns.size() * parts.size());
  for (const Elements& column : columns) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const uint8_t* first = column.parts[i];
      ranges.emplace_back(first, first + parts[i].length() * column.width);
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
    return std::less<const uint8_t*>()(a.first, b.first);
  });
  return std::adjacent_find(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
           return std::less<const uint8_t*>()(b.first, a.second);
         }) == ranges.end();
}

}  // namespace

std::vector<Elements> find_elements(const Parts& parts) {
  std::vector<Elements> columns;
  if (!append_elements(parts, 1, &columns) || !are_disjoint(parts, columns)) return {};
  return columns;
}

void permute_rows(const Parts& parts, const std::vector<Elements>& columns,
                  const std::vector<uint32_t>& order) {
  int64_t most = 1;
  for (const Elements& column : columns) most = std::max(most, column.width);
  uint8_t* copy = nullptr;  // of a column: in the cache, while the columns together are not
  const Buffer memory = allocate_elements(static_cast<int64_t>(order.size()), most, &copy);
  for (const Elements& column : columns) {
    uint8_t* to = copy;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const int64_t size = parts[i].length() * column.width;
      std::memcpy(to, column.parts[i], static_cast<std::size_t>(size));
      to += size;
    }
    const uint32_t* rows = order.data();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      take_elements(copy, rows, parts[i].length(), column.width, column.parts[i]);
      rows += parts[i].length();
    }
  }
}

ARROWDL_END_NAMESPACE
