// Layouts that hold the same kind of data.
#pragma once

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

inline bool is_list(const Type& type) {
  switch (type.layout) {
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
    case Layout::kFixedSizeList:
      return true;
    default:
      return false;
  }
}

inline bool is_union(const Type& type) {
  return type.layout == Layout::kSparseUnion || type.layout == Layout::kDenseUnion;
}

inline bool is_nested(const Type& type) {
  return is_list(type) || is_union(type) || type.layout == Layout::kStruct;
}

/// Bytes and strings. Bytes that an extension reads as a number are not among them.
inline bool is_binary(const Type& type) {
  return type.layout == Layout::kBinary || type.layout == Layout::kLargeBinary ||
         type.layout == Layout::kBinaryView || type.is_fixed_size_binary;
}

ARROWDL_END_NAMESPACE
