// Packs sequences of tokens into blocks of one length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/stream.hpp"

ARROWDL_BEGIN_NAMESPACE

enum class PackStrategy : uint8_t {
  kConcat,   ///< sequences follow one another, and are cut at the borders of blocks
  kBestFit,  ///< sequences are placed whole, where they leave the least padding
};

/// What happens to a sequence that is longer than a block.
enum class LongSequence : uint8_t {
  kSplit,     ///< it becomes several sequences of at most a block
  kTruncate,  ///< what is too long is dropped
  kDrop,      ///< the row is dropped
  kRaise,     ///< ValueError
};

/// Where a packed stream continues after one of its blocks: the state of a resume.
///
/// Packing is deterministic: the blocks after a position depend on the options and on the rows from
/// `row` on, not on how the source divides them into arrays. No state but these numbers exists.
///
/// - kConcat: `row` rows are used up, and `value` values of the next one. `block` is 0.
/// - kBestFit: the sequences of a window are placed together, and none crosses a window. A window
///   ends with the row that completes `buffer_size` times `length` values. The buffer holds the
///   window that starts at `row`, and `block` of its blocks are returned. `value` is 0.
///
/// To continue after a block, open the source at its `row` and pack with `PackOptions::from`: the
/// first row is cut at `value`, and the window is read and placed again without its first `block`
/// blocks. If `shuffle` permutes the source, row `row` is in window w = row / buffer_size of the
/// shuffle: shuffle from row w * buffer_size on with `first_window` w, slice away the rows of the
/// window before `row`, then pack.
struct PackPosition {
  int64_t row = 0;
  int64_t value = 0;
  int64_t block = 0;
};

/// The padding of one column.
struct PackPadding {
  std::size_t column = 0;             ///< its index in the source
  std::array<uint8_t, 16> element{};  ///< of the dtype of `find_packed_columns`: first bytes
};

struct PackOptions {
  std::string column;  ///< the lists of tokens
  int64_t length = 0;  ///< of a block
  PackStrategy strategy = PackStrategy::kConcat;
  int64_t buffer_size = 256;  ///< of kBestFit: the blocks' worth of values in a window
  LongSequence longer = LongSequence::kSplit;
  bool drop_last = false;                 ///< drop the last block unless it is full
  bool has_aligned = false;               ///< whether `aligned` says which columns are packed
  std::vector<std::string> aligned;       ///< lists with an item for each token, packed alongside
  std::vector<std::string> added;         ///< columns that packing adds, by name
  std::vector<PackPadding> padding = {};  ///< zeros for columns that it does not name
  PackPosition from;                      ///< that the first row of the stream is at
};

/// A column whose items go into blocks.
struct PackedColumn {
  std::size_t column = 0;        ///< its index in the source
  const Dtype* dtype = nullptr;  ///< of its innermost items; nullptr if no tensor has them
};

/// The columns of `type` that `pack` packs: `options.column`, and `options.aligned` or, without
/// it, all columns of lists with items of a fixed width (fixed-size lists if `options.column` is of
/// fixed-size lists of that size). Raises TypeError for columns that cannot be packed, ValueError
/// for names that are missing or ambiguous.
std::vector<PackedColumn> find_packed_columns(const Type& type, const PackOptions& options);

/// Packs the rows of a stream of structs. A row of the result is a block: the packed columns are
/// fixed-size lists of `length` items, the other columns are lists with a value for each sequence
/// (each part of one that is cut) of the block. Rows without items are left out. `options.added`
/// names the columns that follow them:
///
/// - position_ids: the index of each item in its sequence, int32. Starts at 0 again for a part, and
///   for the padding.
/// - segment_ids: 1, 2, ... for the items of the sequences of a block, 0 for padding, int32.
/// - cu_seqlens: the offsets of the sequences in the block, from 0 to `length`, a list of int32.
///   Padding counts as a last sequence, so that the offsets cover the block.
/// - resume_from: the PackPosition after the block, 3 int64.
///
/// kConcat holds the rows of one returned array, kBestFit those of one window; the block of a
/// window with the most padding is its last one. Most rows of `shuffle` are packed from where they
/// are, not copied before: then the windows of the shuffle that have them are held. Raises
/// ValueError for options that are out of range, and in `next` for null lists, null items, lists of
/// different lengths in one row, and rows that `from` does not fit; TypeError for columns that
/// cannot be packed; BufferError unless the host can read the arrays.
OwnedStream pack(OwnedStream&& stream, const PackOptions& options);

/// The offsets of the sequences of several blocks that follow one another, as the functions of
/// flash attention for variable lengths take them: int32, from 0 on. `column` has the cu_seqlens of
/// each block. Raises TypeError unless it is of lists of int32, ValueError unless each list ascends
/// from 0, BufferError if int32 cannot count the values or the host cannot read them.
DeviceArray flatten_cu_seqlens(const DeviceArray& column);

ARROWDL_END_NAMESPACE
