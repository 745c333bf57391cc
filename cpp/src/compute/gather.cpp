// Gathers ranges of rows from arrays of one type into a new array.
#include "compute/gather.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "array/run_ends.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/elements.hpp"
#include "compute/encoded_rows.hpp"
#include "compute/offsets.hpp"
#include "compute/selection.hpp"
#include "schema/layout.hpp"
#include "util/bit_util.hpp"
#include "util/reserve.hpp"
#include "util/visit_width.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

// ---------------------------------------------------------------- layouts

/// The bytes of `ranges` of the data buffers of `sources`. Raises ValueError for a missing one.
Buffer gather_bytes(const std::vector<DeviceArray>& sources, const std::vector<RowRange>& ranges) {
  std::vector<const uint8_t*> first;
  first.reserve(sources.size());
  for (const DeviceArray& source : sources) first.push_back(source.buffer_as<uint8_t>(2));
  for (const RowRange& range : ranges) {
    if (first[range.source] == nullptr) {
      raise_value_error("malformed ", to_string(sources[range.source].type()),
                        " array: its data is NULL where ", range.rows.length, " bytes should be");
    }
  }
  return gather_elements(first, ranges, count_rows(ranges), 1);
}

template <typename Offset>
void gather_offset_binary(const Selection& selection, ArrayParts* parts) {
  const std::vector<int64_t> limits(selection.sources.size(), kNoLimit);
  std::vector<RowRange> bytes;
  parts->buffers.push_back(gather_offsets<Offset>(selection, limits, &bytes));
  parts->buffers.push_back(gather_bytes(selection.sources, bytes));
}

template <typename Offset>
ChildRows gather_offset_lists(const Selection& selection, ArrayParts* parts) {
  std::vector<DeviceArray> children = select_child(selection.sources, 0);
  std::vector<RowRange> values;
  parts->buffers.push_back(gather_offsets<Offset>(selection, count_each(children), &values));
  return {std::move(children), std::move(values)};
}

/// The values from the first to the last that `rows` refer to.
Range find_span(const DeviceArray& source, Range rows, int64_t child_length) {
  int64_t start = child_length;
  int64_t end = 0;
  for (int64_t i = rows.start; i < rows.end(); ++i) {
    const Range values = read_list(source, i, child_length);
    if (values.length == 0) continue;
    start = std::min(start, values.start);
    end = std::max(end, values.end());
  }
  return end == 0 ? Range{} : Range{start, end - start};
}

/// Moves the span that a range refers to as one, so that gaps and overlaps stay.
template <typename Offset>
ChildRows gather_list_views(const Selection& selection, ArrayParts* parts) {
  std::vector<DeviceArray> children = select_child(selection.sources, 0);
  Offset* offsets = nullptr;
  Offset* sizes = nullptr;
  parts->buffers.push_back(allocate_elements(selection.length, &offsets));
  parts->buffers.push_back(allocate_elements(selection.length, &sizes));
  std::vector<RowRange> values;
  int64_t count = 0;
  for (const RowRange& range : selection.ranges) {
    const DeviceArray& source = selection.sources[range.source];
    const int64_t child_length = children[range.source].length();
    const Range span = find_span(source, range.rows, child_length);
    const int64_t shift = count - span.start;
    append_range(&values, range.source, span);
    count = add_rows(count, span.length);
    require_offset_fits<Offset>(selection.type(), count);
    for (int64_t i = range.rows.start; i < range.rows.end(); ++i) {
      const Range list = read_list(source, i, child_length);
      *offsets++ = static_cast<Offset>(list.length == 0 ? 0 : list.start + shift);
      *sizes++ = static_cast<Offset>(list.length);
    }
  }
  return {std::move(children), std::move(values)};
}

template <typename RunEnd>
OwnedArray gather_run_ends(const Selection& selection,
                           const std::vector<RunReader<RunEnd>>& readers,
                           const std::vector<Range>& runs, int64_t run_count) {
  RunEnd* target = nullptr;
  ArrayParts parts;
  parts.length = run_count;
  parts.buffers = {Buffer(), allocate_elements(run_count, &target)};
  int64_t rows_before = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RowRange& range = selection.ranges[i];
    for (int64_t run = runs[i].start; run < runs[i].end(); ++run) {
      const int64_t end = readers[range.source].end_within(run, range.rows);
      *target++ = static_cast<RunEnd>(rows_before + end);
    }
    rows_before += range.rows.length;
  }
  return make_array(std::move(parts));
}

