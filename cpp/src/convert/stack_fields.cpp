// Copies the fields of a struct into the columns of a matrix.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array/host_access.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "compute/plain_rows.hpp"
#include "compute/rows_on_device.hpp"
#include "convert/array_as_tensor.hpp"
#include "convert/copy_elements_on_device.hpp"
#include "convert/copy_tensor.hpp"
#include "convert/fill_value.hpp"
#include "convert/host_tensor.hpp"
#include "util/bit_util.hpp"
#include "util/explained_error.hpp"
#include "util/overflow.hpp"
#include "util/visit_width.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The columns of one field: rows of `width` elements, one after the other.
struct MatrixColumn {
  const uint8_t* data = nullptr;
  int64_t width = 1;
  int64_t first = 0;           ///< its first column in the matrix
  bool replace_nulls = false;  ///< where `field`, of one element per row, is null
  Item substitute{};           ///< for these nulls
  DeviceArray field;
  OwnedTensor copy;  ///< of elements that are not read as they are
  Buffer reordered;
};

/// The matrix of all fields.
struct Matrix {
  const Dtype* dtype = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  KernelWork* work = nullptr;  ///< that copies the columns; nullptr: the CPU does

  int64_t row_bytes() const { return columns * dtype->itemsize(); }
};

std::string name_field(const DeviceArray& array, int64_t i) {
  const std::string name = array.type().children[static_cast<std::size_t>(i)].name();
  return name.empty() ? concat("field ", i) : concat("field \"", name, "\"");
}

/// The unit of times, which are integers in a tensor; 0 for other types.
char find_unit(const Type& type) {
  const Type& plain = type.layout == Layout::kRunEndEncoded ? type.children[1] : type;
  if (plain.dictionary != nullptr) return 0;
  if (plain.layout == Layout::kFixedSizeList) return find_unit(plain.children[0]);
  return plain.schema->format[0] == 't' ? plain.schema->format[2] : char{0};
}

/// Raises if times of field `i` have another unit than those of a field before it.
void check_unit(const DeviceArray& array, int64_t i, int64_t* first_time) {
  const std::vector<Type>& fields = array.type().children;
  const auto at = [&](int64_t field) -> const Type& {
    return fields[static_cast<std::size_t>(field)];
  };
  if (find_unit(at(i)) == 0) return;
  if (*first_time < 0) *first_time = i;
  if (find_unit(at(i)) == find_unit(at(*first_time))) return;
  raise_buffer_error("the times of one matrix have one unit: ", name_field(array, i), " is ",
                     to_string(at(i)), ", ", name_field(array, *first_time), " is ",
                     to_string(at(*first_time)),
                     "; cast them with dtype=, as in dtype=\"timestamp[us]\", or take a dict of "
                     "tensors (stack=False)");
}

/// Binds `column` to the elements of `reading`, or to a copy if they cannot be read as they are.
void bind(const ArrayAsTensor& reading, const Nulls& nulls, MatrixColumn* column) {
  TensorView view = reading.view;
  const bool replaces = nulls != Nulls::kKeep && has_nulls(reading);
  const bool is_bool = view.dtype->code == kDLBool;  // bits, or bytes other than 0 and 1
  const bool is_flat = reading.levels.size() == 1 && view.ndim == 1;
  column->replace_nulls = replaces && !is_bool && is_flat;
  if (is_bool || (replaces && !column->replace_nulls)) {
    column->copy = copy_elements(reading, nulls);
    view.data = static_cast<const uint8_t*>(column->copy->data);
    view.device = Device{};
  }
  if (!view.is_contiguous()) {  // a permutation: columns go by the logical order
    uint8_t* target;
    column->reordered = Buffer::allocate(view.nbytes(), &target);
    copy_contiguous(view, target);
    view.data = target;
  }
  column->data = view.data;
}

MatrixColumn read_column(DeviceArray field, const Nulls& nulls, KernelWork* work,
                         TensorView* view) {
  MatrixColumn column;
  column.field = std::move(field);
  const ArrayAsTensor reading = view_as_tensor(column.field);
  if (nulls == Nulls::kRaise && has_nulls(reading)) {
    raise_nulls_error("nulls=\"fill\", \"nan\" or \"mask\", or drop them first",
                      "it has nulls, and a matrix has no place for them");
  }
  *view = reading.view;
  for (int32_t d = 1; d < view->ndim; ++d) {
    if (!checked_multiply(column.width, view->shape[d], &column.width)) {
      raise_buffer_error("its columns are more than int64 can count");
    }
  }
  if (view->size() == 0) return column;
  if (work == nullptr) {
    bind(reading, nulls, &column);
  } else {
    column.copy = read_elements(*work, column.field, nulls);
  }
  return column;
}

