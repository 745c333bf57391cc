// The fake driver: streams with worker threads, events, memory, contexts and controls.
#include "machine.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_driver.hpp"
#include "kernels.hpp"

namespace arrowdl::testing::fake {
namespace {

constexpr int kDevices = FakeDriver::kDevices;
constexpr int kRelaxedCapture = 2;
constexpr unsigned kNonBlocking = 1;
constexpr int kMemoryType = 2;
constexpr int kIsManaged = 8;
constexpr int kDeviceOrdinal = 9;
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
  std::deque<Operation> operations;  ///< the first may be running
};
using StreamPtr = std::shared_ptr<FakeStream>;

struct Event {
  int device = 0;
  MarkPtr mark;  ///< nullptr: never recorded
};

enum class Memory { kDevice, kHost, kManaged };

struct Allocation {
  std::vector<uint8_t> bytes;
  Memory memory = Memory::kDevice;
  int device = 0;
  bool is_pooled = false;
  bool is_freed = false;
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
  std::vector<int> contexts;  ///< CUDA: a stack of devices
  int device = 0;             ///< HIP
  int capture_mode = 0;
  int last_error = 0;
};
thread_local ThreadState this_thread;

int current_device() {
  if (!kHasContexts) return this_thread.device;
  return this_thread.contexts.empty() ? -1 : this_thread.contexts.back();
}

/// The state of the driver behind one lock. Only the work of streams runs without the lock.
struct Machine {
  std::mutex mutex;
  std::condition_variable changed;
  const pid_t pid = getpid();
  std::atomic<int> child_calls{0};

  bool is_initialized = false;
  int device_count = kDevices;
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

  uintptr_t next_handle = 0x10000;  // handles are never reused
  char contexts[kDevices] = {};
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

  void* make_handle() { return reinterpret_cast<void*>(next_handle += 16); }

  void work(const StreamPtr& stream) {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&stream] {
        if (stream->operations.empty()) return stream->is_destroyed;
        const Operation& next = stream->operations.front();
        return !next.is_ready || next.is_ready();
      });
      if (stream->operations.empty()) return;
      Operation& operation = stream->operations.front();
      if (operation.run) {
        lock.unlock();
        operation.run();
        lock.lock();
      }
      if (operation.mark) operation.mark->is_passed = true;
      stream->operations.pop_front();
      changed.notify_all();
    }
  }

  StreamPtr start_stream(int device, bool is_blocking) {
    auto stream = std::make_shared<FakeStream>();
    stream->device = device;
    stream->is_blocking = is_blocking;
    std::thread([this, stream] { work(stream); }).detach();
    return stream;
  }

  /// The stream of a handle, or nullptr. The handles of default streams mean those of `device`.
  StreamPtr find_stream(void* handle, int device) {
    const auto number = reinterpret_cast<uintptr_t>(handle);
    if (number > 2) {
      const auto found = streams.find(handle);
      if (found != streams.end()) return found->second;
      ++misuses;
      return nullptr;
    }
    if (device < 0) return nullptr;
    StreamPtr& stream = number == 2 ? per_thread[{device, std::this_thread::get_id()}]
                                    : defaults[static_cast<std::size_t>(device)];
    if (stream == nullptr) {
      stream = start_stream(device, true);
      stream->is_default = number != 2;
    }
    return stream;
  }

  std::vector<StreamPtr> all_streams() const {
    std::vector<StreamPtr> all;
    for (const auto& [handle, stream] : streams) all.push_back(stream);
    for (const auto& [key, stream] : per_thread) all.push_back(stream);
    for (const StreamPtr& stream : defaults) {
      if (stream != nullptr) all.push_back(stream);
    }
    return all;
  }

  static void push_wait(const StreamPtr& stream, MarkPtr mark) {
    stream->operations.push_back(
        {[mark = std::move(mark)] { return mark->is_passed; }, nullptr, nullptr});
  }

  static MarkPtr push_mark(const StreamPtr& stream) {
    auto mark = std::make_shared<Mark>();
    stream->operations.push_back({nullptr, nullptr, mark});
    return mark;
  }

  /// The default stream runs after the earlier work of blocking streams, and they after its.
  void submit(const StreamPtr& stream, Operation operation) {
    MarkPtr& last = last_default[static_cast<std::size_t>(stream->device)];
    if (stream->is_default) {
      for (const StreamPtr& other : all_streams()) {
        if (other == stream || !other->is_blocking || other->device != stream->device) continue;
        if (!other->operations.empty()) push_wait(stream, push_mark(other));
      }
    } else if (stream->is_blocking && last != nullptr && !last->is_passed) {
      push_wait(stream, last);
    }
    stream->operations.push_back(std::move(operation));
    if (stream->is_default) last = push_mark(stream);
    changed.notify_all();
  }

  void wait_until_idle(std::unique_lock<std::mutex>& lock, const StreamPtr& stream) {
    changed.wait(lock, [&stream] { return stream->operations.empty(); });
  }

  Allocation* find_allocation(const void* address) {
    const auto number = reinterpret_cast<uintptr_t>(address);
    auto next = allocations.upper_bound(number);
    if (next == allocations.begin()) return nullptr;
    --next;
    return number < next->first + next->second.bytes.size() ? &next->second : nullptr;
  }

  void* add_allocation(std::size_t size, bool is_pooled, Memory memory) {
    Allocation allocation{std::vector<uint8_t>(size, 0xAA), memory, current_device(), is_pooled,
                          false};
    uint8_t* const bytes = allocation.bytes.data();
    allocations[reinterpret_cast<uintptr_t>(bytes)] = std::move(allocation);
    return bytes;
  }
};

