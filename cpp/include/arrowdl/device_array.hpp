// The one object of the bridge: an ArrowDeviceArray with its ArrowSchema, owned and immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "arrowdl/deferred_release.hpp"
#include "arrowdl/device.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/schema.hpp"

namespace arrowdl {

/// What a DeviceArray and everything made from it share: the C structs and the parsed type.
struct Storage : private Counted {
  explicit Storage(Releaser by = nullptr) noexcept : releaser(by) {}
  /// Releases what the structs hold, after the work of the streams that used it.
  ~Storage();

  /// Bytes of the buffers, without reading any memory: those of strings and binary, whose sizes
  /// only their offsets tell, are not among them.
  int64_t known_nbytes() const;

  std::shared_ptr<const ParsedSchema> schema;
  OwnedDeviceArray array;
  Device device;
  Releaser releaser;
  OwnedEvent event;  ///< what array.sync_event is, where arrowdl recorded it
  mutable RecordedStreams recorded_streams;
};

/// A window of rows into one node of an Arrow array, on any device. A value type: copies, slices
/// and fields share the memory and keep it alive. Immutable and safe to use from many threads.
///
/// A node of a type with nulls above it (a struct with nulls, say) is never handed out without
/// them: `field` folds the parent's validity into the child's.
class DeviceArray {
 public:
  DeviceArray() = default;

  /// Takes over `schema` and `array`, checks both, and raises ValueError when they are malformed
  /// or contradict each other (they are released then). Checked: everything the structs say of
  /// themselves, without reading device memory. Not checkable: that buffers are as long as the
  /// lengths say.
  static DeviceArray import(OwnedSchema schema, OwnedDeviceArray array,
                            Releaser releaser = nullptr);
  /// The same for one of many arrays of a `schema`.
  static DeviceArray import(std::shared_ptr<const ParsedSchema> schema, OwnedDeviceArray array,
                            Releaser releaser = nullptr);
  /// The same for an array of arrowdl's own making on `device`, whose memory is there once `event`
  /// has happened.
  static DeviceArray import(OwnedSchema schema, OwnedArray array, Device device = {},
                            OwnedEvent event = {});
  /// `length` elements of `dtype` (not complex) in `data`, none null: what `import` would make of
  /// them, with nothing to parse or to check.
  static DeviceArray make_primitive(const Dtype& dtype, int64_t length, Buffer data, Device device,
                                    OwnedEvent event = {});

  explicit operator bool() const noexcept { return storage_ != nullptr; }
  const Type& type() const noexcept { return *type_; }
  Device device() const noexcept { return storage_->device; }
  /// The producer's event (see ArrowDeviceArray.sync_event), or null.
  EventHandle sync_event() const noexcept { return EventHandle(storage_->array->sync_event); }
  int64_t length() const noexcept { return length_; }
  /// First row of the window, counted from the start of the node's buffers.
  int64_t offset() const noexcept { return offset_; }
  /// Buffer `i` of the node, not moved by offset(); nullptr when absent.
  const void* buffer(int64_t i) const noexcept { return node_->buffers[i]; }
  template <typename T>
  const T* buffer_as(int64_t i) const noexcept {
    return static_cast<const T*>(buffer(i));
  }
  int64_t buffer_count() const noexcept { return node_->n_buffers; }
  /// The validity bitmap, bit `offset()` first; nullptr when every row is valid.
  const uint8_t* validity() const noexcept {
    if (node_->null_count == 0 || !type_->has_validity()) return nullptr;
    return buffer_as<uint8_t>(0);
  }
  /// Nulls in the window. Counts the bitmap when it has to; raises BufferError when that would
  /// mean to read memory that the host can't.
  int64_t null_count() const;
  /// The same where that takes no reading of memory, else -1.
  int64_t known_null_count() const noexcept;
  /// Whether null_count() is not 0: of the bitmap no more is read than to the first null.
  bool has_nulls() const;
  /// Whether the memory is there: no event, or one that has happened. Does not wait.
  bool is_ready() const { return is_complete(device(), sync_event()); }
  /// Waits on the host until the memory is there.
  void synchronize() const { synchronize_event(device(), sync_event()); }
  /// Makes what `stream` is given from now on run when the memory is there, and counts it among
  /// those that use it (`record_stream`). The host does not wait.
  void wait(StreamHandle stream, std::shared_ptr<const void> owner = {}) const;
  /// The memory is given back only when the work that `stream` holds at that time is done. For a
  /// stream that reads the memory without arrowdl having ordered it. The stream must live as long;
  /// `owner`, if given, sees to that. Raises BufferError where there is no backend to ask.
  void record_stream(StreamHandle stream, std::shared_ptr<const void> owner = {}) const;
  /// Keeps the memory alive for as long as it is held.
  const std::shared_ptr<const Storage>& storage() const noexcept { return storage_; }

