// The interfaces of a device runtime, of which each runtime implements those that it can.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/device.hpp"
#include "arrowdl/handles.hpp"

ARROWDL_BEGIN_NAMESPACE

class StreamOps;
class MemoryOps;
class KernelOps;

// Every function of these interfaces may be called on any thread, with no lock of ours held. On
// failure it throws RuntimeError with the runtime's message, and changes nothing.

/// A device runtime: the operations that all have, and access to those that only some have.
class Backend {
 public:
  virtual ~Backend();

  /// The runtime's display name: "CUDA".
  virtual const char* name() const noexcept = 0;
  /// The versions of the library and the driver, as text.
  virtual std::string version() = 0;
  /// The number of devices of its (first) device type.
  virtual int64_t device_count() = 0;

  /// Waits on the host for `event`. Throws if the work before it failed.
  virtual void synchronize(const Device& device, EventHandle event) = 0;
  /// Whether `event` is complete. Does not wait. False if the runtime cannot tell.
  virtual bool is_complete(const Device& device, EventHandle event) = 0;

  /// The device of `memory`, an address inside of any allocation. Raises BufferError for memory
  /// that the runtime does not know, and if the runtime cannot find a device by an address.
  virtual Device find_device(const void* memory);

  /// Whether the CPU may read memory of `device`, of a type whose memory it can read in general,
  /// while the device works.
  virtual bool can_host_read(const Device&) noexcept { return true; }

  /// Its GPU streams; nullptr if it has none on which events can be recorded.
  virtual StreamOps* streams() noexcept { return nullptr; }
  /// Streams, memory and copies of arrowdl's own; nullptr if they need more than a device id.
  virtual MemoryOps* memory() noexcept { return nullptr; }
  /// The kernels that run on memory of `device`; nullptr if there are none.
  virtual KernelOps* kernels(const Device&) noexcept { return nullptr; }
  /// Why `streams` or `memory` is nullptr, and what to do; completes "cannot copy on opencl:0: ".
  virtual const char* limits() const noexcept { return ""; }
};

/// GPU streams and the events that are recorded on them.
class StreamOps {
 public:
  /// Records a new event for the work that `stream` holds now. Does not wait.
  virtual EventHandle record(const Device& device, StreamHandle stream) = 0;
  /// Later work on `stream` waits for `event`; the host does not.
  virtual void wait(const Device& device, StreamHandle stream, EventHandle event) = 0;
  /// The host waits for the work that `stream` holds now. Allocates nothing if the runtime allows
  /// that, for callers that are out of memory.
  virtual void synchronize_stream(const Device& device, StreamHandle stream) = 0;
  /// Frees an event of `record`, which may be pending.
  virtual void destroy(const Device& device, EventHandle event) noexcept = 0;
  /// One event that completes after all of `events`; null if they are complete.
  virtual EventHandle join(const Device& device, const std::vector<EventHandle>& events) = 0;

  /// A handle of `stream` that stays valid after its owner releases it, if the runtime counts
  /// references to its streams; else `stream` itself. `release_stream` undoes it.
  virtual StreamHandle retain_stream(const Device&, StreamHandle stream) { return stream; }
  virtual void release_stream(const Device&, StreamHandle) noexcept {}
  /// Whether two handles name one stream.
  virtual bool is_same_stream(StreamHandle a, StreamHandle b) noexcept { return a == b; }
  /// The stream on which consumers compute that name none, if the runtime has one.
  virtual std::optional<StreamHandle> default_stream() const noexcept { return {}; }
  /// Lets this thread, which captures no graph, free memory while another thread captures one.
  virtual void relax_capture_of_thread() noexcept {}
  /// Whether `stream` is being captured into a graph: no event may be recorded or waited for then.
  virtual bool is_capturing(const Device&, StreamHandle) { return false; }

 protected:
  ~StreamOps() = default;
};