Machine& machine() {
  static auto* const one = new Machine;  // never freed: workers outlive statics
  return *one;
}

using Lock = std::unique_lock<std::mutex>;

/// A condition under which the fake driver refuses a call.
enum Kind { kAnyCall, kGivesBack, kMaySynchronize };

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
  if (injected == 0 || kind == kGivesBack) {
    if (kind == kMaySynchronize && m.is_globally_capturing &&
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

int failure_of(const Machine& m, int device) {
  return m.failures[static_cast<std::size_t>(device)];
}

int give_memory(void** memory, std::size_t size, Memory kind) {
  return call_in_context(kMaySynchronize, [&](Machine& m, Lock&) {
    if (size == 0) return kInvalidValue;
    if (size > (std::size_t{1} << 40)) return kOutOfMemory;
    if (kind == Memory::kHost && !m.can_pin) return kOutOfMemory;
    *memory = m.add_allocation(size, false, kind);
    return kSuccess;
  });
}

int take_memory(void* memory) {
  return call_in_context(kGivesBack, [&](Machine& m, Lock&) {
    Allocation* allocation = m.find_allocation(memory);
    if (allocation == nullptr || allocation->is_freed) {
      ++m.misuses;
      return kInvalidValue;
    }
    allocation->is_freed = true;
    std::memset(allocation->bytes.data(), FakeDriver::kPoison, allocation->bytes.size());
    return kSuccess;
  });
}

}  // namespace

const char* name_of(int status) noexcept {
  switch (status) {
    case kSuccess:
      return "FAKE_SUCCESS";
    case kOutOfMemory:
      return "FAKE_OUT_OF_MEMORY";
    case kInvalidContext:
      return "FAKE_INVALID_CONTEXT";
    case kInvalidHandle:
      return "FAKE_INVALID_HANDLE";
    case kIllegalAddress:
      return "FAKE_ILLEGAL_ADDRESS";
    default:
      return "FAKE_ERROR";
  }
}

int init(unsigned) {
  return call(kAnyCall, [](Machine& m, Lock&) {
    if (m.device_count == 0) return kNoDevice;
    m.is_initialized = true;
    return kSuccess;
  });
}

int get_version(int* version, int value) {
  return call(kAnyCall, [&](Machine&, Lock&) {
    *version = value;
    return kSuccess;
  });
}

int count_devices(int* count) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    *count = m.device_count;
    return m.is_initialized ? kSuccess : kNotInitialized;
  });
}

int get_device(int* device, int ordinal) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    if (ordinal < 0 || ordinal >= m.device_count) return kInvalidDevice;
    *device = ordinal;
    return kSuccess;
  });
}

