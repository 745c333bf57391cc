// Compares fixed-shape tensors with nested fixed-size lists.
#include "cast/common_shape.hpp"

#include <algorithm>

ARROWDL_BEGIN_NAMESPACE

std::vector<int64_t> effective_permutation(const TensorMetadata& tensor) {
  const std::vector<int64_t>& own = tensor.permutation;
  return std::is_sorted(own.begin(), own.end()) ? std::vector<int64_t>() : own;
}

const Type* find_innermost(const Type& lists, const std::vector<int64_t>& shape) {
  const Type* type = &lists;
  for (const int64_t extent : shape) {
    const bool is_plain = !find_metadata(*type->schema, kExtensionNameKey);
    const bool is_this_list = type->layout == Layout::kFixedSizeList && type->list_size == extent;
    if (!is_this_list || !is_plain) return nullptr;
    type = &type->children[0];
  }
  return type;
}

const std::vector<int64_t>* find_common_shape(const Type& from, const Type& to) {
  const bool is_flat = from.extension == Extension::kFixedShapeTensor;
  const Type& tensor = is_flat ? from : to;
  if (tensor.extension != Extension::kFixedShapeTensor || tensor.tensor->shape.size() < 2) {
    return nullptr;
  }
  const std::vector<int64_t>& shape = tensor.tensor->shape;
  const Type* innermost = find_innermost(is_flat ? to : from, shape);
  return innermost != nullptr && effective_permutation(*tensor.tensor).empty() ? &shape : nullptr;
}

ARROWDL_END_NAMESPACE
