// The state of the fake driver, and how its calls are made: counted, failed on demand, refused.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "fake_driver.hpp"
#include "kernels.hpp"

namespace arrowdl::testing::fake {

constexpr int kDevices = FakeDriver::kDevices;
constexpr int kRelaxedCapture = 2;
constexpr unsigned kNonBlocking = 1;
constexpr int kMemoryType = 2;
constexpr int kIsManaged = 8;
constexpr int kDeviceOrdinal = 9;
constexpr int kBufferId = 7;
constexpr int kPoolHandle = 17;
#ifdef FAKE_HIP
constexpr bool kHasContexts = false;
#else
constexpr bool kHasContexts = true;
#endif

/// A point in a stream, and whether the stream has passed it.
struct Mark {
  bool is_passed = false;
};
using MarkPtr = std::shared_ptr<Mark>;

struct Operation {
  std::function<bool()> is_ready;  ///< called under the lock; empty: ready
  std::function<void()> run;       ///< called without the lock
  MarkPtr mark;                    ///< passed after `run`
};

struct FakeStream {
  int device = 0;
  bool is_blocking = false;  ///< synchronizes with the default stream
  bool is_default = false;
  bool is_destroyed = false;
  bool is_capturing = false;
  bool is_green = false;             ///< of the device's green context
  std::deque<Operation> operations;  ///< the first may be running
  /// An operation came, or the end. Idle workers of many streams do not wake for the others.
  std::condition_variable arrived;

  void push(Operation operation) {
    operations.push_back(std::move(operation));
    arrived.notify_all();
  }
};
using StreamPtr = std::shared_ptr<FakeStream>;

struct Event {
  int device = 0;
  bool is_green = false;  ///< made in the device's green context
  MarkPtr mark;           ///< nullptr: never recorded
};

enum class Memory { kDevice, kHost, kManaged };

/// Drivers align all memory to 256 bytes.
template <typename T>
struct DriverAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{256};
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* memory, std::size_t) noexcept { ::operator delete(memory, kAlignment); }
  bool operator==(const DriverAllocator&) const noexcept { return true; }
  bool operator!=(const DriverAllocator&) const noexcept { return false; }
};

struct Allocation {
  std::vector<uint8_t, DriverAllocator<uint8_t>> bytes;
  Memory memory = Memory::kDevice;
  int device = 0;
  bool is_pooled = false;
  bool is_freed = false;  ///< no later work may use it
  bool is_gone = false;   ///< no running work may use it: its stream has freed it
  void* pool = nullptr;   ///< of pooled memory
  std::size_t size = 0;
  bool is_mapped = false;  ///< memory of another call than the address
  std::set<int> granted;   ///< devices that may access mapped memory
};

/// A pool of memory of one device, which other devices use only after it grants them access.
struct Pool {
  int device = 0;
  std::set<int> granted;   ///< other devices
  uint64_t threshold = 0;  ///< what it keeps when a stream or an event is synchronized
  uint64_t reserved = 0;   ///< taken from the device
  uint64_t used = 0;
};

/// A loaded module of one context. Its text contains the names of its kernels.
struct Module {
  int device = 0;
  const char* text = nullptr;
};

struct LoadedKernel {
  int device = 0;
  const Kernel* kernel = nullptr;
};

struct ThreadState {
  std::vector<int> contexts;  ///< CUDA: a stack of devices, those above kDevices green contexts
  int device = 0;             ///< HIP
  int capture_mode = 0;
  int last_error = 0;
};
extern thread_local ThreadState this_thread;

/// The device of this thread's context; -1: none.
int current_device();
/// Whether this thread's context is a green one.
bool is_in_green_context();

/// The state of the driver behind one lock. Only the work of streams runs without the lock.
struct Machine {
  std::mutex mutex;
  std::condition_variable changed;
  const pid_t pid = getpid();
  std::atomic<int> child_calls{0};

  bool is_initialized = false;
  int device_count = 0;  ///< those that are visible
  bool has_pools = true;
  bool can_pin = true;
  bool is_globally_capturing = false;
  bool is_capture_broken = false;
  int calls = 0;
  int misuses = 0;
  int fail_in = 0;
  int fail_status = 0;
  bool has_failed = false;
  int failures[kDevices] = {};  ///< status of failed work, never cleared

  uintptr_t next_handle = 0x10000;  // handles are not reused, unless a test asks for it
  bool reuses_handles = false;
  std::vector<void*> free_handles;  ///< of destroyed streams
  char contexts[kDevices] = {};
  char green_contexts[kDevices] = {};
  int retained[kDevices] = {};
  std::map<void*, Event> events;
  std::map<void*, StreamPtr> streams;
  StreamPtr defaults[kDevices];
  std::map<std::pair<int, std::thread::id>, StreamPtr> per_thread;
  MarkPtr last_default[kDevices];
  std::map<uintptr_t, Allocation> allocations;
  std::map<void*, Module> modules;
  std::map<void*, LoadedKernel> kernels;
  std::set<int> closed_gates;
  int next_gate = 1;

  std::map<void*, Pool> pools;
  void* default_pools[kDevices] = {};
  bool has_peers = true;  ///< devices can access each other's memory
  int host_node = -1;     ///< device attribute 134
  int pinned_node = -1;   ///< the node that the last thread that pinned memory preferred
  bool has_concurrent_managed = true;  ///< the host may read managed memory while a GPU works
  int module_status = 0;               ///< why no module can be loaded; 0: they can
  uint64_t capacity = UINT64_MAX;      ///< bytes that all allocations of one device may take
  std::vector<int> visible;            ///< the number in the machine of each device
  int copies = 0;
  int pool_allocations = 0;
  int growths = 0;         ///< how often a pool took memory from its device
  int host_waits = 0;      ///< calls that waited for work on the host
  int64_t page_locks = 0;  ///< calls that pinned memory or freed such memory
  int launches = 0;
  int device_allocations = 0;  ///< of memory of no pool; see `growths`

