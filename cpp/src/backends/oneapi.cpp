// SYCL through the C interface of dpctl, once that is loaded: it has one flat name for what the
// SYCL runtime has a mangled one for each version of. A DPCTLSyclEventRef is a sycl::event*, a
// DPCTLSyclQueueRef a sycl::queue*.
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "arrowdl/error.hpp"
#include "arrowdl/wait.hpp"
#include "backends/registry.hpp"

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#include <unistd.h>
#endif

namespace arrowdl {
namespace {

// The values of dpctl's enums that are used here.
constexpr int kAnyDevice = (((1 << 5) - 1) << 16) | ((1 << 6) - 1);  // all backends, all types
constexpr int kInOrder = 1 << 2;
constexpr int kUnknown = 0;
constexpr int kComplete = 3;

/// The functions, in dpctl's own types where they are more than pointers.
struct Functions {
  void* (*queue_create)(void* context, void* device, void* error_handler, int properties);
  void* (*queue_copy)(void* queue);
  void (*queue_delete)(void* queue);
  bool (*queue_equal)(void* a, void* b);
  void* (*queue_context)(void* queue);
  void* (*queue_device)(void* queue);
  bool (*context_equal)(void* a, void* b);
  bool (*device_equal)(void* a, void* b);
  void* (*queue_barrier)(void* queue);
  void* (*queue_barrier_for_events)(void* queue, void* const* events, std::size_t count);
  void* (*queue_memcpy)(void* queue, void* target, const void* source, std::size_t size);
  void (*event_wait)(void* event);
  int (*event_status)(void* event);
  void (*event_delete)(void* event);
  void* (*devices_get)(int which);
  std::size_t (*devices_count)(int which);
  void* (*device_at)(void* devices, std::size_t index);
  void (*devices_delete)(void* devices);
  void (*device_delete)(void* device);
  void* (*cached_context)(void* device);
  void (*context_delete)(void* context);
  void* (*malloc_device)(std::size_t size, void* queue);
  void (*free_with_queue)(void* memory, void* queue);
  const char* (*dpcpp_version)();
  void (*cstring_delete)(const char* text);
};

#if defined(_WIN32)
constexpr const char* kLibrary = "DPCTLSyclInterface.dll";
void* find_library() { return GetModuleHandleA(kLibrary); }
void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}
int64_t process_id() { return static_cast<int64_t>(GetCurrentProcessId()); }
#else
constexpr const char* kLibrary = "libDPCTLSyclInterface.so";
void* find_library() {
  for (const char* name : {kLibrary, "libDPCTLSyclInterface.so.0"}) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) return library;
  }
  return nullptr;
}
void* find_symbol(void* library, const char* name) { return dlsym(library, name); }
int64_t process_id() { return getpid(); }
#endif

template <typename Function>
bool load(void* library, const char* name, Function* function, std::string* why_not) {
  *function = reinterpret_cast<Function>(find_symbol(library, name));
  if (*function == nullptr) *why_not = concat(kLibrary, " has no ", name, ": update dpctl");
  return *function != nullptr;
}

