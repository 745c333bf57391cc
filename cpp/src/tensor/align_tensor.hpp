// Copies tensors to aligned memory.
#pragma once

#include <cstddef>

#include "arrowdl/owned.hpp"

namespace arrowdl {

/// `tensor` itself, or a contiguous copy if its CPU memory does not start at a multiple of
/// `alignment` bytes, which is 64 at most.
OwnedTensor align_tensor(OwnedTensor tensor, std::size_t alignment);

}  // namespace arrowdl
