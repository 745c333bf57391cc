// Takes rows of several arrays, in any order, into a new array.
#include "compute/take.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/elements.hpp"
#include "compute/gather.hpp"
#include "compute/offsets.hpp"
#include "compute/selection.hpp"
#include "util/bit_util.hpp"
#include "util/copy_bytes.hpp"
#include "util/parallel_for.hpp"
#include "util/reserve.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using Sources = std::vector<DeviceArray>;

// ---------------------------------------------------------------- bits and values

/// The bits of a source from bit `offset` on. `bits` is nullptr if all are set.
struct SourceBits {
  const uint8_t* bits;
  int64_t offset;
};

/// A source as the loop reads it. A source without a bitmap reads one set bit for all rows, so that
/// the loop has no branch.
struct Lookup {
  explicit Lookup(const SourceBits& source) noexcept
      : bits(source.bits == nullptr ? &kSet : source.bits),
        offset(source.bits == nullptr ? 0 : source.offset),
        mask(source.bits == nullptr ? 0 : ~int64_t{0}) {}

  unsigned operator[](uint32_t row) const noexcept {
    const int64_t i = (offset + row) & mask;
    return (static_cast<unsigned>(bits[i >> 3]) >> (i & 7)) & 1U;
  }

  static constexpr uint8_t kSet = 1;
  const uint8_t* bits;
  int64_t offset;
  int64_t mask;
};

/// `read_bit(index)` is 0 or 1.
template <typename ReadBit>
void write_bits(RowIndices indices, uint8_t* target, const ReadBit& read_bit) {
  const RowIndex* index = indices.begin;
  const auto next = [&](int64_t count) {
    unsigned byte = 0;
    for (int64_t i = 0; i < count; ++i) byte |= read_bit(index[i]) << i;
    index += count;
    return static_cast<uint8_t>(byte);
  };
  for (int64_t i = indices.count / 8; i > 0; --i) *target++ = next(8);
  if (indices.count % 8 != 0) *target = next(indices.count % 8);
}

void take_single_bits(const std::vector<SourceBits>& sources, RowIndices indices, uint8_t* target) {
  if (sources.size() == 1) {
    const Lookup bits(sources.front());
    write_bits(indices, target, [bits](RowIndex index) { return bits[index.row]; });
    return;
  }
  const std::vector<Lookup> lookups(sources.begin(), sources.end());
  write_bits(indices, target,
             [first = lookups.data()](RowIndex index) { return first[index.source][index.row]; });
}

void take_runs(const std::vector<SourceBits>& sources, RowIndices indices, int64_t run,
               uint8_t* target) {
  BitmapWriter writer(target);
  for (int64_t i = 0; i < indices.count; ++i) {
    const RowIndex index = indices.begin[i];
    const SourceBits& source = sources[index.source];
    if (source.bits == nullptr) {
      writer.append_run(true, run);
    } else {
      writer.append(source.bits, source.offset + index.row * run, run);
    }
  }
}

/// Eight bytes of 0 or 1, the first one lowest, as bits.
uint8_t pack_bytes(uint64_t bytes) noexcept {
  return static_cast<uint8_t>((bytes * 0x0102040810204080) >> 56);
}

/// The bytes that one thread copies at a time, unless a row has more.
constexpr int64_t kValueBytes = int64_t{256} << 10;

/// Products with a width up to this one do not overflow.
constexpr int64_t kMostWidth = int64_t{1} << 30;

/// Copies the values of several columns, whose rows have the same numbers of values.
class ValueCopy {
 public:
  /// `values` must outlive the copy.
  explicit ValueCopy(const TakenValues& values) : values_(values) {}

  /// New memory for values of `width` bytes; value 0 of source i is at `first[i]`. `run` writes it;
  /// until then it and the memory of the sources must live.
  Buffer add(std::vector<const uint8_t*> first, int64_t width) {
    uint8_t* target = nullptr;
    Buffer taken = allocate_elements(values_.count, width, &target);
    if (taken.size() == 0) return taken;
    columns_.push_back({std::move(first), width, target});
    bytes_ += taken.size();
    widest_ = std::max(widest_, width);
    return taken;
  }

