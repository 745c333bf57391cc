#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"

namespace arrowdl {
namespace {

/// Whether what only the memory says may be read for it; else that counts as nothing.
enum class Reads { kHost, kNothing };

int64_t count_bytes(const DeviceArray& array, Reads reads);

int64_t bytes_of_bits(int64_t bits) { return bits / 8 + (bits % 8 != 0 ? 1 : 0); }

bool can_read(const DeviceArray& array, Reads reads) {
  return reads == Reads::kHost && is_host_readable(array.device()) && !array.sync_event();
}

int64_t children_bytes(const DeviceArray& array, Reads reads) {
  int64_t total = 0;
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    total += count_bytes(array.child(static_cast<int64_t>(i)), reads);
  }
  return total;
}

/// Offsets, and the part of the child (or of the bytes) between the first and the last one.
template <typename Offset>
int64_t offset_layout_bytes(const DeviceArray& array, Reads reads) {
  if (array.length() == 0) return 0;
  const int64_t own = (array.length() + 1) * static_cast<int64_t>(sizeof(Offset));
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
  return own + (is_list ? array.child(0).slice(first, count).nbytes() : count);
}

int64_t view_bytes(const DeviceArray& array, Reads reads) {
  int64_t total = array.length() * 16;
  const auto* sizes = array.buffer_as<int64_t>(array.buffer_count() - 1);
  if (sizes == nullptr || !can_read(array, reads)) return total;
  for (int64_t i = 0; i < array.buffer_count() - 3; ++i) total += sizes[i];
  return total;
}

int64_t layout_bytes(const DeviceArray& array, Reads reads) {
  const int64_t n = array.length();
  switch (array.type().layout) {
    case Layout::kNull:
      return 0;
    case Layout::kBoolean:
      return bytes_of_bits(n);
    case Layout::kFixedWidth:
      return n * array.type().byte_width;
    case Layout::kBinary:
    case Layout::kList:
      return offset_layout_bytes<int32_t>(array, reads);
    case Layout::kLargeBinary:
    case Layout::kLargeList:
      return offset_layout_bytes<int64_t>(array, reads);
    case Layout::kBinaryView:
      return view_bytes(array, reads);
    case Layout::kListView:
      return n * 8 + children_bytes(array, reads);
    case Layout::kLargeListView:
      return n * 16 + children_bytes(array, reads);
    case Layout::kSparseUnion:
      return n + children_bytes(array, reads);
    case Layout::kDenseUnion:
      return n * 5 + children_bytes(array, reads);
    case Layout::kFixedSizeList:
    case Layout::kStruct:
    case Layout::kRunEndEncoded:
      return children_bytes(array, reads);
  }
  return 0;
}

int64_t count_bytes(const DeviceArray& array, Reads reads) {
  int64_t total = layout_bytes(array, reads);
  if (array.validity() != nullptr) total += bytes_of_bits(array.length());
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

}  // namespace arrowdl
