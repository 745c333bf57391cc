// A tensor at an address that a consumer wants.
#pragma once

#include <cstddef>

#include "arrowdl/owned.hpp"

namespace arrowdl {

/// `tensor`, or where its memory is the CPU's and does not begin at a multiple of `alignment` bytes
/// (64 at most), a contiguous copy that does.
OwnedTensor align_tensor(OwnedTensor tensor, std::size_t alignment);

}  // namespace arrowdl
