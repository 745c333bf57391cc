// Computes the lengths of lists.
#include <algorithm>

#include "array/row_access.hpp"
#include "arrowdl/list_tensors.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "compute/list_offsets.hpp"
#include "convert/host_tensor.hpp"

namespace arrowdl {

OwnedTensor list_lengths(const ListParts& parts, int64_t max_length) {
  check_list_offsets(parts.offsets, parts.values.length());
  TensorView view;
  view.dtype = find_dtype("int64");
  view.push_dim(parts.offsets.length() - 1);
  view.set_contiguous_strides();
  return make_host_tensor(view, [&](uint8_t* target) {
    auto* lengths = reinterpret_cast<int64_t*>(target);
    visit_list_offsets(parts.offsets, [&](auto zero) {
      const ElementReader<decltype(zero)> offsets(parts.offsets, 1);
      for (int64_t i = 0; i < view.shape[0]; ++i) lengths[i] = offsets[i + 1] - offsets[i];
      if (max_length < 0) return;
      for (int64_t i = 0; i < view.shape[0]; ++i) lengths[i] = std::min(lengths[i], max_length);
    });
  });
}

}  // namespace arrowdl
