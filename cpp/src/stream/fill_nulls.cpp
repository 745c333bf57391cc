// Replaces nulls of a stream where they are.
#include "arrowdl/stream.hpp"
#include "convert/fill_value.hpp"
#include "stream/select_columns.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// What stands in for the nulls of a field.
struct Fill {
  int64_t field;
  Item item;
};

/// Whether elements are numbers whose nulls a conversion replaces by `nulls`.
bool can_fill(const Type& type, const Nulls& nulls) {
  if (!type.is_plain() || type.dictionary != nullptr || type.byte_width > 8) return false;
  if (type.dtype->itemsize() != type.byte_width) return false;
  if (nulls.kind == Nulls::kValue && !find_item(nulls.value, *type.dtype)) return false;
  const DLDataTypeCode code = type.dtype->code;
  return code == kDLFloat || (nulls.kind != Nulls::kNan && (code == kDLInt || code == kDLUInt));
}

std::vector<Fill> find_fills(const Type& type, const std::vector<Nulls>& nulls) {
  std::vector<Fill> fills;
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    const Type& field = type.children[i];
    if (!nulls[i].replaces() || !can_fill(field, nulls[i])) continue;
    fills.push_back({static_cast<int64_t>(i), make_fill_value(*field.dtype, nulls[i])});
  }
  return fills;
}

/// `rows` without a bitmap, with `item` written over nulls in their memory. Rows that are all null
/// get new memory: pyarrow's (`MakeArrayOfNull`, for a column that a file lacks) share one block of
/// zeros for values and bitmaps, also with other columns and batches.
OwnedArray fill_rows(const DeviceArray& rows, const Item& item) {
  const int64_t width = rows.type().byte_width;
  auto* first = const_cast<uint8_t*>(rows.buffer_as<uint8_t>(1)) + rows.offset() * width;
  Buffer memory(rows.storage(), first, rows.length() * width);
  uint8_t* target = first;
  if (rows.null_count() == rows.length()) memory = Buffer::allocate(memory.size(), &target);
  copy_without_nulls(rows, width, first, item, target);
  ArrayParts parts;
  parts.length = rows.length();
  parts.buffers = {Buffer(), std::move(memory)};
  return make_array(std::move(parts));
}

class FillNulls final : public ArrayStream {
 public:
  FillNulls(OwnedStream source, std::vector<Fill> fills)
      : ArrayStream(source->schema(), source->device_type()),
        source_(std::move(source)),
        fills_(std::move(fills)) {}

  DeviceArray next(int64_t max_rows) override {
    if (!rows_) rows_ = source_->next(max_rows);
    DeviceArray filled = !rows_ || rows_.validity() != nullptr ? rows_ : fill(rows_);
    rows_ = {};
    return filled;
  }

 private:
  /// Where this raises, some fields are filled: they are filled again.
  DeviceArray fill(const DeviceArray& rows) const {
    ArrayParts parts;
    parts.length = rows.length();
    parts.buffers.push_back(Buffer());
    auto fill = fills_.begin();
    for (int64_t i = 0; i < static_cast<int64_t>(rows.type().children.size()); ++i) {
      const DeviceArray field = rows.child(i);
      const bool is_filled = fill != fills_.end() && fill->field == i;
      parts.children.push_back(is_filled && field.validity() != nullptr
                                   ? fill_rows(field, fill->item)
                                   : share_array(field));
      if (is_filled) ++fill;
    }
    return DeviceArray::import(schema(), make_array(std::move(parts)), rows.device());
  }

  OwnedStream source_;
  std::vector<Fill> fills_;
  DeviceArray rows_;  ///< kept where filling them fails
};

}  // namespace

OwnedStream fill_nulls(OwnedStream&& stream, const std::vector<Nulls>& nulls) {
  require_columns(stream->schema()->type);
  std::vector<Fill> fills;
  if (stream->device_type() == kDLCPU) fills = find_fills(stream->schema()->type, nulls);
  if (fills.empty()) return std::move(stream);
  return std::make_unique<FillNulls>(std::move(stream), std::move(fills));
}

ARROWDL_END_NAMESPACE
