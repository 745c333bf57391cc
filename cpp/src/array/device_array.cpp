// Windows of rows, and the nodes below them: all of it zero-copy.
#include "arrowdl/device_array.hpp"

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

void DeviceArray::wait(StreamHandle stream, std::shared_ptr<const void> owner) const {
  wait(device(), stream, std::move(owner));
}

void DeviceArray::wait(const Device& of, StreamHandle stream,
                       std::shared_ptr<const void> owner) const {
  wait_event(of, stream, sync_event());
  // Without a runtime no work can still read the memory.
  Backend* const backend = find_backend(device().type);
  if (backend == nullptr || backend->streams() == nullptr) return;
  record_stream(of, stream, std::move(owner));
}

void DeviceArray::record_stream(StreamHandle stream, std::shared_ptr<const void> owner) const {
  record_stream(device(), stream, std::move(owner));
}

void DeviceArray::record_stream(const Device& of, StreamHandle stream,
                                std::shared_ptr<const void> owner) const {
  storage_->recorded_streams.add(of, stream, std::move(owner));
}

DeviceArray DeviceArray::slice(int64_t start, int64_t length) const {
  if (start < 0 || length < 0 || start > length_ || length > length_ - start) {
    raise_index_error("rows ", start, " to ", start, " + ", length, " of an array of ", length_);
  }
  return DeviceArray(storage_, type_, node_, offset_ + start, length);
}

DeviceArray DeviceArray::child(int64_t i) const {
  if (i < 0 || i >= node_->n_children) {
    raise_index_error("child ", i, " of ", to_string(*type_), " with ", node_->n_children);
  }
  const Type* type = &type_->children[static_cast<std::size_t>(i)];
  const ArrowArray* node = node_->children[i];
  int64_t rows = 1;
  switch (type_->layout) {
    case Layout::kFixedSizeList:
      rows = type_->list_size;
      break;
    case Layout::kStruct:
    case Layout::kSparseUnion:
      break;
    default:
      return DeviceArray(storage_, type, node, node->offset, node->length);
  }
  return DeviceArray(storage_, type, node, node->offset + offset_ * rows, length_ * rows);
}

namespace {

bool has_no_bitmap(const ArrowArray& node) {
  return node.null_count == 0 || node.buffers[0] == nullptr;
}

/// Whether a value of the dictionary may be null, if there is one: unknown of unions and the like.
bool may_have_null_values(const Type& type, const ArrowArray& node) {
  if (type.dictionary == nullptr) return false;
  const bool has_bitmap_only =
      type.dictionary->dictionary == nullptr && type.dictionary->has_validity();
  return !has_bitmap_only || !has_no_bitmap(*node.dictionary);
}

}  // namespace

const uint8_t* DeviceArray::find_plain_field(int64_t i) const noexcept {
  const Type& type = type_->children[static_cast<std::size_t>(i)];
  const ArrowArray* node = node_->children[i];
  const bool is_plain = type.is_plain() && type_->layout == Layout::kStruct && length_ > 0 &&
                        validity() == nullptr && storage_->device.type == kDLCPU &&
                        has_no_bitmap(*node) && !may_have_null_values(type, *node);
  if (!is_plain) return nullptr;
  return static_cast<const uint8_t*>(node->buffers[1]) +
         (node->offset + offset_) * int64_t{type.byte_width};
}

int64_t DeviceArray::field_index(const std::string& name) const {
  int64_t found = -1;
  for (std::size_t i = 0; i < type_->children.size() && type_->layout == Layout::kStruct; ++i) {
    if (type_->children[i].name() != name) continue;
    if (found >= 0) raise_value_error("several fields are named \"", name, "\": use the index");
    found = static_cast<int64_t>(i);
  }
  if (found < 0) raise_value_error("no field \"", name, "\" in ", to_string(*type_));
  return found;
}

DeviceArray DeviceArray::dictionary() const {
  if (type_->dictionary == nullptr) {
    raise_value_error("no dictionary: this is ", to_string(*type_));
  }
  const ArrowArray* node = node_->dictionary;
  return DeviceArray(storage_, type_->dictionary.get(), node, node->offset, node->length);
}

ARROWDL_END_NAMESPACE
