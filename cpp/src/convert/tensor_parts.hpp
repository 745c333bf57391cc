// An array taken apart into the memory that its tensor is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "arrowdl/to_dlpack.hpp"

namespace arrowdl {

/// Bits of an array as they lie, one for `repeat` elements that follow each other.
struct BitParts {
  TensorView bytes;  ///< 1-D uint8
  int64_t offset;    ///< of the first bit in them
  int64_t length;    ///< in bits
  int64_t repeat;
};

/// An array taken apart into what its tensor is made of, all of it zero-copy: for consumers that
/// unpack bits and replace nulls by operations of their own, on a device where nobody else does.
struct TensorParts {
  std::optional<TensorView> values;  ///< the elements in physical order, 1-D; none of booleans
  std::optional<BitParts> bits;      ///< the elements of booleans
  std::vector<BitParts> validity;    ///< of the levels that may have nulls; all of them count
  std::vector<int64_t> shape;        ///< of the tensor, in physical order
  std::vector<int64_t> axes;         ///< where in that order each of its dimensions lies
};

/// Takes `array`, which has to stay as long as the parts, apart. Raises BufferError for nulls that
/// `nulls` refuses, as `to_dlpack` does, and for types with no single-tensor reading. `above` are
/// the structs that it is a `child` of, whose nulls count as well.
TensorParts split_tensor(const DeviceArray& array, Nulls nulls,
                         const std::vector<DeviceArray>& above = {});

}  // namespace arrowdl
