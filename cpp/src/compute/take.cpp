// Takes rows of several arrays, in any order, into a new array.
#include "compute/take.hpp"

#include "compute/elements.hpp"
#include "compute/gather.hpp"
#include "compute/offsets.hpp"
#include "compute/same_memory.hpp"
#include "compute/selection.hpp"
#include "compute/take_bits.hpp"
#include "compute/take_values.hpp"
#include "util/bit_util.hpp"
#include "util/reserve.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using Sources = std::vector<DeviceArray>;

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
  std::vector<const uint8_t*> first;
  first.reserve(sources.size());
  for (const DeviceArray& source : sources) {
    first.push_back(source.buffer_as<uint8_t>(1) + source.offset() * width);
  }
  return elements->add(std::move(first), runs.run * width);
}

void take_binary(const Sources& sources, RowIndices indices, ArrayParts* parts) {
  const std::vector<int64_t> limits(sources.size(), kNoLimit);
  TakenValues bytes;
  parts->buffers.push_back(take_offsets(sources, indices, limits, &bytes));
  parts->buffers.push_back(take_bytes(sources, bytes));
}

void take_lists(const Sources& sources, RowIndices indices, ArrayParts* parts) {
  const Sources children = select_child(sources, 0);
  std::vector<int64_t> limits;
  limits.reserve(children.size());
  for (const DeviceArray& child : children) limits.push_back(child.length());
  TakenValues values;
  parts->buffers.push_back(take_offsets(sources, indices, limits, &values));
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

ARROWDL_END_NAMESPACE
