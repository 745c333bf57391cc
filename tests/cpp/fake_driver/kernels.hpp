// The kernels, compiled for the CPU, which the fake driver runs on its streams.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace arrowdl::testing::fake {

/// How many threads a kernel has, in one dimension.
struct Grid {
  unsigned blocks;
  unsigned threads;
};

/// An argument of 8 bytes: a pointer, or a number, which may be an address.
struct Argument {
  std::uintptr_t value = 0;
  bool is_pointer = false;
};

/// A launch of a kernel, with a copy of its arguments.
using Run = std::function<void(const Grid& grid)>;
struct Launch {
  Run run;
  std::vector<Argument> arguments;
};
struct Kernel {
  const char* name;
  Launch (*bind)(void** arguments);
};

/// The kernel of that name, or nullptr.
const Kernel* find_kernel(const char* name) noexcept;

}  // namespace arrowdl::testing::fake
