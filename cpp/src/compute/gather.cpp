// Gathers ranges of rows from arrays of one type into a new array.
#include "compute/gather.hpp"

#include <algorithm>

#include "compute/elements.hpp"
#include "compute/gather_layouts.hpp"
#include "compute/selection.hpp"
#include "util/bitmap_writer.hpp"
#include "util/reserve.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

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
