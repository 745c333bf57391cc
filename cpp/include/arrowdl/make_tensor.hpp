// Makes DLPack tensors that share the memory of an owner.
#pragma once

#include <cstdint>
#include <memory>

#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A versioned tensor with the memory, shape and strides of `view`. It holds `owner` until its
/// deleter runs. `flags` are DLPACK_FLAG_BITMASK_*: set IS_COPIED for memory that was made for this
/// tensor alone; IS_SUBBYTE_TYPE_PADDED comes from the dtype. Raises BufferError for packed values
/// that are not along the last dimension.
OwnedTensor make_tensor(const TensorView& view, std::shared_ptr<const void> owner, uint64_t flags);
/// The same over the memory of another tensor, with its flags.
OwnedTensor make_tensor(const TensorView& view, OwnedTensor owner);

/// The same as a struct from before DLPack 1.0, which has no flags. Raises BufferError for values
/// that are padded to bytes, since it cannot say so.
OwnedTensor make_legacy_tensor(const TensorView& view, std::shared_ptr<const void> owner);
/// Wraps `tensor`, which is versioned, in a struct from before DLPack 1.0. Its flags are lost.
OwnedTensor to_legacy(OwnedTensor tensor);

ARROWDL_END_NAMESPACE
