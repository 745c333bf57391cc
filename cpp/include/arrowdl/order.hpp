// Orders a consumer after an array's event.
#pragma once

#include <memory>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Who waits for an array's event before a consumer uses the memory.
struct Order {
  enum Kind {
    kHost,           ///< the host: the consumer has no stream
    kDefaultStream,  ///< the host; the consumer names no stream, and `stream` is its default
    kStream,         ///< the consumer's `stream`, which is recorded
    kNone,           ///< the consumer itself (DLPack's stream -1)
  };
  Kind kind = kHost;
  StreamHandle stream = {};
  std::shared_ptr<const void> owner = {};  ///< keeps `stream` alive, if known
  /// `stream` may not live as long as the memory: it is not recorded. The caller releases the
  /// tensor after its work (`release_after`).
  bool is_borrowed = false;
};

/// Records the default stream of the array's device, if it has one, for a consumer that names none
/// and may compute there, or copy there from memory that the host reads: then also that of the
/// current device.
void record_default_stream(const DeviceArray& array);

/// Orders a consumer of `array` after its event. Raises BufferError if the event cannot be waited
/// for.
void order_consumer(const DeviceArray& array, const Order& order);

ARROWDL_END_NAMESPACE