/// All fields of `array`, and in `*matrix` the shape that they make together. `nulls` has an entry
/// for each field.
std::vector<MatrixColumn> read_columns(const DeviceArray& array, const std::vector<Nulls>& nulls,
                                       Matrix* matrix) {
  std::vector<MatrixColumn> columns;
  const auto n_fields = static_cast<int64_t>(array.type().children.size());
  columns.reserve(static_cast<std::size_t>(n_fields));
  int64_t first_time = -1;
  for (int64_t i = 0; i < n_fields; ++i) {
    TensorView view;
    check_unit(array, i, &first_time);
    const Nulls policy = nulls[static_cast<std::size_t>(i)];
    try {
      columns.push_back(read_column(read_field(array, i), policy, matrix->work, &view));
      MatrixColumn& column = columns.back();
      if (column.replace_nulls) column.substitute = make_fill_value(*view.dtype, policy);
    } catch (const Error& error) {
      const Type& field = array.type().children[static_cast<std::size_t>(i)];
      throw name_field(error, field.name(), name_field(array, i));
    }
    if (matrix->dtype == nullptr) matrix->dtype = view.dtype;
    if (view.dtype != matrix->dtype) {
      raise_buffer_error("the fields of one matrix have one dtype: ", name_field(array, i), " is ",
                         view.dtype->name, ", ", name_field(array, 0), " is ", matrix->dtype->name,
                         "; cast them with dtype=, as in dtype=\"float32\", or take a dict of "
                         "tensors (stack=False)");
    }
    columns.back().first = matrix->columns;
    int64_t bytes = 0;
    if (!checked_add(matrix->columns, columns.back().width, &matrix->columns) ||
        !checked_multiply(matrix->columns, matrix->dtype->itemsize(), &bytes) ||
        !checked_multiply(bytes, std::max<int64_t>(matrix->rows, 1), &bytes)) {
      raise_buffer_error("a matrix of ", matrix->rows, " rows and ", n_fields,
                         " fields has more bytes than int64 can count");
    }
  }
  return columns;
}

