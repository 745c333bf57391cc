// Copies of whole arrays between devices.
#pragma once

#include <memory>
#include <optional>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

struct CopyOptions {
  /// Runs the copies, and so comes before what it is given later: one of the device that is not the
  /// CPU, of the target's when neither is. None: a stream of arrowdl's.
  std::optional<StreamHandle> stream = {};
  std::shared_ptr<const void> stream_owner = {};  ///< keeps its handle good, if known
  bool non_blocking = true;                       ///< whether the copies may still be under way
  /// Whether pageable memory of the host goes to devices of CUDA and ROCm through pinned memory of
  /// arrowdl's: it has been read then, and the host has not waited for the device (but see
  /// `set_staging_limit`). Else the driver takes it as it can. Memory that is known
  /// to be pinned (by its device type, on CUDA by the driver too) goes as it is.
  bool pin = true;
};

/// The rows of `array` in new memory on `device`, which carries one event for all of the copies:
/// nested values and dictionaries too, and of each buffer the bytes that the window takes. `array`
/// itself where it lies there already; memory that the host can read is only labelled anew for the
/// CPU. The host waits where a CPU array is asked for, which carries no event, for the ends of
/// lists and strings that lie on a device, and for pinned and managed memory whose nulls nobody has
/// counted. Raises BufferError where a device has no runtime or a stream is not of it, for a stream
/// that is captured into a graph, for memory that belongs to a context (OpenCL), and for layouts
/// whose sizes no device knows (string and binary views).
DeviceArray copy_array(const DeviceArray& array, const Device& device,
                       const CopyOptions& options = {});

/// The rows of `array` in new memory on its own device, with nothing of the old: nested values,
/// dictionaries and the data of views too. Of a CPU array the host waits for the event; another one
/// carries an event for the copies. Raises BufferError where the device has no runtime.
DeviceArray duplicate(const DeviceArray& array);

/// Copies the elements of `source`, which the host can read and which are there, to `target`: of
/// another device, of the same dtype and number of elements, and like them dense, in whatever order
/// the dimensions lie. `stream` of that device does it and keeps `source` as long; the caller sees
/// to it that `target` stays. Pageable memory goes through pinned memory. Raises BufferError as
/// `copy_array` does.
void copy_tensor(OwnedTensor source, const DLTensor& target, StreamHandle stream);

constexpr int64_t kDefaultStagingLimit = int64_t{256} << 20;

/// How many bytes of pinned memory this process keeps for copies from pageable memory, 256 MiB by
/// default. They are allocated as copies need them, in blocks of 64 KiB to 4 MiB, and used again; a
/// copy that finds all of them in use waits on the host, through the wait guard, until an earlier
/// one is done. One block there may always be, and one for each further thread that copies. Blocks
/// beyond a lower limit are given back once no copy uses them. Raises ValueError for less than 0.
void set_staging_limit(int64_t bytes);
int64_t staging_limit() noexcept;

/// The bytes of it that there are now.
int64_t staging_bytes() noexcept;

}  // namespace arrowdl
