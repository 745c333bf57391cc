// The kernels, compiled for the CPU, which the fake driver runs on its streams.
#pragma once

#include <functional>

namespace arrowdl::testing::fake {

/// How many threads a kernel has, in one dimension.
struct Grid {
  unsigned blocks;
  unsigned threads;
};

/// A launch of a kernel, with a copy of its arguments.
using Run = std::function<void(const Grid& grid)>;
struct Kernel {
  const char* name;
  Run (*bind)(void** arguments);
};

/// The kernel of that name, or nullptr.
const Kernel* find_kernel(const char* name) noexcept;

}  // namespace arrowdl::testing::fake