/// Rows of one element each, kColumns fields side by side: one store for several loads.
template <std::size_t kItemsize, std::size_t kColumns>
void interleave(const MatrixColumn* columns, int64_t begin, int64_t end, int64_t row_bytes,
                uint8_t* target) {
  const uint8_t* from[kColumns];
  for (std::size_t c = 0; c < kColumns; ++c) from[c] = columns[c].data;
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

/// Copies rows [begin, end) of columns of any width.
void copy_column(const MatrixColumn& column, int64_t itemsize, int64_t begin, int64_t end,
                 int64_t row_bytes, uint8_t* target) {
  const int64_t bytes = column.width * itemsize;
  if (bytes == 0) return;
  for (int64_t row = begin; row < end; ++row) {
    std::memcpy(target, column.data + row * bytes, static_cast<std::size_t>(bytes));
    target += row_bytes;
  }
}

/// How many of the `left` fields from `column` on are one element wide, up to four.
std::size_t count_narrow(const MatrixColumn* column, std::size_t left) {
  std::size_t n = 0;
  while (n < std::min<std::size_t>(left, 4) && column[n].width == 1) ++n;
  return n;
}

/// Writes the substitute wherever a row of [begin, end) is null.
template <std::size_t kItemsize>
void replace_nulls(const MatrixColumn& column, int64_t begin, int64_t end, int64_t row_bytes,
                   uint8_t* target) {
  const DeviceArray& field = column.field;
  for_each_unset_bit(field.validity(), field.offset() + begin, end - begin, [&](int64_t row) {
    std::memcpy(target + row * row_bytes, column.substitute.data(), kItemsize);
  });
}

/// All columns of rows [begin, end).
template <std::size_t kItemsize>
void fill_rows(const std::vector<MatrixColumn>& columns, const Matrix& matrix, int64_t begin,
               int64_t end, uint8_t* rows) {
  const int64_t row_bytes = matrix.row_bytes();
  const auto first = [&](const MatrixColumn& column) {
    return rows + column.first * static_cast<int64_t>(kItemsize);
  };
  for (std::size_t i = 0; i < columns.size();) {
    const MatrixColumn* column = columns.data() + i;
    switch (count_narrow(column, columns.size() - i)) {
      case 0:
        copy_column(*column, kItemsize, begin, end, row_bytes, first(*column));
        i += 1;
        break;
      case 1:
        interleave<kItemsize, 1>(column, begin, end, row_bytes, first(*column));
        i += 1;
        break;
      case 4:
        interleave<kItemsize, 4>(column, begin, end, row_bytes, first(*column));
        i += 4;
        break;
      default:
        interleave<kItemsize, 2>(column, begin, end, row_bytes, first(*column));
        i += 2;
    }
  }
  for (const MatrixColumn& column : columns) {
    if (!column.replace_nulls) continue;
    replace_nulls<kItemsize>(column, begin, end, row_bytes, first(column));
  }
}

/// Block by block, so that the rows stay in the first-level cache until every field is copied.
template <std::size_t kItemsize>
void fill_matrix(const std::vector<MatrixColumn>& columns, const Matrix& matrix, uint8_t* target) {
  constexpr int64_t kBlockBytes = 16 * 1024;
  constexpr int64_t kLineItems = 64 / static_cast<int64_t>(kItemsize);  // no line read twice
  const int64_t block = std::max(kBlockBytes / matrix.row_bytes(), kLineItems);
  for (int64_t begin = 0; begin < matrix.rows; begin += block) {
    const int64_t end = std::min(begin + block, matrix.rows);
    fill_rows<kItemsize>(columns, matrix, begin, end, target + begin * matrix.row_bytes());
  }
}

void fill(const std::vector<MatrixColumn>& columns, const Matrix& matrix, uint8_t* target) {
  visit_width(matrix.dtype->itemsize(),
              [&](auto width) { fill_matrix<width()>(columns, matrix, target); });
}

OwnedTensor stack_on_device(std::vector<MatrixColumn> columns, const Matrix& matrix,
                            const TensorView& view, const Order& order) {
  KernelWork& work = *matrix.work;
  const std::shared_ptr<DeviceMemory> memory = work.allocate(view.nbytes());
  ColumnGathers gathers(work);
  for (MatrixColumn& column : columns) {
    if (!column.copy) continue;  // no elements
    const TensorView elements = view_tensor(column.copy);
    work.use(std::make_shared<OwnedTensor>(std::move(column.copy)), EventHandle());
    uint8_t* const target = memory->address() + column.first * matrix.dtype->itemsize();
    if (elements.is_contiguous()) {
      gathers.add_spaced(elements.data, matrix.rows, elements.nbytes() / matrix.rows, target,
                         matrix.row_bytes());
    } else {
      copy_rows_on_device(work, elements, target, matrix.row_bytes());
    }
  }
  gathers.run();
  return make_device_tensor(work, view, memory, order);
}

}  // namespace

OwnedTensor stack_fields(const DeviceArray& array, const Nulls& nulls, const Order& order) {
  return stack_fields(array, std::vector<Nulls>(array.type().children.size(), nulls), order);
}

OwnedTensor stack_fields(const DeviceArray& array, const std::vector<Nulls>& nulls,
                         const Order& order) {
  if (array.type().layout != Layout::kStruct) {
    raise_buffer_error("only the fields of a struct or record batch can be stacked, this is ",
                       to_string(array.type()));
  }
  std::optional<KernelWork> work;
  Matrix matrix;
  if (is_read_by_kernels(array.device(), "stack fields")) {
    matrix.work = &work.emplace(array.device(), "stack fields");
  } else {
    array.synchronize();
  }
  matrix.rows = array.length();
  std::vector<MatrixColumn> columns = read_columns(array, nulls, &matrix);
  if (columns.empty()) {
    raise_buffer_error("a struct without fields has no column to stack, and so no dtype");
  }
  TensorView view;
  view.dtype = matrix.dtype;
  view.push_dim(matrix.rows);
  view.push_dim(matrix.columns);
  view.set_contiguous_strides();
  if (work) return stack_on_device(std::move(columns), matrix, view, order);
  return make_host_tensor(view, [&](uint8_t* target) { fill(columns, matrix, target); });
}

ARROWDL_END_NAMESPACE
