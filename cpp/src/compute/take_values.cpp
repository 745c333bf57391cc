// Takes the values of lists, binary and strings whose rows come in any order.
#include "compute/take_values.hpp"

#include <algorithm>
#include <utility>

#include "arrowdl/error.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/selection.hpp"
#include "util/copy_pieces.hpp"
#include "util/parallel_for.hpp"
#include "util/prefetch_memory.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using Sources = std::vector<DeviceArray>;

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
    std::vector<const uint8_t*> first;
    first.reserve(sources.size());
    for (const DeviceArray& source : sources) {
      first.push_back(source.buffer_as<uint8_t>(1) + source.offset() * type.byte_width);
    }
    parts.buffers.push_back(copy->add(std::move(first), run * type.byte_width));
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

}  // namespace

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

bool can_take_child(const Sources& sources) { return has_fixed_rows(sources, kMostWidth, true); }

OwnedArray take_child(const Sources& sources, const TakenValues& values) {
  ValueCopy copy(values);
  OwnedArray taken = take(sources, 1, values.count, &copy);
  copy.run();
  return taken;
}

ARROWDL_END_NAMESPACE