template <typename RunEnd>
ChildRows gather_runs_of(const Selection& selection, ArrayParts* parts) {
  if (selection.length > std::numeric_limits<RunEnd>::max()) {
    raise_buffer_error(selection.length, " rows are more than the int", sizeof(RunEnd) * 8,
                       " run ends of ", to_string(selection.type()),
                       " can count: cast to int64 run ends or decode them first");
  }
  const std::vector<RunReader<RunEnd>> readers(selection.sources.begin(), selection.sources.end());
  std::vector<Range> runs;
  std::vector<RowRange> values;
  int64_t run_count = 0;
  for (const RowRange& range : selection.ranges) {
    runs.push_back(readers[range.source].find_runs(range.rows));
    append_range(&values, range.source, runs.back());
    run_count = add_rows(run_count, runs.back().length);
  }
  parts->children.push_back(gather_run_ends(selection, readers, runs, run_count));
  return {select_child(selection.sources, 1), std::move(values)};
}

/// Writes the offsets of the selected rows, and finds the rows of each child that they refer to:
/// one span for each range, in the order of the child.
class DenseUnionGather {
 public:
  explicit DenseUnionGather(const Selection& selection)
      : selection_(selection), columns_(selection.type().children.size()) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].sources = select_child(selection.sources, static_cast<int64_t>(i));
    }
  }

  std::vector<ChildRows> run(ArrayParts* parts) {
    int32_t* offsets = nullptr;
    parts->buffers.push_back(allocate_elements(selection_.length, &offsets));
    for (const RowRange& range : selection_.ranges) {
      find_spans(range);
      for (Column& column : columns_) add_span(&column, range.source);
      const DeviceArray& source = selection_.sources[range.source];
      for (int64_t i = range.rows.start; i < range.rows.end(); ++i) {
        const Column& column = column_of(source, i);
        *offsets++ = static_cast<int32_t>(row_in(column, range.source, i) + column.shift);
      }
    }
    std::vector<ChildRows> children;
    children.reserve(columns_.size());
    for (Column& column : columns_) {
      children.push_back({std::move(column.sources), std::move(column.ranges)});
    }
    return children;
  }

 private:
  struct Column {
    std::vector<DeviceArray> sources;
    std::vector<RowRange> ranges;
    int64_t count = 0;  ///< rows in `ranges`
    int64_t start = 0;  ///< of the span under the current range
    int64_t end = 0;
    int64_t shift = 0;  ///< from a row of that span to its row in the result
  };

  Column& column_of(const DeviceArray& source, int64_t i) {
    return columns_[static_cast<std::size_t>(read_union_child(source, i))];
  }

  int64_t row_in(const Column& column, std::size_t source, int64_t i) const {
    return read_union_row(selection_.sources[source], i, column.sources[source].length());
  }

  void find_spans(const RowRange& range) {
    for (Column& column : columns_) {
      column.start = column.sources[range.source].length();
      column.end = 0;
    }
    for (int64_t i = range.rows.start; i < range.rows.end(); ++i) {
      Column& column = column_of(selection_.sources[range.source], i);
      const int64_t row = row_in(column, range.source, i);
      column.start = std::min(column.start, row);
      column.end = std::max(column.end, row + 1);
    }
  }

  void add_span(Column* column, std::size_t source) {
    if (column->end == 0) return;
    const Range span{column->start, column->end - column->start};
    column->shift = column->count - span.start;
    column->count = add_rows(column->count, span.length);
    require_offset_fits<int32_t>(selection_.type(), column->count);
    append_range(&column->ranges, source, span);
  }

  const Selection& selection_;
  std::vector<Column> columns_;
};

/// Appends the offsets and the bytes to the buffers of `parts`. Raises ValueError for malformed
/// arrays, BufferError if the offsets cannot count the bytes.
void gather_binary(const Selection& selection, ArrayParts* parts) {
  visit_offset(selection.type(),
               [&](auto zero) { gather_offset_binary<decltype(zero)>(selection, parts); });
}

/// The data buffers that gathered views point into: shared with the sources, each once, and only
/// those that some row uses.
class SharedBuffers {
 public:
  explicit SharedBuffers(const Selection& selection)
      : selection_(selection), known_(selection.sources.size()) {}

  /// The index in the result of data buffer `index` of `source`.
  int32_t share(std::size_t source, int32_t index) {
    std::vector<int32_t>& known = known_[source];
    const DeviceArray& array = selection_.sources[source];
    if (known.empty()) known.resize(static_cast<std::size_t>(array.buffer_count()) - 3, -1);
    int32_t& shared = known[static_cast<std::size_t>(index)];
    if (shared < 0) shared = find_or_add(array, index);
    return shared;
  }