bool load_all(void* library, Functions* f, std::string* why_not) {
  return load(library, "DPCTLQueue_Create", &f->queue_create, why_not) &&
         load(library, "DPCTLQueue_Copy", &f->queue_copy, why_not) &&
         load(library, "DPCTLQueue_Delete", &f->queue_delete, why_not) &&
         load(library, "DPCTLQueue_AreEq", &f->queue_equal, why_not) &&
         load(library, "DPCTLQueue_GetContext", &f->queue_context, why_not) &&
         load(library, "DPCTLQueue_GetDevice", &f->queue_device, why_not) &&
         load(library, "DPCTLContext_AreEq", &f->context_equal, why_not) &&
         load(library, "DPCTLDevice_AreEq", &f->device_equal, why_not) &&
         load(library, "DPCTLQueue_SubmitBarrier", &f->queue_barrier, why_not) &&
         load(library, "DPCTLQueue_SubmitBarrierForEvents", &f->queue_barrier_for_events,
              why_not) &&
         load(library, "DPCTLQueue_Memcpy", &f->queue_memcpy, why_not) &&
         load(library, "DPCTLEvent_Wait", &f->event_wait, why_not) &&
         load(library, "DPCTLEvent_GetCommandExecutionStatus", &f->event_status, why_not) &&
         load(library, "DPCTLEvent_Delete", &f->event_delete, why_not) &&
         load(library, "DPCTLDeviceMgr_GetDevices", &f->devices_get, why_not) &&
         load(library, "DPCTLDeviceMgr_GetNumDevices", &f->devices_count, why_not) &&
         load(library, "DPCTLDeviceVector_GetAt", &f->device_at, why_not) &&
         load(library, "DPCTLDeviceVector_Delete", &f->devices_delete, why_not) &&
         load(library, "DPCTLDevice_Delete", &f->device_delete, why_not) &&
         load(library, "DPCTLDeviceMgr_GetCachedContext", &f->cached_context, why_not) &&
         load(library, "DPCTLContext_Delete", &f->context_delete, why_not) &&
         load(library, "DPCTLmalloc_device", &f->malloc_device, why_not) &&
         load(library, "DPCTLfree_with_queue", &f->free_with_queue, why_not) &&
         load(library, "DPCTLService_GetDPCPPVersion", &f->dpcpp_version, why_not) &&
         load(library, "DPCTLCString_Delete", &f->cstring_delete, why_not);
}

class OneApi final : public Backend {
 public:
  explicit OneApi(const Functions& functions) : f_(functions), process_(process_id()) {}

  const char* name() const noexcept override { return "oneAPI"; }

  std::string version() override {
    const char* text = f_.dpcpp_version();
    std::string version = concat("DPC++ ", text == nullptr ? "?" : text);
    f_.cstring_delete(text);
    return version;
  }

  int64_t device_count() override { return static_cast<int64_t>(f_.devices_count(kAnyDevice)); }

  EventHandle record(const Device& device, StreamHandle queue) override {
    require_process(device);
    return EventHandle(require(f_.queue_barrier(queue.get()), device, "submit a barrier"));
  }

  void wait(const Device& device, StreamHandle queue, EventHandle event) override {
    require_process(device);
    void* const pending = event.get();
    void* barrier = f_.queue_barrier_for_events(queue.get(), &pending, 1);
    f_.event_delete(require(barrier, device, "submit a barrier"));
  }

  /// dpctl's wait swallows what SYCL throws: only the status tells.
  void synchronize(const Device& device, EventHandle event) override {
    require_process(device);
    f_.event_wait(event.get());
    if (f_.event_status(event.get()) != kComplete) raise_failed(device);
  }

  bool is_complete(const Device& device, EventHandle event) override {
    require_process(device);
    const int status = f_.event_status(event.get());
    if (status == kUnknown) raise_failed(device);
    return status == kComplete;
  }

  void destroy(const Device&, EventHandle event) noexcept override {
    if (process_ == process_id()) f_.event_delete(event.get());
  }

  EventHandle join(const Device& device, const std::vector<EventHandle>& events) override {
    const BorrowedStream queue(*this, device);
    std::vector<void*> pending;
    for (const EventHandle event : events) pending.push_back(event.get());
    void* barrier = f_.queue_barrier_for_events(queue.get().get(), pending.data(), pending.size());
    return EventHandle(require(barrier, device, "submit a barrier"));
  }

