// Converts the columns of a struct to one matrix.
#include "array/host_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/to_arrow.hpp"
#include "compute/plain_rows.hpp"
#include "export/converter.hpp"
#include "util/explained_error.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// `array` as CPU memory, if the host can read it.
DeviceArray as_cpu(const DeviceArray& array) {
  if (array.device().type == kDLCPU || !is_host_readable(array.device())) return array;
  array.synchronize();
  return DeviceArray::import(array.export_schema(), share_array(array));
}

/// The masks of the fields, as the columns of a matrix.
OwnedTensor stack_masks(const DeviceArray& array, const Order& order) {
  std::vector<std::string> names;
  std::vector<DeviceArray> masks;
  const Device device = array.device();
  std::shared_ptr<BorrowedStream> stream;  // on which a device makes them; no host waits
  if (!is_host_readable(device) && find_kernels(device) != nullptr) {
    stream = std::make_shared<BorrowedStream>(require_memory(device, "make a mask"), device);
  }
  const Order unpacked = stream ? Order{Order::kStream, stream->get(), stream} : Order{};
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    names.push_back(array.type().children[i].name());
    OwnedTensor mask = to_mask(read_field(array, static_cast<int64_t>(i)), unpacked);
    OwnedEvent made = stream ? OwnedEvent::record(device, stream->get()) : OwnedEvent();
    masks.push_back(to_arrow(std::move(mask), {}, std::move(made)));
  }
  return stack_fields(make_struct(names, masks), Nulls::kRaise, order);
}

/// The dtype of a matrix of fields; any dtype if the first field has no tensor, which is an error.
const Dtype* find_matrix_dtype(const DeviceArray& array) {
  const Type* first = &array.type().children.front();
  while (first->layout == Layout::kRunEndEncoded) first = &first->children[1];
  return why_not_tensor(*first).empty() ? describe_tensor(*first, 0).dtype : find_dtype("uint8");
}

}  // namespace

py::object Converter::stack(const DeviceArray& array) const {
  if (array.type().layout != Layout::kStruct) {
    raise_value_error("stack=True makes a matrix of the fields of a struct or a table, got ",
                      to_string(array.type()));
  }
  require_copy_allowed(array, "its fields have to be copied into one matrix");
  const ColumnForms* by_column = options.by_column;
  if (by_column != nullptr) by_column->check_names(list_names(array.type().children));
  const bool casts = options.dtype != nullptr || (by_column != nullptr && by_column->casts());
  if (is_read_as_copy(array.device()) && (casts || find_kernels(array.device()) == nullptr)) {
    return for_copy_of(array).stack(copy_array(array, Device{}));
  }
  const DeviceArray fields = casts ? cast_fields(array) : array;
  const std::vector<Nulls> policies = list_nulls(array);
  const auto stack = [fields, policies](const Order& order) {
    return stack_fields(fields, policies, order);
  };
  if (fields.type().children.empty()) stack(Order{});  // raises
  const bool is_here = is_host_readable(fields.device());
  const auto make_matrix = [&](const Dtype* dtype, const ReadTensor& read) {
    return is_here ? host().make(read(Order{})) : device().make(fields, *dtype, read);
  };
  py::object values = make_matrix(is_here ? nullptr : find_matrix_dtype(fields), stack);
  if (policies.empty() || policies[0] != Nulls::kKeep) return values;
  return py::make_tuple(std::move(values),
                        make_matrix(find_dtype("bool"), [fields](const Order& order) {
                          return stack_masks(fields, order);
                        }));
}

/// The columns of a matrix, each as its dtype. A matrix has one, so bools and codes are cast too.
DeviceArray Converter::cast_fields(const DeviceArray& array) const {
  std::vector<std::string> names;
  std::vector<DeviceArray> fields;
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    names.emplace_back(array.type().children[i].name());
    try {
      fields.push_back(cast_field(array, static_cast<int64_t>(i)));
    } catch (const Error& error) {
      throw name_field(error, names.back());
    }
  }
  return make_struct(names, fields);
}

DeviceArray Converter::cast_field(const DeviceArray& array, int64_t i) const {
  const DeviceArray field = read_field(array, i);
  if (field.type().extension == Extension::kRefused) {
    raise_buffer_error(why_not_tensor(field.type()));
  }
  Converter column(
      with_options(options.for_column(array.type().children[static_cast<std::size_t>(i)].name())));
  if (column.options.dtype == nullptr) return as_cpu(field);
  const bool is_unit = find_time_unit(column.options.dtype->name) != nullptr;
  if (!is_unit) column.options.cast_which = CastWhich::kAll;
  return as_cpu(column.cast(field));
}

/// The policies of the columns of a matrix.
std::vector<Nulls> Converter::list_nulls(const DeviceArray& array) const {
  std::vector<Nulls> policies;
  policies.reserve(array.type().children.size());
  std::size_t masks = 0;
  for (const Type& field : array.type().children) {
    policies.push_back(options.for_column(field.name()).nulls);
    masks += policies.back() == Nulls::kKeep ? 1 : 0;
  }
  if (masks != 0 && masks != policies.size()) {
    raise_value_error(
        "nulls=\"mask\" makes a mask of the whole matrix: give all of its columns this policy, or "
        "none");
  }
  return policies;
}

}  // namespace arrowdl::python
