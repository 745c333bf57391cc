// Copies of whole arrays between devices.
#pragma once

#include <memory>
#include <optional>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

struct CopyOptions {
  /// Runs the copies, and so comes before what it is given later: one of the device that is not the
  /// CPU, of the target's when neither is. None: a stream of arrowdl's.
  std::optional<Stream> stream = {};
  std::shared_ptr<const void> stream_owner = {};  ///< keeps its handle good, if known
  bool non_blocking = true;                       ///< whether the copies may still be under way
};

/// The rows of `array` in new memory on `device`, which carries one event for all of the copies:
/// nested values and dictionaries too, and of each buffer the bytes that the window takes. `array`
/// itself where it lies there already; memory that the host can read is only labelled anew for the
/// CPU. A CPU array carries no event: then the host waits, as it does for offsets that it has to
/// know and cannot read. Raises BufferError where a device has no runtime, for a stream that is
/// captured into a graph, and for layouts whose sizes no device knows (string and binary views).
DeviceArray copy_to(const DeviceArray& array, const Device& device,
                    const CopyOptions& options = {});

}  // namespace arrowdl
