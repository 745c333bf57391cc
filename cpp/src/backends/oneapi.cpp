// The backend of SYCL, through dpctl's C interface: its names are plain, while those of the SYCL
// runtime are mangled and differ between versions. A DPCTLSyclEventRef is a sycl::event*, a
// DPCTLSyclQueueRef a sycl::queue*.
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "arrowdl/error.hpp"
#include "arrowdl/wait.hpp"
#include "backends/runtime_process.hpp"
#include "backends/runtimes.hpp"
#include "backends/symbol_table.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

// The values of dpctl's enums that are used here.
constexpr int kAnyDevice = (((1 << 5) - 1) << 16) | ((1 << 6) - 1);  // all backends, all types
constexpr int kInOrder = 1 << 2;
constexpr int kUnknown = 0;
constexpr int kComplete = 3;

/// dpctl's functions.
struct Functions {
  Function<void*, void*, void*, void*, int> queue_create;
  Function<void*, void*> queue_copy;
  Function<void, void*> queue_delete;
  Function<bool, void*, void*> queue_equal;
  Function<void*, void*> queue_context;
  Function<void*, void*> queue_device;
  Function<bool, void*, void*> context_equal;
  Function<bool, void*, void*> device_equal;
  Function<void*, void*> queue_barrier;
  Function<void*, void*, void* const*, std::size_t> queue_barrier_for_events;
  Function<void*, void*, void*, const void*, std::size_t> queue_memcpy;
  Function<void, void*> event_wait;
  Function<int, void*> event_status;
  Function<void, void*> event_delete;
  Function<void*, int> devices_get;
  Function<std::size_t, int> devices_count;
  Function<void*, void*, std::size_t> device_at;
  Function<void, void*> devices_delete;
  Function<void, void*> device_delete;
  Function<void*, void*> cached_context;
  Function<void, void*> context_delete;
  Function<void*, std::size_t, void*> malloc_device;
  Function<void, void*, void*> free_with_queue;
  Function<const char*> dpcpp_version;
  Function<void, const char*> cstring_delete;
};

template <auto Member>
constexpr Symbol<Functions> row(const char* name) {
  return {name, find_slot<Functions, Member>};
}

constexpr Symbol<Functions> kSymbols[] = {
    row<&Functions::queue_create>("DPCTLQueue_Create"),
    row<&Functions::queue_copy>("DPCTLQueue_Copy"),
    row<&Functions::queue_delete>("DPCTLQueue_Delete"),
    row<&Functions::queue_equal>("DPCTLQueue_AreEq"),
    row<&Functions::queue_context>("DPCTLQueue_GetContext"),
    row<&Functions::queue_device>("DPCTLQueue_GetDevice"),
    row<&Functions::context_equal>("DPCTLContext_AreEq"),
    row<&Functions::device_equal>("DPCTLDevice_AreEq"),
    row<&Functions::queue_barrier>("DPCTLQueue_SubmitBarrier"),
    row<&Functions::queue_barrier_for_events>("DPCTLQueue_SubmitBarrierForEvents"),
    row<&Functions::queue_memcpy>("DPCTLQueue_Memcpy"),
    row<&Functions::event_wait>("DPCTLEvent_Wait"),
    row<&Functions::event_status>("DPCTLEvent_GetCommandExecutionStatus"),
    row<&Functions::event_delete>("DPCTLEvent_Delete"),
    row<&Functions::devices_get>("DPCTLDeviceMgr_GetDevices"),
    row<&Functions::devices_count>("DPCTLDeviceMgr_GetNumDevices"),
    row<&Functions::device_at>("DPCTLDeviceVector_GetAt"),
    row<&Functions::devices_delete>("DPCTLDeviceVector_Delete"),
    row<&Functions::device_delete>("DPCTLDevice_Delete"),
    row<&Functions::cached_context>("DPCTLDeviceMgr_GetCachedContext"),
    row<&Functions::context_delete>("DPCTLContext_Delete"),
    row<&Functions::malloc_device>("DPCTLmalloc_device"),
    row<&Functions::free_with_queue>("DPCTLfree_with_queue"),
    row<&Functions::dpcpp_version>("DPCTLService_GetDPCPPVersion"),
    row<&Functions::cstring_delete>("DPCTLCString_Delete"),
};

#ifdef _WIN32
constexpr const char* kLibraries[] = {"DPCTLSyclInterface.dll"};
#else
constexpr const char* kLibraries[] = {"libDPCTLSyclInterface.so", "libDPCTLSyclInterface.so.0"};
#endif