  /// Writes the values of all columns. Called once.
  void run() const {
    if (columns_.empty()) return;
    const std::vector<Start> starts = find_chunks();
    const auto chunks = static_cast<int64_t>(starts.size()) - 1;
    const auto copy = [&](int64_t i) noexcept {
      const auto chunk = static_cast<std::size_t>(i % chunks);
      copy_rows(columns_[static_cast<std::size_t>(i / chunks)], starts[chunk], starts[chunk + 1]);
    };
    const int64_t count = chunks * static_cast<int64_t>(columns_.size());
    if (bytes_ >= kFewestSharedBytes) return parallel_for(count, copy);
    for (int64_t i = 0; i < count; ++i) copy(i);
  }

 private:
  struct Column {
    std::vector<const uint8_t*> first;
    int64_t width;
    uint8_t* target;
  };

  /// A row, and the number of values before it.
  struct Start {
    int64_t row;
    int64_t value;
  };

  /// The starts of the chunks, and the end.
  std::vector<Start> find_chunks() const {
    const int64_t most = std::max<int64_t>(1, kValueBytes / widest_);
    std::vector<Start> starts{{0, 0}};
    int64_t value = 0;
    for (int64_t row = 0; row < values_.indices.count; ++row) {
      if (value - starts.back().value >= most) starts.push_back({row, value});
      value += values_.rows[static_cast<std::size_t>(row)].length;
    }
    starts.push_back({values_.indices.count, value});
    return starts;
  }

  const uint8_t* find(const Column& column, int64_t row) const noexcept {
    return column.first[values_.indices.begin[row].source] +
           values_.rows[static_cast<std::size_t>(row)].start * column.width;
  }

  void copy_rows(const Column& column, const Start& start, const Start& end) const noexcept {
    const int64_t width = column.width;
    const int64_t mean =
        (end.value - start.value) * width / std::max<int64_t>(1, end.row - start.row);
    const int64_t ahead = choose_prefetched(mean);
    uint8_t* to = column.target + start.value * width;
    const uint8_t* const stop = column.target + end.value * width;
    for (int64_t row = start.row; row < end.row; ++row) {
      if (row + ahead < end.row) {
        const int64_t length = values_.rows[static_cast<std::size_t>(row + ahead)].length;
        if (length > 0) prefetch_memory(find(column, row + ahead), length * width);
      }
      const Range& values = values_.rows[static_cast<std::size_t>(row)];
      if (values.length == 0) continue;
      const int64_t left = values_.ends[values_.indices.begin[row].source] - values.start;
      copy_piece(find(column, row), values.length * width,
                 std::min<int64_t>(stop - to, left * width), to);
      to += values.length * width;
    }
  }

  const TakenValues& values_;
  std::vector<Column> columns_;
  int64_t bytes_ = 0;
  int64_t widest_ = 1;
};

OwnedArray take(const Sources& sources, int64_t run, int64_t count, ValueCopy* copy) {
  const Type& type = sources.front().type();
  ArrayParts parts;
  parts.length = count * run;
  parts.buffers.emplace_back();
  if (type.layout == Layout::kFixedWidth) {
    parts.buffers.push_back(
        copy->add(find_first(sources, 1, type.byte_width), run * type.byte_width));
  } else if (type.layout == Layout::kFixedSizeList) {
    parts.children.push_back(take(select_child(sources, 0), run * type.list_size, count, copy));
  } else {
    for (std::size_t i = 0; i < type.children.size(); ++i) {
      const Sources fields = select_child(sources, static_cast<int64_t>(i));
      parts.children.push_back(take(fields, run, count, copy));
    }
  }
  return make_array(std::move(parts));
}

