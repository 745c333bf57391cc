// How a consumer of an array is ordered after the array's event.
#pragma once

#include <memory>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// How a consumer is ordered after an array's event.
struct Order {
  enum Kind {
    kHost,           ///< it has no stream: the host waits
    kDefaultStream,  ///< it names none: as kHost, and `stream`, its default one, uses the memory
    kStream,         ///< its `stream` waits, and counts among those that use the memory
    kNone,           ///< it waits by itself (DLPack's stream -1)
  };
  Kind kind = kHost;
  StreamHandle stream = {};
  std::shared_ptr<const void> owner = {};  ///< keeps the handle of `stream` good, if known
};

/// Makes a consumer of `array` safe, as `order` says. Raises BufferError when nobody can wait for
/// the array's event.
void order_consumer(const DeviceArray& array, const Order& order);

}  // namespace arrowdl
