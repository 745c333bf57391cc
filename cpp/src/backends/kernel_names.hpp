// The names of the kernels, and the errors of a driver that cannot load them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "arrowdl/backend.hpp"

ARROWDL_BEGIN_NAMESPACE

// The names of `Kernel` in its order.
constexpr const char* kKernelNames[] = {
    "unpack_bits",   "copy_set",  "and_bits",     "count_bits", "gather_columns",
    "find_lists",    "find_runs", "scan_chunks",  "add_totals", "write_offsets",
    "measure_lists", "pad_rows",  "copy_strided", "pack_bits"};
static_assert(std::size(kKernelNames) == static_cast<std::size_t>(Kernel::kPackBits) + 1,
              "one name for each Kernel");

// In CUresult and hipError_t.
// Why an image of kernels cannot be used: it is invalid, or the driver has no compiler for it.
constexpr int kNoKernels[] = {200, 209, 218, 221, 222, 223, 300, 302, 303};

ARROWDL_END_NAMESPACE