int exchange_capture_mode(int* mode) {
  return call(*mode == kRelaxedCapture ? kAnyCall : kGivesBack, [&](Machine&, Lock&) {
    std::swap(this_thread.capture_mode, *mode);
    return kSuccess;
  });
}

// ---------------------------------------------------------------- contexts

int retain_primary(void** context, int device) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    if (device < 0 || device >= m.device_count) return kInvalidDevice;
    ++m.retained[static_cast<std::size_t>(device)];
    *context = &m.contexts[static_cast<std::size_t>(device)];
    return kSuccess;
  });
}

int push_context(void* context) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    for (int device = 0; device < kDevices; ++device) {
      const auto i = static_cast<std::size_t>(device);
      if (context != &m.contexts[i] || m.retained[i] == 0) continue;
      this_thread.contexts.push_back(device);
      return kSuccess;
    }
    return kInvalidContext;
  });
}

int pop_context(void** context) {
  return call(kGivesBack, [&](Machine& m, Lock&) {
    if (this_thread.contexts.empty()) return kInvalidContext;
    *context = &m.contexts[static_cast<std::size_t>(this_thread.contexts.back())];
    this_thread.contexts.pop_back();
    return kSuccess;
  });
}

int get_current_device(int* device) {
  return call(kAnyCall, [&](Machine&, Lock&) {
    *device = this_thread.device;
    return kSuccess;
  });
}

int set_current_device(int device) {
  return call(kGivesBack, [&](Machine& m, Lock&) {
    if (device < 0 || device >= m.device_count) return kInvalidDevice;
    this_thread.device = device;
    return kSuccess;
  });
}

// ---------------------------------------------------------------- events

int create_event(void** event, unsigned) {
  return call_in_context(kAnyCall, [&](Machine& m, Lock&) {
    *event = m.make_handle();
    m.events[*event] = Event{current_device(), nullptr};
    return kSuccess;
  });
}

int record_event(void* event, void* handle) {
  return call_on_stream(kAnyCall, handle, [&](Machine& m, Lock&, const StreamPtr& stream) {
    const auto found = m.events.find(event);
    if (found == m.events.end() || found->second.device != stream->device) {
      ++m.misuses;
      return kInvalidHandle;
    }
    found->second.mark = std::make_shared<Mark>();
    m.submit(stream, {nullptr, nullptr, found->second.mark});
    return kSuccess;
  });
}

int query_event(void* handle) {
  return call_on_event(kMaySynchronize, handle, [&](Machine& m, Lock&, const Event& event) {
    if (const int failure = failure_of(m, event.device)) return failure;
    return static_cast<int>(event.mark == nullptr || event.mark->is_passed ? kSuccess : kNotReady);
  });
}

int synchronize_event(void* handle) {
  return call_on_event(kMaySynchronize, handle, [&](Machine& m, Lock& lock, const Event& event) {
    const MarkPtr mark = event.mark;
    const int device = event.device;  // the event may be destroyed during the wait
    if (mark != nullptr) m.changed.wait(lock, [&mark] { return mark->is_passed; });
    return failure_of(m, device);
  });
}

int destroy_event(void* handle) {
  return call_on_event(kGivesBack, handle, [&](Machine& m, Lock&, const Event& event) {
    static_cast<void>(event);
    m.events.erase(handle);
    return kSuccess;
  });
}

int wait_for_event(void* stream, void* event, unsigned) {
  return call_on_stream(kAnyCall, stream, [&](Machine& m, Lock&, const StreamPtr& waiting) {
    const auto found = m.events.find(event);
    if (found == m.events.end()) {
      ++m.misuses;
      return kInvalidHandle;
    }
    const MarkPtr mark = found->second.mark;  // a later record replaces it in the event
    if (mark != nullptr) {
      m.submit(waiting, {[mark] { return mark->is_passed; }, nullptr, nullptr});
    }
    return kSuccess;
  });
}

// ---------------------------------------------------------------- streams

int create_stream(void** stream, unsigned flags) {
  return call_in_context(kAnyCall, [&](Machine& m, Lock&) {
    *stream = m.make_handle();
    m.streams[*stream] = m.start_stream(current_device(), (flags & kNonBlocking) == 0);
    return kSuccess;
  });
}

