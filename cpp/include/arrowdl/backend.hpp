// The interfaces of a device runtime: what arrowdl asks of one, as far as the runtime has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/device.hpp"
#include "arrowdl/handles.hpp"

namespace arrowdl {

class StreamOps;
class MemoryOps;
class KernelOps;

// Every function of these interfaces may be called on any thread, with no lock of ours held. One
// that fails throws RuntimeError with the runtime's words, and has changed nothing.

/// A device runtime: what every one can do, and access to what only some can.
class Backend {
 public:
  virtual ~Backend();

  /// The runtime's name for people: "CUDA".
  virtual const char* name() const noexcept = 0;
  /// Versions of library and driver, for people.
  virtual std::string version() = 0;
  /// How many devices of its (first) type the runtime has.
  virtual int64_t device_count() = 0;

  /// Waits on the host for `event`. Throws when the work before it has failed.
  virtual void synchronize(const Device& device, EventHandle event) = 0;
  /// Whether `event` is complete. Does not wait. False where the runtime cannot tell.
  virtual bool is_complete(const Device& device, EventHandle event) = 0;

  /// The device of `memory`, an address inside of anybody's allocation. Raises BufferError for
  /// memory that the runtime does not know, or where an address alone does not say.
  virtual Device find_device(const void* memory);

  /// Its GPU streams; nullptr where there are none that events can be recorded on.
  virtual StreamOps* streams() noexcept { return nullptr; }
  /// Streams, memory and copies of arrowdl's own; nullptr where a device's number is not enough
  /// for them.
  virtual MemoryOps* memory() noexcept { return nullptr; }
  /// The kernels that run in memory of `device`; nullptr where there are none.
  virtual KernelOps* kernels(const Device&) noexcept { return nullptr; }
  /// Why `streams` or `memory` is nullptr, and what to do; completes "cannot copy on opencl:0: ".
  virtual const char* limits() const noexcept { return ""; }
};

/// GPU streams and the events that are recorded on them.
class StreamOps {
 public:
  /// A new event for the work that `stream` holds now. Does not wait.
  virtual EventHandle record(const Device& device, StreamHandle stream) = 0;
  /// Later work on `stream` waits for `event`; the host does not.
  virtual void wait(const Device& device, StreamHandle stream, EventHandle event) = 0;
  /// The host waits for the work that `stream` holds now, without memory of ours where the runtime
  /// allows: for callers that have none.
  virtual void synchronize_stream(const Device& device, StreamHandle stream) = 0;
  /// Frees an event of `record`, which may be pending.
  virtual void destroy(const Device& device, EventHandle event) noexcept = 0;
  /// One event for all of `events`; null when they are complete.
  virtual EventHandle join(const Device& device, const std::vector<EventHandle>& events) = 0;

  /// `stream` as a handle that stays valid when its owner drops it, where the runtime counts
  /// references to its streams; else `stream` itself. `release_stream` undoes it.
  virtual StreamHandle retain_stream(const Device&, StreamHandle stream) { return stream; }
  virtual void release_stream(const Device&, StreamHandle) noexcept {}
  /// Whether two handles name one stream.
  virtual bool is_same_stream(StreamHandle a, StreamHandle b) noexcept { return a == b; }
  /// Whether `stream` is being captured into a graph: then nothing may be recorded or waited for.
  virtual bool is_capturing(const Device&, StreamHandle) { return false; }

 protected:
  ~StreamOps() = default;
};

/// Streams, memory and copies of arrowdl's own, for runtimes where a device's number is enough.
class MemoryOps : public StreamOps {
 public:
  /// A stream of ours on `device` that holds no work and waits for no other stream, for a producer
  /// to order its work before. `return_stream` takes it back, with work on it or without.
  virtual StreamHandle acquire_stream(const Device& device) = 0;
  virtual void return_stream(const Device& device, StreamHandle stream) noexcept = 0;
  /// The one stream of ours on `device` that the DLPack exchange API names as the current one.
  virtual StreamHandle work_stream(const Device& device) = 0;
  /// Raises BufferError where `stream` is known to belong to another device or context than memory
  /// on `device`, and could neither allocate nor reach that memory.
  virtual void require_stream_of(const Device&, StreamHandle) {}

  /// `size` bytes on `device`, valid for work on `stream`.
  virtual void* allocate(const Device& device, int64_t size, StreamHandle stream) = 0;
  /// Frees memory of `allocate` once the work that `stream` holds now is done.
  virtual void free(const Device& device, void* memory, StreamHandle stream) noexcept = 0;
  /// The device of this backend whose host memory `copy` reads without a wait on the host (pinned
  /// memory); none where `copy` reads any host memory so.
  virtual std::optional<Device> find_pinned(const Device&) const noexcept { return {}; }
  /// Whether host memory at an address is known to be pinned, whoever allocated it.
  virtual bool is_pinned(const void*) noexcept { return false; }
  /// Whether `copy` reaches both devices, without a stop on the CPU.
  virtual bool can_copy(const Device&, const Device&) { return true; }
  /// Copies `size` bytes on `stream`, a stream of the device that is not the CPU (of `to` when
  /// neither is). Waits only where the runtime has to.
  virtual void copy(const Device& to, void* target, const Device& from, const void* source,
                    int64_t size, StreamHandle stream) = 0;

 protected:
  ~MemoryOps() = default;
};

/// A bitmap on a device, with one bit for `repeat` consecutive elements.
struct Bitmap {
  const uint8_t* bits = nullptr;  ///< nullptr: all bits are set
  int64_t offset = 0;             ///< index of the first element's bit
  int64_t repeat = 1;
};

/// Kernels over bitmaps. None of them waits.
class KernelOps {
 public:
  /// Writes each of the `size` bytes of `target`: 1 where its bit is set, else 0.
  virtual void unpack_bits(const Device& device, uint8_t* target, int64_t size,
                           const Bitmap& bitmap, StreamHandle stream) = 0;
  /// Writes `item`, `itemsize` (1, 2, 4, 8 or 16) bytes, over each of the `size` elements of
  /// `target`, aligned to `itemsize`, whose bit is not set.
  virtual void fill_unset(const Device& device, void* target, int64_t size, const Bitmap& bitmap,
                          const void* item, int64_t itemsize, StreamHandle stream) = 0;
  /// Writes the `count` bits of `target` that begin at bit `shift` (0 to 7): set where both bitmaps
  /// are set. The other bits of those bytes become 0.
  virtual void and_bits(const Device& device, uint8_t* target, int64_t shift, int64_t count,
                        const Bitmap& a, const Bitmap& b, StreamHandle stream) = 0;

 protected:
  ~KernelOps() = default;
};

/// A stream of ours without other work, for as long as it is in scope.
class BorrowedStream {
 public:
  BorrowedStream(MemoryOps& memory, const Device& device)
      : memory_(memory), device_(device), stream_(memory.acquire_stream(device)) {}
  ~BorrowedStream() { memory_.return_stream(device_, stream_); }
  BorrowedStream(const BorrowedStream&) = delete;
  BorrowedStream& operator=(const BorrowedStream&) = delete;

  StreamHandle get() const noexcept { return stream_; }

 private:
  MemoryOps& memory_;
  const Device device_;
  const StreamHandle stream_;
};

}  // namespace arrowdl
