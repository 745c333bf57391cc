// The controls of a fake device driver that runs on the CPU. It is built twice, as libcuda.so.1 and
// as libamdhip64.so.6. Each stream has a worker thread, so that a missing wait shows, and freed
// memory is overwritten, so that a use after free shows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arrowdl/handles.hpp"

namespace arrowdl::testing {

/// The numbers of live objects.
struct FakeCounts {
  int events = 0;
  int streams = 0;
  int allocations = 0;  ///< and handles of shared memory, and reserved ranges of addresses
  int contexts = 0;     ///< one for each retain

  friend bool operator==(const FakeCounts& a, const FakeCounts& b) {
    return a.events == b.events && a.streams == b.streams && a.allocations == b.allocations &&
           a.contexts == b.contexts;
  }
};

/// The controls of one fake driver. They take the driver's own streams, and need no context.
class FakeDriver {
 public:
  static constexpr uint8_t kPoison = 0xDD;  ///< the content of freed memory
  static constexpr int kDevices = 2;

  virtual ~FakeDriver() = default;

  // Work for streams that only the fake driver has.
  /// A gate: streams that reach it stop until it is opened.
  virtual int close_gate() = 0;
  virtual void open_gate(int gate) = 0;
  virtual void enqueue_gate(int device, StreamHandle stream, int gate) = 0;
  virtual void enqueue_fill(int device, StreamHandle stream, void* memory, uint8_t value,
                            std::size_t size) = 0;
  virtual void enqueue_copy(int device, StreamHandle stream, void* target, const void* source,
                            std::size_t size) = 0;
  /// Work that fails: every later call that reports failures of `device` fails.
  virtual void enqueue_failure(int device, StreamHandle stream) = 0;
  /// Waits for a stream, or for all streams with a null handle.
  virtual void drain(int device, StreamHandle stream) = 0;

  // Conditions.
  /// The `n`th call from now (1: the next) returns `status` and does nothing; a call that frees
  /// something frees it nevertheless, as drivers do that report earlier failures. 0: no call.
  virtual void fail_call(int n, int status) = 0;
  /// Whether that call has been made.
  virtual bool has_failed() = 0;
  virtual void set_device_count(int count) = 0;
  virtual void set_pools(bool supported) = 0;
  /// Whether pinned memory can be allocated.
  virtual void set_pinning(bool possible) = 0;
  virtual void set_capturing(StreamHandle stream, bool capturing) = 0;
  /// A stream that synchronizes with the default one is being captured, by a thread whose mode
  /// forbids other threads calls that may synchronize. Such a call breaks the capture.
  virtual void set_global_capture(bool capturing) = 0;
  virtual bool is_capture_broken() = 0;
  /// Opens all gates, drains the streams and resets every condition.
  virtual void reset() = 0;

  // Observations.
  virtual FakeCounts count() = 0;
  virtual int calls() = 0;
  virtual int calls_of_forked_child() = 0;
  /// Events and streams that were destroyed twice, or used after that.
  virtual int misuses() = 0;
  /// The number of this thread's current context; 0: none.
  virtual int64_t current_context() = 0;
  /// Makes that of `device` current on this thread; -1: none (HIP has no such state: device 0).
  virtual void set_current_context(int device) = 0;
  virtual int contexts_of(int device) = 0;
  /// This thread's mode of stream capture: 0 unless a caller did not restore it.
  virtual int capture_mode() = 0;

  // Memory.
  /// Whether devices can access each other's memory, once a pool grants it. What pools granted has
  /// no effect without.
  virtual void set_peer_access(bool possible) = 0;
  /// Device attribute 89.
  virtual void set_concurrent_managed(bool possible) = 0;
  /// Device attribute 134, of all devices; -1: the system has no NUMA nodes.
  virtual void set_host_node(int node) = 0;
  /// The node that the thread preferred that has pinned memory last; -1: none.
  virtual int pinned_node() = 0;
  /// The status with which every module fails to load; 0: they load.
  virtual void set_module_status(int status) = 0;
  /// The bytes that allocations may take beyond those on device 0 now, what pools keep included.
  virtual void set_capacity(uint64_t bytes) = 0;
  /// How many copies have been enqueued.
  virtual int copies() = 0;
  /// How often a pool has taken memory from its device.
  virtual int growths() = 0;
  /// How many calls have waited on the host for work.
  virtual int host_waits() = 0;
  /// How many calls have pinned memory, or freed pinned memory.
  virtual int64_t page_locks() = 0;
  /// How many kernels have been launched.
  virtual int launches() = 0;
  /// How many calls have taken memory of a pool.
  virtual int pool_allocations() = 0;
  /// How many calls have taken memory of a device, and growths of its pools.
  virtual int device_allocations() = 0;
  /// Memory of another library's pool, which grants no access.
  virtual void* allocate_elsewhere(int device, std::size_t size) = 0;
  /// Memory that another library has mapped on its device alone, as torch's expandable segments
  /// are.
  virtual void* allocate_mapped(int device, std::size_t size) = 0;
  virtual void free_elsewhere(void* memory) = 0;

  // Streams and contexts.
  /// Gives a new stream the handle of the one that was destroyed last, as drivers do.
  virtual void set_handle_reuse(bool reuses) = 0;
  /// Moves a stream to the green context of its device, and back.
  virtual void set_green(StreamHandle stream, bool green) = 0;
};

}  // namespace arrowdl::testing

/// Exported by both libraries.
extern "C" arrowdl::testing::FakeDriver* arrowdl_fake_driver();

// Gates for tests in Python: one on a stream of device 0 is closed, then opened.
extern "C" int arrowdl_fake_close_gate(void* stream);
extern "C" void arrowdl_fake_open_gate(int gate);

// Conditions for tests in Python.
extern "C" void arrowdl_fake_set_capacity(unsigned long long bytes);
extern "C" void arrowdl_fake_set_concurrent_managed(int possible);
extern "C" void arrowdl_fake_set_module_status(int status);
// Conditions and observations for tests in Python.
extern "C" int arrowdl_fake_allocations();
extern "C" int arrowdl_fake_copies();
extern "C" int arrowdl_fake_host_waits();
extern "C" int arrowdl_fake_page_locks();
extern "C" int arrowdl_fake_launches();
extern "C" int arrowdl_fake_device_allocations();
extern "C" int arrowdl_fake_pool_allocations();
extern "C" int arrowdl_fake_misuses();
extern "C" void arrowdl_fake_set_handle_reuse(int reuses);
extern "C" void arrowdl_fake_set_green(void* stream, int green);
extern "C" void arrowdl_fake_set_capturing(void* stream, int capturing);
extern "C" void arrowdl_fake_set_global_capture(int capturing);
extern "C" int arrowdl_fake_is_capture_broken();
// Work for streams of any device: a gate, and a copy of bytes.
extern "C" int arrowdl_fake_close_gate_on(int device, void* stream);
extern "C" void arrowdl_fake_enqueue_copy(int device, void* stream, void* target,
                                          const void* source, std::size_t size);
