// Tensors to Arrow arrays.
#pragma once

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl {

/// How tensors of two and more dimensions are written.
enum class TensorLayout {
  kAuto,              ///< fixed_shape_tensor
  kFixedShapeTensor,  ///< arrow.fixed_shape_tensor, permuted dense rows zero-copy
  kList,              ///< nested FixedSizeList, C order only
};

enum class BoolAs { kBool8, kBits };

struct ToArrowOptions {
  Copy copy = Copy::kIfNeeded;
  TensorLayout layout = TensorLayout::kAuto;
  BoolAs bool_as = BoolAs::kBool8;
};

/// The tensor as an Arrow array that owns it: dimension 0 becomes the rows, a 0-D tensor one row.
/// On error the tensor is released. Raises BufferError for what Arrow can't carry (see the type
/// map) or what `options.copy` forbids. The tensor's memory is there once `event`, which the array
/// carries on, has happened; where the host has to read it, it waits.
DeviceArray to_arrow(OwnedTensor tensor, const ToArrowOptions& options = {}, OwnedEvent event = {});

/// `array`, null also where the 1-D bool tensor `mask`, whose memory is there, is not `valid`.
/// Raises ValueError when lengths or devices differ.
DeviceArray apply_mask(const DeviceArray& array, const OwnedTensor& mask, bool valid = true);

}  // namespace arrowdl
