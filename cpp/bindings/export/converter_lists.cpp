// Converts lists, strings and tensors of variable shape.
#include <algorithm>

#include "array/host_access.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/list_tensors.hpp"
#include "compute/make_lists.hpp"
#include "convert/array_as_tensor.hpp"
#include "export/converter.hpp"
#include "support/objects.hpp"
#include "util/explained_error.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

bool changes_order(const std::vector<int64_t>& permutation) {
  return !std::is_sorted(permutation.begin(), permutation.end());
}

bool is_binary(const Type& type) {
  return type.layout == Layout::kBinary || type.layout == Layout::kLargeBinary ||
         type.layout == Layout::kBinaryView;
}

/// The values of run ends, or `type` itself.
const Type& plain(const Type& type) {
  return type.layout == Layout::kRunEndEncoded ? type.children[1] : type;
}

/// Raises unless offsets and lengths, which count Arrow's elements, count the tensor's too.
void require_unpacked(const Type& values) {
  const Type& type = plain(values);
  if (type.layout == Layout::kStruct) {
    for (const Type& field : type.children) require_unpacked(field);
  }
  if (!why_not_tensor(type).empty()) return;
  const TensorView view = describe_tensor(type, 0);
  if (view.dtype->values == 1 || view.ndim > 1) return;
  raise_buffer_error("the offsets of lists of ", to_string(type), " count bytes of ",
                     int{view.dtype->values},
                     " values: use rows of one size, or lists of uint8 for the bytes");
}

/// The row that has value `value` of lists.
int64_t find_list_row(const DeviceArray& offsets, int64_t value) {
  return visit_list_offsets(offsets, [&](auto zero) {
    using Offset = decltype(zero);
    const auto* first = offsets.buffer_as<Offset>(1) + offsets.offset();
    const auto* end = first + offsets.length();
    return static_cast<int64_t>(std::upper_bound(first, end, static_cast<Offset>(value)) - first) -
           1;
  });
}

/// Whether `split_list` made new memory for the values of `lists`.
bool is_gathered(const DeviceArray& values, const DeviceArray& lists) {
  switch (lists.type().layout) {
    case Layout::kBinary:
    case Layout::kLargeBinary:
      return values.buffer(1) != lists.buffer(2);
    case Layout::kBinaryView:
      return true;
    default:
      return values.storage() != lists.storage();
  }
}

}  // namespace

/// The values and offsets of `array`. A null row has no values. Raises if the null policy allows no
/// null rows.
ListParts Converter::split(const DeviceArray& array) const {
  if (options.nulls == Nulls::kRaise && array.has_nulls()) {
    raise_nulls_error(
        "nulls=\"fill\" to make them empty, nulls=\"mask\" to get a mask too, or drop them first",
        "the array of ", to_string(array.type()), " has null rows");
  }
  if (options.nulls == Nulls::kNan && array.has_nulls()) {
    raise_nulls_error("nulls=\"fill\" to make them empty, or nulls=\"mask\" to get a mask",
                      "nulls=\"nan\" has no meaning for the null rows of ",
                      to_string(array.type()));
  }
  if (options.nulls.kind == Nulls::kValue && is_binary(array.type()) && array.has_nulls()) {
    raise_nulls_error("nulls=\"fill\" to make them empty, or nulls=\"mask\" to get a mask",
                      "nulls= has a number, and rows of ", to_string(array.type()), " are null");
  }
  return split_list(array, true);
}

py::object Converter::convert_list(const DeviceArray& array) const {
  const ListParts parts = split(array);
  try {
    py::object rows = convert_parts(parts, array);
    return with_row_mask(std::move(rows), array);
  } catch (const ExplainedError& error) {
    if (error.row() < 0) throw;
    throw error.at_row(find_list_row(parts.offsets, error.row()));
  }
}

/// The values are cast before they are padded or wrapped.
py::object Converter::convert_parts(const ListParts& parts, const DeviceArray& array) const {
  const bool is_text = is_binary(array.type());
  if (options.dtype != nullptr && is_text && options.cast_which == CastWhich::kAll) {
    raise_value_error("dtype= is for numbers, not for the bytes of ", to_string(array.type()),
                      ": leave the column out of dtype=");
  }
  if (options.dtype == nullptr || !(is_text || casts(parts.values.type()))) {
    return options.ragged == Ragged::kPadded ? pad(parts) : jag(parts, array);
  }
  const Converter after = after_cast();
  const ListParts made{is_text ? parts.values : cast(parts.values), parts.offsets, parts.longest};
  return options.ragged == Ragged::kPadded ? after.pad(made) : after.jag(made, array);
}

py::object Converter::pad(const ListParts& parts) const {
  const Type& element = parts.values.type();
  if (element.layout != Layout::kRunEndEncoded && !why_not_tensor(element).empty()) {
    raise_buffer_error("ragged=\"padded\" pads rows of elements that are tensors themselves, not ",
                       to_string(element), ": use ragged=\"offsets\"");
  }
  require_whole(parts.values);
  require_unpacked(parts.values.type());
  require_copy_allowed(parts.values, "its rows have to be padded");
  const Nulls element_nulls = is_masked() ? Nulls::kRaise : options.nulls;
  const Dtype& dtype = *describe_tensor(plain(element), 0).dtype;
  const Padding padding = options.read_padding(dtype);
  const auto read = [parts, element_nulls, padding](const Order& order) {
    return pad_list(parts, element_nulls, padding, order);
  };
  const auto measure = [parts, most = padding.max_length](const Order& order) {
    return list_lengths(parts, most, order);
  };
  if (is_host_readable(parts.values.device())) {
    return py::make_tuple(host().make(read(Order{})), host().make_offsets(measure(Order{})));
  }
  return py::make_tuple(device().make(parts.values, dtype, read),
                        device().make_offsets(parts.offsets, *find_dtype("int64"), measure));
}

