// Orders the consumer of an array after the array's event.
#include "arrowdl/order.hpp"

namespace arrowdl {

void order_consumer(const DeviceArray& array, const Order& order) {
  switch (order.kind) {
    case Order::kHost:
      array.synchronize();
      break;
    case Order::kDefaultStream:
      array.synchronize();
      array.record_stream(order.stream, order.owner);
      break;
    case Order::kStream:
      array.wait(order.stream, order.owner);
      break;
    case Order::kNone:
      break;
  }
}

}  // namespace arrowdl
