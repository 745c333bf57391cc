// A DLPack tensor over memory that an owner keeps.
#pragma once

#include <cstdint>
#include <memory>

#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

namespace arrowdl {

/// A versioned tensor that reads as `view` says and holds `owner` until its deleter runs. `flags`
/// are DLPACK_FLAG_BITMASK_*: IS_COPIED for memory made for this tensor alone.
OwnedTensor make_tensor(const TensorView& view, std::shared_ptr<const void> owner, uint64_t flags);
/// The same around another tensor, with its flags.
OwnedTensor make_tensor(const TensorView& view, OwnedTensor owner);

}  // namespace arrowdl