  void append_to(std::vector<Buffer>* buffers) const {
    int64_t* sizes = nullptr;
    Buffer size_buffer = allocate_elements(static_cast<int64_t>(buffers_.size()), &sizes);
    for (const Buffer& buffer : buffers_) {
      *sizes++ = buffer.size();
      buffers->push_back(buffer);
    }
    buffers->push_back(std::move(size_buffer));
  }

 private:
  int32_t find_or_add(const DeviceArray& array, int32_t index) {
    const int64_t size = read_data_size(array, index);
    const void* data = array.buffer(2 + index);
    const auto [at, is_new] =
        indexes_.try_emplace({data, size}, static_cast<int32_t>(buffers_.size()));
    if (!is_new) return at->second;
    if (buffers_.size() == std::numeric_limits<int32_t>::max()) {
      raise_buffer_error("the rows point into more than 2^31 - 1 data buffers: cast to ",
                         array.type().is_utf8 ? "large_string" : "large_binary", " first");
    }
    buffers_.emplace_back(array.storage(), data, size);
    return at->second;
  }

  const Selection& selection_;
  std::vector<std::vector<int32_t>> known_;  // by source and its index; -1: not shared yet
  std::map<std::pair<const void*, int64_t>, int32_t> indexes_;
  std::vector<Buffer> buffers_;
};

/// Appends the views, the data buffers, which are shared with the sources, and their sizes to the
/// buffers of `parts`. Raises ValueError for malformed views, BufferError for more data buffers
/// than a view can count.
void gather_binary_views(const Selection& selection, ArrayParts* parts) {
  ArrowBinaryViewRef* target = nullptr;
  parts->buffers.push_back(allocate_elements(selection.length, &target));
  SharedBuffers shared(selection);
  for (const RowRange& range : selection.ranges) {
    const DeviceArray& source = selection.sources[range.source];
    for (int64_t i = range.rows.start; i < range.rows.end(); ++i) {
      ArrowBinaryViewRef view = read_view(source, i);
      if (!is_inline(view)) view.buffer_index = shared.share(range.source, view.buffer_index);
      *target++ = view;
    }
  }
  shared.append_to(&parts->buffers);
}

/// Appends the offsets, and the sizes of views, to the buffers of `parts`. Returns the rows of the
/// child. Views keep their order, gaps and overlaps. Raises ValueError for malformed offsets,
/// BufferError if the offsets cannot count the values.
ChildRows gather_lists(const Selection& selection, ArrayParts* parts) {
  return visit_offset(selection.type(), [&](auto zero) {
    using Offset = decltype(zero);
    return layout_row(selection.type().layout).has_offsets()
               ? gather_offset_lists<Offset>(selection, parts)
               : gather_list_views<Offset>(selection, parts);
  });
}

/// Appends the run ends to the children of `parts`. Returns the rows of the values. Raises
/// ValueError for malformed run ends, BufferError if the type of the run ends cannot count the
/// rows.
ChildRows gather_runs(const Selection& selection, ArrayParts* parts) {
  return visit_run_ends(selection.type(), [&](auto zero) {
    return gather_runs_of<decltype(zero)>(selection, parts);
  });
}

/// Appends type ids and offsets to the buffers of `parts`. Returns the rows of each child; those
/// that a range refers to are one span. Raises ValueError for malformed ids and offsets,
/// BufferError if int32 offsets cannot count the rows of a child.
std::vector<ChildRows> gather_dense_unions(const Selection& selection, ArrayParts* parts) {
  parts->buffers.push_back(gather_elements(selection, 0, 1));
  return DenseUnionGather(selection).run(parts);
}

// ---------------------------------------------------------------- dictionaries

/// The dictionaries that the selection uses, without duplicates of the same memory.
struct Dictionaries {
  std::vector<DeviceArray> distinct;
  std::vector<std::size_t> of_source;  ///< index into `distinct`; meaningless where unused
};

Dictionaries find_dictionaries(const Selection& selection) {
  Dictionaries found;
  found.of_source.resize(selection.sources.size());
  std::vector<bool> seen(selection.sources.size());
  for (const RowRange& range : selection.ranges) {
    if (seen[range.source]) continue;
    seen[range.source] = true;
    DeviceArray dictionary = selection.sources[range.source].dictionary();
    std::size_t i = 0;
    while (i < found.distinct.size() && !is_same_memory(found.distinct[i], dictionary)) ++i;
    found.of_source[range.source] = i;
    if (i == found.distinct.size()) found.distinct.push_back(std::move(dictionary));
  }
  if (found.distinct.empty()) found.distinct.push_back(selection.sources.front().dictionary());
  return found;
}

