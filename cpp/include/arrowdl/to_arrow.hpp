// Converts tensors to Arrow arrays.
#pragma once

#include <string>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The Arrow type of tensors of two and more dimensions.
enum class TensorLayout {
  kAuto,              ///< fixed_shape_tensor; lists for `arrowdl.*` elements in C order
  kFixedShapeTensor,  ///< arrow.fixed_shape_tensor, permuted dense rows zero-copy
  kList,              ///< nested FixedSizeList, C order only
};

enum class BoolAs { kBool8, kBits };

struct ToArrowOptions {
  Copy copy = Copy::kIfNeeded;
  TensorLayout layout = TensorLayout::kAuto;
  BoolAs bool_as = BoolAs::kBool8;
  /// False: no extension type. Needs `kList` and `kBits`; raises BufferError for elements that
  /// Arrow has only as one, such as bfloat16.
  bool extensions = true;
  /// Arrow's format of int64 elements that are times, such as "tsn:" or "tDs"; empty for numbers.
  /// The lowest int64, NumPy's NaT, becomes null. The host has to be able to read the memory.
  std::string time_format = {};
};

/// The tensor as an Arrow array that owns it: dimension 0 becomes the rows, a 0-D tensor one row.
/// The memory is ready when `event` completes; the array keeps the event, and the host waits for it
/// where it has to read the memory. Copies are on the tensor's device, by kernels if the host
/// cannot read it; without kernels the host makes them dense, of a copy, and copies them back.
/// Raises BufferError for what Arrow cannot carry (see the type map) and for copies that
/// `options.copy` forbids; the tensor is released then.
DeviceArray to_arrow(OwnedTensor tensor, const ToArrowOptions& options = {}, OwnedEvent event = {});

/// `array`, null also where the 1-D bool tensor `mask` is not `valid`. The mask is ready when
/// `event` completes. On a device, kernels make the bitmap: it is ready when the result's event
/// completes, and its nulls are not counted. Without kernels the host makes it, of a copy of the
/// mask. Raises ValueError if lengths or devices differ, BufferError for a mask that the host can
/// neither read nor copy.
DeviceArray apply_mask(const DeviceArray& array, OwnedTensor mask, bool valid = true,
                       OwnedEvent event = {});

ARROWDL_END_NAMESPACE
