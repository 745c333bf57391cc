// Arrow streams: arrays of one type, one after another, and adaptors of streams.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arrowdl/allocator.hpp"
#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/nulls.hpp"

ARROWDL_BEGIN_NAMESPACE

struct PermutedRows;

/// Arrays of one type, one after another, each returned once. One thread at a time may use a
/// stream, not always the same one. A stream that has failed fails again.
class ArrayStream : private Counted {
 public:
  static constexpr int64_t kAnyRows = INT64_MAX;

  virtual ~ArrayStream() = default;

  /// The type of every array.
  const std::shared_ptr<const ParsedSchema>& schema() const noexcept { return schema_; }
  /// The device type of every array.
  int32_t device_type() const noexcept { return device_type_; }
  /// The next array, which may have no rows; an empty DeviceArray at the end, and from then on.
  /// `max_rows` (at least 1) is a hint: streams that slice or gather rows return at most as many;
  /// others may return more, and the caller slices.
  virtual DeviceArray next(int64_t max_rows = kAnyRows) = 0;
  /// Whether the next `rows` rows are in memory that the stream holds: `next(rows)` returns them,
  /// or more, and neither reads nor copies. False where that is unknown.
  virtual bool has_rows(int64_t rows) const {
    static_cast<void>(rows);
    return false;
  }
  /// Internal. The next rows where they are, in place of `next`, which would copy them in another
  /// order: as many as the stream chooses. No rows if it has none of that kind next: ask `next`.
  virtual PermutedRows next_permuted();
  /// Internal. Says that the caller only copies the arrays to `device`: rows that are gathered for
  /// them may be in pinned memory.
  virtual void gather_for(const Device&) {}

 protected:
  ArrayStream(std::shared_ptr<const ParsedSchema> schema, int32_t device_type) noexcept
      : schema_(std::move(schema)), device_type_(device_type) {}

 private:
  std::shared_ptr<const ParsedSchema> schema_;
  int32_t device_type_;
};

using OwnedStream = std::unique_ptr<ArrayStream>;

/// All chunks of a stream, and its schema. Includes chunks without rows, which may have
/// dictionaries.
struct Chunks {
  std::shared_ptr<const ParsedSchema> schema;
  std::vector<DeviceArray> arrays;
};

/// Reads `stream` to its end.
Chunks read_stream(ArrayStream& stream);

/// The rows of all chunks as one array: one chunk as it is, several concatenated, and for none an
/// array without rows.
DeviceArray gather(Chunks chunks);

// ---------------------------------------------------------------- C streams

/// Releases a producer's stream, on any thread. One of the two is nullptr.
using StreamReleaser = void (*)(OwnedArrayStream*, OwnedDeviceArrayStream*) noexcept;

/// The releasers of bindings, for producers whose release needs the interpreter lock.
struct StreamReleasers {
  Releaser contents = nullptr;  ///< of the schema and each array: DeviceArray::import's
  StreamReleaser stream = nullptr;
};

/// Takes over `stream` and reads its schema. Raises RuntimeError with the producer's message if the
/// producer fails, here and in `next`; ValueError for a malformed stream.
OwnedStream import_stream(OwnedArrayStream stream, const StreamReleasers& releasers = {});
OwnedStream import_stream(OwnedDeviceArrayStream stream, const StreamReleasers& releasers = {});

/// Exports `stream` as a C struct that owns it. The caller keeps it where this raises.
OwnedDeviceArrayStream export_device_stream(OwnedStream&& stream);
/// The same for host memory: `get_next` waits for each array's event. Raises BufferError where the
/// host cannot read the arrays.
OwnedArrayStream export_stream(OwnedStream&& stream);

// ---------------------------------------------------------------- adaptors
// Each takes over a stream; where it raises, the caller keeps the stream. No adaptor reads before
// its first `next`, or holds more arrays than its description says. Adaptors that move rows raise
// BufferError unless the host can read them.

/// `arrays`, in that order. Raises ValueError unless all have the types and names of `schema`, or
/// of the first one, and one device type.
OwnedStream make_stream(std::shared_ptr<const ParsedSchema> schema,
                        std::vector<DeviceArray> arrays);
OwnedStream make_stream(std::vector<DeviceArray> arrays);

/// Raises ValueError unless `array`, number `index` of a stream, has the types and names of
/// `schema` (the root's name does not matter) and is on a device of type `device_type`.
void check_chunk(const ParsedSchema& schema, int32_t device_type, const DeviceArray& array,
                 std::size_t index);

/// The fields `names` of a stream of structs, in that order; zero-copy. Raises ValueError for
/// names that are missing or ambiguous, TypeError unless the stream is of structs.
OwnedStream select_columns(OwnedStream&& stream, const std::vector<std::string>& names);

/// Writes zero or NaN in place of the nulls of a stream of structs, as `nulls` says for each field:
/// its arrays are in memory that may be written to and has no other user. Fields of other policies,
/// and others than of numbers, for NaN of floating-point numbers, stay as they are, and so do rows
/// of another device than the CPU.
OwnedStream fill_nulls(OwnedStream&& stream, const std::vector<Nulls>& nulls);

