// Compiles the kernels for the CPU, with replacements for CUDA's keywords and built-in variables.
#include "kernels.hpp"

#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

struct Index {
  unsigned x = 0;
};
thread_local Index gridDim, blockDim, blockIdx, threadIdx;

struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};

int __popc(unsigned bits) { return __builtin_popcount(bits); }

// Several streams may run at once, each on memory of its own.
template <typename T>
void atomicAdd(T* target, T value) {
  *target += value;
}
template <typename T>
void atomicMax(T* target, T value) {
  if (*target < value) *target = value;
}

}  // namespace

#define __device__
#define __global__
#include "backends/kernels/bitmap.cu"
#include "backends/kernels/elements.cu"
#include "backends/kernels/gather.cu"
#include "backends/kernels/offsets.cu"
#undef __device__
#undef __global__

namespace arrowdl::testing::fake {
namespace {

template <typename T>
T copy_argument(const void* argument) {
  T value;
  std::memcpy(&value, argument, sizeof(T));
  return value;
}

template <typename T>
void list_argument(const T& value, std::vector<Argument>* arguments) {
  if constexpr (std::is_pointer_v<T> || std::is_same_v<T, long long>) {
    std::uintptr_t number;
    std::memcpy(&number, &value, sizeof(number));
    arguments->push_back({number, std::is_pointer_v<T>});
  }
}

template <typename... Args, std::size_t... Is>
Launch bind_all(void (*kernel)(Args...), void** arguments, std::index_sequence<Is...>) {
  const std::tuple<Args...> given{copy_argument<Args>(arguments[Is])...};
  Launch launch;
  (list_argument(std::get<Is>(given), &launch.arguments), ...);
  launch.run = [kernel, given](const Grid& grid) {
    gridDim.x = grid.blocks;
    blockDim.x = grid.threads;
    for (blockIdx.x = 0; blockIdx.x < grid.blocks; ++blockIdx.x) {
      for (threadIdx.x = 0; threadIdx.x < grid.threads; ++threadIdx.x) {
        std::apply(kernel, given);
      }
    }
  };
  return launch;
}

template <typename... Args>
constexpr auto indices_of(void (*)(Args...)) {
  return std::index_sequence_for<Args...>{};
}

template <auto kernel>
Launch bind(void** arguments) {
  return bind_all(kernel, arguments, indices_of(kernel));
}

constexpr Kernel kKernels[] = {
    {"unpack_bits", bind<unpack_bits>},
    {"copy_set", bind<copy_set>},
    {"and_bits", bind<and_bits>},
    {"count_bits", bind<count_bits>},
    {"gather_columns", bind<gather_columns>},
    {"find_lists", bind<find_lists>},
    {"find_runs", bind<find_runs>},
    {"scan_chunks", bind<scan_chunks>},
    {"add_totals", bind<add_totals>},
    {"write_offsets", bind<write_offsets>},
    {"measure_lists", bind<measure_lists>},
    {"pad_rows", bind<pad_rows>},
    {"copy_strided", bind<copy_strided>},
    {"pack_bits", bind<pack_bits>},
};

}  // namespace

const Kernel* find_kernel(const char* name) noexcept {
  for (const Kernel& kernel : kKernels) {
    if (std::strcmp(kernel.name, name) == 0) return &kernel;
  }
  return nullptr;
}

}  // namespace arrowdl::testing::fake