/// Streams, memory and copies of arrowdl's own, for runtimes that need only a device id for them.
class MemoryOps : public StreamOps {
 public:
  /// A stream of ours on `device` without work, which waits for no other stream: a producer orders
  /// its work before it. `return_stream` takes it back, with or without work.
  virtual StreamHandle acquire_stream(const Device& device) = 0;
  virtual void return_stream(const Device& device, StreamHandle stream) noexcept = 0;
  /// The one stream of ours on `device` that the DLPack exchange API names as the current one.
  virtual StreamHandle work_stream(const Device& device) = 0;
  /// Raises BufferError if `stream` is known to belong to another device or context, so that it can
  /// neither allocate nor access memory on `device`.
  virtual void require_stream_of(const Device&, StreamHandle) {}

  /// `size` bytes on `device`, valid for work on `stream`.
  virtual void* allocate(const Device& device, int64_t size, StreamHandle stream) = 0;
  /// Frees memory of `allocate` once the work that `stream` holds now is done.
  virtual void free(const Device& device, void* memory, StreamHandle stream) noexcept = 0;
  /// Calls `use` with `device` as the runtime's current device, for libraries that allocate there.
  virtual void call_on(const Device&, const std::function<void()>& use) { use(); }
  /// Gives back device memory that `free` has kept for the next `allocate`.
  virtual void free_cache(const Device&) {}
  /// The device of this backend whose memory is pinned host memory, which `copy` reads without a
  /// wait on the host; empty if `copy` reads all host memory so.
  virtual std::optional<Device> find_pinned(const Device&) const noexcept { return {}; }
  /// Whether the host memory at an address is known to be pinned, by any allocator.
  virtual bool is_pinned(const void*) noexcept { return false; }
  /// Whether two addresses of pinned memory are known to be of one allocation.
  virtual bool are_of_one_block(const void*, const void*) noexcept { return false; }
  /// Whether `copy` can copy between the two devices, without the CPU in between. `source` is an
  /// address of the memory, if known.
  virtual bool can_copy(const Device&, const Device&, const void* /*source*/) { return true; }
  /// Copies `size` bytes on `stream`, a stream of the device that is not the CPU (of `to` if
  /// neither is). Waits only if the runtime has to.
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

/// The kernels of the .cu files, which say what they do.
enum class Kernel {
  kUnpackBits,
  kCopySet,
  kAndBits,
  kCountBits,
  kGatherColumns,
  kFindLists,
  kFindRuns,
  kScanChunks,
  kAddTotals,
  kWriteOffsets,
  kMeasureLists,
  kPadRows,
  kCopyStrided,
  kPackBits,
};

/// The kernels of a device. None of them waits.
class KernelOps {
 public:
  /// Launches `kernel` for `size` elements, one at least, the kernel's second argument. `arguments`
  /// points to each of the arguments, all of 8 bytes, which are read before this returns.
  virtual void launch(const Device& device, Kernel kernel, int64_t size, void** arguments,
                      StreamHandle stream) = 0;

  /// Writes each of the `size` bytes of `target`: 1 where its bit is set, else 0.
  void unpack_bits(const Device& device, uint8_t* target, int64_t size, const Bitmap& bitmap,
                   StreamHandle stream);
  /// Copies `size` elements of `itemsize` (1, 2, 4, 8 or 16) bytes, and writes `item` in place of
  /// those whose bit is not set. `source` may be `target`.
  void copy_set(const Device& device, uint8_t* target, int64_t size, const uint8_t* source,
                const Bitmap& bitmap, const void* item, int64_t itemsize, StreamHandle stream);
  /// Writes the `count` bits of `target` that begin at bit `shift` (0 to 7): set where both bitmaps
  /// are set. The other bits of those bytes become 0.
  void and_bits(const Device& device, uint8_t* target, int64_t shift, int64_t count,
                const Bitmap& a, const Bitmap& b, StreamHandle stream);

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

ARROWDL_END_NAMESPACE
