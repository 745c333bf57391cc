// Arrow arrays to tensors.
#pragma once

#include <string>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

namespace arrowdl {

/// What to do about nulls.
enum class Nulls {
  kRaise,  ///< BufferError when there is one, at any level
  kFill,   ///< zero (False) in their place: a copy where there may be any
  kNan,    ///< NaN in their place for floating types, BufferError for others
  kKeep,   ///< the bytes that lie there; for callers that hand out the mask as well
};

struct ToDlpackOptions {
  Copy copy = Copy::kIfNeeded;
  Nulls nulls = Nulls::kRaise;
  bool as_cpu = false;  ///< label host-readable memory of another device (pinned, managed) CPU
  Order order = {};
};

/// Whether `array` has a single-tensor reading at all, and a message that says why not and what
/// to do. nullptr-free: an empty string means it has.
std::string why_not_tensor(const Type& type);

/// The tensor that `type` describes for `length` rows: dtype, shape and strides, data nullptr.
/// Raises BufferError when there is none.
TensorView describe_tensor(const Type& type, int64_t length);

/// The array as a tensor that keeps it alive: read-only and zero-copy where the layout allows,
/// else new memory of its device (IS_COPIED set). What reads it is ordered after the array's event
/// as `options.order` says; new memory that the host cannot read is written by the stream of that
/// order, and where it names none the host waits. Raises BufferError as the type map says, for an
/// event that nobody can wait for, and on devices without kernels of arrowdl's (all but CUDA's) for
/// bits and nulls.
OwnedTensor to_dlpack(const DeviceArray& array, const ToDlpackOptions& options = {});
/// The same as a struct of before DLPack 1.0, which has no flags.
OwnedTensor to_legacy_dlpack(const DeviceArray& array, const ToDlpackOptions& options = {});

/// True where every level of the element is valid: a bool tensor of the shape of
/// `to_dlpack(array)`, in new memory that is made and ordered as there.
OwnedTensor to_mask(const DeviceArray& array, const Order& order = {});

/// True where a row of `array` itself is valid: a bool tensor of shape (length,). Any type. In new
/// memory as `to_mask`'s; the CPU's for arrays without a bitmap.
OwnedTensor to_row_mask(const DeviceArray& array, const Order& order = {});

/// Fields of a struct side by side: (length, total columns), one dtype, C order, new memory.
/// A field with inner dimensions contributes that many columns. Raises BufferError, naming the
/// field, when dtypes differ.
OwnedTensor stack_fields(const DeviceArray& array, Nulls nulls);

}  // namespace arrowdl