int query_stream(void* handle) {
  return call_on_stream(kMaySynchronize, handle, [](Machine& m, Lock&, const StreamPtr& stream) {
    if (const int failure = failure_of(m, stream->device)) return failure;
    return static_cast<int>(stream->operations.empty() ? kSuccess : kNotReady);
  });
}

int synchronize_stream(void* handle) {
  return call_on_stream(kMaySynchronize, handle,
                        [](Machine& m, Lock& lock, const StreamPtr& stream) {
                          m.wait_until_idle(lock, stream);
                          return failure_of(m, stream->device);
                        });
}

int destroy_stream(void* handle) {
  return call_on_stream(kGivesBack, handle, [&](Machine& m, Lock&, const StreamPtr& stream) {
    stream->is_destroyed = true;  // its worker ends after the work
    m.streams.erase(handle);
    m.changed.notify_all();
    return kSuccess;
  });
}

int get_stream_context(void* handle, void** context) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const StreamPtr stream = m.find_stream(handle, current_device());
    if (stream == nullptr) return kInvalidHandle;
    *context = &m.contexts[static_cast<std::size_t>(stream->device)];
    return kSuccess;
  });
}

int get_stream_device(void* handle, int* device) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const StreamPtr stream = m.find_stream(handle, current_device());
    if (stream == nullptr) return kInvalidHandle;
    *device = stream->device;
    return kSuccess;
  });
}

int is_capturing(void* handle, int* status) {
  return call_in_context(kAnyCall, [&](Machine& m, Lock&) {
    const StreamPtr stream = m.find_stream(handle, current_device());
    if (stream == nullptr) return kInvalidHandle;
    if (stream->is_default && m.is_globally_capturing) return kCaptureImplicit;
    *status = stream->is_capturing ? 1 : 0;
    return kSuccess;
  });
}

// ---------------------------------------------------------------- memory

int allocate(void** memory, std::size_t size) { return give_memory(memory, size, Memory::kDevice); }
int allocate_host(void** memory, std::size_t size, unsigned) {
  return give_memory(memory, size, Memory::kHost);
}
int allocate_managed(void** memory, std::size_t size, unsigned) {
  return give_memory(memory, size, Memory::kManaged);
}
int free(void* memory) { return take_memory(memory); }
int free_host(void* memory) { return take_memory(memory); }

int allocate_async(void** memory, std::size_t size, void* handle) {
  return call_on_stream(kAnyCall, handle, [&](Machine& m, Lock&, const StreamPtr&) {
    if (!m.has_pools) return kNotSupported;
    if (size == 0) return kInvalidValue;
    if (size > (std::size_t{1} << 40)) return kOutOfMemory;
    *memory = m.add_allocation(size, true, Memory::kDevice);
    return kSuccess;
  });
}

int free_async(void* memory, void* handle) {
  return call_on_stream(kGivesBack, handle, [&](Machine& m, Lock&, const StreamPtr& stream) {
    Allocation* allocation = m.find_allocation(memory);
    if (allocation == nullptr || allocation->is_freed || !allocation->is_pooled) {
      ++m.misuses;
      return kInvalidValue;
    }
    allocation->is_freed = true;
    const std::size_t size = allocation->bytes.size();
    m.submit(stream, {nullptr, [memory, size] { std::memset(memory, FakeDriver::kPoison, size); },
                      nullptr});
    return kSuccess;
  });
}

int copy_async(void* target, const void* source, std::size_t size, void* handle) {
  return call_on_stream(kAnyCall, handle, [&](Machine& m, Lock& lock, const StreamPtr& stream) {
    const bool stages = m.find_allocation(source) == nullptr;
    const bool waits = m.find_allocation(target) == nullptr;
    if (stages && waits) return static_cast<int>(kInvalidValue);
    auto staged = std::make_shared<std::vector<uint8_t>>();
    if (stages) {
      const auto* bytes = static_cast<const uint8_t*>(source);
      staged->assign(bytes, bytes + size);
    }
    const void* const from = stages ? staged->data() : source;
    m.submit(stream,
             {nullptr, [staged, target, from, size] { std::memcpy(target, from, size); }, nullptr});
    if (waits) m.wait_until_idle(lock, stream);
    return failure_of(m, stream->device);
  });
}

