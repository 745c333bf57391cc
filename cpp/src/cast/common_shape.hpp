// Compares fixed-shape tensors with nested fixed-size lists.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The permutation of a fixed-shape tensor; empty for C order.
std::vector<int64_t> effective_permutation(const TensorMetadata& tensor);

/// The type of the elements of `lists`, nested fixed-size lists of the sizes `shape`; nullptr for
/// other types.
const Type* find_innermost(const Type& lists, const std::vector<int64_t>& shape);

/// The shape that two types have in common: one is a fixed_shape_tensor in C order of two and more
/// dimensions, the other one nested lists of these sizes. Else nullptr.
const std::vector<int64_t>* find_common_shape(const Type& from, const Type& to);

ARROWDL_END_NAMESPACE
