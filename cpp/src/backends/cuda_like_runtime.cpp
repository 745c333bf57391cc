// Implements the operations that the backends of CUDA and HIP share.
#include "backends/cuda_like_runtime.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "arrowdl/wait.hpp"
#include "backends/free_caches.hpp"
#include "backends/kernel_names.hpp"
#include "backends/preferred_node.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

// The same numbers in CUresult and hipError_t, and in the flags of both.
constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kNotReady = 600;
constexpr int kNotSupported = 801;
constexpr int kStreamCaptureImplicit = 906;

constexpr unsigned kDisableTiming = 2;
constexpr unsigned kNonBlocking = 1;
constexpr unsigned kHostPortable = 1;
constexpr unsigned kAttachGlobal = 1;
constexpr int kRelaxedCapture = 2;
constexpr int kDeviceOrdinal = 9;

/// What a pool keeps, rather than give it back at each synchronization: batches of the next steps.
/// Others find it by `set_free_caches`, or not at all, so it is a part of the smallest cards.
constexpr uint64_t kPoolKeeps = uint64_t{512} << 20;

/// Returned streams above this number are destroyed.
constexpr std::size_t kMaxIdleStreams = 32;

constexpr unsigned kBlock = 256;
/// Enough to fill any GPU; in larger launches each thread handles several elements.
constexpr int64_t kMaxBlocks = 65535;

/// The driver's handle, to which a sync_event points.
void* driver_event(EventHandle event) noexcept { return *static_cast<void**>(event.get()); }

enum class Memory { kDevice, kHost, kManaged };

Memory find_memory(const Device& device) noexcept {
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

}  // namespace

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
  void* kernels[std::size(kKernelNames)] = {};
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

CudaLikeRuntime::CudaLikeRuntime(const RuntimeText& text, std::string library_name,
                                 const StreamCalls& calls)
    : text_(text), library_name_(std::move(library_name)), calls_(calls) {}

CudaLikeRuntime::~CudaLikeRuntime() = default;

std::string CudaLikeRuntime::start() {
  int count = 0;
  const AnyCall* call = &calls_.init;
  int status = run(calls_.init, 0U);
  if (status == 0) {
    call = &calls_.count_devices;
    status = run(calls_.count_devices, &count);
  }
  // HIP 5 returns kInvalidDevice if there is no device.
  if (status == kNoDevice || status == kInvalidDevice || (status == 0 && count == 0)) {
    return concat(library_name_,
                  " finds no device: check that the kernel's driver is loaded, and that ",
                  text_.visible, " does not hide the devices");
  }
  if (status != 0) {
    return concat(library_name_, " does not start, ", call->name, " failed with ", describe(status),
                  ": check that the kernel's driver is loaded and has the same version");
  }
  device_count_ = count;
  devices_ = std::make_unique<DeviceState[]>(static_cast<std::size_t>(count));
  const bool has_pools =
      calls_.allocate_async.function != nullptr && calls_.free_async.function != nullptr;
  for (int i = 0; i < count; ++i) devices_[static_cast<std::size_t>(i)].has_pools = has_pools;
  prepare_devices(count);
  return {};
}

std::string CudaLikeRuntime::version() {
  int version = 0;
  require(Device{text_.types[0], 0}, calls_.get_version, &version);
  return concat(format_version(version), " (", library_name_, ")");
}

void CudaLikeRuntime::raise(const Device& device, const char* call, int status) const {
  throw Error(status == kOutOfMemory ? ErrorKind::kMemory : ErrorKind::kRuntime,
              concat(call, " failed on ", to_string(device), ": ", describe(status)));
}

bool CudaLikeRuntime::has_type(const Device& device) const noexcept {
  return std::find(std::begin(text_.types), std::end(text_.types), device.type) !=
         std::end(text_.types);
}

CudaLikeRuntime::DeviceState& CudaLikeRuntime::find_state(const Device& device) {
  if (device.id < 0 || device.id >= device_count_) {
    raise_buffer_error("there is no ", to_string(device), ": ", text_.name, " has ", device_count_,
                       device_count_ == 1 ? " device" : " devices", ", the last one ",
                       to_string(Device{device.type, device_count_ - 1}), " (", text_.visible,
                       " may hide others)");
  }
  return devices_[static_cast<std::size_t>(device.id)];
}

