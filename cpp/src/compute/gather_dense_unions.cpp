// Gathers the type ids and offsets of dense unions.
#include <algorithm>

#include "compute/allocate_elements.hpp"
#include "compute/elements.hpp"
#include "compute/gather_layouts.hpp"
#include "compute/offsets.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

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

}  // namespace

std::vector<ChildRows> gather_dense_unions(const Selection& selection, ArrayParts* parts) {
  parts->buffers.push_back(gather_elements(selection, 0, 1));
  return DenseUnionGather(selection).run(parts);
}

ARROWDL_END_NAMESPACE