class OneApi final : public Backend, private MemoryOps {
 public:
  OneApi(const std::string&, const Functions& functions) : f_(functions) {}

  /// Does nothing: dpctl knows the devices.
  static std::string start() { return {}; }

  const char* name() const noexcept override { return "oneAPI"; }

  std::string version() override {
    const char* text = f_.dpcpp_version();
    std::string version = concat("DPC++ ", text == nullptr ? "?" : text);
    f_.cstring_delete(text);
    return version;
  }

  int64_t device_count() override { return static_cast<int64_t>(f_.devices_count(kAnyDevice)); }

  StreamOps* streams() noexcept override { return this; }
  MemoryOps* memory() noexcept override { return this; }

  /// dpctl's wait drops the exceptions of SYCL: only the status shows a failure.
  void synchronize(const Device& device, EventHandle event) override {
    process_.require_current(device, name());
    f_.event_wait(event.get());
    if (f_.event_status(event.get()) != kComplete) raise_failed(device);
  }

  bool is_complete(const Device& device, EventHandle event) override {
    process_.require_current(device, name());
    const int status = f_.event_status(event.get());
    if (status == kUnknown) raise_failed(device);
    return status == kComplete;
  }

 private:
  EventHandle record(const Device& device, StreamHandle queue) override {
    process_.require_current(device, name());
    return EventHandle(require(f_.queue_barrier(queue.get()), device, "submit a barrier"));
  }

  void wait(const Device& device, StreamHandle queue, EventHandle event) override {
    process_.require_current(device, name());
    void* const pending = event.get();
    void* barrier = f_.queue_barrier_for_events(queue.get(), &pending, 1);
    f_.event_delete(require(barrier, device, "submit a barrier"));
  }

  void synchronize_stream(const Device& device, StreamHandle queue) override {
    const Owned barrier = own(record(device, queue).get(), f_.event_delete);
    synchronize(device, EventHandle(barrier.get()));
  }

  void destroy(const Device&, EventHandle event) noexcept override {
    if (process_.is_current()) f_.event_delete(event.get());
  }

  EventHandle join(const Device& device, const std::vector<EventHandle>& events) override {
    const BorrowedStream queue(*this, device);
    std::vector<void*> pending;
    pending.reserve(events.size());
    for (const EventHandle event : events) pending.push_back(event.get());
    void* barrier = f_.queue_barrier_for_events(queue.get().get(), pending.data(), pending.size());
    return EventHandle(require(barrier, device, "submit a barrier"));
  }