bool are_equal(const std::vector<EncodedRows>& dictionaries) {
  for (const EncodedRows& dictionary : dictionaries) {
    if (!(dictionary == dictionaries.front())) return false;
  }
  return true;
}

/// One dictionary of the distinct values of several, in the order of their first appearance.
struct UnifiedDictionary {
  std::vector<RowRange> values;
  int64_t length = 0;
  std::vector<std::vector<int64_t>> new_index;  ///< by old dictionary and old index
};

UnifiedDictionary unify(const std::vector<EncodedRows>& dictionaries) {
  UnifiedDictionary unified;
  std::unordered_map<std::string_view, int64_t> index_of;
  for (std::size_t d = 0; d < dictionaries.size(); ++d) {
    std::vector<int64_t>& new_index = unified.new_index.emplace_back();
    for (int64_t i = 0; i < dictionaries[d].length(); ++i) {
      const auto [at, is_new] = index_of.try_emplace(dictionaries[d][i], unified.length);
      if (is_new) {
        append_range(&unified.values, d, Range{i, 1});
        ++unified.length;
      }
      new_index.push_back(at->second);
    }
  }
  return unified;
}

template <typename Index>
Buffer renumber(const Selection& selection, const Dictionaries& dictionaries,
                const UnifiedDictionary& unified) {
  if (unified.length > 0 && static_cast<uint64_t>(unified.length - 1) >
                                static_cast<uint64_t>(std::numeric_limits<Index>::max())) {
    raise_buffer_error("the dictionaries have ", unified.length, " distinct values together, ",
                       "more than the indices of ", to_string(selection.type()),
                       " can count: cast to wider indices or decode them first");
  }
  Index* target = nullptr;
  Buffer indices = allocate_elements(selection.length, &target);
  for (const RowRange& range : selection.ranges) {
    const DeviceArray& source = selection.sources[range.source];
    const std::vector<int64_t>& new_index = unified.new_index[dictionaries.of_source[range.source]];
    const auto length = static_cast<int64_t>(new_index.size());
    const RowValidity is_valid(source);
    for (int64_t i = range.rows.start; i < range.rows.end(); ++i) {
      *target++ = !is_valid[i]
                      ? Index{0}
                      : static_cast<Index>(
                            new_index[static_cast<std::size_t>(read_index(source, i, length))]);
    }
  }
  return indices;
}

void gather_shared(const Selection& selection, const DeviceArray& dictionary, ArrayParts* parts) {
  parts->buffers.push_back(gather_elements(selection, 1, selection.type().byte_width));
  parts->dictionary = share_array(dictionary);
}

/// Appends the indices to the buffers of `parts`. Where all dictionaries are equal, `parts` gets
/// one of them; else returns the rows of the dictionaries that make the unified one. Raises
/// ValueError for an index that leaves its dictionary, BufferError if the indices cannot count the
/// distinct values or an order of the values would be lost.
std::optional<ChildRows> gather_indices(const Selection& selection, ArrayParts* parts) {
  Dictionaries dictionaries = find_dictionaries(selection);
  std::vector<DeviceArray>& distinct = dictionaries.distinct;
  if (distinct.size() == 1) {
    gather_shared(selection, distinct.front(), parts);
    return std::nullopt;
  }
  const std::vector<EncodedRows> encoded(distinct.begin(), distinct.end());
  if (are_equal(encoded)) {
    gather_shared(selection, distinct.front(), parts);
    return std::nullopt;
  }
  const Type& type = selection.type();
  if ((type.schema->flags & ARROW_FLAG_DICTIONARY_ORDERED) != 0) {
    raise_buffer_error("the arrays have different dictionaries and ", to_string(type),
                       " says that their order matters: make it unordered or decode it first");
  }
  UnifiedDictionary unified = unify(encoded);
  parts->buffers.push_back(visit_integer(type.schema->format, [&](auto zero) {
    return renumber<decltype(zero)>(selection, dictionaries, unified);
  }));
  return ChildRows{std::move(distinct), std::move(unified.values)};
}

// ---------------------------------------------------------------- all types

Buffer gather_bits(const Selection& selection, int64_t buffer) {
  uint8_t* target = nullptr;
  Buffer bits = Buffer::allocate(bitmap_size(selection.length), &target);
  BitmapWriter writer(target);
  for (const RowRange& range : selection.ranges) {
    const DeviceArray& source = selection.sources[range.source];
    writer.append(source.buffer_as<uint8_t>(buffer), source.offset() + range.rows.start,
                  range.rows.length);
  }
  return bits;
}

