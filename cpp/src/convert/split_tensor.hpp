// Splits arrays into the memory that their tensors are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/nulls.hpp"
#include "arrowdl/tensor_view.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The bits of an array, one for `repeat` consecutive elements.
struct BitParts {
  DeviceArray level;  ///< whose memory they are in: not that of its child, if that was decoded
  TensorView bytes;   ///< 1-D uint8
  int64_t offset;     ///< of the first bit in them
  int64_t length;     ///< in bits
  int64_t repeat;
};

/// The parts of the tensor of an array, zero-copy, for consumers that unpack bits and replace nulls
/// themselves, on a device without arrowdl's kernels.
struct TensorParts {
  std::optional<TensorView> values;  ///< the elements in physical order, 1-D; empty for booleans
  std::optional<BitParts> bits;      ///< the elements of booleans
  std::vector<BitParts> validity;    ///< of the levels that may have nulls; all of them count
  std::vector<int64_t> shape;        ///< of the tensor, in physical order
  std::vector<int64_t> axes;         ///< the position of each dimension in that order
};

/// Splits `array`, which must outlive the values. `parents` are the structs that it is a `child`
/// of, whose nulls count as well. Raises BufferError for nulls that `nulls` refuses, as `to_dlpack`
/// does, and for types that are not one tensor.
TensorParts split_tensor(const DeviceArray& array, const Nulls& nulls,
                         const std::vector<DeviceArray>& parents = {});

ARROWDL_END_NAMESPACE
