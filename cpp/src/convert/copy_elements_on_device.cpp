// Makes new tensors in memory that the host cannot read.
#include "convert/copy_elements_on_device.hpp"

#include <memory>
#include <optional>

#include "arrowdl/backends.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/order.hpp"
#include "compute/pack_bits.hpp"
#include "convert/array_as_tensor.hpp"
#include "convert/fill_value.hpp"
#include "sync/stream_work.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::optional<StreamHandle> find_stream(const Order& order) {
  return order.kind == Order::kStream ? std::optional<StreamHandle>(order.stream) : std::nullopt;
}

/// Builds a tensor in new device memory, which one stream writes.
class DeviceTensorBuilder {
 public:
  DeviceTensorBuilder(const DeviceArray& array, const TensorView& view, const Order& order)
      : device_(array.device()),
        view_(view),
        order_(order),
        work_(require_memory(device_, "copy"), device_, find_stream(order), order.owner) {
    work_.hold(array.storage());
    wait_event(device_, work_.stream(), array.sync_event());
    memory_ = work_.allocate(device_, view_.nbytes());
  }

  void copy(const uint8_t* source) {
    if (view_.dtype->code == kDLBool && find_kernels(device_) != nullptr) {
      return copy_bools(source);
    }
    work_.memory().copy(device_, memory_->address(), device_, source, view_.nbytes(),
                        work_.stream());
  }
  void unpack(const Bitmap& bitmap) {
    require_kernels(device_).unpack_bits(device_, memory_->address(), view_.size(), bitmap,
                                         work_.stream());
  }
  /// Writes `item` in place of the elements whose bit is not set. `source` may be the target.
  void copy_set(const uint8_t* source, const Bitmap& bitmap, const Item& item) {
    require_kernels(device_).copy_set(device_, target(), view_.size(), source, bitmap, item.data(),
                                      view_.dtype->itemsize(), work_.stream());
  }
  uint8_t* target() const noexcept { return memory_->address(); }

  OwnedTensor finish() {
    view_.data = memory_->address();
    view_.device = device_;
    const Buffer bytes(memory_, view_.data, view_.nbytes());
    const DeviceArray made = DeviceArray::make_primitive(*find_dtype("uint8"), bytes.size(), bytes,
                                                         device_, work_.record());
    if (order_.kind == Order::kNone) made.synchronize();
    order_consumer(made, order_);
    return make_tensor(view_, made.storage(), DLPACK_FLAG_BITMASK_IS_COPIED);
  }

 private:
  /// arrow.bool8 reads any byte other than 0 as true, DLPack consumers only 1: packed to bits, and
  /// unpacked.
  void copy_bools(const uint8_t* source) {
    const int64_t count = view_.size();
    const std::shared_ptr<DeviceMemory> bits = work_.allocate(device_, bitmap_size(count));
    pack_on_device(require_kernels(device_), device_, bits->address(), source, count, 1, BitRule{},
                   work_.stream());
    unpack({bits->address(), 0});
  }

  const Device device_;
  TensorView view_;
  const Order& order_;
  StreamWork work_;
  std::shared_ptr<DeviceMemory> memory_;
};

/// The validity bits of `level`, repeated for its `size` elements.
Bitmap repeat_bits(const DeviceArray& level, int64_t size) {
  return {level.validity(), level.offset(), size / level.length()};
}

bool has_any_validity(const NestingLevels& levels) {
  for (const DeviceArray& level : levels) {
    if (level.validity() != nullptr) return true;
  }
  return false;
}

OwnedTensor make_empty(const TensorView& view, const DeviceArray& array) {
  return make_tensor(view, array.storage(), DLPACK_FLAG_BITMASK_IS_COPIED);
}

}  // namespace