/// The validity bitmap; no buffer if every row is valid.
Buffer gather_validity(const Selection& selection, int64_t* null_count) {
  const bool has_bitmap = std::any_of(
      selection.ranges.begin(), selection.ranges.end(),
      [&](const RowRange& range) { return selection.sources[range.source].validity() != nullptr; });
  if (!has_bitmap) return Buffer();
  uint8_t* target = nullptr;
  Buffer bits = Buffer::allocate(bitmap_size(selection.length), &target);
  BitmapWriter writer(target);
  for (const RowRange& range : selection.ranges) {
    const DeviceArray& source = selection.sources[range.source];
    if (source.validity() == nullptr) {
      writer.append_run(true, range.rows.length);
    } else {
      writer.append(source.validity(), source.offset() + range.rows.start, range.rows.length);
    }
  }
  *null_count = selection.length - count_set_bits(target, 0, selection.length);
  return *null_count == 0 ? Buffer() : bits;
}

OwnedArray gather_child(const ChildRows& rows) { return gather(rows.sources, rows.ranges); }

/// `elements` writes those of fixed width, later.
OwnedArray gather_with(const std::vector<DeviceArray>& sources, const std::vector<RowRange>& ranges,
                       ElementGathers* elements);

void gather_fixed_width(const Selection& selection, ElementGathers* elements, ArrayParts* parts) {
  if (selection.type().dictionary == nullptr) {
    parts->buffers.push_back(elements->add(selection, 1, selection.type().byte_width));
  } else if (const auto values = gather_indices(selection, parts)) {
    parts->dictionary = gather_child(*values);
  }
}

/// Children that have a row for each row of the parent.
void gather_fields(const Selection& selection, ElementGathers* elements, ArrayParts* parts) {
  const auto count = static_cast<int64_t>(selection.type().children.size());
  for (int64_t i = 0; i < count; ++i) {
    parts->children.push_back(
        gather_with(select_child(selection.sources, i), selection.ranges, elements));
  }
}

void gather_fixed_size_lists(const Selection& selection, ElementGathers* elements,
                             ArrayParts* parts) {
  const int64_t size = selection.type().list_size;
  std::vector<RowRange> values;
  reserve(&values, static_cast<int64_t>(selection.ranges.size()));
  for (const RowRange& range : selection.ranges) {
    append_range(&values, range.source, Range{range.rows.start * size, range.rows.length * size});
  }
  parts->children.push_back(
      gather_with(select_child(selection.sources, 0), elements->keep(std::move(values)), elements));
}

void gather_contents(const Selection& selection, ElementGathers* elements, ArrayParts* parts) {
  switch (selection.type().layout) {
    case Layout::kNull:
      parts->null_count = selection.length;
      return;
    case Layout::kBoolean:
      parts->buffers.push_back(gather_bits(selection, 1));
      return;
    case Layout::kFixedWidth:
      return gather_fixed_width(selection, elements, parts);
    case Layout::kBinary:
    case Layout::kLargeBinary:
      return gather_binary(selection, parts);
    case Layout::kBinaryView:
      return gather_binary_views(selection, parts);
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
      parts->children.push_back(gather_child(gather_lists(selection, parts)));
      return;
    case Layout::kFixedSizeList:
      return gather_fixed_size_lists(selection, elements, parts);
    case Layout::kStruct:
      return gather_fields(selection, elements, parts);
    case Layout::kSparseUnion:
      parts->buffers.push_back(gather_elements(selection, 0, 1));
      return gather_fields(selection, elements, parts);
    case Layout::kDenseUnion:
      for (const ChildRows& child : gather_dense_unions(selection, parts)) {
        parts->children.push_back(gather_child(child));
      }
      return;
    case Layout::kRunEndEncoded: {
      const ChildRows values = gather_runs(selection, parts);  // appends the run ends first
      parts->children.push_back(gather_child(values));
      return;
    }
  }
}

OwnedArray gather_with(const std::vector<DeviceArray>& sources, const std::vector<RowRange>& ranges,
                       ElementGathers* elements) {
  const Selection selection{sources, ranges, count_rows(ranges)};
  ArrayParts parts;
  parts.length = selection.length;
  if (selection.type().has_validity()) {
    parts.buffers.push_back(gather_validity(selection, &parts.null_count));
  }
  gather_contents(selection, elements, &parts);
  return make_array(std::move(parts));
}

}  // namespace

OwnedArray gather(const std::vector<DeviceArray>& sources, const std::vector<RowRange>& ranges) {
  ElementGathers elements;
  OwnedArray gathered = gather_with(sources, ranges, &elements);
  elements.run();
  return gathered;
}

ARROWDL_END_NAMESPACE