  StreamHandle take_stream(const Device& device) override {
    require_process(device);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::deque<Given>& given = given_[device.id];
      for (auto it = given.begin(); it != given.end(); ++it) {
        if (f_.event_status(it->last) != kComplete) continue;
        const Given idle = *it;
        given.erase(it);
        f_.event_delete(idle.last);
        return idle.queue;
      }
    }
    return make_queue(device);
  }

  /// The queue stays: Intel's runtime hangs where one goes whose work is under way, since the last
  /// reference is then dropped by that work.
  void give_stream(const Device& device, StreamHandle queue) noexcept override {
    if (process_ != process_id()) return;
    try {
      void* last = require(f_.queue_barrier(queue.get()), device, "submit a barrier");
      const std::lock_guard<std::mutex> lock(mutex_);
      given_[device.id].push_back({queue, last});
    } catch (...) {  // the runtime has ended, or there is no memory: the queue stays with it
    }
  }

  StreamHandle work_stream(const Device& device) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    StreamHandle& queue = work_queues_[device.id];
    if (queue.is_null()) queue = make_queue(device);
    return queue;
  }

  StreamHandle keep_stream(const Device& device, StreamHandle queue) override {
    require_process(device);
    return StreamHandle(require(f_.queue_copy(queue.get()), device, "keep a queue"));
  }

  void drop_stream(const Device&, StreamHandle queue) noexcept override {
    if (process_ == process_id()) f_.queue_delete(queue.get());
  }

  /// USM belongs to a context, and a device has one that everybody looks in.
  void require_stream_of(const Device& device, StreamHandle queue) override {
    const StreamHandle ours = work_stream(device);
    const Owned contexts[] = {{f_.queue_context(queue.get()), f_.context_delete},
                              {f_.queue_context(ours.get()), f_.context_delete}};
    const Owned devices[] = {{f_.queue_device(queue.get()), f_.device_delete},
                             {f_.queue_device(ours.get()), f_.device_delete}};
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

  bool is_capturing(const Device&, StreamHandle) override { return false; }

  void* allocate(const Device& device, int64_t size, StreamHandle queue) override {
    require_process(device);
    void* memory = f_.malloc_device(static_cast<std::size_t>(size > 0 ? size : 1), queue.get());
    if (memory == nullptr) {
      throw Error(ErrorKind::kMemory,
                  concat("cannot allocate ", size, " bytes on ", to_string(device)));
    }
    return memory;
  }

  /// SYCL has no stream-ordered free: the host waits for the queue.
  void free(const Device&, void* memory, StreamHandle queue) noexcept override {
    if (process_ != process_id()) return;
    if (void* barrier = f_.queue_barrier(queue.get())) {
      wait_guarded([&](const Waiting&) { f_.event_wait(barrier); });
      f_.event_delete(barrier);
      f_.free_with_queue(memory, queue.get());
    }
  }

  /// Devices have a context each, and a queue reaches memory of its own.
  bool can_copy(const Device& from, const Device& to) override {
    return from.type == kDLCPU || to.type == kDLCPU || from.id == to.id;
  }

  void copy(const Device& to, void* target, const Device& from, const void* source, int64_t size,
            StreamHandle queue) override {
    const Device& device = to.type == kDLOneAPI ? to : from;
    require_process(device);
    void* event = f_.queue_memcpy(queue.get(), target, source, static_cast<std::size_t>(size));
    f_.event_delete(require(event, device, "copy memory"));
  }

 private:
  using Owned = std::unique_ptr<void, void (*)(void*)>;

  [[noreturn]] static void raise_failed(const Device& device) {
    throw Error(ErrorKind::kRuntime, concat("the work before the event on ", to_string(device),
                                            " failed: SYCL reports no completion"));
  }

  static void* require(void* result, const Device& device, const char* verb) {
    if (result != nullptr) return result;
    throw Error(ErrorKind::kRuntime, concat("oneAPI cannot ", verb, " on ", to_string(device),
                                            ": dpctl says why where DPCTL_VERBOSITY=error is set"));
  }

  void require_process(const Device& device) const {
    if (process_ == process_id()) return;
    throw Error(ErrorKind::kRuntime,
                concat(to_string(device),
                       " cannot be used in a forked child: start processes with "
                       "the spawn method"));
  }

  StreamHandle make_queue(const Device& device) {
    require_process(device);
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

  /// A queue of ours that nobody has, and the end of its work.
  struct Given {
    StreamHandle queue;
    void* last;
  };

  const Functions f_;
  const int64_t process_;
  std::mutex mutex_;
  std::unordered_map<int64_t, std::deque<Given>> given_;
  std::unordered_map<int64_t, StreamHandle> work_queues_;
};

}  // namespace

Backend* open_oneapi(std::string* why_not) {
  void* library = find_library();
  if (library == nullptr) {
    *why_not = concat("arrowdl reaches SYCL through dpctl, and ", kLibrary,
                      " is not loaded: import dpctl first");
    return nullptr;
  }
  Functions functions{};
  if (!load_all(library, &functions, why_not)) return nullptr;
  return new OneApi(functions);  // lives as long as the process: events outlive statics
}

}  // namespace arrowdl
