// The backend of ROCm, on AMD's HIP runtime.
#include "backends/cuda_like_runtime.hpp"
#include "backends/hiprtc.hpp"
#include "backends/runtimes.hpp"

// HIP's API is declared from its documentation, so that no build needs ROCm.

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr RuntimeText kText = {
    {kDLROCM, kDLROCMHost, 0},
    "ROCm",
    "AMD's HIP runtime",
    "HIP_VISIBLE_DEVICES",
    "the runtime is older than ROCm 5: install a newer one",
    "install ROCm's HIP runtime, or import a framework that contains it",
    nullptr,  // what HIP loads is machine code of one GPU: it is compiled when it is needed
};

struct HipCalls : StreamCalls {
  Call<int*> get_device;
  Call<int> set_device;
  Call<void*, int*> get_stream_device;  // stream, device; optional
  Call<void*, const void*, std::size_t, int, void*> copy;
  Call<> get_last_error;
  AnyCall get_error_name;  // these two return the text
  AnyCall get_error_string;
};

template <auto Member>
constexpr Symbol<HipCalls> row(const char* name, bool is_optional = false) {
  return {name, find_slot<HipCalls, Member>, is_optional};
}

constexpr bool kOptional = true;

constexpr Symbol<HipCalls> kSymbols[] = {
    row<&HipCalls::init>("hipInit"),
    row<&HipCalls::get_version>("hipRuntimeGetVersion"),
    row<&HipCalls::count_devices>("hipGetDeviceCount"),
    row<&HipCalls::exchange_capture_mode>("hipThreadExchangeStreamCaptureMode", kOptional),
    row<&HipCalls::create_event>("hipEventCreateWithFlags"),
    row<&HipCalls::record_event>("hipEventRecord"),
    row<&HipCalls::query_event>("hipEventQuery"),
    row<&HipCalls::synchronize_event>("hipEventSynchronize"),
    row<&HipCalls::destroy_event>("hipEventDestroy"),
    row<&HipCalls::create_stream>("hipStreamCreateWithFlags"),
    row<&HipCalls::wait_for_event>("hipStreamWaitEvent"),
    row<&HipCalls::query_stream>("hipStreamQuery"),
    row<&HipCalls::synchronize_stream>("hipStreamSynchronize"),
    row<&HipCalls::destroy_stream>("hipStreamDestroy"),
    row<&HipCalls::is_capturing>("hipStreamIsCapturing"),
    row<&HipCalls::allocate_async>("hipMallocAsync", kOptional),
    row<&HipCalls::free_async>("hipFreeAsync", kOptional),
    row<&HipCalls::allocate>("hipMalloc"),
    row<&HipCalls::free>("hipFree"),
    row<&HipCalls::allocate_host>("hipHostMalloc"),
    row<&HipCalls::free_host>("hipHostFree"),
    row<&HipCalls::get_pointer_attribute>("hipPointerGetAttribute", kOptional),
    row<&HipCalls::can_access_peer>("hipDeviceCanAccessPeer", kOptional),
    row<&HipCalls::create_pool>("hipMemPoolCreate", kOptional),
    row<&HipCalls::set_pool_attribute>("hipMemPoolSetAttribute", kOptional),
    row<&HipCalls::set_pool_access>("hipMemPoolSetAccess", kOptional),
    row<&HipCalls::trim_pool>("hipMemPoolTrimTo", kOptional),
    row<&HipCalls::allocate_from_pool>("hipMallocFromPoolAsync", kOptional),
    row<&HipCalls::load_module>("hipModuleLoadData", kOptional),
    row<&HipCalls::find_kernel>("hipModuleGetFunction", kOptional),
    row<&HipCalls::launch_kernel>("hipModuleLaunchKernel", kOptional),
    row<&HipCalls::get_device>("hipGetDevice"),
    row<&HipCalls::set_device>("hipSetDevice"),
    row<&HipCalls::get_stream_device>("hipStreamGetDevice", kOptional),
    row<&HipCalls::copy>("hipMemcpyAsync"),
    row<&HipCalls::get_last_error>("hipGetLastError"),
    row<&HipCalls::get_error_name>("hipGetErrorName"),
    row<&HipCalls::get_error_string>("hipGetErrorString"),
};

constexpr int kCopyByAddress = 4;  // hipMemcpyDefault

class HipRuntime final : public CudaLikeRuntime {
 public:
  HipRuntime(std::string library_name, const HipCalls& calls)
      : CudaLikeRuntime(kText, std::move(library_name), calls), calls_(calls) {}

  std::optional<StreamHandle> default_stream() const noexcept override { return StreamHandle(); }

 protected:
  int enter(const Device& device) override {
    return enter_device(device, static_cast<int>(device.id));
  }

  int enter_stream(const Device& device, StreamHandle stream) override {
    auto id = static_cast<int>(device.id);
    if (!stream.is_null() && calls_.get_stream_device.function != nullptr) {
      require(device, calls_.get_stream_device, stream.get(), &id);
    }
    return enter_device(device, id);
  }

  bool is_stream_of(const Device& device, StreamHandle stream) override {
    if (stream.is_null() || calls_.get_stream_device.function == nullptr) return true;
    int id = 0;
    require(device, calls_.get_stream_device, stream.get(), &id);
    return id == device.id;
  }

  void leave(int before) noexcept override { run(calls_.set_device, before); }

  int copy_async(void* target, const void* source, std::size_t size, StreamHandle stream) override {
    return run(calls_.copy, target, source, size, kCopyByAddress, stream.get());
  }
  const char* copy_name() const noexcept override { return calls_.copy.name; }

  /// Always device memory: ROCm 5 and 6 number the memory types differently, and memory that has a
  /// device can be used on it.
  int32_t find_type(const void*) override { return kDLROCM; }

  std::string format_version(int version) const override {
    return concat("HIP ", version / 10000000, '.', version / 100000 % 100, '.', version % 100000);
  }

  std::string describe(int status) const override {
    return concat(text_of(calls_.get_error_name, status), ": ",
                  text_of(calls_.get_error_string, status));
  }

  std::string compile_kernels() override { return compile_for_current_device(); }

  // Otherwise the framework's next check for errors finds ours.
  void forget_error() noexcept override { calls_.get_last_error(); }

 private:
  int enter_device(const Device& device, int id) {
    int before = 0;
    require(device, calls_.get_device, &before);
    const int status = run(calls_.set_device, id);
    if (status != 0) {
      leave(before);
      raise(device, calls_.set_device.name, status);
    }
    return before;
  }

  static const char* text_of(const AnyCall& call, int status) noexcept {
    return reinterpret_cast<const char* (*)(int)>(call.function)(status);
  }

  const HipCalls calls_;
};

}  // namespace

Backend* open_hip(const std::vector<const char*>& library_names, std::string* why_not) {
  return open_runtime<HipRuntime>(kText, library_names, kSymbols, why_not);
}

std::optional<int64_t> find_current_hip(const DynamicLibrary& library) {
  Call<int*> get_device;
  get_device.function = library.find("hipGetDevice");
  int current = 0;
  if (get_device.function == nullptr || get_device(&current) != 0) return {};
  return current;
}

Backend* open_hip(std::string* why_not) {
#ifdef _WIN32
  return open_hip({"amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"}, why_not);
#else
  return open_hip({"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"},
                  why_not);
#endif
}

ARROWDL_END_NAMESPACE
