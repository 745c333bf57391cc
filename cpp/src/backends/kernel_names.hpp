// The names of the kernels, and the errors of a driver that cannot load them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "arrowdl/backend.hpp"

ARROWDL_BEGIN_NAMESPACE

// fill_unset_* in the order of their itemsize, and the names of `Kernel` in its order.
constexpr const char* kKernelNames[] = {
    "unpack_bits",   "fill_unset_1", "fill_unset_2", "fill_unset_4",    "fill_unset_8",
    "fill_unset_16", "and_bits",     "count_bits",   "gather_elements", "gather_bits",
    "find_lists",    "find_runs",    "scan_chunks",  "add_totals",      "write_offsets",
    "measure_lists", "pad_rows",     "copy_strided", "pack_bits"};
constexpr std::size_t kUnpackBits = 0;
constexpr std::size_t kAndBits = 6;
constexpr std::size_t kFirstOfEnum = 7;
static_assert(std::size(kKernelNames) ==
                  kFirstOfEnum + static_cast<std::size_t>(Kernel::kPackBits) + 1,
              "one name for each Kernel");

/// The index of fill_unset_* for elements of that size.
inline std::size_t find_fill(int64_t itemsize) noexcept {
  std::size_t kernel = 1;
  for (int64_t width = 1; width < itemsize; width *= 2) ++kernel;
  return kernel;
}

// In CUresult and hipError_t.
// Why an image of kernels cannot be used: it is invalid, or the driver has no compiler for it.
constexpr int kNoKernels[] = {200, 209, 218, 221, 222, 223, 300, 302, 303};

ARROWDL_END_NAMESPACE
