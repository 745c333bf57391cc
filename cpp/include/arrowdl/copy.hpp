// Copies of whole arrays between devices.
#pragma once

#include <memory>
#include <optional>

#include "arrowdl/allocator.hpp"
#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

struct CopyOptions {
  /// The stream that copies: of the device that is not the CPU, or of the target if neither is.
  /// Empty: a stream of arrowdl's own.
  std::optional<StreamHandle> stream = {};
  std::shared_ptr<const void> stream_owner = {};  ///< keeps `stream` alive, if known
  bool non_blocking = true;                       ///< whether this may return before the copies end
  /// Whether pageable host memory is copied to CUDA and ROCm devices through pinned memory of
  /// arrowdl: the call returns after reading it, without a wait for the device (but see
  /// `set_staging_limit`). Otherwise the driver decides. Memory that is known to be pinned (by its
  /// device type, or by the CUDA driver) is copied directly.
  bool pin = true;
  /// What allocates memory on a cuda or rocm device; empty: the default allocator.
  Allocator allocator = {};
};

/// Copies the rows of `array`, nested values and dictionaries included, to new memory on `device`.
/// It copies only those bytes of a buffer that belong to these rows. The result has one event for
/// all copies. Returns `array` itself if it is on `device`; host-readable memory is only labelled
/// as CPU memory. The host waits for a copy to the CPU, which has no event, for the first and last
/// offsets of lists and strings on a device, and for pinned and managed memory whose nulls are not
/// counted. Raises BufferError if a device has no runtime, for a stream of another runtime or under
/// graph capture, for memory of a context (OpenCL), and for string and binary views on a device,
/// whose sizes the host cannot read.
DeviceArray copy_array(const DeviceArray& array, const Device& device, const CopyOptions& options);

/// The same on a stream of arrowdl's own, without a wait for copies to a device.
DeviceArray copy_array(const DeviceArray& array, const Device& device);

/// Copies the rows of `array` to new memory on its own device, and shares nothing with it: nested
/// values, dictionaries and the data of views are copied. The host waits for the event of a CPU
/// array; otherwise the result has an event for the copies. Raises BufferError if the device has no
/// runtime.
DeviceArray duplicate(const DeviceArray& array);

/// Copies the elements of `source` to `target` on another device, on `stream` of that device.
/// `source` is ready and readable by the host; both are dense, with the same dtype, number of
/// elements and order of dimensions. Keeps `source` until the copy ends; the caller keeps `target`.
/// Pageable memory is copied through pinned memory. Raises BufferError as `copy_array` does.
void copy_tensor(OwnedTensor source, const DLTensor& target, StreamHandle stream);

constexpr int64_t kDefaultStagingLimit = int64_t{256} << 20;

/// How many bytes of pinned memory this process keeps for copies from pageable memory, 256 MiB by
/// default. Copies allocate them in blocks of 64 KiB to 4 MiB, and reuse them. A copy that finds
/// all blocks in use waits on the host, through the wait guard, until an earlier copy is done. One
/// block is always allowed, and one for each further thread that copies. Blocks above a lowered
/// limit are freed when no copy uses them. Raises ValueError for less than 0.
void set_staging_limit(int64_t bytes);
int64_t staging_limit() noexcept;

/// The bytes of that memory that are allocated now.
int64_t staging_bytes() noexcept;

/// The bytes that all copies have written to that memory before a device read them: a second copy
/// on the host of rows that were gathered elsewhere.
int64_t staged_bytes() noexcept;

ARROWDL_END_NAMESPACE
