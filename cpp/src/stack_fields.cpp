#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "arrowdl/error.hpp"
#include "checked.hpp"
#include "host_access.hpp"
#include "tensor_reading.hpp"

namespace arrowdl {
namespace {

/// One field as rows of `width` elements, one after the other.
struct Band {
  const uint8_t* data = nullptr;
  int64_t width = 1;
  DeviceArray field;
  OwnedTensor copy;  ///< of what can't be read as it lies
  Buffer reordered;
};

/// What the fields make together.
struct Matrix {
  const Dtype* dtype = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t row_bytes() const { return columns * dtype->itemsize(); }
};

std::string name_field(const DeviceArray& array, int64_t i) {
  const std::string name = array.type().children[static_cast<std::size_t>(i)].name();
  return name.empty() ? concat("field ", i) : concat("field \"", name, "\"");
}

/// Bits, bytes that are no 0 or 1, and nulls to be replaced are copied first.
bool needs_copy(const TensorReading& reading, Nulls nulls) {
  if (reading.is_bits || reading.view.dtype->code == kDLBool) return true;
  return (nulls == Nulls::kFill || nulls == Nulls::kNan) && has_nulls(reading);
}

Band read_band(DeviceArray field, Nulls nulls, TensorView* view) {
  Band band;
  const bool has_runs = field.type().layout == Layout::kRunEndEncoded;
  band.field = has_runs ? decode_run_ends(field) : std::move(field);
  const TensorReading reading = read_as_tensor(band.field);
  if (nulls == Nulls::kRaise && has_nulls(reading)) {
    raise_buffer_error(
        "it has nulls, and a matrix has no place for them: choose nulls=\"fill\", "
        "\"nan\" or \"mask\", or drop them first");
  }
  *view = reading.view;
  for (int32_t d = 1; d < view->ndim; ++d) {
    if (!checked_multiply(band.width, view->shape[d], &band.width)) {
      raise_buffer_error("its columns are more than int64 can count");
    }
  }
  if (view->size() == 0) return band;
  if (needs_copy(reading, nulls)) {
    band.copy = copy_elements(reading, nulls);
    view->data = static_cast<const uint8_t*>(band.copy->data);
    view->device = Device{};
  }
  if (!view->is_contiguous()) {  // a permutation: columns go by the logical order
    uint8_t* target;
    band.reordered = Buffer::allocate(view->nbytes(), &target);
    copy_contiguous(*view, target);
    view->data = target;
  }
  band.data = view->data;
  return band;
}

/// All fields of `array`, and in `*matrix` the shape that they make together.
std::vector<Band> read_bands(const DeviceArray& array, Nulls nulls, Matrix* matrix) {
  std::vector<Band> bands;
  const auto n_fields = static_cast<int64_t>(array.type().children.size());
  bands.reserve(static_cast<std::size_t>(n_fields));
  for (int64_t i = 0; i < n_fields; ++i) {
    TensorView view;
    try {
      bands.push_back(read_band(array.field(i), nulls, &view));
    } catch (const Error& error) {
      throw Error(error.kind(), concat(name_field(array, i), ": ", error.what()));
    }
    if (matrix->dtype == nullptr) matrix->dtype = view.dtype;
    if (view.dtype != matrix->dtype) {
      raise_buffer_error("the fields of one matrix have one dtype: ", name_field(array, i), " is ",
                         view.dtype->name, ", ", name_field(array, 0), " is ", matrix->dtype->name,
                         "; cast them to one type first, or take a dict of "
                         "tensors (stack=False)");
    }
    int64_t bytes = 0;
    if (!checked_add(matrix->columns, bands.back().width, &matrix->columns) ||
        !checked_multiply(matrix->columns, matrix->dtype->itemsize(), &bytes) ||
        !checked_multiply(bytes, std::max<int64_t>(matrix->rows, 1), &bytes)) {
      raise_buffer_error("a matrix of ", matrix->rows, " rows and ", n_fields,
                         " fields has more bytes than int64 can count");
    }
  }
  return bands;
}

/// Rows of one element each, kColumns fields side by side: one store for several loads.
template <std::size_t kItemsize, std::size_t kColumns>
void interleave(const Band* bands, int64_t begin, int64_t end, int64_t row_bytes, uint8_t* target) {
  const uint8_t* from[kColumns];
  for (std::size_t c = 0; c < kColumns; ++c) from[c] = bands[c].data;
  for (int64_t row = begin; row < end; ++row) {
    uint8_t items[kItemsize * kColumns];
    for (std::size_t c = 0; c < kColumns; ++c) {
      std::memcpy(items + c * kItemsize, from[c] + row * static_cast<int64_t>(kItemsize),
                  kItemsize);
    }
    std::memcpy(target, items, sizeof(items));
    target += row_bytes;
  }
}

/// Rows [begin, end) of a band of any width.
void place(const Band& band, int64_t itemsize, int64_t begin, int64_t end, int64_t row_bytes,
           uint8_t* target) {
  const int64_t bytes = band.width * itemsize;
  for (int64_t row = begin; row < end; ++row) {
    std::memcpy(target, band.data + row * bytes, static_cast<std::size_t>(bytes));
    target += row_bytes;
  }
}

/// How many of the `left` bands from `band` on are one element wide, up to four.
std::size_t count_narrow(const Band* band, std::size_t left) {
  std::size_t n = 0;
  while (n < std::min<std::size_t>(left, 4) && band[n].width == 1) ++n;
  return n;
}

template <std::size_t kItemsize>
void fill_rows(const std::vector<Band>& bands, int64_t begin, int64_t end, int64_t row_bytes,
               uint8_t* target) {
  for (std::size_t i = 0; i < bands.size();) {
    const Band* band = bands.data() + i;
    std::size_t taken = 1;
    switch (count_narrow(band, bands.size() - i)) {
      case 0:
        if (band->width > 0) place(*band, kItemsize, begin, end, row_bytes, target);
        break;
      case 1:
        interleave<kItemsize, 1>(band, begin, end, row_bytes, target);
        break;
      case 4:
        interleave<kItemsize, 4>(band, begin, end, row_bytes, target);
        taken = 4;
        break;
      default:
        interleave<kItemsize, 2>(band, begin, end, row_bytes, target);
        taken = 2;
    }
    for (; taken > 0; --taken) target += bands[i++].width * static_cast<int64_t>(kItemsize);
  }
}

/// Block by block, so that the rows being written stay in the first-level cache until every field
/// has put its columns into them.
template <std::size_t kItemsize>
void fill_matrix(const std::vector<Band>& bands, const Matrix& matrix, uint8_t* target) {
  constexpr int64_t kBlockBytes = 16 * 1024;
  constexpr int64_t kLineItems = 64 / static_cast<int64_t>(kItemsize);  // no line read twice
  const int64_t block = std::max(kBlockBytes / matrix.row_bytes(), kLineItems);
  for (int64_t begin = 0; begin < matrix.rows; begin += block) {
    const int64_t end = std::min(begin + block, matrix.rows);
    fill_rows<kItemsize>(bands, begin, end, matrix.row_bytes(),
                         target + begin * matrix.row_bytes());
  }
}

void fill(const std::vector<Band>& bands, const Matrix& matrix, uint8_t* target) {
  switch (matrix.dtype->itemsize()) {
    case 1:
      return fill_matrix<1>(bands, matrix, target);
    case 2:
      return fill_matrix<2>(bands, matrix, target);
    case 4:
      return fill_matrix<4>(bands, matrix, target);
    case 8:
      return fill_matrix<8>(bands, matrix, target);
    default:
      return fill_matrix<16>(bands, matrix, target);
  }
}

}  // namespace

OwnedTensor stack_fields(const DeviceArray& array, Nulls nulls) {
  if (array.type().layout != Layout::kStruct) {
    raise_buffer_error("only the fields of a struct or record batch can be stacked, this is ",
                       to_string(array.type()));
  }
  require_host_readable(array, "stack fields");
  Matrix matrix;
  matrix.rows = array.length();
  const std::vector<Band> bands = read_bands(array, nulls, &matrix);
  if (bands.empty()) {
    raise_buffer_error("a struct without fields has no column to stack, and so no dtype");
  }
  TensorView view;
  uint8_t* target;
  view.dtype = matrix.dtype;
  view.push_dim(matrix.rows);
  view.push_dim(matrix.columns);
  view.set_contiguous_strides();
  const Buffer data = Buffer::allocate(view.nbytes(), &target);
  if (view.size() > 0) fill(bands, matrix, target);
  view.data = target;
  return make_tensor(view, data.owner(), DLPACK_FLAG_BITMASK_IS_COPIED);
}

}  // namespace arrowdl