  StreamHandle acquire_stream(const Device& device) override {
    process_.require_current(device, name());
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::deque<Idle>& idle = idle_[device.id];
      for (auto it = idle.begin(); it != idle.end(); ++it) {
        if (f_.event_status(it->last) != kComplete) continue;
        const Idle found = *it;
        idle.erase(it);
        f_.event_delete(found.last);
        return found.queue;
      }
    }
    return make_queue(device);
  }

  /// Keeps the queue: Intel's runtime hangs if a queue is deleted while its work runs, since that
  /// work then drops the last reference.
  void return_stream(const Device& device, StreamHandle queue) noexcept override {
    if (!process_.is_current()) return;
    try {
      void* last = require(f_.queue_barrier(queue.get()), device, "submit a barrier");
      const std::lock_guard<std::mutex> lock(mutex_);
      idle_[device.id].push_back({queue, last});
    } catch (...) {  // the runtime has ended, or there is no memory: the queue is leaked
    }
  }

  StreamHandle work_stream(const Device& device) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    StreamHandle& queue = work_queues_[device.id];
    if (queue.is_null()) queue = make_queue(device);
    return queue;
  }

  StreamHandle retain_stream(const Device& device, StreamHandle queue) override {
    process_.require_current(device, name());
    return StreamHandle(require(f_.queue_copy(queue.get()), device, "retain a queue"));
  }

  void release_stream(const Device&, StreamHandle queue) noexcept override {
    if (process_.is_current()) f_.queue_delete(queue.get());
  }

  /// USM belongs to a context, and a device has one default context, which every library uses.
  void require_stream_of(const Device& device, StreamHandle queue) override {
    const StreamHandle ours = work_stream(device);
    const Owned contexts[] = {own(f_.queue_context(queue.get()), f_.context_delete),
                              own(f_.queue_context(ours.get()), f_.context_delete)};
    const Owned devices[] = {own(f_.queue_device(queue.get()), f_.device_delete),
                             own(f_.queue_device(ours.get()), f_.device_delete)};
    if (f_.context_equal(contexts[0].get(), contexts[1].get()) &&
        f_.device_equal(devices[0].get(), devices[1].get())) {
      return;
    }
    raise_buffer_error("the queue is not of ", to_string(device),
                       " and its default context, where Arrow and DLPack consumers look for "
                       "memory: pass one made by dpctl.SyclQueue(device)");
  }

  bool is_same_stream(StreamHandle a, StreamHandle b) noexcept override {
    return f_.queue_equal(a.get(), b.get());
  }

  void* allocate(const Device& device, int64_t size, StreamHandle queue) override {
    process_.require_current(device, name());
    void* memory = f_.malloc_device(static_cast<std::size_t>(size > 0 ? size : 1), queue.get());
    if (memory == nullptr) {
      throw Error(ErrorKind::kMemory,
                  concat("cannot allocate ", size, " bytes on ", to_string(device)));
    }
    return memory;
  }

  /// SYCL has no stream-ordered free: the host waits for the queue.
  void free(const Device&, void* memory, StreamHandle queue) noexcept override {
    if (!process_.is_current()) return;
    if (void* barrier = f_.queue_barrier(queue.get())) {
      wait_guarded([&](const Waiting&) { f_.event_wait(barrier); });
      f_.event_delete(barrier);
      f_.free_with_queue(memory, queue.get());
    }
  }

  /// Each device has a context, and a queue can use only memory of its own context.
  bool can_copy(const Device& from, const Device& to, const void*) override {
    return from.type == kDLCPU || to.type == kDLCPU || from.id == to.id;
  }

  void copy(const Device& to, void* target, const Device& from, const void* source, int64_t size,
            StreamHandle queue) override {
    const Device& device = to.type == kDLOneAPI ? to : from;
    process_.require_current(device, name());
    void* event = f_.queue_memcpy(queue.get(), target, source, static_cast<std::size_t>(size));
    f_.event_delete(require(event, device, "copy memory"));
  }

  using Deleter = Function<void, void*>;
  using Owned = std::unique_ptr<void, Deleter>;

  static Owned own(void* object, const Deleter& deleter) { return Owned(object, deleter); }

  [[noreturn]] static void raise_failed(const Device& device) {
    throw Error(ErrorKind::kRuntime, concat("the work before the event on ", to_string(device),
                                            " failed: SYCL reports no completion"));
  }

  static void* require(void* result, const Device& device, const char* verb) {
    if (result != nullptr) return result;
    throw Error(ErrorKind::kRuntime, concat("oneAPI cannot ", verb, " on ", to_string(device),
                                            ": dpctl says why where DPCTL_VERBOSITY=error is set"));
  }

  StreamHandle make_queue(const Device& device) {
    process_.require_current(device, name());
    void* devices = require(f_.devices_get(kAnyDevice), device, "list the devices");
    const auto count = f_.devices_count(kAnyDevice);
    const auto index = static_cast<std::size_t>(device.id);
    void* own = device.id >= 0 && index < count ? f_.device_at(devices, index) : nullptr;
    f_.devices_delete(devices);
    if (own == nullptr) {
      raise_buffer_error(to_string(device), " does not exist: SYCL has ", count, " devices");
    }
    void* context = f_.cached_context(own);
    void* queue = f_.queue_create(context, own, nullptr, kInOrder);
    f_.context_delete(context);
    f_.device_delete(own);
    return StreamHandle(require(queue, device, "make a queue"));
  }

  /// A returned queue of ours, and an event for its last work.
  struct Idle {
    StreamHandle queue;
    void* last;
  };

  const Functions f_;
  const RuntimeProcess process_;
  std::mutex mutex_;
  std::unordered_map<int64_t, std::deque<Idle>> idle_;
  std::unordered_map<int64_t, StreamHandle> work_queues_;
};

}  // namespace

Backend* open_oneapi(std::string* why_not) {
  constexpr LibraryText kText = {
      "dpctl", "update dpctl",
      "import dpctl first (pip install dpctl), or copy the data to the CPU in its own library"};
  for (const char* name : kLibraries) {
    if (DynamicLibrary library = DynamicLibrary::find_loaded(name)) {
      return start_runtime<OneApi>(std::move(library), kText, kSymbols, why_not);
    }
  }
  *why_not = concat("arrowdl reaches SYCL through dpctl, and ", kLibraries[0],
                    " is not loaded: ", kText.to_get_it);
  return nullptr;
}

ARROWDL_END_NAMESPACE