// ---------------------------------------------------------------- events

EventHandle CudaLikeRuntime::record(const Device& device, StreamHandle stream) {
  const Scope scope(*this, device, stream);      // an event and its stream are of one device
  auto cell = std::make_unique<void*>(nullptr);  // sync_event points to the event's handle
  require(device, calls_.create_event, cell.get(), kDisableTiming);
  const int status = run(calls_.record_event, *cell, stream.get());
  if (status != 0) {
    run(calls_.destroy_event, *cell);
    raise(device, calls_.record_event.name, status);
  }
  return EventHandle(cell.release());
}

void CudaLikeRuntime::wait(const Device& device, StreamHandle stream, EventHandle event) {
  const Scope scope(*this, device);
  require(device, calls_.wait_for_event, stream.get(), driver_event(event), 0U);
}

void CudaLikeRuntime::synchronize_stream(const Device& device, StreamHandle stream) {
  const Scope scope(*this, device, stream);
  void* event = nullptr;
  require(device, calls_.create_event, &event, kDisableTiming);
  int status = run(calls_.record_event, event, stream.get());
  if (status == 0) status = run(calls_.synchronize_event, event);
  run(calls_.destroy_event, event);
  if (status != 0) raise(device, calls_.synchronize_event.name, status);
}

void CudaLikeRuntime::synchronize(const Device& device, EventHandle event) {
  const Scope scope(*this, device);
  require(device, calls_.synchronize_event, driver_event(event));
}

bool CudaLikeRuntime::is_complete(const Device& device, EventHandle event) {
  const Scope scope(*this, device);
  const int status = run(calls_.query_event, driver_event(event));
  if (status != 0 && status != kNotReady) raise(device, calls_.query_event.name, status);
  return status == 0;
}

void CudaLikeRuntime::destroy(const Device& device, EventHandle event) noexcept {
  if (!event || !process_.is_current()) return;
  const std::unique_ptr<void*> cell(static_cast<void**>(event.get()));
  try {
    const Scope scope(*this, device);
    run(calls_.destroy_event, *cell);
  } catch (...) {  // the driver has ended, and has freed the event
  }
}

EventHandle CudaLikeRuntime::join(const Device& device, const std::vector<EventHandle>& events) {
  std::vector<EventHandle> pending;
  for (const EventHandle event : events) {
    if (!is_complete(device, event)) pending.push_back(event);
  }
  if (pending.empty()) return {};
  const BorrowedStream stream(*this, device);
  for (const EventHandle event : pending) wait(device, stream.get(), event);
  return record(device, stream.get());
}

// ---------------------------------------------------------------- streams

StreamHandle CudaLikeRuntime::make_stream(const Device& device) {
  void* stream = nullptr;
  require(device, calls_.create_stream, &stream, kNonBlocking);
  return StreamHandle(stream);
}

std::optional<StreamHandle> CudaLikeRuntime::find_idle_stream(DeviceState& state) {
  for (auto it = state.idle.begin(); it != state.idle.end(); ++it) {
    // A producer may have joined the stream to a graph capture, which a query would break.
    int capture = 0;
    if (run(calls_.is_capturing, it->get(), &capture) != 0 || capture != 0) continue;
    // Has pending work, or failed: the stream's next use reports the failure.
    if (run(calls_.query_stream, it->get()) != 0) continue;
    const StreamHandle stream = *it;
    state.idle.erase(it);
    return stream;
  }
  return {};
}

StreamHandle CudaLikeRuntime::acquire_stream(const Device& device) {
  const Scope scope(*this, device);
  DeviceState& state = find_state(device);
  const std::lock_guard<std::mutex> lock(state.mutex);
  const std::optional<StreamHandle> idle = find_idle_stream(state);
  return idle ? *idle : make_stream(device);
}