/// Arrays of `batch_size` rows; the last array has the rest, and `drop_last` drops it if it is
/// smaller. Rows of one array are a slice, rows of several arrays are copied once. Raises
/// ValueError unless batch_size >= 1.
OwnedStream rebatch(OwnedStream&& stream, int64_t batch_size, bool drop_last = false);

/// Rows `start` to `start + length`, or to the end. Reads no more arrays than that takes. Raises
/// ValueError for negative numbers.
OwnedStream slice_stream(OwnedStream&& stream, int64_t start, int64_t length);

/// Permutes the rows within windows of `buffer_size` consecutive rows. The order depends only on
/// `seed`, `buffer_size` and the row index, on every machine. The first window is number
/// `first_window`: a stream that starts at the first row of a later window gets the same order as
/// the whole stream. Holds one window. With `in_place`, the rows of `stream` are in host memory
/// that may be written to and has no other user: where that is faster, the rows are permuted in it.
/// Raises ValueError unless 1 <= buffer_size < 2^32.
OwnedStream shuffle(OwnedStream&& stream, int64_t buffer_size, uint64_t seed,
                    uint64_t first_window = 0, bool in_place = false);

/// Part `index` of `num_shards` of every array. Sizes of parts differ by at most one row, larger
/// parts first. A part without rows repeats the array's last row with `pad`. Raises ValueError
/// unless 0 <= index < num_shards.
OwnedStream shard(OwnedStream&& stream, int64_t num_shards, int64_t index, bool pad = false);

/// `rows` rows of each stream in turn, the first stream first; a stream that has ended is left out.
/// Between its turns, each stream loses `skip` rows. All rows are in new memory: an array has
/// several rounds, some MB. Raises ValueError unless there is a stream, all are of one type and
/// device type, rows >= 1 and skip >= 0.
OwnedStream interleave(std::vector<OwnedStream>&& streams, int64_t rows, int64_t skip = 0);

/// How often the rows of a mix are of one of its streams.
struct MixShare {
  uint32_t stream = 0;  ///< index of the stream
  uint64_t weight = 0;  ///< at least 1
  uint64_t progress =
      0;  ///< towards its next row: less than its weight and all later ones together
};

/// The shares of `rows` consecutive rows of a mix; of all that follow, in the last phase.
struct MixPhase {
  int64_t rows = 0;
  std::vector<MixShare> shares;
};

/// Rows of several streams in turn, in new memory. Each row is of the first share whose progress
/// and weight reach the sum of the weights from this share on; its progress then loses that sum,
/// and shares before it have gained their weight. So a share of weight w has floor((n * w +
/// progress) / sum) of the first n rows that the shares before it leave. Ends when the stream whose
/// turn it is has ended. Raises ValueError unless there are streams of one type and device type,
/// and phases as described, whose weights sum up to at most 2^62.
OwnedStream mix(std::vector<OwnedStream>&& streams, std::vector<MixPhase> phases);

/// Casts the arrays as cast_to_schema does. The types alone decide, before the first array: where
/// the type cannot be cast to `requested`, this returns `stream` itself; where it can, `next`
/// raises ValueError for an array whose values do not fit or that has nulls where none may be.
/// Raises ValueError for incompatible types, BufferError for CastTarget::kHost where the host
/// cannot read the arrays.
OwnedStream cast_stream(OwnedStream&& stream, const std::shared_ptr<const ParsedSchema>& requested,
                        CastTarget target = CastTarget::kDevice);

/// Copies the arrays to `device`, as copy_array does; `pin` is that of CopyOptions.
OwnedStream copy_stream_to(OwnedStream&& stream, const Device& device, bool pin = true,
                           Allocator allocator = {});

/// The time that the host's threads have spent in the copies of all such streams of this process.
double stream_copy_seconds() noexcept;

/// Reads ahead on a thread that holds up to `depth` arrays. Slices of one array in memory count as
/// one where they are smaller (`has_rows`). Raises a failure of the source after the arrays before
/// it. The thread starts with the first `next`, and ends with the stream or with
/// the adaptor, whose destructor waits for it up to a second: a thread in a slow call of the source
/// ends when the call returns. `next` raises RuntimeError in a forked child, which lacks the
/// thread. Raises ValueError unless depth >= 1.
OwnedStream prefetch(OwnedStream&& stream, int64_t depth);

/// Ends the threads of all prefetching and asynchronous streams of this process, and waits for them
/// up to `seconds`. For bindings whose interpreter ends before the process does.
void stop_background_reads(double seconds) noexcept;

/// The numbers 0 to count - 1 in an order that depends only on `seed` and `count`.
/// Raises ValueError unless 0 <= count < 2^32.
std::vector<uint32_t> permute(int64_t count, uint64_t seed);

ARROWDL_END_NAMESPACE
