// What arrowdl asks of a device's runtime: one implementation per runtime, opened on first use.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/device.hpp"
#include "arrowdl/handles.hpp"

namespace arrowdl {

/// Bits on a device, one for each `repeat` elements that follow each other.
struct Bitmap {
  const uint8_t* bits = nullptr;  ///< nullptr: all are set
  int64_t offset = 0;             ///< of the first element's bit
  int64_t repeat = 1;
};

/// A device runtime. Events are values of ArrowDeviceArray.sync_event: pointers to what the column
/// `event_type` of the device table says.
///
/// Every function may be called on any thread, with no lock of ours held. One that fails throws
/// RuntimeError with the runtime's words, and has changed nothing; what a backend cannot do at all
/// is a BufferError.
class Backend {
 public:
  virtual ~Backend() = default;

  /// The runtime's name for people: "CUDA".
  virtual const char* name() const noexcept = 0;
  /// Versions of library and driver, for people.
  virtual std::string version() = 0;
  /// How many devices of its (first) type the runtime has.
  virtual int64_t device_count() = 0;

  /// Whether it has streams that events can be recorded on. A registered synchronizer has none: all
  /// it can do is `synchronize`.
  virtual bool has_streams() const noexcept { return true; }
  /// Whether a device is enough for a stream of ours: an OpenCL queue needs a context as well.
  virtual bool makes_streams() const noexcept { return has_streams(); }

  /// Where `memory`, an address that anybody's allocation holds, lies. Raises BufferError for one
  /// that the runtime does not know, or where an address alone does not say.
  virtual Device find_device(const void* memory);

  /// A new event for the work that `stream` holds now. Does not wait.
  virtual EventHandle record(const Device& device, StreamHandle stream) = 0;
  /// Makes what `stream` is given from now on run after `event`. Does not wait on the host.
  virtual void wait(const Device& device, StreamHandle stream, EventHandle event) = 0;
  /// Waits on the host for `event`. Throws when the work before it has failed.
  virtual void synchronize(const Device& device, EventHandle event) = 0;
  /// Whether `event` has happened. Does not wait.
  virtual bool is_complete(const Device& device, EventHandle event) = 0;
  /// The host waits for what `stream` holds now, for callers that have no memory for an event:
  /// needs none where the runtime can do without.
  virtual void synchronize_stream(const Device& device, StreamHandle stream);
  /// Frees an event that `record` made, which may be pending.
  virtual void destroy(const Device& device, EventHandle event) noexcept = 0;

  /// One event for all of `events`, or nullptr when they have happened.
  virtual EventHandle join(const Device& device, const std::vector<EventHandle>& events) = 0;

  /// A stream of ours on `device` that holds no work and waits for no other stream, for a producer
  /// to order its work before. `give_stream` takes it back, with work on it or without. Raises
  /// BufferError unless `makes_streams`, as `work_stream` does.
  virtual StreamHandle take_stream(const Device& device) = 0;
  virtual void give_stream(const Device& device, StreamHandle stream) noexcept = 0;
  /// The one stream of ours on `device` that the DLPack exchange API names as the current one.
  virtual StreamHandle work_stream(const Device& device) = 0;
  /// `stream` as a handle that stays good when its owner drops it, where the runtime counts its
  /// streams' owners; else `stream` itself. `drop_stream` undoes it.
  virtual StreamHandle keep_stream(const Device&, StreamHandle stream) { return stream; }
  virtual void drop_stream(const Device&, StreamHandle) noexcept {}
  /// Raises BufferError where `stream` is known to be of another device or context than memory on
  /// `device`, which it could then neither allocate nor reach.
  virtual void require_stream_of(const Device&, StreamHandle) {}
  /// Whether two handles are of one stream.
  virtual bool is_same_stream(StreamHandle a, StreamHandle b) noexcept { return a == b; }
  /// Whether `stream` is being captured into a graph: nothing may be recorded or waited for then.
  virtual bool is_capturing(const Device& device, StreamHandle stream) = 0;