  /// Rows `start` to `start + length`, zero-copy. Raises IndexError when they are not all there.
  DeviceArray slice(int64_t start, int64_t length) const;
  /// The same window with `lead` rows more before it. Requires that they are there: lead <=
  /// offset().
  DeviceArray widened(int64_t lead) const noexcept {
    return DeviceArray(storage_, type_, node_, offset_ - lead, length_ + lead);
  }
  /// Child `i` as it lies under this window: of a struct or sparse union the same rows, of a
  /// fixed-size list rows times list_size, of other layouts the whole child. This node's own nulls
  /// are NOT in it.
  DeviceArray child(int64_t i) const;
  /// Field `i` of a struct: `child(i)`, null wherever the struct itself is. Makes a new bitmap
  /// where the struct has nulls or, on a device, may have; see `with_nulls_of`.
  DeviceArray field(int64_t i) const;
  /// The same rows, null also where `parent`, which has as many and lies on the same device, is:
  /// what `field` does to a child. On a device with kernels they make the bitmap, in memory of its
  /// own that is there once the result's event has happened; nobody counts its nulls then. Raises
  /// BufferError on one without, unless the parent is known to have no nulls.
  DeviceArray with_nulls_of(const DeviceArray& parent) const;
  /// Index of the field named `name`. Raises ValueError when none or several have that name.
  int64_t field_index(const std::string& name) const;
  /// The dictionary's values, whole. Raises ValueError when this is not dictionary encoded.
  DeviceArray dictionary() const;
  /// The codes of a dictionary array as plain integers, zero-copy. Raises ValueError otherwise.
  DeviceArray indices() const;
  /// The validity bitmap as a boolean array, zero-copy. Requires validity().
  DeviceArray validity_array() const;
  /// The first `count` elements of `dtype` in buffer `i`, zero-copy: the window's offset is not in
  /// it. Requires a plain `dtype` (not complex) and that the buffer is as long.
  DeviceArray buffer_array(int64_t i, const Dtype& dtype, int64_t count) const;
  /// Bytes of the buffers that the window takes, those of nested values and dictionaries included.
  int64_t nbytes() const;
  /// The same rows with `validity` (bit 0 first, nullptr data: all valid) instead of the node's.
  DeviceArray with_validity(Buffer validity, int64_t null_count) const;

  // Exports: new C structs that keep the memory alive by themselves, released on any thread.
  OwnedSchema export_schema() const;
  /// The window as an ArrowArray (its offset field set). Raises BufferError unless the host can
  /// read the memory and no event is pending.
  OwnedArray export_array() const;
  OwnedDeviceArray export_device_array() const;

 private:
  friend struct Storage;
  friend OwnedArray share_array(const DeviceArray& array);

  static DeviceArray import_storage(std::shared_ptr<Storage> storage);

  /// `array`, made of this one's memory, with its device and event.
  DeviceArray derive(OwnedSchema schema, OwnedArray array) const;
  /// Whether no row is null, as far as that can be told without waiting.
  bool is_known_to_be_valid() const;
  /// The bitmap once it is there. Raises BufferError where the host cannot read it.
  const uint8_t* wait_for_validity() const;
  /// `with_nulls_of` by the kernels of a device.
  DeviceArray with_nulls_on_device(const DeviceArray& parent) const;
  /// The same rows with the bitmap `bits`, whose bit `offset() % 8` is the first row's; all of it
  /// is there once `event` has happened, where there is one.
  DeviceArray replace_validity(Buffer bits, int64_t null_count, OwnedEvent event) const;

  DeviceArray(std::shared_ptr<const Storage> storage, const Type* type, const ArrowArray* node,
              int64_t offset, int64_t length) noexcept
      : storage_(std::move(storage)), type_(type), node_(node), offset_(offset), length_(length) {}

  std::shared_ptr<const Storage> storage_;
  const Type* type_ = nullptr;
  const ArrowArray* node_ = nullptr;
  int64_t offset_ = 0;
  int64_t length_ = 0;
};

/// The window as an ArrowArray on whatever device it lies, without its event: for building a
/// larger array around it. The caller carries device and event on.
OwnedArray share_array(const DeviceArray& array);

/// Checks `array` against `type` as DeviceArray::import does. Raises ValueError.
void validate_array(const Type& type, const ArrowArray& array);

}  // namespace arrowdl