/// A new bitmap with the bits at `rows`, `count` of them. The sources have `lengths[i]` rows each,
/// and are numbered through.
Buffer take_numbered_bits(const std::vector<SourceBits>& sources,
                          const std::vector<int64_t>& lengths, const uint32_t* rows,
                          int64_t count) {
  uint8_t* bytes = nullptr;
  const Buffer unpacked =
      Buffer::allocate(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), &bytes);
  uint8_t* end = bytes;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].bits == nullptr) {
      std::fill_n(end, lengths[i], uint8_t{1});
    } else {
      unpack_bits(sources[i].bits, sources[i].offset, lengths[i], end);
    }
    end += lengths[i];
  }
  uint8_t* target = nullptr;
  Buffer taken = Buffer::allocate(bitmap_size(count), &target);
  const auto next = [&](int64_t bits) {
    uint64_t word = 0;
    for (int64_t i = 0; i < bits; ++i) word |= uint64_t{bytes[rows[i]]} << (8 * i);
    rows += bits;
    return pack_bytes(word);
  };
  for (int64_t i = count / 8; i > 0; --i) *target++ = next(8);
  if (count % 8 != 0) *target = next(count % 8);
  return taken;
}

/// A new bitmap with `run` bits of each row: those of row i start at bit i * run of its source.
Buffer take_bits(const std::vector<SourceBits>& sources, RowIndices indices, int64_t run) {
  uint8_t* target = nullptr;
  Buffer taken = Buffer::allocate(bitmap_size(indices.count * run), &target);
  if (run == 1) {
    take_single_bits(sources, indices, target);
  } else {
    take_runs(sources, indices, run, target);
  }
  return taken;
}

/// The bytes of binary and strings. Raises ValueError where a source has no bytes and a row has.
Buffer take_bytes(const Sources& sources, const TakenValues& values) {
  std::vector<const uint8_t*> first;
  first.reserve(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    first.push_back(sources[i].buffer_as<uint8_t>(2));
    if (first.back() == nullptr && values.ends[i] > 0) {
      raise_value_error("malformed ", to_string(sources[i].type()),
                        " array: its data is NULL where ", values.ends[i], " bytes should be");
    }
  }
  ValueCopy copy(values);
  Buffer bytes = copy.add(std::move(first), 1);
  copy.run();
  return bytes;
}

/// Whether `take_child` takes values of `sources`: elements of a fixed width without nulls and
/// dictionaries, and fixed-size lists and structs of such.
bool can_take_child(const Sources& sources) { return has_fixed_rows(sources, kMostWidth, true); }

/// The values of lists, whose child the sources are.
OwnedArray take_child(const Sources& sources, const TakenValues& values) {
  ValueCopy copy(values);
  OwnedArray taken = take(sources, 1, values.count, &copy);
  copy.run();
  return taken;
}

// ---------------------------------------------------------------- rows

/// Rows to take: `run` consecutive ones for each index, from row `index * run` on. Rows within
/// lists of a fixed size come in runs.
struct Runs {
  RowIndices indices;
  int64_t run;

  int64_t length() const noexcept { return indices.count * run; }
};

/// The most bytes of a run: products with a width do not overflow.
constexpr int64_t kMostRunBytes = int64_t{1} << 30;

/// Whether there is a loop for rows of `type` that come in runs of `run`.
bool has_loop(const Type& type, int64_t run) {
  switch (type.layout) {
    case Layout::kBoolean:
    case Layout::kStruct:
      return true;
    case Layout::kFixedWidth:
      return run == 1 || run * type.byte_width <= kMostRunBytes;
    case Layout::kFixedSizeList:
      return type.list_size > 0 && type.list_size <= kMostRunBytes / run &&
             has_loop(type.children.front(), run * type.list_size);
    case Layout::kBinary:
    case Layout::kLargeBinary:
    case Layout::kList:
    case Layout::kLargeList:
      return run == 1;
    default:
      return false;
  }
}

