// Makes tensors in new host memory.
#pragma once

#include <cstdint>

#include "arrowdl/device.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/wait.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A tensor of the dtype, shape and strides of `view`, in new host memory of `size` bytes that
/// `fill(uint8_t*)` writes. IS_COPIED is set.
template <typename Fill>
OwnedTensor make_host_tensor(TensorView view, int64_t size, const Fill& fill) {
  uint8_t* target = nullptr;
  const Buffer memory = Buffer::allocate(size, &target);
  if (size > 0) work_guarded(size, [&] { fill(target); });
  view.data = target;
  view.device = Device{};
  return make_tensor(view, memory.owner(), DLPACK_FLAG_BITMASK_IS_COPIED);
}

/// The same for a view without gaps.
template <typename Fill>
OwnedTensor make_host_tensor(const TensorView& view, const Fill& fill) {
  return make_host_tensor(view, view.nbytes(), fill);
}

ARROWDL_END_NAMESPACE
