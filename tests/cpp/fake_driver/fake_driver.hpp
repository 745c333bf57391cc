// A test double: a device driver that runs on the CPU. It is built twice, as libcuda.so.1 and as
// libamdhip64.so.6, with a worker thread per stream, so that what nobody waits for is late, and
// what is given back too early is overwritten. Here is what the tests see of it, beside the
// driver's own functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arrowdl/handles.hpp"

namespace arrowdl::testing {

/// What lives, of what callers make.
struct FakeCounts {
  int events = 0;
  int streams = 0;
  int allocations = 0;
  int contexts = 0;  ///< retained, each as often as it was

  friend bool operator==(const FakeCounts& a, const FakeCounts& b) {
    return a.events == b.events && a.streams == b.streams && a.allocations == b.allocations &&
           a.contexts == b.contexts;
  }
};

/// The controls of one fake driver. They take the driver's own streams, and need no context.
class FakeDriver {
 public:
  static constexpr uint8_t kPoison = 0xDD;  ///< what freed memory holds
  static constexpr int kDevices = 2;

  virtual ~FakeDriver() = default;

  // Work that only a fake has.
  /// A gate: streams that come to it stay there until it is opened.
  virtual int close_gate() = 0;
  virtual void open_gate(int gate) = 0;
  virtual void enqueue_gate(int device, StreamHandle stream, int gate) = 0;
  virtual void enqueue_fill(int device, StreamHandle stream, void* memory, uint8_t value,
                            std::size_t size) = 0;
  virtual void enqueue_copy(int device, StreamHandle stream, void* target, const void* source,
                            std::size_t size) = 0;
  /// Work that fails: from then on every call that reports failures of `device` says so.
  virtual void enqueue_failure(int device, StreamHandle stream) = 0;
  /// Waits for a stream, or with a null one for all, as no caller of arrowdl's can.
  virtual void drain(int device, StreamHandle stream) = 0;

  // Conditions.
  /// The `n`th call from now (1: the next) returns `status` instead of doing anything; one that
  /// gives something back does it all the same, as drivers do that report earlier failures. 0:
  /// none.
  virtual void fail_call(int n, int status) = 0;
  /// Whether that has come to pass.
  virtual bool has_failed() = 0;
  virtual void set_device_count(int count) = 0;
  virtual void set_pools(bool supported) = 0;
  /// Whether there is more pinned memory to be had.
  virtual void set_pinning(bool possible) = 0;
  virtual void set_capturing(StreamHandle stream, bool capturing) = 0;
  /// A stream that synchronizes with the default one is being captured, by a thread whose mode
  /// forbids all others calls that might synchronize. Such a call ends the capture.
  virtual void set_global_capture(bool capturing) = 0;
  virtual bool is_capture_broken() = 0;
  /// Opens all gates, drains the streams and takes back every condition.
  virtual void reset() = 0;

  // Observations.
  virtual FakeCounts count() = 0;
  virtual int calls() = 0;
  virtual int calls_of_forked_child() = 0;
  /// Events and streams that were destroyed twice, or used after that.
  virtual int misuses() = 0;
  /// This thread's context: a number that is another one for each context, 0 for none.
  virtual int64_t current_context() = 0;
  /// Makes that of `device` current on this thread; -1: none (HIP has no such state: device 0).
  virtual void set_current_context(int device) = 0;
  virtual int contexts_of(int device) = 0;
  /// This thread's mode of stream capture: 0 unless somebody left another one behind.
  virtual int capture_mode() = 0;
};

}  // namespace arrowdl::testing

/// Exported by both libraries.
extern "C" arrowdl::testing::FakeDriver* arrowdl_fake_driver();

// The gates again, for tests in Python: closes one on a stream of the device 0, and opens it.
extern "C" int arrowdl_fake_close_gate(void* stream);
extern "C" void arrowdl_fake_open_gate(int gate);
