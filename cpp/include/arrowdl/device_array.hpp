// DeviceArray: an ArrowDeviceArray with its ArrowSchema, owned and immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "arrowdl/deferred_release.hpp"
#include "arrowdl/device.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// What the host has read of buffers of a device: of each the latest part, from byte `first` on.
struct HostParts {
  struct Part {
    const void* buffer;
    int64_t first;
    Buffer bytes;
  };
  std::mutex mutex;
  std::vector<Part> parts;
};

/// The C structs and the parsed type, which a DeviceArray shares with everything made from it.
struct Storage : private Counted {
  explicit Storage(Releaser by = nullptr) noexcept : releaser(by) {}
  /// Releases the structs once the recorded streams have done their work.
  ~Storage();

  /// The bytes of the buffers as far as the structs tell. Reads no memory, so the data of strings
  /// and binary, whose size is in the offsets, does not count.
  int64_t known_nbytes() const;

  std::shared_ptr<const ParsedSchema> schema;
  OwnedDeviceArray array;
  Device device;
  Releaser releaser;
  OwnedEvent event;  ///< owns array.sync_event where arrowdl recorded it
  mutable RecordedStreams recorded_streams;
  mutable HostParts host_parts;
};

/// A window of rows into one node of an Arrow array, on any device. A value type: copies, slices
/// and fields share the memory and keep it alive. Immutable and safe to use from many threads.
///
/// `field` folds the nulls of a struct into the child, so that no null is lost; `child` does not.
class DeviceArray {
 public:
  DeviceArray() = default;

  /// Takes over `schema` and `array`, and checks the structs without reading buffers, apart from
  /// the sizes of the data buffers of views in memory of the CPU that is ready. The sizes of other
  /// buffers cannot be checked, only that they fit the address space. Raises ValueError for structs
  /// that are malformed or contradict each other, and releases them. `releaser`, if given, releases
  /// both instead of their own callbacks.
  static DeviceArray import(OwnedSchema schema, OwnedDeviceArray array,
                            Releaser releaser = nullptr);
  /// The same for one of many arrays of one `schema`.
  static DeviceArray import(std::shared_ptr<const ParsedSchema> schema, OwnedDeviceArray array,
                            Releaser releaser = nullptr);
  /// The same for an array that arrowdl has made on `device`. Its memory is ready when `event`
  /// completes.
  static DeviceArray import(std::shared_ptr<const ParsedSchema> schema, OwnedArray array,
                            Device device = {}, OwnedEvent event = {});
  static DeviceArray import(OwnedSchema schema, OwnedArray array, Device device = {},
                            OwnedEvent event = {});
  /// An array of the `length` elements of `dtype` (not complex) in `data`, without nulls. Faster
  /// than `import`: nothing is parsed or checked.
  static DeviceArray make_primitive(const Dtype& dtype, int64_t length, Buffer data, Device device,
                                    OwnedEvent event = {});

  explicit operator bool() const noexcept { return storage_ != nullptr; }
  const Type& type() const noexcept { return *type_; }
  Device device() const noexcept { return storage_->device; }
  /// The producer's event (see ArrowDeviceArray.sync_event), or null.
  EventHandle sync_event() const noexcept { return EventHandle(storage_->array->sync_event); }
  int64_t length() const noexcept { return length_; }
  /// Row index of the window's first row in the node's buffers.
  int64_t offset() const noexcept { return offset_; }
  /// Buffer `i` of the node, from its start: offset() is not applied. nullptr when absent.
  const void* buffer(int64_t i) const noexcept { return node_->buffers[i]; }
  template <typename T>
  const T* buffer_as(int64_t i) const noexcept {
    return static_cast<const T*>(buffer(i));
  }
  int64_t buffer_count() const noexcept { return node_->n_buffers; }
  /// The validity bitmap, in which bit `offset()` is the first row's; nullptr when all rows are
  /// valid.
  const uint8_t* validity() const noexcept {
    if (node_->null_count == 0 || !type_->has_validity()) return nullptr;
    return buffer_as<uint8_t>(0);
  }
  /// `size` bytes of buffer `i` of a device from byte `first` on, as the host reads them. The host
  /// waits for a copy, once for many windows: the copy goes on to byte `end`, up to a bound.
  Buffer read_ahead(int64_t i, int64_t first, int64_t size, int64_t end) const;
  /// The row of the node's buffers after its last one.
  int64_t node_end() const noexcept { return node_->offset + node_->length; }
  /// The number of nulls in the window. Unless the count is known, the host waits for the event and
  /// counts the bitmap or a copy of it, or waits for the kernels of the device to count it. Raises
  /// BufferError if the host can neither read nor copy the bitmap.
  int64_t null_count() const;
  /// The same if it is known without reading memory, else -1.
  int64_t known_null_count() const noexcept;
  /// Whether null_count() is not 0. The host reads the bitmap up to the first null.
  bool has_nulls() const;
  /// Whether the memory is ready: no event, or a completed one. Does not wait.
  bool is_ready() const { return is_complete(device(), sync_event()); }
  /// Waits on the host until the memory is ready.
  void synchronize() const { synchronize_event(device(), sync_event()); }
  /// Later work on `stream` waits for the event; the host does not. Also records the stream
  /// (`record_stream`).
  void wait(StreamHandle stream, std::shared_ptr<const void> owner = {}) const;
  /// The same for a stream of another device, which reads the memory from there: the handles of
  /// default streams do not tell their device.
  void wait(const Device& of, StreamHandle stream, std::shared_ptr<const void> owner = {}) const;
  /// Delays the release of the memory until the work that `stream` holds at that time is done. For
  /// a stream that reads the memory without arrowdl's knowledge. The stream must outlive the
  /// memory; `owner`, if given, keeps it alive. Raises BufferError if the device has no backend.
  void record_stream(StreamHandle stream, std::shared_ptr<const void> owner = {}) const;
  /// The same for a stream of another device.
  void record_stream(const Device& of, StreamHandle stream,
                     std::shared_ptr<const void> owner = {}) const;
  /// The owner of the memory.
  const std::shared_ptr<const Storage>& storage() const noexcept { return storage_; }

