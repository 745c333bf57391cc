// What the casts of one node share: the rows that count, and offsets of a requested width.
#include "cast/casts.hpp"

#include <algorithm>
#include <utility>

#include "array/row_access.hpp"
#include "array/run_ends.hpp"
#include "arrowdl/lists.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

UsedRows::UsedRows(int64_t count, std::function<void(std::vector<bool>*)> mark)
    : state_(std::make_shared<State>(State{count, std::move(mark), {}})) {}

bool UsedRows::operator[](int64_t row) const {
  if (is_whole()) return true;
  if (state_->mark) {
    state_->bits.resize(static_cast<std::size_t>(state_->count));
    state_->mark(&state_->bits);
    state_->mark = nullptr;
  }
  return state_->bits[static_cast<std::size_t>(row)];
}

UsedRows find_used(const DeviceArray& array, const UsedRows& used, int64_t count,
                   std::function<Range(int64_t)> find_rows) {
  return {count, [array, used, find_rows = std::move(find_rows)](std::vector<bool>* bits) {
            const RowValidity is_valid(array);
            for (int64_t i = 0; i < array.length(); ++i) {
              if (!is_valid[i] || !used[i]) continue;
              const Range rows = find_rows(i);
              std::fill_n(bits->begin() + rows.start, rows.length, true);
            }
          }};
}

UsedRows find_used_values(const DeviceArray& array, const UsedRows& used) {
  const int64_t count = array.dictionary().length();
  return find_used(array, used, count,
                   [array, count](int64_t i) { return Range{read_index(array, i, count), 1}; });
}

UsedRows find_used_runs(const DeviceArray& array, const UsedRows& used) {
  return find_used(array, used, array.child(1).length(), [array](int64_t i) {
    return visit_run_ends(array.type(), [&](auto zero) {
      return RunReader<decltype(zero)>(array).find_runs(Range{i, 1});
    });
  });
}

namespace {

/// The offsets `own`, of type Own, as offsets of type Offset.
template <typename Offset, typename Own>
Buffer convert_offsets(const DeviceArray& own, const Type& to) {
  const ElementReader<Own> offsets(own, 1);
  const int64_t count = own.length();
  if constexpr (sizeof(Offset) == sizeof(Own)) {
    return Buffer(own.storage(), offsets.address(0), count * int64_t{sizeof(Offset)});
  } else {
    require_offset<Offset>(to, offsets[count - 1]);
    Offset* target = nullptr;
    Buffer converted = allocate_elements(count, &target);
    for (int64_t i = 0; i < count; ++i) target[i] = static_cast<Offset>(offsets[i]);
    return converted;
  }
}

}  // namespace

template <typename Offset>
Buffer make_even_offsets(int64_t length, int64_t size, const Type& to) {
  int64_t end = 0;
  if (!checked_multiply(length, size, &end)) end = std::numeric_limits<int64_t>::max();
  require_offset<Offset>(to, end);
  Offset* target = nullptr;
  Buffer offsets = allocate_elements(add_rows(length, 1), &target);
  for (int64_t i = 0; i <= length; ++i) target[i] = static_cast<Offset>(i * size);
  return offsets;
}

template Buffer make_even_offsets<int32_t>(int64_t, int64_t, const Type&);
template Buffer make_even_offsets<int64_t>(int64_t, int64_t, const Type&);

template <typename Offset>
OffsetRows<Offset> read_offset_rows(const DeviceArray& array, const Type& to) {
  const Type& from = array.type();
  if (from.layout == Layout::kFixedSizeList) {
    return {array.child(0), make_even_offsets<Offset>(array.length(), from.list_size, to)};
  }
  ListParts parts = split_list(array);
  const bool is_long = parts.offsets.type().byte_width == sizeof(int64_t);
  Buffer offsets = is_long ? convert_offsets<Offset, int64_t>(parts.offsets, to)
                           : convert_offsets<Offset, int32_t>(parts.offsets, to);
  return {std::move(parts.values), std::move(offsets)};
}

template OffsetRows<int32_t> read_offset_rows(const DeviceArray&, const Type&);
template OffsetRows<int64_t> read_offset_rows(const DeviceArray&, const Type&);

ARROWDL_END_NAMESPACE