void CudaLikeRuntime::return_stream(const Device& device, StreamHandle stream) noexcept {
  if (!process_.is_current()) return;
  try {
    const Scope scope(*this, device);
    DeviceState& state = find_state(device);
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.idle.size() < kMaxIdleStreams) {
      state.idle.push_back(stream);
    } else {
      run(calls_.destroy_stream, stream.get());  // the driver destroys it after its work
    }
  } catch (...) {  // the driver has ended, or there is no memory: the stream is leaked
  }
}

StreamHandle CudaLikeRuntime::work_stream(const Device& device) {
  const Scope scope(*this, device);
  DeviceState& state = find_state(device);
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (!state.work) state.work = make_stream(device);
  return *state.work;
}

bool CudaLikeRuntime::is_capturing(const Device& device, StreamHandle stream) {
  const Scope scope(*this, device);
  int capture = 0;
  const int status = run(calls_.is_capturing, stream.get(), &capture);
  // While another stream is captured, the default stream cannot be queried.
  if (status == kStreamCaptureImplicit) return true;
  if (status != 0) raise(device, calls_.is_capturing.name, status);
  return capture != 0;
}

void CudaLikeRuntime::relax_capture_of_thread() noexcept {
  if (calls_.exchange_capture_mode.function == nullptr || !process_.is_current()) return;
  int mode = kRelaxedCapture;
  run(calls_.exchange_capture_mode, &mode);
}

void CudaLikeRuntime::require_stream_of(const Device& device, StreamHandle stream) {
  if (find_memory(device) != Memory::kDevice) return;
  const Scope scope(*this, device);
  if (is_stream_of(device, stream)) return;
  raise_buffer_error("the stream is not of ", to_string(device),
                     " or not of its primary context: pass a stream of both, or None for one of "
                     "arrowdl's");
}

// ---------------------------------------------------------------- memory

std::optional<int> CudaLikeRuntime::find_attribute(int attribute, const void* memory) noexcept {
  int value = 0;
  if (run(calls_.get_pointer_attribute, &value, attribute, memory) != 0) return {};
  return value;
}

Device CudaLikeRuntime::find_device(const void* memory) {
  process_.require_current(Device{text_.types[0], 0}, name());
  if (calls_.get_pointer_attribute.function == nullptr) {
    raise_buffer_error(library_name_, " has no ", calls_.get_pointer_attribute.name, ": ",
                       text_.too_old);
  }
  const std::optional<int> id = find_attribute(kDeviceOrdinal, memory);
  if (!id || *id < 0 || *id >= device_count_) {
    raise_buffer_error(text_.name, " knows no device memory at ", memory,
                       ": the address must be inside of a live allocation of this process");
  }
  return {find_type(memory), *id};
}

bool CudaLikeRuntime::are_peers(const Device& a, const Device& b) noexcept {
  if (calls_.can_access_peer.function == nullptr) return false;
  const auto can_access = [this](int64_t device, int64_t peer) {
    int can = 0;
    return run(calls_.can_access_peer, &can, static_cast<int>(device), static_cast<int>(peer)) ==
               0 &&
           can != 0;
  };
  return can_access(a.id, b.id) && can_access(b.id, a.id);
}

/// A pool that keeps memory between steps, and that the device's peers may access: others copy from
/// it as from memory without a pool. nullptr if the runtime has none.
void* CudaLikeRuntime::make_pool(int64_t id) noexcept {
  if (calls_.create_pool.function == nullptr || calls_.set_pool_attribute.function == nullptr ||
      calls_.set_pool_access.function == nullptr || calls_.allocate_from_pool.function == nullptr) {
    return nullptr;
  }
  PoolProperties properties;
  properties.location.id = static_cast<int>(id);
  void* pool = nullptr;
  if (run(calls_.create_pool, &pool, static_cast<const void*>(&properties)) != 0) return nullptr;
  uint64_t kept = kPoolKeeps;
  run(calls_.set_pool_attribute, pool, kReleaseThreshold, static_cast<void*>(&kept));
  for (int64_t peer = 0; peer < device_count_; ++peer) {
    if (peer == id || !are_peers({text_.types[0], id}, {text_.types[0], peer})) continue;
    AccessDescription access;
    access.location.id = static_cast<int>(peer);
    run(calls_.set_pool_access, pool, static_cast<const void*>(&access), std::size_t{1});
  }
  return pool;
}

