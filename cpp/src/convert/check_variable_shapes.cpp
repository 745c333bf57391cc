// Checks the shapes of variable_shape_tensor rows.
#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/list_tensors.hpp"
#include "arrowdl/owned.hpp"
#include "compute/list_offsets.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

[[noreturn]] void raise_shape_error(int64_t row, const std::string& reason) {
  raise_value_error("malformed variable_shape_tensor array: the shape of row ", row, " ", reason);
}

void check_row(int64_t row, const int32_t* shape, std::size_t ndim, int64_t count,
               const TensorMetadata& tensor) {
  int64_t size = 1;
  for (std::size_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) raise_shape_error(row, "has a negative extent");
    if (!checked_multiply(size, shape[i], &size)) raise_shape_error(row, "overflows");
  }
  if (size != count) {
    raise_shape_error(row, concat("is of ", size, " elements, the row has ", count));
  }
  for (std::size_t i = 0; i < tensor.uniform_shape.size() && size > 0; ++i) {
    if (tensor.uniform_shape[i] && *tensor.uniform_shape[i] != shape[i]) {
      raise_shape_error(row, concat("has ", shape[i], " in dimension ", i, ", uniform_shape says ",
                                    *tensor.uniform_shape[i]));
    }
  }
}

template <typename Offset>
void check_rows(const DeviceArray& offset_array, const OwnedTensor& shapes,
                const TensorMetadata& tensor) {
  const ElementReader<Offset> offsets(offset_array, 1);
  const auto* shape = static_cast<const int32_t*>(shapes->data);
  const auto ndim = static_cast<std::size_t>(shapes->shape[1]);
  for (int64_t row = 0; row < shapes->shape[0]; ++row, shape += ndim) {
    check_row(row, shape, ndim, int64_t{offsets[row + 1]} - offsets[row], tensor);
  }
}

}  // namespace

void check_variable_shapes(const ListParts& parts, const OwnedTensor& shapes,
                           const TensorMetadata& tensor) {
  visit_list_offsets(parts.offsets,
                     [&](auto zero) { check_rows<decltype(zero)>(parts.offsets, shapes, tensor); });
}

ARROWDL_END_NAMESPACE
