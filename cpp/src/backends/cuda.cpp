// The backend of CUDA, on NVIDIA's driver.
#include "backends/cuda_like_runtime.hpp"
#include "backends/kernels_ptx.hpp"
#include "backends/runtimes.hpp"

// The driver's API is declared from its documentation, so that no build needs a toolkit.
// tests/cpp/backends/cuda_signatures_test.cpp compares it with cuda.h where that is installed.

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr RuntimeText kText = {
    {kDLCUDA, kDLCUDAHost, kDLCUDAManaged},
    "CUDA",
    "NVIDIA's driver",
    "CUDA_VISIBLE_DEVICES",
    "the driver is older than CUDA 10: install a newer one",
    "install the driver, or give a container access to it (docker run --gpus all)",
    kKernelsPtx,
};

struct CudaCalls : StreamCalls {
  Call<int*, int> get_device;        // device, ordinal
  Call<void**, int> retain_primary;  // context, device
  Call<void*> push_context;
  Call<void**> pop_context;
  Call<void*, void**> get_stream_context;           // stream, context
  Call<void*, void**, void**> get_stream_contexts;  // stream, context, green context; optional
  Call<void*, const void*, std::size_t, void*> copy;
  Call<void*, void*, const void*, void*, std::size_t, void*> copy_peer;
  Call<unsigned long long*, const void*, const void*> get_access;  // flags, location, memory
  Call<int*, void*, const void*> get_pool_access;  // flags, pool, location; optional
  Call<int*, int, int> get_attribute;              // result, attribute, device
  Call<int, const char**> get_error_name;
  Call<int, const char**> get_error_string;
};

template <auto Member>
constexpr Symbol<CudaCalls> row(const char* name, bool is_optional = false) {
  return {name, find_slot<CudaCalls, Member>, is_optional};
}

constexpr bool kOptional = true;

// The names without a version suffix are those of CUDA 3, with other types.
constexpr Symbol<CudaCalls> kSymbols[] = {
    row<&CudaCalls::init>("cuInit"),
    row<&CudaCalls::get_version>("cuDriverGetVersion"),
    row<&CudaCalls::count_devices>("cuDeviceGetCount"),
    row<&CudaCalls::exchange_capture_mode>("cuThreadExchangeStreamCaptureMode", kOptional),
    row<&CudaCalls::create_event>("cuEventCreate"),
    row<&CudaCalls::record_event>("cuEventRecord"),
    row<&CudaCalls::query_event>("cuEventQuery"),
    row<&CudaCalls::synchronize_event>("cuEventSynchronize"),
    row<&CudaCalls::destroy_event>("cuEventDestroy_v2"),
    row<&CudaCalls::create_stream>("cuStreamCreate"),
    row<&CudaCalls::wait_for_event>("cuStreamWaitEvent"),
    row<&CudaCalls::query_stream>("cuStreamQuery"),
    row<&CudaCalls::synchronize_stream>("cuStreamSynchronize"),
    row<&CudaCalls::destroy_stream>("cuStreamDestroy_v2"),
    row<&CudaCalls::is_capturing>("cuStreamIsCapturing"),
    row<&CudaCalls::allocate_async>("cuMemAllocAsync", kOptional),
    row<&CudaCalls::free_async>("cuMemFreeAsync", kOptional),
    row<&CudaCalls::allocate>("cuMemAlloc_v2"),
    row<&CudaCalls::free>("cuMemFree_v2"),
    row<&CudaCalls::allocate_host>("cuMemHostAlloc"),
    row<&CudaCalls::free_host>("cuMemFreeHost"),
    row<&CudaCalls::allocate_managed>("cuMemAllocManaged"),
    row<&CudaCalls::get_pointer_attribute>("cuPointerGetAttribute"),
    row<&CudaCalls::can_access_peer>("cuDeviceCanAccessPeer", kOptional),
    row<&CudaCalls::create_pool>("cuMemPoolCreate", kOptional),
    row<&CudaCalls::set_pool_attribute>("cuMemPoolSetAttribute", kOptional),
    row<&CudaCalls::set_pool_access>("cuMemPoolSetAccess", kOptional),
    row<&CudaCalls::trim_pool>("cuMemPoolTrimTo", kOptional),
    row<&CudaCalls::allocate_from_pool>("cuMemAllocFromPoolAsync", kOptional),
    row<&CudaCalls::get_access>("cuMemGetAccess", kOptional),
    row<&CudaCalls::get_pool_access>("cuMemPoolGetAccess", kOptional),
    row<&CudaCalls::get_attribute>("cuDeviceGetAttribute"),
    row<&CudaCalls::copy_peer>("cuMemcpyPeerAsync"),
    row<&CudaCalls::load_module>("cuModuleLoadData"),
    row<&CudaCalls::find_kernel>("cuModuleGetFunction"),
    row<&CudaCalls::launch_kernel>("cuLaunchKernel"),
    row<&CudaCalls::get_device>("cuDeviceGet"),
    row<&CudaCalls::retain_primary>("cuDevicePrimaryCtxRetain"),
    row<&CudaCalls::push_context>("cuCtxPushCurrent_v2"),
    row<&CudaCalls::pop_context>("cuCtxPopCurrent_v2"),
    row<&CudaCalls::get_stream_context>("cuStreamGetCtx"),
    row<&CudaCalls::get_stream_contexts>("cuStreamGetCtx_v2", kOptional),
    row<&CudaCalls::copy>("cuMemcpyAsync"),
    row<&CudaCalls::get_error_name>("cuGetErrorName"),
    row<&CudaCalls::get_error_string>("cuGetErrorString"),
};

