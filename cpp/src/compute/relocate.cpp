// Moves a struct to another mapping of the same memory.
#include "compute/relocate.hpp"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "array/export_tree.hpp"
#include "array/host_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/gather.hpp"
#include "schema/layout.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Moves addresses from one range of bytes to another one, which `owner` keeps.
struct Shift {
  const uint8_t* from;
  const uint8_t* to;
  int64_t size;
  std::shared_ptr<const void> owner;

  /// Whether the first `bytes` of `buffer` are in the old range; -1 is too many.
  bool holds(const void* buffer, int64_t bytes) const noexcept {
    const auto start = reinterpret_cast<uintptr_t>(from);
    const auto address = reinterpret_cast<uintptr_t>(buffer);
    if (address < start || address - start > static_cast<uintptr_t>(size)) return false;
    return bytes >= 0 && bytes <= size - static_cast<int64_t>(address - start);
  }
  const void* move(const void* buffer) const noexcept {
    return to + (static_cast<const uint8_t*>(buffer) - from);
  }
};

/// The index of the buffer that tensors share; -1 if they share none, since bits are unpacked,
/// offsets are rewritten, and views are gathered.
int64_t find_elements(const Type& type) {
  switch (type.layout) {
    case Layout::kFixedWidth:
      return 1;
    case Layout::kBinary:
    case Layout::kLargeBinary:
      return 2;
    default:
      return -1;
  }
}

template <typename Offset>
int64_t read_end(const ArrowArray& node) {
  const auto* offsets = static_cast<const uint8_t*>(node.buffers[1]);
  if (offsets == nullptr) return 0;  // an array without rows
  Offset end;
  std::memcpy(&end, offsets + (node.offset + node.length) * static_cast<int64_t>(sizeof(end)),
              sizeof(end));
  return end;
}

/// The bytes that the node takes of the buffer of `find_elements`; -1 if they overflow.
int64_t count_bytes(const Type& type, const ArrowArray& node) {
  if (layout_row(type.layout).has_offsets()) {
    return visit_offset(type, [&](auto zero) { return read_end<decltype(zero)>(node); });
  }
  int64_t bytes = 0;
  return checked_multiply(node.offset + node.length, type.byte_width, &bytes) ? bytes : -1;
}

bool can_move(const Type& type, const ArrowArray& node, const Shift& shift) {
  const int64_t i = find_elements(type);
  if (i >= 0 && node.buffers[i] != nullptr &&
      !shift.holds(node.buffers[i], count_bytes(type, node))) {
    return false;
  }
  for (std::size_t child = 0; child < type.children.size(); ++child) {
    if (!can_move(type.children[child], *node.children[child], shift)) return false;
  }
  return true;
}

/// Moves the buffers of a tree that share_array made. Dictionaries, which no tensor shares, stay.
void move_tree(const Type& type, ArrowArray* node, const Shift& shift) {
  auto& holder = *static_cast<SharedNode<ArrowArray>*>(node->private_data);
  holder.owner = shift.owner;
  const int64_t i = find_elements(type);
  if (i >= 0 && node->buffers[i] != nullptr) {
    std::vector<const void*> buffers(node->buffers, node->buffers + node->n_buffers);
    buffers[static_cast<std::size_t>(i)] = shift.move(node->buffers[i]);
    holder.buffers = std::move(buffers);
    node->buffers = holder.buffers.data();
  }
  for (std::size_t child = 0; child < type.children.size(); ++child) {
    move_tree(type.children[child], node->children[child], shift);
  }
}

OwnedArray relocate_field(const DeviceArray& field, const Shift& shift) {
  OwnedArray shared = share_array(field);
  if (can_move(field.type(), *shared.get(), shift)) {
    move_tree(field.type(), shared.get(), shift);
    return shared;
  }
  return gather({field}, {RowRange{0, Range{0, field.length()}}});
}

const uint8_t* require_bytes(const DeviceArray& block) {
  if (block.type().layout != Layout::kFixedWidth || block.type().byte_width != 1) {
    raise_type_error("a block is an array of bytes, not of ", to_string(block.type()));
  }
  require_host_readable(block, "relocate arrays to it");
  return block.buffer_as<uint8_t>(1) + block.offset();
}

}  // namespace

DeviceArray relocate(const DeviceArray& array, const void* from, const DeviceArray& block) {
  if (array.type().layout != Layout::kStruct || array.validity() != nullptr) {
    raise_type_error("a record batch can be relocated, not ", to_string(array.type()));
  }
  require_host_readable(array, "relocate an array");
  using Owners = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
  const Shift shift{static_cast<const uint8_t*>(from), require_bytes(block), block.length(),
                    std::make_shared<Owners>(array.storage(), block.storage())};
  ArrayParts parts;
  parts.length = array.length();
  parts.buffers.push_back(Buffer());
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    parts.children.push_back(relocate_field(array.child(static_cast<int64_t>(i)), shift));
  }
  return DeviceArray::import(array.export_schema(), make_array(std::move(parts)));
}

ARROWDL_END_NAMESPACE
