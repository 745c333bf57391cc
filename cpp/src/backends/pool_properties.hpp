// The structs by which CUDA and HIP describe memory pools; HIP's have the same fields.
#pragma once

#include <cstddef>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// CUmemLocation.
struct Location {
  int type = 1;  // a device
  int id = 0;
};
/// CUmemPoolProps.
struct PoolProperties {
  int allocation_type = 1;  // "pinned", the only one
  int handle_types = 0;     // not for other processes
  Location location;
  void* security = nullptr;
  std::size_t max_size = 0;
  unsigned char reserved[56] = {};
};
static_assert(sizeof(PoolProperties) == 88 && sizeof(void*) == 8, "as in cuda.h");
/// CUmemAccessDesc.
struct AccessDescription {
  Location location;
  int flags = 3;  // read and write
};
/// A value of CUmemPool_attribute.
constexpr int kReleaseThreshold = 4;

ARROWDL_END_NAMESPACE
