// Converts Arrow arrays to tensors.
#pragma once

#include <string>
#include <vector>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/nulls.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

ARROWDL_BEGIN_NAMESPACE

struct ToDlpackOptions {
  Copy copy = Copy::kIfNeeded;
  Nulls nulls = Nulls::kRaise;
  bool as_cpu = false;  ///< label host-readable memory of another device (pinned, managed) as CPU
  Order order = {};
};

/// Why arrays of `type` cannot be one tensor, and what to do. Empty if they can.
std::string why_not_tensor(const Type& type);

/// Dtype, shape and strides of the tensor of `length` rows of `type`; its data is nullptr. Raises
/// BufferError if there is no such tensor.
TensorView describe_tensor(const Type& type, int64_t length);

/// The array as a tensor that keeps it alive: read-only and zero-copy where the layout allows,
/// else new memory of its device (IS_COPIED set). The consumer is ordered after the array's event
/// as `options.order` says. New memory that the host cannot read is written on the stream of that
/// order; without one, the host waits. Raises BufferError for types without a tensor (see the type
/// map), for nulls that `options.nulls` refuses, for copies that `options.copy` forbids, for an
/// event that cannot be waited for, and for nulls on devices without kernels. Bits there are
/// unpacked on the host, which waits for a copy of them.
OwnedTensor to_dlpack(const DeviceArray& array, const ToDlpackOptions& options = {});
/// The same for `array.field(i)` if `array.find_plain_field(i)` finds it, else an empty tensor.
/// Faster, for batches of many columns.
OwnedTensor share_plain_field(const DeviceArray& array, int64_t i);
/// The same as a struct of a DLPack version before 1.0, which has no flags.
OwnedTensor to_legacy_dlpack(const DeviceArray& array, const ToDlpackOptions& options = {});

/// A bool tensor of the shape of `to_dlpack(array)`: true where the element is valid at every
/// level. New memory, which is ordered as that of `to_dlpack`.
OwnedTensor to_mask(const DeviceArray& array, const Order& order = {});

/// A bool tensor of shape (length,): true where the row of `array` itself is valid. Any type. New
/// memory as of `to_mask`; on the CPU for arrays without a bitmap.
OwnedTensor to_row_mask(const DeviceArray& array, const Order& order = {});

/// The fields of a struct as the columns of a matrix: shape (length, columns), one dtype, C order,
/// new memory, which is ordered as that of `to_dlpack`. A field with inner dimensions takes one
/// column for each element of a row. Raises BufferError, naming the field, if dtypes differ, a
/// field has no tensor or `nulls` refuses its nulls.
OwnedTensor stack_fields(const DeviceArray& array, const Nulls& nulls, const Order& order = {});
/// The same with an entry of `nulls` for each field.
OwnedTensor stack_fields(const DeviceArray& array, const std::vector<Nulls>& nulls,
                         const Order& order = {});

ARROWDL_END_NAMESPACE
