#include "arrowdl/device_array.hpp"

#include <new>
#include <optional>

#include "array/export_tree.hpp"
#include "arrowdl/error.hpp"
#include "device/device_pointer.hpp"
#include "util/bit_util.hpp"

namespace arrowdl {
namespace {

void check_event(const ArrowDeviceArray& array, const Device& device) {
  const DeviceType* row = find_device_type(device.type);
  if (array.sync_event != nullptr && row->event_type == nullptr) {
    raise_value_error("an Arrow array on ", to_string(device),
                      " carries a sync_event, and Arrow defines none for that device");
  }
}

/// What a Storage holds, on its own.
struct Contents {
  explicit Contents(Storage& from) noexcept
      : array(std::move(from.array)), releaser(from.releaser) {}
  ~Contents() {
    if (releaser != nullptr) releaser(nullptr, &array);
  }

  OwnedDeviceArray array;
  Releaser releaser;
};

/// How far buffer `i` of a node moves for `rows` rows: what makes an offset smaller.
int64_t bytes_per_rows(const Type& type, int64_t i, int64_t rows) noexcept {
  switch (type.layout) {
    case Layout::kBoolean:
      return rows / 8;
    case Layout::kFixedWidth:
      return rows * type.byte_width;
    case Layout::kBinary:
    case Layout::kList:
      return i == 1 ? rows * 4 : 0;
    case Layout::kLargeBinary:
    case Layout::kLargeList:
      return i == 1 ? rows * 8 : 0;
    case Layout::kListView:
      return rows * 4;
    case Layout::kLargeListView:
      return rows * 8;
    case Layout::kBinaryView:
      return i == 1 ? rows * 16 : 0;
    default:
      return 0;
  }
}

/// `bits` moved up by `shift` bits, 0 to 7.
Buffer shift_bits(const Buffer& bits, int64_t shift, int64_t count) {
  if (bits.data() == nullptr || shift == 0) return bits;
  const int64_t source_size = (count + 7) / 8;
  const int64_t size = (count + shift + 7) / 8;
  uint8_t* target;
  Buffer shifted = Buffer::allocate(size, &target);
  for (int64_t i = 0; i < size; ++i) {
    const int low = i > 0 ? bits.data()[i - 1] >> (8 - shift) : 0;
    const int high = i < source_size ? bits.data()[i] << shift : 0;
    target[i] = static_cast<uint8_t>(low | high);
  }
  return shifted;
}

}  // namespace

Storage::~Storage() {
  if (recorded_streams.empty()) {
    if (releaser != nullptr) releaser(nullptr, &array);
    return;
  }
  try {
    const int64_t bytes = known_nbytes();
    recorded_streams.release(std::make_shared<Contents>(*this), bytes);
  } catch (const std::bad_alloc&) {
    if (!recorded_streams.wait()) {
      array->array.release = nullptr;  // nobody can look after it any more: it is never given back
    } else if (releaser != nullptr) {
      releaser(nullptr, &array);
    }
  }
}

DeviceArray DeviceArray::import(OwnedSchema schema, OwnedDeviceArray array, Releaser releaser) {
  auto storage = std::make_shared<Storage>(releaser);
  storage->array = std::move(array);
  storage->schema = share_schema(std::move(schema), releaser);
  return import_storage(std::move(storage));
}

DeviceArray DeviceArray::import(std::shared_ptr<const ParsedSchema> schema, OwnedDeviceArray array,
                                Releaser releaser) {
  auto storage = std::make_shared<Storage>(releaser);
  storage->array = std::move(array);
  storage->schema = std::move(schema);
  return import_storage(std::move(storage));
}

DeviceArray DeviceArray::import_storage(std::shared_ptr<Storage> storage) {
  const ArrowDeviceArray& root = *storage->array.get();
  const Type* type = &storage->schema->type;
  storage->device = from_arrow_device(root.device_type, root.device_id);
  check_event(root, storage->device);
  validate_array(*type, root.array);
  return DeviceArray(std::move(storage), type, &root.array, root.array.offset, root.array.length);
}

DeviceArray DeviceArray::import(OwnedSchema schema, OwnedArray array, Device device,
                                OwnedEvent event) {
  auto storage = std::make_shared<Storage>();
  ArrowDeviceArray& root = *storage->array.get();
  array.move(&root.array);
  root.device_type = device.type;
  root.device_id = to_arrow_device_id(device);
  root.sync_event = event.get().get();
  storage->event = std::move(event);
  storage->schema = share_schema(std::move(schema));
  return import_storage(std::move(storage));
}

void DeviceArray::wait(StreamHandle stream, std::shared_ptr<const void> owner) const {
  wait_event(device(), stream, sync_event());
  // Where there is no runtime, there is no work that could still read the memory.
  const Backend* backend = find_backend(device().type);
  if (backend != nullptr && backend->has_streams()) record_stream(stream, std::move(owner));
}

void DeviceArray::record_stream(StreamHandle stream, std::shared_ptr<const void> owner) const {
  storage_->recorded_streams.add(device(), stream, std::move(owner));
}

int64_t DeviceArray::known_null_count() const noexcept {
  if (type_->layout == Layout::kNull) return length_;
  if (validity() == nullptr || length_ == 0) return 0;
  const bool whole = offset_ == node_->offset && length_ == node_->length;
  return whole && node_->null_count >= 0 ? node_->null_count : -1;
}

int64_t DeviceArray::null_count() const {
  if (const int64_t known = known_null_count(); known >= 0) return known;
  return length_ - count_set_bits(wait_for_validity(), offset_, length_);
}

bool DeviceArray::has_nulls() const {
  if (const int64_t known = known_null_count(); known >= 0) return known > 0;
  return has_unset_bits(wait_for_validity(), offset_, length_);
}

bool DeviceArray::is_known_to_be_valid() const {
  if (const int64_t known = known_null_count(); known >= 0) return known == 0;
  if (!is_host_readable(device())) return false;
  const bool can_ask = !sync_event() || find_backend(device().type) != nullptr;
  return can_ask && is_ready() && !has_unset_bits(validity(), offset_, length_);
}

const uint8_t* DeviceArray::wait_for_validity() const {
  if (!is_host_readable(device())) {
    raise_buffer_error(
        "the nulls of an array on ", to_string(device()),
        " are not counted, and the host cannot read its validity bitmap: give the "
        "producer's array a null_count, copy it to the CPU first, or convert it with "
        "nulls=\"fill\", \"nan\" or \"mask\", which need no count");
  }
  synchronize();
  return validity();
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

DeviceArray DeviceArray::field(int64_t i) const {
  if (type_->layout != Layout::kStruct) {
    raise_type_error("fields are parts of a struct, this is ", to_string(*type_));
  }
  return child(i).with_nulls_of(*this);
}

DeviceArray DeviceArray::with_nulls_of(const DeviceArray& parent) const {
  const bool is_here = is_host_readable(parent.device());
  const int64_t null_count = is_here ? parent.null_count() : parent.known_null_count();
  if (null_count == 0 || type_->layout == Layout::kNull) return *this;
  if (!type_->has_validity()) {
    raise_buffer_error("the struct has nulls and its field \"", type_->name(), "\" of type ",
                       to_string(*type_),
                       " has no validity bitmap to take them: fill or "
                       "drop the nulls first");
  }
  if (!is_here) return with_nulls_on_device(parent);
  parent.synchronize();
  uint8_t* target;
  Buffer bits = Buffer::allocate((length_ + 7) / 8, &target);
  if (const uint8_t* own = validity(); own != nullptr) {
    and_bits(parent.validity(), parent.offset_, own, offset_, length_, target);
  } else {
    copy_bits(parent.validity(), parent.offset_, length_, target);
  }
  return with_validity(bits, length_ - count_set_bits(bits.data(), 0, length_));
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

DeviceArray DeviceArray::indices() const {
  dictionary();  // raises when there is none
  OwnedSchema schema = export_schema();
  schema->dictionary->release(schema->dictionary);
  schema->dictionary = nullptr;
  schema->flags &= ~int64_t{ARROW_FLAG_DICTIONARY_ORDERED};
  OwnedArray array = share_array(*this);
  array->dictionary->release(array->dictionary);
  array->dictionary = nullptr;
  return derive(std::move(schema), std::move(array));
}

DeviceArray DeviceArray::validity_array() const {
  ArrayParts parts;
  parts.length = length_;
  parts.offset = offset_;
  parts.buffers.push_back(Buffer());
  parts.buffers.push_back(Buffer(storage_, validity(), 0));
  return derive(make_nested_schema("b", {}), make_array(std::move(parts)));
}

DeviceArray DeviceArray::buffer_array(int64_t i, const Dtype& dtype, int64_t count) const {
  ArrayParts parts;
  parts.length = count;
  parts.buffers = {Buffer(), Buffer(storage_, buffer(i), count * dtype.itemsize())};
  return derive(make_schema(dtype), make_array(std::move(parts)));
}

DeviceArray DeviceArray::with_validity(Buffer validity, int64_t null_count) const {
  if (!type_->has_validity()) {
    raise_buffer_error("an array of ", to_string(*type_),
                       " has no validity bitmap to hold a mask: ", "cast it to a type that has");
  }
  return replace_validity(shift_bits(validity, offset_ % 8, length_), null_count, {});
}

DeviceArray DeviceArray::replace_validity(Buffer bits, int64_t null_count, OwnedEvent event) const {
  const int64_t kept = offset_ % 8;  // what a bit offset cannot lose to the pointers
  const int64_t moved = offset_ - kept;
  ArrayParts parts;
  parts.length = length_;
  parts.null_count = bits.data() == nullptr ? 0 : null_count;
  parts.offset = kept;
  parts.buffers.push_back(std::move(bits));
  for (int64_t i = 1; i < node_->n_buffers; ++i) {
    parts.buffers.push_back(
        Buffer(storage_, offset_pointer(device(), buffer(i), bytes_per_rows(*type_, i, moved)), 0));
  }
  const DeviceArray whole(storage_, type_, node_, moved, kept + length_);
  for (int64_t i = 0; i < node_->n_children; ++i) {
    parts.children.push_back(share_array(whole.child(i)));
  }
  if (type_->dictionary != nullptr) parts.dictionary = share_array(dictionary());
  OwnedSchema schema = export_schema();
  if (null_count != 0) schema->flags |= ARROW_FLAG_NULLABLE;
  OwnedArray made = make_array(std::move(parts));
  return event ? import(std::move(schema), std::move(made), device(), std::move(event))
               : derive(std::move(schema), std::move(made));
}

DeviceArray DeviceArray::derive(OwnedSchema schema, OwnedArray array) const {
  OwnedDeviceArray derived;
  array.move(&derived->array);
  derived->device_type = storage_->array->device_type;
  derived->device_id = storage_->array->device_id;
  derived->sync_event = sync_event().get();
  return import(std::move(schema), std::move(derived));
}

OwnedSchema DeviceArray::export_schema() const {
  OwnedSchema schema;
  share_tree(*type_->schema, std::shared_ptr<const void>(storage_->schema), schema.get());
  return schema;
}

OwnedArray share_array(const DeviceArray& array) {
  OwnedArray shared;
  share_tree(*array.node_, std::shared_ptr<const void>(array.storage_), shared.get());
  const bool whole = array.offset_ == array.node_->offset && array.length_ == array.node_->length;
  shared->offset = array.offset_;
  shared->length = array.length_;
  if (array.type_->layout == Layout::kNull) {
    shared->null_count = array.length_;
  } else if (!whole) {
    shared->null_count = array.validity() == nullptr ? 0 : -1;
  }
  if (array.type_->layout == Layout::kStruct && array.is_known_to_be_valid()) {
    move_offset_to_fields(shared.get());
  }
  if (is_host_readable(array.device())) tidy_for_export(shared.get());
  return shared;
}

OwnedArray DeviceArray::export_array() const {
  if (!is_host_readable(device())) {
    raise_buffer_error("an array on ", to_string(device()),
                       " cannot be handed out as host memory: use the device interface "
                       "(__arrow_c_device_array__) or copy it to the CPU first");
  }
  synchronize();
  return share_array(*this);
}

OwnedDeviceArray DeviceArray::export_device_array() const {
  OwnedDeviceArray exported;
  share_array(*this).move(&exported->array);
  exported->device_type = storage_->array->device_type;
  exported->device_id = to_arrow_device_id(device());
  exported->sync_event = sync_event().get();
  return exported;
}

}  // namespace arrowdl
