// Orders the consumer of an array after the array's event.
#include "arrowdl/backends.hpp"
#include "arrowdl/order.hpp"

ARROWDL_BEGIN_NAMESPACE

void record_default_stream(const DeviceArray& array) {
  if (array.device().type == kDLCPU) return;
  Backend* const backend = find_backend(array.device().type);
  StreamOps* const streams = backend == nullptr ? nullptr : backend->streams();
  if (streams == nullptr) return;
  if (const auto stream = streams->default_stream()) array.record_stream(*stream);
}

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
      if (order.is_borrowed) {
        wait_event(array.device(), order.stream, array.sync_event());
      } else {
        array.wait(order.stream, order.owner);
      }
      break;
    case Order::kNone:
      break;
  }
}

ARROWDL_END_NAMESPACE
