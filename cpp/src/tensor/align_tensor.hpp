// Gives a tensor the alignment that a consumer needs.
#pragma once

#include <cstddef>

#include "arrowdl/owned.hpp"

namespace arrowdl {

/// `tensor` itself, or a contiguous copy where its CPU memory does not start at a multiple of
/// `alignment` bytes, which is 64 at most.
OwnedTensor align_tensor(OwnedTensor tensor, std::size_t alignment);

}  // namespace arrowdl