// CUpointer_attribute and CUmemorytype.
constexpr int kMemoryType = 2;
constexpr int kBufferId = 7;
constexpr int kIsManaged = 8;
constexpr int kHostMemory = 1;
constexpr int kPoolHandle = 17;
// CUdevice_attribute.
constexpr int kConcurrentManagedAccess = 89;
constexpr int kHostNode = 134;  // from CUDA 12.2 on

// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD.
const StreamHandle kLegacyDefault(uintptr_t{1});
const StreamHandle kPerThreadDefault(uintptr_t{2});

bool is_default(StreamHandle stream) noexcept {
  return stream.is_null() || stream == kLegacyDefault || stream == kPerThreadDefault;
}

class CudaRuntime final : public CudaLikeRuntime {
 public:
  CudaRuntime(std::string library_name, const CudaCalls& calls)
      : CudaLikeRuntime(kText, std::move(library_name), calls), calls_(calls) {}

  /// The per-thread default stream (2) differs per thread, and memory may be freed on any thread.
  /// The legacy default stream (1) waits for all of them.
  StreamHandle retain_stream(const Device&, StreamHandle stream) override {
    return stream == kPerThreadDefault ? kLegacyDefault : stream;
  }

  /// It waits for the per-thread default streams.
  std::optional<StreamHandle> default_stream() const noexcept override { return kLegacyDefault; }

  bool is_pinned(const void* memory) noexcept override {
    return find_attribute(kMemoryType, memory) == kHostMemory;
  }

  bool are_of_one_block(const void* a, const void* b) noexcept override {
    const uint64_t block = find_block(a);
    return block != 0 && block == find_block(b);
  }

 protected:
  void prepare_devices(int64_t count) override {
    contexts_.resize(static_cast<std::size_t>(count));
  }

  int enter(const Device& device) override {
    require(device, calls_.push_context, find_context(device));
    return 0;
  }

  int enter_stream(const Device& device, StreamHandle stream) override {
    if (is_default(stream)) return enter(device);
    void* context = nullptr;
    require(device, calls_.get_stream_context, stream.get(), &context);
    require(device, calls_.push_context, context);
    return 0;
  }

  bool is_stream_of(const Device& device, StreamHandle stream) override {
    if (is_default(stream)) return true;
    void* context = nullptr;
    void* green = nullptr;  // of its stream, the other call's result is not the primary context
    if (calls_.get_stream_contexts.function != nullptr) {
      require(device, calls_.get_stream_contexts, stream.get(), &context, &green);
    } else {
      require(device, calls_.get_stream_context, stream.get(), &context);
    }
    return context == find_context(device);
  }

  void leave(int) noexcept override {
    void* popped;
    run(calls_.pop_context, &popped);
  }

  int copy_async(void* target, const void* source, std::size_t size, StreamHandle stream) override {
    return run(calls_.copy, target, source, size, stream.get());
  }
  const char* copy_name() const noexcept override { return calls_.copy.name; }

  /// A plain copy is refused for memory of a pool that grants no access; a peer copy is not, but
  /// some drivers write nothing into a pool that does (CUDA.jl pull request 3112). So one or the
  /// other, as PyTorch's allocators choose.
  int copy_between(const Device& to, void* target, const Device& from, const void* source,
                   std::size_t size, StreamHandle stream) override {
    const bool is_plain =
        are_peers(to, from) && may_access(to, from, source) && may_access(from, to, target);
    if (is_plain) return copy_async(target, source, size, stream);
    return run(calls_.copy_peer, target, find_context(to), source, find_context(from), size,
               stream.get());
  }

