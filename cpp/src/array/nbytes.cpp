// Counts the bytes that an array takes.
#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "device/device_pointer.hpp"
#include "schema/layout.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Whether to read offsets and sizes from memory; otherwise the bytes that they count are left out.
enum class Reads { kHost, kNothing };

int64_t count_bytes(const DeviceArray& array, Reads reads);

bool can_read(const DeviceArray& array, Reads reads) {
  return reads == Reads::kHost && is_host_readable(array.device()) && !array.sync_event();
}

int64_t children_bytes(const DeviceArray& array, Reads reads) {
  int64_t total = 0;
  const std::vector<Type>& children = array.type().children;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    if (array.find_plain_field(index) == nullptr) {
      total += count_bytes(array.child(index), reads);
      continue;
    }
    total += array.length() * children[i].byte_width;
    if (children[i].dictionary != nullptr) {
      total += count_bytes(array.child(index).dictionary(), reads);
    }
  }
  return total;
}

/// The offsets, and the child rows or bytes between the first and the last one.
template <typename Offset>
int64_t offset_layout_bytes(const DeviceArray& array, Reads reads) {
  if (array.length() == 0) return 0;
  const int64_t own = buffer_size(array.type(), 1, array.length());
  if (!can_read(array, reads)) {
    return reads == Reads::kHost ? own : own + children_bytes(array, reads);
  }
  const auto* offsets = array.buffer_as<Offset>(1) + array.offset();
  const int64_t first = offsets[0];
  const int64_t last = offsets[array.length()];
  const bool is_list = !array.type().children.empty();
  if (first < 0 || last < first || (is_list && last > array.child(0).length())) {
    raise_value_error("malformed ", to_string(array.type()), " array: its rows have the offsets ",
                      first, " to ", last);
  }
  const int64_t count = last - first;
  if (!is_list && !is_addressable(array.buffer(2), count)) {
    raise_value_error("malformed ", to_string(array.type()), " array: its rows have ", count,
                      " bytes, more than there are addresses");
  }
  return own + (is_list ? array.child(0).slice(first, count).nbytes() : count);
}

/// The data buffers of views, whose sizes the last buffer holds.
int64_t variadic_bytes(const DeviceArray& array, Reads reads) {
  int64_t total = 0;
  if (!can_read(array, reads)) return total;
  for (int64_t i = 0; i < array.buffer_count() - 3; ++i) total += read_data_size(array, i);
  return total;
}

/// The buffers whose size follows from the number of rows, without the validity.
int64_t fixed_bytes(const DeviceArray& array) {
  const LayoutRow& row = layout_row(array.type().layout);
  int64_t total = 0;
  for (int64_t i = row.has_validity() ? 1 : 0; i < row.buffer_count; ++i) {
    total += buffer_size(array.type(), i, array.length());
  }
  return total;
}

int64_t layout_bytes(const DeviceArray& array, Reads reads) {
  const LayoutRow& row = layout_row(array.type().layout);
  if (row.has_offsets()) {
    return visit_offset(
        array.type(), [&](auto zero) { return offset_layout_bytes<decltype(zero)>(array, reads); });
  }
  return fixed_bytes(array) + children_bytes(array, reads) +
         (row.is_variadic ? variadic_bytes(array, reads) : 0);
}

int64_t count_bytes(const DeviceArray& array, Reads reads) {
  int64_t total = layout_bytes(array, reads);
  if (array.validity() != nullptr) total += bitmap_size(array.length());
  if (array.type().dictionary != nullptr) total += count_bytes(array.dictionary(), reads);
  return total;
}

}  // namespace

int64_t DeviceArray::nbytes() const { return count_bytes(*this, Reads::kHost); }

int64_t Storage::known_nbytes() const {
  const std::shared_ptr<const Storage> borrowed(std::shared_ptr<void>(), this);
  const ArrowArray& root = array->array;
  const DeviceArray whole(borrowed, &schema->type, &root, root.offset, root.length);
  return count_bytes(whole, Reads::kNothing);
}

ARROWDL_END_NAMESPACE