OwnedTensor copy_elements_on_device(const ArrayAsTensor& reading, const Nulls& nulls,
                                    const Order& order) {
  const DeviceArray& array = reading.levels.front();
  const TensorView& view = reading.view;
  const bool replaces_nulls = nulls.replaces();
  const Item item = replaces_nulls ? make_fill_value(*view.dtype, nulls) : Item{};
  if (view.size() == 0) return make_empty(view, array);
  DeviceTensorBuilder builder(array, view, order);
  const uint8_t* source = builder.target();
  if (reading.is_bits) {
    const DeviceArray& leaf = reading.leaf();
    builder.unpack({leaf.buffer_as<uint8_t>(1), leaf.offset()});
  } else if (!replaces_nulls || view.dtype->code == kDLBool || !has_any_validity(reading.levels)) {
    builder.copy(view.data);
  } else {
    source = view.data;  // copied with the nulls of the first level replaced
  }
  for (const DeviceArray& level : reading.levels) {
    if (!replaces_nulls || level.validity() == nullptr) continue;
    builder.copy_set(source, repeat_bits(level, view.size()), item);
    source = builder.target();
  }
  return builder.finish();
}

OwnedTensor copy_view_on_device(const DeviceArray& array, const TensorView& view,
                                const Order& order) {
  if (view.size() == 0) return make_empty(view, array);
  DeviceTensorBuilder builder(array, view, order);
  builder.copy(view.data);
  return builder.finish();
}

OwnedTensor unpack_validity_on_device(const ArrayAsTensor& reading, const Order& order) {
  const DeviceArray& array = reading.levels.front();
  TensorView view = reading.view;
  view.dtype = find_dtype("bool");
  if (view.size() == 0) return make_empty(view, array);
  DeviceTensorBuilder builder(array, view, order);
  builder.unpack(repeat_bits(array, view.size()));
  for (std::size_t i = 1; i < reading.levels.size(); ++i) {
    const DeviceArray& level = reading.levels[i];
    if (level.validity() == nullptr) continue;
    builder.copy_set(builder.target(), repeat_bits(level, view.size()), Item{});
  }
  return builder.finish();
}

OwnedTensor unpack_row_validity_on_device(const DeviceArray& array, TensorView view,
                                          const Order& order) {
  view.device = array.device();
  if (view.size() == 0) return make_empty(view, array);
  DeviceTensorBuilder builder(array, view, order);
  builder.unpack(repeat_bits(array, view.size()));
  return builder.finish();
}

OwnedTensor make_device_tensor(KernelWork& work, TensorView view,
                               const std::shared_ptr<DeviceMemory>& memory, const Order& order) {
  view.data = memory->address();
  view.device = work.device();
  const int64_t size = view.nbytes();
  const DeviceArray made = DeviceArray::make_primitive(
      *find_dtype("uint8"), size, to_buffer(memory, size), work.device(), work.record());
  if (order.kind == Order::kNone) made.synchronize();
  order_consumer(made, order);
  return make_tensor(view, made.storage(), DLPACK_FLAG_BITMASK_IS_COPIED);
}

OwnedTensor read_elements(KernelWork& work, const DeviceArray& array, const Nulls& nulls) {
  if (array.type().layout == Layout::kRunEndEncoded) {
    return read_elements(work, decode_run_ends(array), nulls);
  }
  const ArrayAsTensor reading = view_as_tensor(array);
  const bool fills = replaces_nulls(reading, nulls);
  const bool is_bool = reading.view.dtype->code == kDLBool;  // bits, or bytes other than 0 and 1
  if (is_bool || fills) {
    const Order order{Order::kStream, work.stream(), work.stream_owner()};
    return copy_elements_on_device(reading, fills ? nulls : Nulls::kKeep, order);
  }
  // The stream is not recorded, as it would be for a consumer: `work` holds the memory.
  work.use(array.storage(), array.sync_event());
  return make_tensor(reading.view, array.storage(), DLPACK_FLAG_BITMASK_READ_ONLY);
}

ARROWDL_END_NAMESPACE