  /// Rows `start` to `start + length`, zero-copy. Raises IndexError for rows outside the window.
  DeviceArray slice(int64_t start, int64_t length) const;
  /// The same window with `lead` more rows before it. Requires lead <= offset().
  DeviceArray widened(int64_t lead) const noexcept {
    return DeviceArray(storage_, type_, node_, offset_ - lead, length_ + lead);
  }
  /// The rows of child `i` that belong to this window: of a struct or sparse union the same rows,
  /// of a fixed-size list list_size rows each, of other layouts the whole child. Does NOT have the
  /// nulls of this node.
  DeviceArray child(int64_t i) const;
  /// The first element of field `i` of a struct, if the field is a tensor as it is: elements of a
  /// fixed width on the CPU, one row or more, and no nulls. For a dictionary column without null
  /// values, its codes. Otherwise nullptr: ask `field`.
  const uint8_t* find_plain_field(int64_t i) const noexcept;
  /// Field `i` of a struct, which is `child(i)` with the nulls of the struct. Makes a new bitmap
  /// if the struct has nulls or, on a device, may have nulls; see `with_nulls_of`.
  DeviceArray field(int64_t i) const;
  /// The same rows, null also where `parent` is null. `parent` has as many rows on the same device.
  /// On a device, kernels make the bitmap: it is ready when the result's event completes, and its
  /// nulls are not counted. Without kernels the host makes it, of copies for which it waits. Raises
  /// BufferError for memory that it cannot copy, unless `parent` is known to have no nulls.
  DeviceArray with_nulls_of(const DeviceArray& parent) const;
  /// Index of the field named `name`. Raises ValueError when none or several have that name.
  int64_t field_index(const std::string& name) const;
  /// The dictionary's values, whole. Raises ValueError when this is not dictionary encoded.
  DeviceArray dictionary() const;
  /// The codes of a dictionary array as plain integers, zero-copy. Raises ValueError otherwise.
  DeviceArray indices() const;
  /// The validity bitmap as a boolean array, zero-copy. Requires validity().
  DeviceArray validity_array() const;
  /// The first `count` elements of `dtype` (not complex) in buffer `i`, zero-copy: offset() is not
  /// applied. Requires that the buffer is as long.
  DeviceArray buffer_array(int64_t i, const Dtype& dtype, int64_t count) const;
  /// Bytes of the buffers that the window takes, nested values and dictionaries included.
  int64_t nbytes() const;
  /// Imports `array`, which shares this one's memory, with its device and event.
  DeviceArray derive(std::shared_ptr<const ParsedSchema> schema, OwnedArray array) const;
  DeviceArray derive(OwnedSchema schema, OwnedArray array) const;
  /// The same rows with `validity` (bit 0 first, nullptr data: all valid) instead of the node's.
  DeviceArray with_validity(Buffer validity, int64_t null_count) const;

  // Exports: new C structs that keep the memory alive. Their release may run on any thread.
  OwnedSchema export_schema() const;
  /// The window as an ArrowArray with its offset set. Waits for the event. Raises BufferError
  /// unless the host can read the memory.
  OwnedArray export_array() const;
  /// The window with its device and event, which the consumer waits for. Its `release` names no
  /// stream: arrowdl waits for the default stream of the device then, and for recorded ones.
  OwnedDeviceArray export_device_array() const;

 private:
  friend struct Storage;
  friend OwnedArray share_array(const DeviceArray& array);

  static DeviceArray import_storage(std::shared_ptr<Storage> storage);

  /// Whether all rows are known to be valid without a wait.
  bool is_known_to_be_valid() const;
  /// The bitmap where the host reads it, in which bit `*first` is the first row's: a copy of that
  /// of a device. Waits for it. Raises BufferError if the host can neither read nor copy it.
  Buffer read_validity(int64_t* first) const;
  /// `with_nulls_of` on a device.
  DeviceArray with_nulls_on_device(const DeviceArray& parent) const;
  /// The same rows with the bitmap `bits`, in which bit `offset() % 8` is the first row's. The
  /// result is ready when `event`, if given, completes.
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

/// The window as an ArrowArray, to be part of a larger array. It has no device and no event: the
/// caller passes both on.
OwnedArray share_array(const DeviceArray& array);

/// A struct array of `fields` named `names`. Raises ValueError, naming the field, when lengths or
/// devices differ.
DeviceArray make_struct(const std::vector<std::string>& names,
                        const std::vector<DeviceArray>& fields);

/// An array of `schema` without rows.
DeviceArray make_empty(std::shared_ptr<const ParsedSchema> schema, Device device = {});

/// Checks `array` against `type` as DeviceArray::import does, with `reads_sizes` also the sizes of
/// the data buffers of views, which a buffer holds. Raises ValueError.
void validate_array(const Type& type, const ArrowArray& array, bool reads_sizes = false);

ARROWDL_END_NAMESPACE
