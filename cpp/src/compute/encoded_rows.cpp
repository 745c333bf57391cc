// Encodes rows of any type as byte strings that are equal if and only if the rows are.
#include "compute/encoded_rows.hpp"

#include "array/row_access.hpp"
#include "array/run_ends.hpp"
#include "util/reserve.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr char kNullRow = 0;
constexpr char kValidRow = 1;

/// Encodes the rows of one node. Keeps its children, so that they are found once.
class RowEncoder {
 public:
  explicit RowEncoder(DeviceArray array) : array_(std::move(array)), is_valid_(array_) {
    if (array_.type().dictionary != nullptr) children_.emplace_back(array_.dictionary());
    const auto count = static_cast<int64_t>(array_.type().children.size());
    for (int64_t i = 0; i < count; ++i) children_.emplace_back(array_.child(i));
  }

  void append(int64_t i, std::string* bytes) const {
    const bool is_valid = array_.type().layout != Layout::kNull && is_valid_[i];
    bytes->push_back(is_valid ? kValidRow : kNullRow);
    if (is_valid) append_valid(i, bytes);
  }

 private:
  void append_valid(int64_t i, std::string* bytes) const {
    if (array_.type().dictionary != nullptr) {
      return children_[0].append(read_index(array_, i, children_[0].length()), bytes);
    }
    switch (array_.type().layout) {
      case Layout::kNull:
        return;
      case Layout::kBoolean:
        bytes->push_back(get_bit(array_.buffer_as<uint8_t>(1), array_.offset() + i) ? 1 : 0);
        return;
      case Layout::kFixedWidth:
        bytes->append(read_bytes(array_, i));
        return;
      case Layout::kBinary:
      case Layout::kLargeBinary:
      case Layout::kBinaryView:
        append_size(static_cast<int64_t>(read_bytes(array_, i).size()), bytes);
        bytes->append(read_bytes(array_, i));
        return;
      case Layout::kList:
      case Layout::kLargeList:
      case Layout::kListView:
      case Layout::kLargeListView:
      case Layout::kFixedSizeList:
        return append_list(i, bytes);
      case Layout::kStruct:
        for (const RowEncoder& child : children_) child.append(i, bytes);
        return;
      case Layout::kSparseUnion:
      case Layout::kDenseUnion:
        return append_union(i, bytes);
      case Layout::kRunEndEncoded:
        return append_run_value(i, bytes);
    }
  }

  void append_list(int64_t i, std::string* bytes) const {
    const Range values = read_list(array_, i, children_[0].length());
    append_size(values.length, bytes);
    for (int64_t v = values.start; v < values.end(); ++v) children_[0].append(v, bytes);
  }

  void append_union(int64_t i, std::string* bytes) const {
    const int64_t child_index = read_union_child(array_, i);
    const RowEncoder& child = children_[static_cast<std::size_t>(child_index)];
    append_size(child_index, bytes);
    const bool is_dense = array_.type().layout == Layout::kDenseUnion;
    child.append(is_dense ? read_union_row(array_, i, child.length()) : i, bytes);
  }

  void append_run_value(int64_t i, std::string* bytes) const {
    const int64_t run = visit_run_ends(array_.type(), [&](auto zero) {
      return RunReader<decltype(zero)>(array_).find_runs(Range{i, 1}).start;
    });
    children_[1].append(run, bytes);
  }

  static void append_size(int64_t size, std::string* bytes) {
    bytes->append(reinterpret_cast<const char*>(&size), sizeof(size));
  }

  int64_t length() const noexcept { return array_.length(); }

  DeviceArray array_;
  RowValidity is_valid_;
  std::vector<RowEncoder> children_;
};

}  // namespace

EncodedRows::EncodedRows(const DeviceArray& array) {
  const RowEncoder encoder(array);
  reserve(&ends_, array.length());
  for (int64_t i = 0; i < array.length(); ++i) {
    encoder.append(i, &bytes_);
    ends_.push_back(bytes_.size());
  }
}

std::string_view EncodedRows::operator[](int64_t i) const noexcept {
  const auto row = static_cast<std::size_t>(i);
  const std::size_t start = row == 0 ? 0 : ends_[row - 1];
  return std::string_view(bytes_).substr(start, ends_[row] - start);
}

ARROWDL_END_NAMESPACE