py::object Converter::jag(const ListParts& parts, const DeviceArray& lists) const {
  const py::object values = convert_elements(parts.values, lists);
  const py::object offsets = convert_offsets(parts.offsets);
  if (options.ragged == Ragged::kOffsets) return py::make_tuple(values, offsets);
  return checked(
      PyObject_CallFunctionObjArgs(framework.make_jagged, values.ptr(), offsets.ptr(), nullptr));
}

/// Converts tensors of variable shape. A row is null if the struct, its data or its shape is.
py::object Converter::convert_variable(const DeviceArray& array) const {
  if (options.ragged == Ragged::kPadded) {
    raise_buffer_error(
        "ragged=\"padded\" pads lists, and the rows of ", to_string(array.type()),
        " differ in several dimensions: use ragged=\"jagged\" or ragged=\"offsets\"");
  }
  require_host_readable(array, "check shapes");
  const DeviceArray shape_field = array.field(1);
  const DeviceArray rows = array.field(0).with_nulls_of(shape_field);
  const ListParts parts = split(rows);
  ToDlpackOptions filled;
  filled.nulls = Nulls::kFill;
  OwnedTensor shapes = host().export_elements(shape_field.with_nulls_of(rows), filled);
  check_variable_shapes(parts, shapes, *array.type().tensor);
  const std::vector<int64_t>& order = array.type().tensor->permutation;
  if (options.ragged == Ragged::kOffsets && changes_order(order)) {
    raise_buffer_error("a permuted ", to_string(array.type()),
                       " cannot become (values, offsets, shapes), which have no permutation: use "
                       "to_torch(ragged=\"jagged\"), or convert its fields \"data\" and \"shape\"");
  }
  const py::list permutation = changes_order(order) ? to_list(order) : py::list();
  py::object values;
  try {
    values = convert_elements(parts.values, rows);
  } catch (const ExplainedError& error) {
    if (error.row() < 0) throw;
    throw error.at_row(find_list_row(parts.offsets, error.row()));
  }
  const py::object offsets = convert_offsets(parts.offsets);
  const py::object shape_object = host().make(std::move(shapes));
  py::object tensors = options.ragged == Ragged::kOffsets
                           ? py::make_tuple(values, offsets, shape_object)
                           : checked(PyObject_CallFunctionObjArgs(
                                 framework.make_variable, values.ptr(), offsets.ptr(),
                                 shape_object.ptr(), permutation.ptr(), nullptr));
  return with_row_mask(std::move(tensors), rows);
}

/// Converts the elements of ragged rows. With nulls="mask" the mask is of the rows, so no element
/// may be null.
py::object Converter::convert_elements(const DeviceArray& values, const DeviceArray& lists) const {
  require_whole(values);
  require_unpacked(values.type());
  const bool is_new = is_gathered(values, lists);
  if (is_new) require_copy_allowed(lists, "the values of its rows have to be gathered");
  Conversion conversion = is_new ? for_new() : static_cast<const Conversion&>(*this);
  if (is_masked()) conversion.options.nulls = Nulls::kRaise;
  conversion.parents.clear();
  return Converter(std::move(conversion)).convert_field(values, "(list elements)");
}

void Converter::require_whole(const DeviceArray& elements) const {
  if (!is_masked() || !elements.has_nulls()) return;
  raise_nulls_error(
      "nulls=\"fill\" or \"nan\", or drop them first",
      "the elements of the lists have nulls, and the mask of a list array is of its rows");
}

py::object Converter::convert_offsets(const DeviceArray& offsets) const {
  const bool is_here = is_host_readable(offsets.device());
  const bool moves_rows = !is_here && device().must_move(offsets, view_as_tensor(offsets).view);
  ToDlpackOptions exported;
  exported.as_cpu = is_here && offsets.device().type != kDLCPU;
  // Batches share offsets: the last one of a batch is the first one of the next. A caller that may
  // write to its tensors gets a copy.
  const bool is_shared = options.access == Access::kShared || options.access == Access::kInPlace;
  if (!is_shared || moves_rows) exported.copy = Copy::kAlways;
  const auto read = [offsets, exported](const Order& order) {
    ToDlpackOptions ordered = exported;
    ordered.order = order;
    return to_dlpack(offsets, ordered);
  };
  if (is_here) return host().make_offsets(read(Order{}));
  return device().make_offsets(offsets, *offsets.type().dtype, read);
}

/// `values`, or with nulls="mask" a pair of `values` and the mask of the rows of `array`.
py::object Converter::with_row_mask(py::object values, const DeviceArray& array) const {
  if (!is_masked()) return values;
  const auto read = [array](const Order& order) { return to_row_mask(array, order); };
  py::object mask = is_host_readable(array.device())
                        ? host().make(read(Order{}))
                        : device().make(array, *find_dtype("bool"), read);
  return py::make_tuple(std::move(values), std::move(mask));
}

}  // namespace arrowdl::python