void* CudaLikeRuntime::find_pool(const Device& device) {
  DeviceState& state = find_state(device);
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (!state.has_tried_pool) state.pool = make_pool(device.id);
  state.has_tried_pool = true;
  return state.pool;
}

/// nullptr: out of memory.
void* CudaLikeRuntime::allocate_on_device(const Device& device, std::size_t size,
                                          StreamHandle stream) {
  DeviceState& state = find_state(device);
  void* memory = nullptr;
  if (state.has_pools) {
    void* const pool = find_pool(device);
    const int status = pool != nullptr
                           ? run(calls_.allocate_from_pool, &memory, size, pool, stream.get())
                           : run(calls_.allocate_async, &memory, size, stream.get());
    if (status == 0) return memory;
    if (status == kOutOfMemory) return nullptr;
    if (status != kNotSupported) raise(device, calls_.allocate_async.name, status);
    state.has_pools = false;  // on virtual GPUs and old cards
  }
  const int status = run(calls_.allocate, &memory, size);
  if (status == kOutOfMemory) return nullptr;
  if (status != 0) raise(device, calls_.allocate.name, status);
  return memory;
}

void CudaLikeRuntime::call_on(const Device& device, const std::function<void()>& use) {
  const Scope scope(*this, device);
  use();
}

void CudaLikeRuntime::free_cache(const Device& device) {
  const Scope scope(*this, device);
  DeviceState& state = find_state(device);
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.pool != nullptr && calls_.trim_pool.function != nullptr) {
    run(calls_.trim_pool, state.pool, std::size_t{0});
  }
}

void* CudaLikeRuntime::allocate(const Device& device, int64_t size, StreamHandle stream) {
  if (size < 0) raise_value_error("cannot allocate ", size, " bytes");
  const auto bytes = static_cast<std::size_t>(std::max<int64_t>(size, 1));
  if (void* memory = allocate_now(device, bytes, stream)) return memory;
  free_cache(device);
  call_on(device, [&] { free_caches(device); });
  if (void* memory = allocate_now(device, bytes, stream)) return memory;
  throw Error(
      ErrorKind::kMemory,
      concat("no memory for ", size, " bytes on ", to_string(device), " (", describe(kOutOfMemory),
             "), though arrowdl's and torch's caches were emptied: free some, take smaller "
             "batches, or, if another library holds it (JAX takes 75 % of a GPU: "
             "XLA_PYTHON_CLIENT_PREALLOCATE), let that allocate with allocator="));
}

/// nullptr: out of device memory.
void* CudaLikeRuntime::allocate_now(const Device& device, std::size_t bytes, StreamHandle stream) {
  const Scope scope(*this, device);
  void* memory = nullptr;
  switch (find_memory(device)) {
    case Memory::kDevice:
      return allocate_on_device(device, bytes, stream);
    case Memory::kHost: {
      const PreferredNode close(find_node(device));
      require(device, calls_.allocate_host, &memory, bytes, kHostPortable);
      break;
    }
    case Memory::kManaged:
      require(device, calls_.allocate_managed, &memory, bytes, kAttachGlobal);
      break;
  }
  return memory;
}

void CudaLikeRuntime::free(const Device& device, void* memory, StreamHandle stream) noexcept {
  if (memory == nullptr || !process_.is_current()) return;
  try {
    const Scope scope(*this, device);
    const Memory kind = find_memory(device);
    if (kind == Memory::kDevice && find_state(device).has_pools) {
      run(calls_.free_async, memory, stream.get());
      return;
    }
    wait_guarded([&](const Waiting&) {  // free() may wait for the whole device
      // If this fails, the stream may still use the memory, which is leaked then.
      if (run(calls_.synchronize_stream, stream.get()) != 0) return;
      run(kind == Memory::kHost ? calls_.free_host : calls_.free, memory);
    });
  } catch (...) {  // the driver has ended, and has freed the memory
  }
}

