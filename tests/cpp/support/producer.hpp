// A producer of DLPack tensors that counts its deletions.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "arrowdl/owned.hpp"

namespace arrowdl::testing {

/// A float32 tensor with the values 0, 1, 2, … in memory, and the given shape and strides.
struct Producer {
  std::vector<float> values;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  DLManagedTensorVersioned managed{};
  int deletions = 0;

  Producer(std::vector<int64_t> extents, std::vector<int64_t> steps, std::size_t size)
      : values(size), shape(std::move(extents)), strides(std::move(steps)) {
    std::iota(values.begin(), values.end(), 0.0F);
    managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<Producer*>(self->manager_ctx)->deletions;
    };
    managed.dl_tensor = {values.data(),
                         {kDLCPU, 0},
                         static_cast<int32_t>(shape.size()),
                         {kDLFloat, 32, 1},
                         shape.data(),
                         strides.data(),
                         0};
  }

  OwnedTensor take() { return OwnedTensor(&managed); }
};

}  // namespace arrowdl::testing