  bool may_access(const Device& user, const Device& owner, const void* memory) override {
    void* pool = nullptr;
    if (run(calls_.get_pointer_attribute, static_cast<void*>(&pool), kPoolHandle, memory) != 0) {
      return false;  // before CUDA 11.3
    }
    const int location[] = {1, static_cast<int>(user.id)};  // a CUmemLocation: a device
    if (pool == nullptr) return may_access_mapped(location, memory);
    if (pool == find_pool(owner)) return are_peers(user, owner);
    int flags = 0;
    return calls_.get_pool_access.function != nullptr &&
           run(calls_.get_pool_access, &flags, pool, static_cast<const void*>(location)) == 0 &&
           flags != 0;
  }

  /// Memory of cuMemMap, such as torch's expandable segments, is of no pool: each device needs
  /// access to it. The driver knows no access of other memory, which all devices may copy.
  bool may_access_mapped(const int* location, const void* memory) {
    unsigned long long flags = 0;
    return calls_.get_access.function == nullptr ||
           run(calls_.get_access, &flags, static_cast<const void*>(location), memory) != 0 ||
           flags != 0;
  }

  bool has_concurrent_managed(const Device& device) noexcept override {
    int can = 0;
    const int status =
        run(calls_.get_attribute, &can, kConcurrentManagedAccess, static_cast<int>(device.id));
    return status == 0 && can != 0;
  }

  int find_node(const Device& device) noexcept override {
    int node = -1;
    const int status = run(calls_.get_attribute, &node, kHostNode, static_cast<int>(device.id));
    return status == 0 ? node : -1;
  }

  int32_t find_type(const void* memory) override {
    if (find_attribute(kIsManaged, memory).value_or(0) != 0) return kDLCUDAManaged;
    return find_attribute(kMemoryType, memory) == kHostMemory ? kDLCUDAHost : kDLCUDA;
  }

  std::string format_version(int version) const override {
    return concat("driver for CUDA ", version / 1000, '.', version % 1000 / 10);
  }

  std::string describe(int status) const override {
    const char* name = nullptr;
    const char* text = nullptr;
    calls_.get_error_name(status, &name);
    calls_.get_error_string(status, &text);
    if (name == nullptr || text == nullptr) return concat("CUresult ", status);
    return concat(name, ": ", text);
  }

 private:
  /// The device's primary context, which the CUDA runtime of every framework uses. Retained at the
  /// first use of the device until the process ends: retaining one takes device memory, so unused
  /// devices are left alone.
  void* find_context(const Device& device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    void*& context = contexts_[static_cast<std::size_t>(device.id)];
    if (context != nullptr) return context;
    int handle = 0;
    void* retained = nullptr;
    require(device, calls_.get_device, &handle, static_cast<int>(device.id));
    require(device, calls_.retain_primary, &retained, handle);
    return context = retained;
  }

  /// The number of the allocation that an address is of; 0 if the driver does not know it.
  uint64_t find_block(const void* memory) noexcept {
    uint64_t number = 0;
    const int status = run(calls_.get_pointer_attribute, &number, kBufferId, memory);
    return status == 0 ? number : 0;
  }

  const CudaCalls calls_;
  std::mutex mutex_;
  std::vector<void*> contexts_;
};

}  // namespace

Backend* open_cuda(const std::vector<const char*>& library_names, std::string* why_not) {
  return open_runtime<CudaRuntime>(kText, library_names, kSymbols, why_not);
}

std::optional<int64_t> find_current_cuda(const DynamicLibrary& library) {
  const auto find = [&library](auto* call, const char* name) {
    call->function = library.find(name);
    return call->function != nullptr;
  };
  Call<int*> get_current;
  Call<int*, int> get_device;
  int current = 0;
  // Fails in a process that has not called cuInit, and on a thread without a context.
  if (!find(&get_current, "cuCtxGetDevice") || !find(&get_device, "cuDeviceGet") ||
      get_current(&current) != 0) {
    return {};
  }
  int handle = 0;
  for (int i = 0; get_device(&handle, i) == 0; ++i) {
    if (handle == current) return i;
  }
  return {};
}

Backend* open_cuda(std::string* why_not) {
#ifdef _WIN32
  return open_cuda({"nvcuda.dll"}, why_not);
#else
  return open_cuda({"libcuda.so.1", "libcuda.so"}, why_not);
#endif
}

ARROWDL_END_NAMESPACE
