// Arrow streams: arrays of one type, one after another, and the adaptors that make one of another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// Arrays of one type, one after another, each given out once. One thread at a time may use a
/// stream, which need not be the same one. A stream that has failed fails again.
class ArrayStream : private Counted {
 public:
  static constexpr int64_t kAnyRows = INT64_MAX;

  virtual ~ArrayStream() = default;

  /// The type of every array.
  const std::shared_ptr<const ParsedSchema>& schema() const noexcept { return schema_; }
  /// Where every array lies: an ArrowDeviceArrayStream has one device type.
  int32_t device_type() const noexcept { return device_type_; }
  /// The next array, which may have no rows; an empty DeviceArray at the end, and from then on.
  /// Streams that cut or gather rows anyway give no more than `max_rows` (at least 1) of them;
  /// others may, and who asked cuts.
  virtual DeviceArray next(int64_t max_rows = kAnyRows) = 0;

 protected:
  ArrayStream(std::shared_ptr<const ParsedSchema> schema, int32_t device_type) noexcept
      : schema_(std::move(schema)), device_type_(device_type) {}

 private:
  std::shared_ptr<const ParsedSchema> schema_;
  int32_t device_type_;
};

using OwnedStream = std::unique_ptr<ArrayStream>;

/// All chunks of a stream with its schema. Chunks of zero rows are kept, so that an empty stream
/// of one empty chunk keeps its dictionaries.
struct Chunks {
  std::shared_ptr<const ParsedSchema> schema;
  std::vector<DeviceArray> arrays;
};

/// Reads `stream` to its end.
Chunks read_stream(ArrayStream& stream);

/// The rows of all chunks as one array: the only chunk as it is, several concatenated, none an
/// empty array of the schema.
DeviceArray gather(Chunks chunks);

/// An array of `schema` with no rows.
DeviceArray make_empty(std::shared_ptr<const ParsedSchema> schema, Device device = {});

// ---------------------------------------------------------------- C streams

/// Releases a producer's stream, on any thread: one of the two, the other is nullptr.
using StreamReleaser = void (*)(OwnedArrayStream*, OwnedDeviceArrayStream*) noexcept;

/// What bindings hand in for producers whose release needs the interpreter lock.
struct StreamReleasers {
  Releaser contents = nullptr;  ///< of the schema and each array: DeviceArray::import's
  StreamReleaser stream = nullptr;
};

/// Takes `stream` over and asks for its schema. A producer's failure is a RuntimeError with its
/// own message, here and in `next`. Raises ValueError for a malformed stream.
OwnedStream import_stream(OwnedArrayStream stream, const StreamReleasers& releasers = {});
OwnedStream import_stream(OwnedDeviceArrayStream stream, const StreamReleasers& releasers = {});

/// `stream` as a C struct that owns it.
OwnedDeviceArrayStream export_device_stream(OwnedStream stream);
/// The same for host memory; `get_next` waits for each array's event. Raises BufferError where the
/// host cannot read what the stream gives; the caller keeps it then.
OwnedArrayStream export_stream(OwnedStream&& stream);

// ---------------------------------------------------------------- adaptors
// Each takes a stream over, unless it raises: the caller keeps it then. None does anything until it
// is asked for an array, or holds more arrays than it says. Where rows are moved, the host has to
// read them: BufferError on other devices.

/// `arrays`, in that order. Raises ValueError unless all have the types and names of `schema`, or
/// of the first one, and one device type.
OwnedStream make_stream(std::shared_ptr<const ParsedSchema> schema,
                        std::vector<DeviceArray> arrays);
OwnedStream make_stream(std::vector<DeviceArray> arrays);

/// Raises ValueError unless `array`, number `index` of a stream, has the types and names of
/// `schema` (the name of the root says nothing) and lies on a device of type `device_type`.
void check_chunk(const ParsedSchema& schema, int32_t device_type, const DeviceArray& array,
                 std::size_t index);

/// The fields `names` of a stream of structs, in that order; zero-copy. Raises ValueError for
/// names that are not there or not unique, TypeError for a stream of anything but structs.
OwnedStream select_columns(OwnedStream&& stream, const std::vector<std::string>& names);

/// Arrays of `rows` rows, the last one of what is left: a slice where one array holds them all,
/// one copy of each buffer where they lie in several. With `drop_last` an incomplete last array is
/// left out. Raises ValueError unless rows >= 1.
OwnedStream rebatch(OwnedStream&& stream, int64_t rows, bool drop_last = false);

/// Rows `start` to `start + length`, or to the end where there are fewer. Reads no more arrays than
/// it takes for that. Raises ValueError for negative ones.
OwnedStream slice_stream(OwnedStream&& stream, int64_t start, int64_t length);

/// The rows in another order: windows of `window_rows` consecutive rows, each permuted by itself.
/// The order depends on nothing but `seed`, `window_rows` and a row's position, on every machine.
/// The first window is number `first_window`: a stream that starts later, at a window's first row,
/// goes on as the whole one does. Holds one window. Raises ValueError unless
/// 1 <= window_rows < 2^32.
OwnedStream shuffle(OwnedStream&& stream, int64_t window_rows, uint64_t seed,
                    uint64_t first_window = 0);

/// Part `index` of `count` of every array, cut into as equal parts as there can be, the larger ones
/// first. Where an array has fewer rows than there are parts, those without one get its last row
/// again with `pad`, else an array of no rows. Raises ValueError unless 0 <= index < count.
OwnedStream shard(OwnedStream&& stream, int64_t index, int64_t count, bool pad = false);

/// The arrays as cast_to_schema gives them. What is given depends on the types alone, so that it is
/// known before the first array: `stream` itself where its type cannot be given as `requested`, and
/// where it can a ValueError of `next` for an array whose values cannot, or that has nulls where
/// there may be none. Raises ValueError for incompatible types, BufferError for CastTarget::kHost
/// where the host cannot read what the stream gives.
OwnedStream cast_stream(OwnedStream&& stream, const std::shared_ptr<const ParsedSchema>& requested,
                        CastTarget target = CastTarget::kDevice);

/// The arrays in memory of `device`, each with one event for all of its copies. `pin` as
/// copy_array's CopyOptions have it.
OwnedStream copy_stream_to(OwnedStream&& stream, const Device& device, bool pin = true);

/// The same arrays, read ahead by a thread that holds up to `depth` of them. A failure of the
/// source is raised when its place in the order comes. The thread starts with the first `next`, and
/// ends with the stream or the adaptor, which waits for it up to a second: one that is inside of
/// the source for longer ends when that returns. Raises RuntimeError in a forked child, where it is
/// not. Raises ValueError unless depth >= 1.
OwnedStream prefetch(OwnedStream&& stream, int64_t depth);

/// What a thread that waits in `prefetch`, or for another thread that reads the same exported
/// stream, calls every few milliseconds, with no lock of ours held; what it throws ends the wait.
/// For bindings whose signals are looked at by the waiting thread.
void set_interrupt_check(void (*check)()) noexcept;

/// Closes every prefetching stream of this process, and waits up to `seconds` for their threads:
/// for bindings whose interpreter goes before the process does.
void stop_prefetching(double seconds) noexcept;

/// The numbers 0 to count - 1 in an order that depends on nothing but `seed` and `count`.
/// Raises ValueError unless 0 <= count < 2^32.
std::vector<uint32_t> permute(int64_t count, uint64_t seed);

}  // namespace arrowdl
