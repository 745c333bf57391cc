// Loads and launches the kernels of CUDA and HIP.
#include <algorithm>
#include <exception>
#include <iterator>
#include <mutex>

#include "backends/cuda_like_state.hpp"

namespace arrowdl {
namespace {

// Why an image of kernels cannot be used: it is invalid, or the driver has no compiler for it.
constexpr int kNoKernels[] = {200, 209, 218, 221, 222, 223, 300, 302, 303};

// fill_unset_* in the order of their itemsize, and the names of `Kernel` in its order.
constexpr const char* kKernelNames[] = {
    "unpack_bits",   "fill_unset_1", "fill_unset_2", "fill_unset_4",    "fill_unset_8",
    "fill_unset_16", "and_bits",     "count_bits",   "gather_elements", "gather_bits",
    "find_lists",    "find_runs",    "scan_chunks",  "add_totals",      "write_offsets",
    "measure_lists", "pad_rows",     "copy_strided", "pack_bits"};
constexpr std::size_t kUnpackBits = 0;
constexpr std::size_t kAndBits = 6;
static_assert(std::size(kKernelNames) == kKernelCount, "one name for each Kernel");

std::size_t find_fill(int64_t itemsize) noexcept {
  std::size_t kernel = 1;
  for (int64_t width = 1; width < itemsize; width *= 2) ++kernel;
  return kernel;
}

constexpr unsigned kBlock = 256;
/// Enough to fill any GPU; in larger launches each thread handles several elements.
constexpr int64_t kMaxBlocks = 65535;

}  // namespace

KernelOps* CudaLikeRuntime::kernels(const Device& device) noexcept {
  return find_memory(device) == Memory::kDevice && load_kernels(device) ? this : nullptr;
}

/// Whether the kernels can be loaded, which the first call for a device tries: not without the
/// driver's compiler of PTX, nor without hiprtc. Then the frameworks' operations convert arrays.
/// Other errors, such as too little memory, are left to the launch.
bool CudaLikeRuntime::load_kernels(const Device& device) noexcept {
  if (calls_.launch_kernel.function == nullptr) return false;
  const bool is_compiled = text_.kernels == nullptr;
  try {
    const Scope scope(*this, device);
    DeviceState& state = find_state(device);
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.module != nullptr) return true;
    if (state.has_no_kernels) return false;
    if (is_compiled) state.image = compile_kernels();
    state.has_no_kernels = is_compiled && state.image.empty();
    if (state.has_no_kernels) return false;
    const void* const image = is_compiled ? state.image.data() : text_.kernels;
    const int status = run(calls_.load_module, &state.module, image);
    if (status == 0) return true;
    state.module = nullptr;
    state.has_no_kernels = is_compiled || std::find(std::begin(kNoKernels), std::end(kNoKernels),
                                                    status) != std::end(kNoKernels);
    return !state.has_no_kernels;
  } catch (const std::exception&) {  // the device is missing or has failed: its next call says it
    return !is_compiled;
  }
}

/// Requires a Scope of the device. A module belongs to its context, and lives as long.
void* CudaLikeRuntime::find_kernel(const Device& device, std::size_t index) {
  DeviceState& state = find_state(device);
  const std::lock_guard<std::mutex> lock(state.mutex);
  void*& kernel = state.kernels[index];
  if (kernel != nullptr) return kernel;
  if (state.module == nullptr) {
    require(device, calls_.load_module, &state.module, text_.kernels);
  }
  require(device, calls_.find_kernel, &kernel, state.module, kKernelNames[index]);
  return kernel;
}

void CudaLikeRuntime::launch_at(const Device& device, std::size_t kernel, int64_t size,
                                void** arguments, StreamHandle stream) {
  if (size <= 0) return;
  const int64_t blocks = std::min((size - 1) / kBlock + 1, kMaxBlocks);
  const Scope scope(*this, device);
  require(device, calls_.launch_kernel, find_kernel(device, kernel), static_cast<unsigned>(blocks),
          1U, 1U, kBlock, 1U, 1U, 0U, stream.get(), arguments, static_cast<void**>(nullptr));
}

void CudaLikeRuntime::launch(const Device& device, Kernel kernel, int64_t size, void** arguments,
                             StreamHandle stream) {
  launch_at(device, kFirstOfEnum + static_cast<std::size_t>(kernel), size, arguments, stream);
}

void CudaLikeRuntime::unpack_bits(const Device& device, uint8_t* target, int64_t size,
                                  const Bitmap& bitmap, StreamHandle stream) {
  Bitmap given = bitmap;
  void* arguments[] = {&target, &size, &given.bits, &given.offset, &given.repeat};
  launch_at(device, kUnpackBits, size, arguments, stream);
}

void CudaLikeRuntime::fill_unset(const Device& device, void* target, int64_t size,
                                 const Bitmap& bitmap, const void* item, int64_t itemsize,
                                 StreamHandle stream) {
  if (bitmap.bits == nullptr) return;
  Bitmap given = bitmap;
  void* arguments[] = {&target,       &size,         &given.bits,
                       &given.offset, &given.repeat, const_cast<void*>(item)};
  launch_at(device, find_fill(itemsize), size, arguments, stream);
}

void CudaLikeRuntime::and_bits(const Device& device, uint8_t* target, int64_t shift, int64_t count,
                               const Bitmap& a, const Bitmap& b, StreamHandle stream) {
  Bitmap first = a;
  Bitmap second = b;
  void* arguments[] = {&target,       &shift,       &count,         &first.bits,   &first.offset,
                       &first.repeat, &second.bits, &second.offset, &second.repeat};
  launch_at(device, kAndBits, (shift + count + 7) / 8, arguments, stream);
}

}  // namespace arrowdl