  /// `size` bytes on `device`, valid for work of `stream`.
  virtual void* allocate(const Device& device, int64_t size, StreamHandle stream) = 0;
  /// Gives memory of `allocate` back once the work that `stream` holds now is done.
  virtual void free(const Device& device, void* memory, StreamHandle stream) noexcept = 0;
  /// Where memory of the host lies that `copy` to `device` reads without a wait on the host (pinned
  /// memory), as a device of this backend; none where it takes any memory so.
  virtual std::optional<Device> find_pinned(const Device&) const noexcept { return {}; }
  /// Whether `memory` of the CPU is known to be pinned, by whoever allocated it.
  virtual bool is_pinned(const void*) noexcept { return false; }
  /// Whether `copy` does without a stop on the CPU.
  virtual bool can_copy(const Device&, const Device&) { return true; }
  /// Copies `size` bytes on `stream`, a stream of whichever device is not the CPU (of `to` when
  /// neither is). Does not wait where the runtime need not.
  virtual void copy(const Device& to, void* target, const Device& from, const void* source,
                    int64_t size, StreamHandle stream) = 0;

  /// Whether the device itself can do what follows; elsewhere that raises BufferError.
  virtual bool has_kernels(const Device&) const noexcept { return false; }
  /// Writes 1 or 0 to each of the `size` bytes of `target`, as its bit is. Does not wait.
  virtual void unpack_bits_on_device(const Device& device, uint8_t* target, int64_t size,
                                     const Bitmap& bitmap, StreamHandle stream);
  /// Writes `item`, `itemsize` (1, 2, 4, 8 or 16) bytes, over each of the `size` elements of
  /// `target`, aligned to as many, whose bit is not set. Does not wait.
  virtual void fill_unset(const Device& device, void* target, int64_t size, const Bitmap& bitmap,
                          const void* item, int64_t itemsize, StreamHandle stream);
  /// Writes the `count` bits from bit `shift` (0 to 7) of `target` on: set where both bitmaps are.
  /// What else is in the bytes that hold them is 0 then. Does not wait.
  virtual void and_bits(const Device& device, uint8_t* target, int64_t shift, int64_t count,
                        const Bitmap& a, const Bitmap& b, StreamHandle stream);
};

/// A stream of ours that holds no other work, for as long as it is in scope.
class BorrowedStream {
 public:
  BorrowedStream(Backend& backend, const Device& device)
      : backend_(backend), device_(device), stream_(backend.take_stream(device)) {}
  ~BorrowedStream() { backend_.give_stream(device_, stream_); }
  BorrowedStream(const BorrowedStream&) = delete;
  BorrowedStream& operator=(const BorrowedStream&) = delete;

  StreamHandle get() const noexcept { return stream_; }

 private:
  Backend& backend_;
  const Device device_;
  const StreamHandle stream_;
};

/// The backend of `device_type`, opened by the first call. nullptr when there is none: a type that
/// arrowdl has none for, a library that is missing, one without a device. `*why_not`, if given,
/// says which, and what to do.
Backend* find_backend(int32_t device_type, std::string* why_not = nullptr) noexcept;

/// The device types of each runtime that arrowdl has a backend for, its first type first.
std::vector<std::vector<int32_t>> list_runtimes();

/// Whether a library of the type's runtime is in the process: without one, no memory of that type
/// can have work pending here, whatever a tensor says of itself.
bool has_runtime(int32_t device_type);

/// The same; raises BufferError, "cannot `verb` on cuda:0: …", when there is none.
Backend& require_backend(const Device& device, const char* verb);

/// Waits on the host for an event of a device type that arrowdl has no backend for.
using Synchronizer = std::function<void(EventHandle event, int64_t device_id)>;

/// Lets arrays of `device_type` carry events: every wait for one becomes `synchronizer`'s, on the
/// host. An empty one takes the last back. Raises ValueError for a type whose events are always
/// NULL, or that has a backend.
void register_synchronizer(int32_t device_type, Synchronizer synchronizer);

}  // namespace arrowdl
