// The kernels of bitmap.cu, compiled for the CPU, which the fake driver runs on its streams.
#pragma once

#include <functional>

namespace arrowdl::testing::fake {

/// How many threads a kernel has, in one dimension.
struct Grid {
  unsigned blocks;
  unsigned threads;
};

/// A call of a kernel with the arguments that it was launched with, copied.
using Run = std::function<void(const Grid& grid)>;
struct Kernel {
  const char* name;
  Run (*bind)(void** arguments);
};

/// nullptr: no kernel has that name.
const Kernel* find_kernel(const char* name) noexcept;

}  // namespace arrowdl::testing::fake
