#include "arrowdl/lists.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "compute/gather.hpp"
#include "compute/list_offsets.hpp"

namespace arrowdl {

OwnedTensor list_lengths(const ListParts& parts) {
  check_list_offsets(parts.offsets, parts.values.length());
  TensorView view;
  view.dtype = find_dtype("int64");
  view.push_dim(parts.offsets.length() - 1);
  view.set_contiguous_strides();
  int64_t* lengths = nullptr;
  const Buffer buffer = allocate_elements(view.shape[0], &lengths);
  visit_list_offsets(parts.offsets, [&](auto zero) {
    const ElementReader<decltype(zero)> offsets(parts.offsets, 1);
    for (int64_t i = 0; i < view.shape[0]; ++i) lengths[i] = offsets[i + 1] - offsets[i];
  });
  view.data = buffer.data();
  return make_tensor(view, buffer.owner(), DLPACK_FLAG_BITMASK_IS_COPIED);
}

}  // namespace arrowdl