/// The bits of buffer `buffer`.
Buffer take_bits_of(const Sources& sources, const Runs& runs, int64_t buffer) {
  std::vector<SourceBits> bits;
  bits.reserve(sources.size());
  for (const DeviceArray& source : sources) {
    const uint8_t* from = buffer == 0 ? source.validity() : source.buffer_as<uint8_t>(buffer);
    bits.push_back({from, source.offset()});
  }
  return take_bits(bits, runs.indices, runs.run);
}

/// The validity bitmap; no buffer if every row is valid.
Buffer take_validity(const Sources& sources, const Runs& runs, int64_t* null_count) {
  if (!has_bitmap(sources)) return Buffer();
  Buffer bits = take_bits_of(sources, runs, 0);
  *null_count = runs.length() - count_set_bits(bits.data(), 0, runs.length());
  return *null_count == 0 ? Buffer() : bits;
}

Buffer take_fixed_width(const Sources& sources, const Runs& runs, ElementTakes* elements) {
  const int64_t width = sources.front().type().byte_width;
  return elements->add(find_first(sources, 1, width), runs.run * width);
}

void take_binary(const Sources& sources, RowIndices indices, ArrayParts* parts) {
  const std::vector<int64_t> limits(sources.size(), kNoLimit);
  TakenValues bytes;
  parts->buffers.push_back(take_offsets(sources, indices, limits, &bytes));
  parts->buffers.push_back(take_bytes(sources, bytes));
}

void take_lists(const Sources& sources, RowIndices indices, ArrayParts* parts) {
  const Sources children = select_child(sources, 0);
  TakenValues values;
  parts->buffers.push_back(take_offsets(sources, indices, count_each(children), &values));
  parts->children.push_back(can_take_child(children) ? take_child(children, values)
                                                     : gather(children, to_ranges(values)));
}

std::vector<RowRange> to_ranges(const Runs& runs) {
  std::vector<RowRange> ranges;
  reserve(&ranges, runs.indices.count);
  for (int64_t i = 0; i < runs.indices.count; ++i) {
    const RowIndex index = runs.indices.begin[i];
    append_range(&ranges, index.source, Range{index.row * runs.run, runs.run});
  }
  return ranges;
}

OwnedArray take_runs(const Sources& sources, const Runs& runs, ElementTakes* elements);

void take_contents(const Sources& sources, const Runs& runs, ElementTakes* elements,
                   ArrayParts* parts) {
  const Type& type = sources.front().type();
  switch (type.layout) {
    case Layout::kBoolean:
      parts->buffers.push_back(take_bits_of(sources, runs, 1));
      return;
    case Layout::kFixedWidth:
      parts->buffers.push_back(take_fixed_width(sources, runs, elements));
      if (type.dictionary != nullptr) {
        parts->dictionary = share_array(sources.front().dictionary());
      }
      return;
    case Layout::kFixedSizeList:
      parts->children.push_back(
          take_runs(select_child(sources, 0), {runs.indices, runs.run * type.list_size}, elements));
      return;
    case Layout::kStruct:
      for (std::size_t i = 0; i < type.children.size(); ++i) {
        parts->children.push_back(
            take_runs(select_child(sources, static_cast<int64_t>(i)), runs, elements));
      }
      return;
    case Layout::kBinary:
    case Layout::kLargeBinary:
      return take_binary(sources, runs.indices, parts);
    default:
      return take_lists(sources, runs.indices, parts);
  }
}

/// `elements` writes those of fixed width, later.
OwnedArray take_runs(const Sources& sources, const Runs& runs, ElementTakes* elements) {
  const Type& type = sources.front().type();
  const bool has_other_dictionaries = type.dictionary != nullptr && !share_dictionaries(sources);
  if (!has_loop(type, runs.run) || has_other_dictionaries) return gather(sources, to_ranges(runs));
  ArrayParts parts;
  parts.length = runs.length();
  parts.buffers.push_back(take_validity(sources, runs, &parts.null_count));
  take_contents(sources, runs, elements, &parts);
  return make_array(std::move(parts));
}