  Machine();

  void* make_handle() { return reinterpret_cast<void*>(next_handle += 16); }

  /// The handle of a new stream: with `reuses_handles` that of the stream that was destroyed last.
  void* make_stream_handle();

  /// The loop of a worker thread: runs operations until the stream is destroyed and empty.
  void work(const StreamPtr& stream);
  /// A new stream with its worker thread.
  StreamPtr start_stream(int device, bool is_blocking);
  /// The stream of a handle, or nullptr. The handles of default streams mean those of `device`.
  StreamPtr find_stream(void* handle, int device);
  std::vector<StreamPtr> all_streams() const;

  static void push_wait(const StreamPtr& stream, MarkPtr mark);
  static MarkPtr push_mark(const StreamPtr& stream);

  /// The default stream runs after the earlier work of blocking streams, and they after its.
  void submit(const StreamPtr& stream, Operation operation);

  void wait_until_idle(std::unique_lock<std::mutex>& lock, const StreamPtr& stream);

  /// The allocation that contains an address, also a freed one; nullptr if there is none.
  Allocation* find_allocation(const void* address);
  /// Whether work that is enqueued now, or that `runs`, may use the bytes: they are of one
  /// allocation, which is not freed. Memory that the driver does not know is the host's.
  bool is_usable(const void* address, std::size_t size, bool runs);
  /// Work on `stream` that may use the bytes when it runs; else it is a misuse.
  void submit_use(const StreamPtr& stream, std::vector<std::pair<const void*, std::size_t>> used,
                  std::function<void()> run);
  /// Memory of the current device.
  void* add_allocation(std::size_t size, bool is_pooled, Memory memory);

  // pools.cpp
  /// Memory of `device`, from its default pool if `pool` is null. nullptr: it has no more.
  void* add_pooled(std::size_t size, void* pool, int device);
  /// Whether the device has room for `size` bytes more.
  bool has_room(int device, uint64_t size) const;
  /// Whether copies of `device` may use the memory.
  bool may_access(int device, const Allocation* memory) const;
  /// Whether kernels of `device` may use what an argument of theirs points to.
  bool may_use(int device, const Argument& argument);
  /// Takes freed memory back into its pool.
  void return_to_pool(const Allocation& allocation);
  /// What pools do when a stream or an event is synchronized.
  void trim_pools();
};

/// The one of this library. Never destroyed: workers outlive statics.
Machine& machine();

using Lock = std::unique_lock<std::mutex>;

/// A condition under which the fake driver refuses a call. cuMemFree and cudaFree, as cudaMalloc,
/// are "potentially unsafe" during a capture (cuThreadExchangeStreamCaptureMode): kMayFree.
enum Kind { kAnyCall, kGivesBack, kMaySynchronize, kMayFree };

/// One call of the driver: counts it, fails it on demand, and refuses it if it is not allowed.
template <typename Body>
int call(Kind kind, const Body& body) {
  Machine& m = machine();
  if (getpid() != m.pid) {
    ++m.child_calls;
    return kNotInitialized;
  }
  Lock lock(m.mutex);
  ++m.calls;
  int injected = 0;
  if (m.fail_in > 0 && --m.fail_in == 0) {
    injected = m.fail_status;
    m.has_failed = true;
  }
  int status = injected;
  if (injected == 0 || kind == kGivesBack || kind == kMayFree) {
    if ((kind == kMaySynchronize || kind == kMayFree) && m.is_globally_capturing &&
        this_thread.capture_mode != kRelaxedCapture) {
      m.is_capture_broken = true;
      status = kCaptureUnsupported;
    } else {
      status = body(m, lock);
      if (injected != 0) status = injected;
    }
  }
  if (status != kSuccess) this_thread.last_error = status;
  return status;
}

/// The same for calls that need a current context.
template <typename Body>
int call_in_context(Kind kind, const Body& body) {
  return call(kind, [&body](Machine& m, Lock& lock) {
    if (!m.is_initialized) return static_cast<int>(kNotInitialized);
    if (current_device() < 0) return static_cast<int>(kInvalidContext);
    return static_cast<int>(body(m, lock));
  });
}

/// The same for calls with a stream.
template <typename Body>
int call_on_stream(Kind kind, void* handle, const Body& body) {
  return call_in_context(kind, [&](Machine& m, Lock& lock) {
    const StreamPtr stream = m.find_stream(handle, current_device());
    if (stream == nullptr) return static_cast<int>(kInvalidHandle);
    if (stream->is_capturing) {
      m.is_capture_broken = true;
      return static_cast<int>(kCaptureUnsupported);
    }
    if (stream->is_default && m.is_globally_capturing) return static_cast<int>(kCaptureImplicit);
    return static_cast<int>(body(m, lock, stream));
  });
}

template <typename Body>
int call_on_event(Kind kind, void* handle, const Body& body) {
  return call_in_context(kind, [&](Machine& m, Lock& lock) {
    const auto found = m.events.find(handle);
    if (found == m.events.end()) {
      ++m.misuses;
      return static_cast<int>(kInvalidHandle);
    }
    return static_cast<int>(body(m, lock, found->second));
  });
}

inline int failure_of(const Machine& m, int device) {
  return m.failures[static_cast<std::size_t>(device)];
}

}  // namespace arrowdl::testing::fake