int get_pointer_attribute(void* value, int attribute, const void* memory) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const Allocation* allocation = m.find_allocation(memory);
    if (allocation == nullptr || allocation->is_freed) return kInvalidValue;
    auto& result = *static_cast<int*>(value);
    switch (attribute) {
      case kMemoryType:
        result = allocation->memory == Memory::kHost ? 1 : 2;
        return kSuccess;
      case kIsManaged:
        result = allocation->memory == Memory::kManaged ? 1 : 0;
        return kSuccess;
      case kDeviceOrdinal:
        result = allocation->device;
        return kSuccess;
      default:
        return kInvalidValue;
    }
  });
}

// ---------------------------------------------------------------- kernels

int load_module(void** module, const void* image) {
  return call_in_context(kMaySynchronize, [&](Machine& m, Lock&) {
    const auto* text = static_cast<const char*>(image);
    if (std::strstr(text, ".version ") == nullptr) return kInvalidImage;
    *module = m.make_handle();
    m.modules[*module] = {current_device(), text};
    return kSuccess;
  });
}

int find_kernel(void** kernel, void* handle, const char* name) {
  return call_in_context(kAnyCall, [&](Machine& m, Lock&) {
    const auto module = m.modules.find(handle);
    if (module == m.modules.end()) return kInvalidHandle;
    const std::string entry = std::string(".entry ") + name + '(';
    const Kernel* const found = find_kernel(name);
    if (found == nullptr || std::strstr(module->second.text, entry.c_str()) == nullptr) {
      return kNotFound;
    }
    *kernel = m.make_handle();
    m.kernels[*kernel] = {module->second.device, found};
    return kSuccess;
  });
}

int launch_kernel(void* handle, unsigned blocks, unsigned threads, void* on, void** arguments) {
  return call_on_stream(kAnyCall, on, [&](Machine& m, Lock&, const StreamPtr& stream) {
    const auto found = m.kernels.find(handle);
    if (found == m.kernels.end() || found->second.device != stream->device) {
      ++m.misuses;
      return static_cast<int>(kInvalidHandle);
    }
    if (blocks == 0 || threads == 0 || threads > 1024) return static_cast<int>(kInvalidValue);
    const Run run = found->second.kernel->bind(arguments);
    m.submit(stream, {nullptr, [run, blocks, threads] { run({blocks, threads}); }, nullptr});
    return failure_of(m, stream->device);
  });
}

int take_last_error() { return std::exchange(this_thread.last_error, 0); }

// ---------------------------------------------------------------- controls

namespace {

class Controls final : public FakeDriver {
 public:
  int close_gate() override {
    const Lock lock(m_.mutex);
    m_.closed_gates.insert(m_.next_gate);
    return m_.next_gate++;
  }
  void open_gate(int gate) override {
    const Lock lock(m_.mutex);
    m_.closed_gates.erase(gate);
    m_.changed.notify_all();
  }
  void enqueue_gate(int device, StreamHandle stream, int gate) override {
    Machine& m = m_;
    submit(device, stream, {[&m, gate] { return m.closed_gates.count(gate) == 0; }, {}, {}});
  }
  void enqueue_fill(int device, StreamHandle stream, void* memory, uint8_t value,
                    std::size_t size) override {
    submit(device, stream, {{}, [=] { std::memset(memory, value, size); }, {}});
  }
  void enqueue_copy(int device, StreamHandle stream, void* target, const void* source,
                    std::size_t size) override {
    submit(device, stream, {{}, [=] { std::memcpy(target, source, size); }, {}});
  }
  void enqueue_failure(int device, StreamHandle stream) override {
    Machine& m = m_;
    submit(device, stream,
           {{},
            [&m, device] {
              const Lock lock(m.mutex);
              m.failures[static_cast<std::size_t>(device)] = kIllegalAddress;
            },
            {}});
  }
  void drain(int device, StreamHandle stream) override {
    Lock lock(m_.mutex);
    std::vector<StreamPtr> all = m_.all_streams();
    if (!stream.is_null()) all = {m_.find_stream(stream.get(), device)};
    for (const StreamPtr& one : all) m_.wait_until_idle(lock, one);
  }

