// The common part of the CUDA and HIP backends: the same calls and status codes under two names.
// cuda.cpp and hip.cpp have the names and the differences.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/backend.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/namespace.hpp"
#include "backends/runtime_process.hpp"
#include "backends/symbol_table.hpp"

ARROWDL_BEGIN_NAMESPACE

/// CUmemLocation.
struct Location {
  int type = 1;  // a device
  int id = 0;
};
/// CUmemPoolProps.
struct PoolProperties {
  int allocation_type = 1;  // "pinned", the only one
  int handle_types = 0;     // not for other processes
  Location location;
  void* security = nullptr;
  std::size_t max_size = 0;
  unsigned char reserved[56] = {};
};
static_assert(sizeof(PoolProperties) == 88 && sizeof(void*) == 8, "as in cuda.h");
/// CUmemAccessDesc.
struct AccessDescription {
  Location location;
  int flags = 3;  // read and write
};
/// A value of CUmemPool_attribute.
constexpr int kReleaseThreshold = 4;

static_assert(sizeof(unsigned long long) == sizeof(void*),
              "CUdeviceptr, an unsigned long long, is passed as a pointer");

struct StreamCalls {
  Call<unsigned> init;
  Call<int*> get_version;
  Call<int*> count_devices;
  Call<int*> exchange_capture_mode;  // optional

  Call<void**, unsigned> create_event;
  Call<void*, void*> record_event;  // event, stream
  Call<void*> query_event;
  Call<void*> synchronize_event;
  Call<void*> destroy_event;

  Call<void**, unsigned> create_stream;
  Call<void*, void*, unsigned> wait_for_event;  // stream, event
  Call<void*> query_stream;
  Call<void*> synchronize_stream;
  Call<void*> destroy_stream;
  Call<void*, int*> is_capturing;

  Call<void**, std::size_t, void*> allocate_async;  // optional, as free_async
  Call<void*, void*> free_async;
  Call<void**, std::size_t> allocate;
  Call<void*> free;
  Call<void**, std::size_t, unsigned> allocate_host;
  Call<void*> free_host;
  Call<void**, std::size_t, unsigned> allocate_managed;  // optional
  Call<void*, int, const void*> get_pointer_attribute;   // result, attribute, memory

  // Optional, as the pools that they are for.
  Call<int*, int, int> can_access_peer;  // result, device, the device of the memory
  Call<void**, const void*> create_pool;
  Call<void*, int, void*> set_pool_attribute;
  Call<void*, const void*, std::size_t> set_pool_access;
  Call<void*, std::size_t> trim_pool;                          // pool, bytes to keep
  Call<void**, std::size_t, void*, void*> allocate_from_pool;  // result, size, pool, stream

  // Only for runtimes with kernels; optional where those are compiled when they are needed.
  Call<void**, const void*> load_module;
  Call<void**, void*, const char*> find_kernel;
  Call<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
       void**>
      launch_kernel;  // kernel, grid, block, shared memory, stream, arguments, extra
};

/// The facts and texts of a runtime.
struct RuntimeText {
  int32_t types[3];       ///< the device types of its memory, ended by 0
  const char* name;       ///< "CUDA"
  const char* library;    ///< its library's display name: "NVIDIA's driver"
  const char* visible;    ///< the environment variable that hides devices
  const char* too_old;    ///< what to do about a missing symbol
  const char* to_get_it;  ///< what to do about a missing library
  const char* kernels;    ///< a module of the kernels; nullptr: `compile_kernels` makes it
};

class CudaLikeRuntime : public Backend, public MemoryOps, private KernelOps {
 public:
  ~CudaLikeRuntime() override;

  const char* name() const noexcept override { return text_.name; }
  std::string version() override;
  int64_t device_count() override { return device_count_; }
  Device find_device(const void* memory) override;
  StreamOps* streams() noexcept override { return this; }
  MemoryOps* memory() noexcept override { return this; }
  KernelOps* kernels(const Device& device) noexcept override;

  EventHandle record(const Device& device, StreamHandle stream) override;
  void wait(const Device& device, StreamHandle stream, EventHandle event) override;
  void synchronize(const Device& device, EventHandle event) override;
  void synchronize_stream(const Device& device, StreamHandle stream) override;
  bool is_complete(const Device& device, EventHandle event) override;
  void destroy(const Device& device, EventHandle event) noexcept override;
  EventHandle join(const Device& device, const std::vector<EventHandle>& events) override;

  StreamHandle acquire_stream(const Device& device) override;
  void return_stream(const Device& device, StreamHandle stream) noexcept override;
  StreamHandle work_stream(const Device& device) override;
  bool is_capturing(const Device& device, StreamHandle stream) override;
  void relax_capture_of_thread() noexcept override;
  /// Pinned and managed memory belong to every device.
  void require_stream_of(const Device& device, StreamHandle stream) override;

  bool can_host_read(const Device& device) noexcept override;

