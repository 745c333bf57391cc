// Copies tensors to aligned memory.
#include "tensor/align_tensor.hpp"

#include <utility>

#include "arrowdl/make_tensor.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

ARROWDL_BEGIN_NAMESPACE

OwnedTensor align_tensor(OwnedTensor tensor, std::size_t alignment) {
  TensorView view = view_tensor(tensor);
  if (view.device.type != kDLCPU || reinterpret_cast<uintptr_t>(view.data) % alignment == 0 ||
      view.size() == 0) {
    return tensor;
  }
  uint8_t* target = nullptr;
  const Buffer copy = Buffer::allocate(view.nbytes(), &target);
  copy_contiguous(view, target);
  view.data = target;
  view.set_contiguous_strides();
  return make_tensor(view, copy.owner(), DLPACK_FLAG_BITMASK_IS_COPIED);
}

ARROWDL_END_NAMESPACE
