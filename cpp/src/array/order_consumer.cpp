// Orders the consumer of an array after the array's event.
#include "arrowdl/backends.hpp"
#include "arrowdl/order.hpp"

ARROWDL_BEGIN_NAMESPACE

void record_default_stream(const DeviceArray& array) {
  const Device device = array.device();
  if (device.type == kDLCPU) return;
  Backend* const backend = find_backend(device.type);
  StreamOps* const streams = backend == nullptr ? nullptr : backend->streams();
  const auto stream = streams == nullptr ? std::nullopt : streams->default_stream();
  if (!stream) return;
  array.record_stream(*stream);
  if (!is_host_readable(device)) return;
  const int64_t current = find_current_device(device.type).value_or(device.id);
  if (current != device.id) {
    array.storage()->recorded_streams.add({device.type, current}, *stream, {});
  }
}

void order_consumer(const DeviceArray& array, const Order& order) {
  switch (order.kind) {
    case Order::kHost:
    case Order::kDefaultStream:
      array.synchronize();
      if (is_host_readable(array.device())) record_default_stream(array);
      if (order.kind == Order::kDefaultStream) array.record_stream(order.stream, order.owner);
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
