#include <algorithm>

#include "compute/gather.hpp"

namespace arrowdl {
namespace {

/// The dense unions of a selection: type ids are copied as they are, and the rows of each child
/// that a piece refers to move as one span, in the order in which they lie.
class DenseUnionGather {
 public:
  explicit DenseUnionGather(const Selection& selection)
      : selection_(selection), columns_(selection.type().children.size()) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].sources = select_child(selection.sources, static_cast<int64_t>(i));
    }
  }

  void run(ArrayParts* parts) {
    int32_t* offsets = nullptr;
    parts->buffers.push_back(allocate_elements(selection_.length, &offsets));
    for (const RowRange& piece : selection_.pieces) {
      find_spans(piece);
      for (Column& column : columns_) add_span(&column, piece.source);
      const DeviceArray& source = selection_.sources[piece.source];
      for (int64_t i = piece.rows.start; i < piece.rows.end(); ++i) {
        const Column& column = column_of(source, i);
        *offsets++ = static_cast<int32_t>(row_in(column, piece.source, i) + column.shift);
      }
    }
    for (const Column& column : columns_) {
      parts->children.push_back(gather_rows(column.sources, column.pieces));
    }
  }

 private:
  struct Column {
    std::vector<DeviceArray> sources;
    std::vector<RowRange> pieces;
    int64_t count = 0;  ///< rows in `pieces`
    int64_t start = 0;  ///< of the span under the piece at hand
    int64_t end = 0;
    int64_t shift = 0;  ///< from a row of that span to its place in the result
  };

  Column& column_of(const DeviceArray& source, int64_t i) {
    return columns_[static_cast<std::size_t>(read_union_child(source, i))];
  }

  int64_t row_in(const Column& column, std::size_t source, int64_t i) const {
    return read_union_row(selection_.sources[source], i, column.sources[source].length());
  }

  void find_spans(const RowRange& piece) {
    for (Column& column : columns_) {
      column.start = column.sources[piece.source].length();
      column.end = 0;
    }
    for (int64_t i = piece.rows.start; i < piece.rows.end(); ++i) {
      Column& column = column_of(selection_.sources[piece.source], i);
      const int64_t row = row_in(column, piece.source, i);
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
    append_range(&column->pieces, source, span);
  }

  const Selection& selection_;
  std::vector<Column> columns_;
};

}  // namespace

void gather_unions(const Selection& selection, ArrayParts* parts) {
  parts->buffers.push_back(gather_elements(selection, 0, 1));
  if (selection.type().layout == Layout::kDenseUnion) return DenseUnionGather(selection).run(parts);
  const auto count = static_cast<int64_t>(selection.type().children.size());
  for (int64_t i = 0; i < count; ++i) {
    parts->children.push_back(gather_rows(select_child(selection.sources, i), selection.pieces));
  }
}

}  // namespace arrowdl