  void fail_call(int n, int status) override {
    const Lock lock(m_.mutex);
    m_.fail_in = n;
    m_.fail_status = status;
    if (n > 0) m_.has_failed = false;
  }
  bool has_failed() override {
    const Lock lock(m_.mutex);
    return m_.has_failed;
  }
  void set_device_count(int count) override {
    const Lock lock(m_.mutex);
    m_.device_count = count;
  }
  void set_pools(bool supported) override {
    const Lock lock(m_.mutex);
    m_.has_pools = supported;
  }
  void set_pinning(bool possible) override {
    const Lock lock(m_.mutex);
    m_.can_pin = possible;
  }
  void set_capturing(StreamHandle stream, bool capturing) override {
    const Lock lock(m_.mutex);
    m_.find_stream(stream.get(), 0)->is_capturing = capturing;
  }
  void set_global_capture(bool capturing) override {
    const Lock lock(m_.mutex);
    m_.is_globally_capturing = capturing;
    m_.is_capture_broken = false;
  }
  bool is_capture_broken() override {
    const Lock lock(m_.mutex);
    return m_.is_capture_broken;
  }
  void reset() override {
    {
      const Lock lock(m_.mutex);
      m_.closed_gates.clear();
      m_.changed.notify_all();
    }
    drain(0, {});
    const Lock lock(m_.mutex);
    m_.device_count = kDevices;
    m_.has_pools = m_.can_pin = true;
    m_.is_globally_capturing = m_.is_capture_broken = false;
    m_.fail_in = 0;
    m_.has_failed = false;
    m_.misuses = 0;
    for (int& failure : m_.failures) failure = 0;
    for (const StreamPtr& stream : m_.all_streams()) stream->is_capturing = false;
    for (auto it = m_.allocations.begin(); it != m_.allocations.end();) {
      it = it->second.is_freed ? m_.allocations.erase(it) : std::next(it);
    }
  }

  FakeCounts count() override {
    const Lock lock(m_.mutex);
    FakeCounts counts;
    counts.events = static_cast<int>(m_.events.size());
    counts.streams = static_cast<int>(m_.streams.size());
    for (const auto& [address, allocation] : m_.allocations) {
      counts.allocations += allocation.is_freed ? 0 : 1;
    }
    for (const int retained : m_.retained) counts.contexts += retained;
    return counts;
  }
  int calls() override {
    const Lock lock(m_.mutex);
    return m_.calls;
  }
  int calls_of_forked_child() override { return m_.child_calls; }
  int misuses() override {
    const Lock lock(m_.mutex);
    return m_.misuses;
  }
  int64_t current_context() override { return current_device() + 1; }
  void set_current_context(int device) override {
    this_thread.device = device < 0 ? 0 : device;
    this_thread.contexts.clear();
    if (device >= 0) this_thread.contexts.push_back(device);
  }
  int contexts_of(int device) override {
    const Lock lock(m_.mutex);
    return m_.retained[static_cast<std::size_t>(device)];
  }
  int capture_mode() override { return this_thread.capture_mode; }

 private:
  void submit(int device, StreamHandle stream, Operation operation) {
    const Lock lock(m_.mutex);
    m_.submit(m_.find_stream(stream.get(), device), std::move(operation));
  }

  Machine& m_ = machine();
};

}  // namespace
}  // namespace arrowdl::testing::fake

extern "C" __attribute__((visibility("default"))) arrowdl::testing::FakeDriver*
arrowdl_fake_driver() {
  static auto* const controls = new arrowdl::testing::fake::Controls;
  return controls;
}

extern "C" __attribute__((visibility("default"))) int arrowdl_fake_close_gate(void* stream) {
  const int gate = arrowdl_fake_driver()->close_gate();
  arrowdl_fake_driver()->enqueue_gate(0, arrowdl::StreamHandle(stream), gate);
  return gate;
}

extern "C" __attribute__((visibility("default"))) void arrowdl_fake_open_gate(int gate) {
  arrowdl_fake_driver()->open_gate(gate);
}