  /// 0 bytes become 1, so that every result is an address. Device memory is from arrowdl's own pool
  /// where the runtime has pools. Out of memory empties that pool and the caches of others
  /// (`set_free_caches`), and tries once more.
  void* allocate(const Device& device, int64_t size, StreamHandle stream) override;
  /// Waits on the host for the stream unless the memory came from a pool of the device.
  void free(const Device& device, void* memory, StreamHandle stream) noexcept override;
  void call_on(const Device& device, const std::function<void()>& use) override;
  void free_cache(const Device& device) override;
  std::optional<Device> find_pinned(const Device& device) const noexcept override;
  /// False between two devices if only a peer copy may read `source`, and our pool, into which some
  /// drivers copy nothing so, has the target.
  bool can_copy(const Device& from, const Device& to, const void* source) override;
  /// The driver copies pageable host memory through its own staging area: a copy from it returns
  /// after reading `source`, a copy to it may return only when it is done. Copies of pinned memory
  /// (CUDA_HOST) do not wait.
  void copy(const Device& to, void* target, const Device& from, const void* source, int64_t size,
            StreamHandle stream) override;

  /// Finds the devices. Returns why that fails, or an empty string.
  std::string start();

 protected:
  CudaLikeRuntime(const RuntimeText& text, std::string library_name, const StreamCalls& calls);

  /// Makes an existing device current on the calling thread. Returns the argument for `leave`,
  /// which undoes it. Changes nothing if it throws.
  virtual int enter(const Device& device) = 0;
  /// The same for the device of `stream`, which may be another one, since pinned memory is used on
  /// all devices. The handles of default streams mean those of `device`.
  virtual int enter_stream(const Device& device, StreamHandle stream) = 0;
  virtual void leave(int before) noexcept = 0;
  /// Whether `stream` belongs to `device`, which has been entered.
  virtual bool is_stream_of(const Device& device, StreamHandle stream) = 0;
  virtual int copy_async(void* target, const void* source, std::size_t size,
                         StreamHandle stream) = 0;
  virtual const char* copy_name() const noexcept = 0;
  /// Copies from the memory of one device to that of another.
  virtual int copy_between(const Device&, void* target, const Device&, const void* source,
                           std::size_t size, StreamHandle stream) {
    return copy_async(target, source, size, stream);
  }
  /// Whether `memory` of `owner` can be copied by the plain copy of the device `user`.
  virtual bool may_access(const Device&, const Device&, const void*) { return true; }
  /// arrowdl's own pool of the device, which all devices that can may access. nullptr: none.
  void* find_pool(const Device& device);
  /// Whether the kernels on each device can access the memory of the other.
  bool are_peers(const Device& a, const Device& b) noexcept;
  virtual std::string format_version(int version) const = 0;
  /// "CUDA_ERROR_INVALID_VALUE: invalid argument"
  virtual std::string describe(int status) const = 0;
  /// Clears the runtime's last error, which a failed call sets.
  virtual void forget_error() noexcept {}
  /// The device type of `memory`, an address that the runtime knows.
  virtual int32_t find_type(const void* memory) = 0;
  /// An attribute of `memory`; empty if the runtime does not know the address.
  std::optional<int> find_attribute(int attribute, const void* memory) noexcept;
  /// Whether the host may read managed memory of `device` while the device works.
  virtual bool has_concurrent_managed(const Device&) noexcept { return true; }
  /// The NUMA node of host memory that is closest to `device`; -1: unknown.
  virtual int find_node(const Device&) noexcept { return -1; }
  /// A module of the kernels for the device, which has been entered; empty if there is no compiler
  /// or it fails.
  virtual std::string compile_kernels() { return {}; }
  /// Called after the devices are counted.
  virtual void prepare_devices(int64_t) {}

  template <typename... Args, typename... Given>
  int run(const Call<Args...>& call, Given... args) noexcept {
    const int status = call(args...);
    if (status != 0) forget_error();
    return status;
  }
  /// The same; raises an Error that names the call if it fails.
  template <typename... Args, typename... Given>
  void require(const Device& device, const Call<Args...>& call, Given... args) {
    const int status = run(call, args...);
    if (status != 0) raise(device, call.name, status);
  }
  [[noreturn]] void raise(const Device& device, const char* call, int status) const;
  /// Raises RuntimeError in a forked child, which must not call the runtime.
  void require_own_process(const Device& device) const { process_.require_current(device, name()); }

 private:
  class Scope;
  struct DeviceState;

  void launch(const Device& device, Kernel kernel, int64_t size, void** arguments,
              StreamHandle stream) override;

  bool has_type(const Device& device) const noexcept;
  bool is_between_gpus(const Device& a, const Device& b) const noexcept;
  DeviceState& find_state(const Device& device);
  StreamHandle make_stream(const Device& device);
  std::optional<StreamHandle> find_idle_stream(DeviceState& state);
  void* make_pool(int64_t id) noexcept;
  void* allocate_on_device(const Device& device, std::size_t size, StreamHandle stream);
  void* allocate_now(const Device& device, std::size_t size, StreamHandle stream);
  bool load_kernels(const Device& device) noexcept;
  void* find_kernel(const Device& device, std::size_t index);

  const RuntimeText& text_;
  const std::string library_name_;
  const StreamCalls calls_;
  const RuntimeProcess process_;
  int64_t device_count_ = 0;
  std::unique_ptr<DeviceState[]> devices_;
};

ARROWDL_END_NAMESPACE