/// Rows to take, each of `run` elements.
struct Rows {
  const uint32_t* numbers;
  int64_t count;
  int64_t run;

  int64_t length() const noexcept { return count * run; }
};

Buffer take_bits_of(const Sources& sources, const Rows& rows, int64_t buffer) {
  std::vector<SourceBits> bits;
  bits.reserve(sources.size());
  for (const DeviceArray& source : sources) {
    const uint8_t* from = buffer == 0 ? source.validity() : source.buffer_as<uint8_t>(buffer);
    bits.push_back({from, source.offset()});
  }
  return take_numbered_bits(bits, count_each(sources), rows.numbers, rows.count);
}

Buffer take_elements_of(const Sources& sources, const Rows& rows) {
  const int64_t width = sources.front().type().byte_width;
  int64_t length = 0;
  for (const DeviceArray& source : sources) length += source.length();
  uint8_t* copy = nullptr;  // one column is in the cache, which the processor fetches ahead
  const Buffer memory = allocate_elements(length, width, &copy);
  uint8_t* to = copy;
  for (const DeviceArray& source : sources) {
    const int64_t size = source.length() * width;
    if (size > 0) {
      const uint8_t* from = source.buffer_as<uint8_t>(1) + source.offset() * width;
      std::memcpy(to, from, static_cast<std::size_t>(size));
    }
    to += size;
  }
  uint8_t* target = nullptr;
  Buffer taken = allocate_elements(rows.length(), width, &target);
  take_elements(copy, rows.numbers, rows.count, rows.run * width, target);
  return taken;
}

OwnedArray take_rows(const Sources& sources, const Rows& rows) {
  const Type& type = sources.front().type();
  ArrayParts parts;
  parts.length = rows.length();
  parts.buffers.emplace_back();
  if (has_bitmap(sources)) {
    Buffer bits = take_bits_of(sources, rows, 0);
    parts.null_count = parts.length - count_set_bits(bits.data(), 0, parts.length);
    if (parts.null_count > 0) parts.buffers.front() = std::move(bits);
  }
  if (type.layout == Layout::kBoolean) {
    parts.buffers.push_back(take_bits_of(sources, rows, 1));
  } else if (type.layout == Layout::kFixedWidth) {
    parts.buffers.push_back(take_elements_of(sources, rows));
    if (type.dictionary != nullptr) parts.dictionary = share_array(sources.front().dictionary());
  } else if (type.layout == Layout::kFixedSizeList) {
    const Rows items{rows.numbers, rows.count, rows.run * type.list_size};
    parts.children.push_back(take_rows(select_child(sources, 0), items));
  } else {
    for (std::size_t i = 0; i < type.children.size(); ++i) {
      parts.children.push_back(take_rows(select_child(sources, static_cast<int64_t>(i)), rows));
    }
  }
  return make_array(std::move(parts));
}

}  // namespace

OwnedArray take(const std::vector<DeviceArray>& sources, RowIndices indices) {
  ElementTakes elements(indices);
  OwnedArray taken = take_runs(sources, {indices, 1}, &elements);
  elements.run();
  return taken;
}

std::vector<OwnedArray> take_columns(const std::vector<std::vector<DeviceArray>>& columns,
                                     RowIndices indices) {
  ElementTakes elements(indices);
  std::vector<OwnedArray> taken;
  taken.reserve(columns.size());
  for (const Sources& sources : columns) {
    taken.push_back(take_runs(sources, {indices, 1}, &elements));
  }
  elements.run();
  return taken;
}

bool can_take_numbered(const Sources& sources) {
  return has_fixed_rows(sources, kMostElementBytes, false);
}

OwnedArray take_numbered(const Sources& sources, const uint32_t* rows, int64_t count) {
  return take_rows(sources, {rows, count, 1});
}

ARROWDL_END_NAMESPACE