std::optional<Device> CudaLikeRuntime::find_pinned(const Device& device) const noexcept {
  if (find_memory(device) == Memory::kHost) return {};
  const auto* const type =
      std::find_if(std::begin(text_.types), std::end(text_.types),
                   [](int32_t one) { return find_memory(Device{one, 0}) == Memory::kHost; });
  if (type == std::end(text_.types)) return {};
  return Device{*type, device.id};
}

bool CudaLikeRuntime::can_host_read(const Device& device) noexcept {
  return find_memory(device) != Memory::kManaged || !process_.is_current() ||
         has_concurrent_managed(device);
}

bool CudaLikeRuntime::is_between_gpus(const Device& a, const Device& b) const noexcept {
  const auto is_gpu = [this](const Device& device) {
    return has_type(device) && find_memory(device) == Memory::kDevice;
  };
  return a.id != b.id && is_gpu(a) && is_gpu(b);
}

/// A stream of `to` copies. The driver has a separate call for GPUs that are not peers, but none
/// for pinned and managed memory of another GPU.
bool CudaLikeRuntime::can_copy(const Device& from, const Device& to, const void* source) {
  const bool is_of_gpu = has_type(from) && find_memory(from) == Memory::kDevice;
  if (!is_of_gpu || !has_type(to) || from.id == to.id || source == nullptr) return true;
  const Scope scope(*this, to);
  if (!find_state(to).has_pools || find_pool(to) == nullptr) return true;
  return are_peers(from, to) ? may_access(to, from, source) : is_between_gpus(from, to);
}

/// The most bytes of pageable memory that the driver takes along in the command of a copy.
constexpr int64_t kMostInCommand = int64_t{64} << 10;

void CudaLikeRuntime::copy(const Device& to, void* target, const Device& from, const void* source,
                           int64_t size, StreamHandle stream) {
  for (const Device& device : {to, from}) {
    if (device.type != kDLCPU && !has_type(device)) {
      raise_buffer_error(text_.name, " cannot copy between ", to_string(from), " and ",
                         to_string(to), ": copy to the CPU first");
    }
  }
  if (size <= 0) return;
  const Device& device = to.type == kDLCPU ? from : to;
  const Scope scope(*this, device, stream);
  const auto bytes = static_cast<std::size_t>(size);
  // Addresses are unified: the driver finds the device of each.
  int status = 0;
  if (is_between_gpus(to, from)) {
    status = copy_between(to, target, from, source, bytes, stream);
  } else if (to.type == kDLCPU || (from.type == kDLCPU && size > kMostInCommand)) {
    // Waits for the stream, unless the memory is pinned.
    wait_guarded([&](const Waiting&) { status = copy_async(target, source, bytes, stream); });
  } else {
    status = copy_async(target, source, bytes, stream);
  }
  if (status != 0) raise(device, copy_name(), status);
}

// ---------------------------------------------------------------- kernels

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
    if (is_compiled && state.image.empty()) state.image = compile_kernels();
    state.has_no_kernels = is_compiled && state.image.empty();
    if (state.has_no_kernels) return false;
    const void* const image = is_compiled ? state.image.data() : text_.kernels;
    const int status = run(calls_.load_module, &state.module, image);
    if (status == 0) return true;
    state.module = nullptr;
    state.has_no_kernels =
        std::find(std::begin(kNoKernels), std::end(kNoKernels), status) != std::end(kNoKernels);
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
    const void* const image = text_.kernels == nullptr ? state.image.data() : text_.kernels;
    require(device, calls_.load_module, &state.module, image);
  }
  require(device, calls_.find_kernel, &kernel, state.module, kKernelNames[index]);
  return kernel;
}

void CudaLikeRuntime::launch(const Device& device, Kernel kernel, int64_t size, void** arguments,
                             StreamHandle stream) {
  const int64_t blocks = std::min((size - 1) / kBlock + 1, kMaxBlocks);
  const Scope scope(*this, device);
  void* const function = find_kernel(device, static_cast<std::size_t>(kernel));
  require(device, calls_.launch_kernel, function, static_cast<unsigned>(blocks), 1U, 1U, kBlock, 1U,
          1U, 0U, stream.get(), arguments, static_cast<void**>(nullptr));
}

ARROWDL_END_NAMESPACE
