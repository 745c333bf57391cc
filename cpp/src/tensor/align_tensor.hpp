// Copies tensors to aligned memory.
#pragma once

#include <cstddef>

#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// `tensor` itself, or a contiguous copy if its CPU memory does not start at a multiple of
/// `alignment` bytes, which is 64 at most.
OwnedTensor align_tensor(OwnedTensor tensor, std::size_t alignment);

ARROWDL_END_NAMESPACE
