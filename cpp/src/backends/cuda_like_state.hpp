// The state of a device of CUDA or HIP, and how it is made current.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "backends/cuda_like_runtime.hpp"

namespace arrowdl {

/// The mode of stream capture, the same number in both.
constexpr int kRelaxedCapture = 2;

/// The kernels of bitmap.cu that have no `Kernel`: `KernelOps` has functions for them.
constexpr std::size_t kFirstOfEnum = 7;
constexpr std::size_t kKernelCount = kFirstOfEnum + static_cast<std::size_t>(Kernel::kPackBits) + 1;

enum class Memory { kDevice, kHost, kManaged };

inline Memory find_memory(const Device& device) noexcept {
  switch (device.type) {
    case kDLCUDAHost:
    case kDLROCMHost:
      return Memory::kHost;
    case kDLCUDAManaged:
      return Memory::kManaged;
    default:
      return Memory::kDevice;
  }
}

struct CudaLikeRuntime::DeviceState {
  std::mutex mutex;
  std::deque<StreamHandle> idle;  ///< returned streams, some with pending work
  std::optional<StreamHandle> work;
  std::atomic<bool> has_pools{false};  ///< set to false if an allocation finds no pool
  void* pool = nullptr;                ///< arrowdl's own, made by the first allocation
  bool has_tried_pool = false;
  bool has_no_kernels = false;  ///< they cannot be compiled or loaded
  std::string image;            ///< of kernels that were compiled; lives as long as the module
  void* module = nullptr;       ///< the kernels, loaded on first use
  void* kernels[kKernelCount] = {};
};

/// Makes the device current on this thread, and relaxes the capture mode, so that events can be
/// queried while another thread captures a graph. The destructor restores both.
class CudaLikeRuntime::Scope {
 public:
  Scope(CudaLikeRuntime& runtime, const Device& device) : runtime_(runtime) {
    check(device);
    before_ = runtime.enter(device);
    relax_capture(device);
  }
  /// Makes the device of `stream` current.
  Scope(CudaLikeRuntime& runtime, const Device& device, StreamHandle stream) : runtime_(runtime) {
    check(device);
    before_ = runtime.enter_stream(device, stream);
    relax_capture(device);
  }
  ~Scope() {
    const auto& exchange = runtime_.calls_.exchange_capture_mode;
    if (exchange.function != nullptr) runtime_.run(exchange, &capture_mode_);
    runtime_.leave(before_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  void check(const Device& device) const {
    runtime_.process_.require_current(device, runtime_.name());
    runtime_.find_state(device);
  }

  void relax_capture(const Device& device) {
    const auto& exchange = runtime_.calls_.exchange_capture_mode;
    if (exchange.function == nullptr) return;
    if (const int status = runtime_.run(exchange, &capture_mode_); status != 0) {
      runtime_.leave(before_);
      runtime_.raise(device, exchange.name, status);
    }
  }

  CudaLikeRuntime& runtime_;
  int before_ = 0;
  int capture_mode_ = kRelaxedCapture;
};

}  // namespace arrowdl
