// Converts structs and columns that are one tensor.
#include "export/converter.hpp"

#include "array/host_access.hpp"
#include "arrowdl/backend.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/to_arrow.hpp"
#include "compute/plain_rows.hpp"
#include "compute/read_field.hpp"
#include "export/exchange_api.hpp"
#include "support/field_names.hpp"
#include "support/objects.hpp"
#include "tensor/align_tensor.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

OwnedTensor allow_writes(OwnedTensor tensor) {
  DLManagedTensorVersioned* managed = tensor.take_versioned();
  managed->flags &= ~uint64_t{DLPACK_FLAG_BITMASK_READ_ONLY};
  return OwnedTensor(managed);
}

/// Whether rows are taken apart into values and offsets.
bool is_split(Layout layout) {
  switch (layout) {
    case Layout::kBinary:
    case Layout::kLargeBinary:
    case Layout::kBinaryView:
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
      return true;
    default:
      return false;
  }
}

/// Whether `cast_dtype` makes new values of an array of `type`.
bool is_changed(const Type& type, const Dtype& dtype) {
  if (type.layout == Layout::kFixedSizeList && type.extension != Extension::kDtype) {
    return is_changed(type.children[0], dtype);
  }
  return type.layout == Layout::kRunEndEncoded || type.dtype != &dtype;
}

/// Whether the rows of `type`, or its items, are runs.
bool has_runs(const Type& type) {
  return type.layout == Layout::kRunEndEncoded || has_inner_runs(type);
}

/// Whether a tensor is of bools, numbers of 8 to 64 bits or complex numbers on the CPU.
bool is_plain(const DLTensor& tensor) {
  const DLDataType dtype = tensor.dtype;
  const bool is_number = dtype.code == kDLInt || dtype.code == kDLUInt || dtype.code == kDLFloat ||
                         dtype.code == kDLBool;
  return tensor.device.device_type == kDLCPU && dtype.lanes == 1 && dtype.bits >= 8 &&
         ((is_number && dtype.bits <= 64) || dtype.code == kDLComplex);
}

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
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    names.push_back(array.type().children[i].name());
    masks.push_back(to_arrow(to_mask(read_field(array, static_cast<int64_t>(i)))));
  }
  return stack_fields(make_struct(names, masks), Nulls::kRaise, order);
}

/// The dtype of a matrix of fields; any dtype if the first field has no tensor, which is an error.
const Dtype* find_matrix_dtype(const DeviceArray& array) {
  const Type* first = &array.type().children.front();
  while (first->layout == Layout::kRunEndEncoded) first = &first->children[1];
  return why_not_tensor(*first).empty() ? describe_tensor(*first, 0).dtype : find_dtype("uint8");
}

/// Names the field in an error of a framework, which keeps its class. Refusals of
/// arrowdl._frameworks begin with it, as those of the core; other errors keep their text.
void name_field_in(py::error_already_set& error, const char* name) {
  const py::object args = error.value().attr("args");
  const bool is_ours = error.type().ptr() == PyExc_BufferError && PyTuple_Check(args.ptr()) != 0 &&
                       PyTuple_GET_SIZE(args.ptr()) == 1 &&
                       PyUnicode_Check(PyTuple_GET_ITEM(args.ptr(), 0)) != 0;
  if (!is_ours) {
    error.value().attr("add_note")(concat("in the field \"", name, "\""));
    return;
  }
  const auto text = py::cast<std::string>(PyTuple_GET_ITEM(args.ptr(), 0));
  error.value().attr("args") = py::make_tuple(concat("field \"", name, "\": ", text));
}

}  // namespace

py::object Converter::convert(const DeviceArray& given) const {
  if (has_inner_runs(given.type())) require_copy_allowed(given, "its runs have to be decoded");
  const DeviceArray array = plain_rows(given);
  const Type& type = array.type();
  const bool is_dictionary = type.dictionary != nullptr;
  if (type.extension == Extension::kRefused) raise_buffer_error(why_not_tensor(type));
  if (!is_dictionary && type.layout == Layout::kStruct &&
      type.extension != Extension::kVariableShapeTensor) {
    return convert_struct(array);
  }
  if (options_.by_column != nullptr) {
    raise_value_error("options by column are for the fields of a struct or a table, this is ",
                      to_string(type));
  }
  if (!parents_.empty() && type.layout == Layout::kRunEndEncoded) {  // has no bitmap for nulls
    require_copy_allowed(array, "its runs have to be decoded");
    return with_access_to_new().convert(decode_run_ends(array));
  }
  const bool on_host = needs_host(array);
  if (!on_host) {
    if (options_.dtype != nullptr && casts(type)) return after_cast().convert(cast(array));
    if (!parents_.empty() && (is_dictionary || why_not_tensor(type).empty())) {
      return convert_on_device(array);
    }
    if (parents_.empty()) return convert_column(array);
  }
  DeviceArray column = array;
  for (const DeviceArray& parent : parents_) column = column.with_nulls_of(parent);
  if (!on_host) return convert_column(column);
  return for_copy_of(column).convert(copy_array(column, Device{}));
}

/// Whether the tensors of `array` are made of a copy on the host, since neither kernels nor single
/// operations of the framework make them where it is.
bool Converter::needs_host(const DeviceArray& array) const {
  if (!is_read_as_copy(array.device())) return false;
  const Type& type = array.type();
  const Type* values = &type;  // that are cast
  while (is_split(values->layout) && !values->children.empty()) values = &values->children[0];
  if (options_.dtype != nullptr && casts(*values)) return true;
  if (type.dictionary != nullptr) return false;
  if (type.layout == Layout::kStruct) return true;  // of variable shape
  if (find_kernels(array.device()) != nullptr) return false;
  if (is_split(type.layout) || type.layout == Layout::kRunEndEncoded) return true;
  return options_.nulls != NullPolicy::kRaise && why_not_tensor(type).empty() &&
         describe_tensor(type, 0).dtype->values != 1;
}

/// A converter of a copy of `array` on the host, which copies each tensor to the device of `array`.
Converter Converter::for_copy_of(const DeviceArray& array) const {
  require_copy_allowed(array, "the CPU makes it of a copy on the host");
  Converter converter(framework_, options_);
  converter.options_.device = array.device();
  return converter;
}

py::object Converter::stack(const DeviceArray& array) const {
  if (array.type().layout != Layout::kStruct) {
    raise_value_error("stack=True makes a matrix of the fields of a struct or a table, got ",
                      to_string(array.type()));
  }
  require_copy_allowed(array, "its fields have to be copied into one matrix");
  const ColumnForms* by_column = options_.by_column;
  if (by_column != nullptr) by_column->check_names(list_names(array.type().children));
  const bool casts = options_.dtype != nullptr || (by_column != nullptr && by_column->casts());
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
    return is_here ? make(read(Order{})) : make_on_device(fields, *dtype, read);
  };
  py::object values = make_matrix(is_here ? nullptr : find_matrix_dtype(fields), stack);
  if (policies.empty() || policies[0] != Nulls::kKeep) return values;
  return py::make_tuple(std::move(values),
                        make_matrix(find_dtype("bool"), [fields](const Order& order) {
                          return stack_masks(fields, order);
                        }));
}

py::object Converter::convert(const DeviceArray& array, TensorView view) const {
  const bool is_on_host = is_host_readable(array.device());
  view.device = is_on_host ? Device{} : array.device();
  return is_on_host ? make(make_tensor(view, array.storage(), 0)) : share_view(array, view);
}

/// Converts an array that is not a struct of columns.
py::object Converter::convert_column(const DeviceArray& array) const {
  const Type& type = array.type();
  if (type.dictionary == nullptr) {
    if (type.layout == Layout::kStruct) return convert_variable(array);
    if (is_split(type.layout)) return convert_list(array);
    if (type.layout == Layout::kRunEndEncoded) {
      require_copy_allowed(array, "its runs have to be decoded");
      return with_access_to_new().convert(decode_run_ends(array));
    }
  }
  if (!is_host_readable(array.device())) return convert_on_device(array);
  return with_mask(make(export_values(array)), [&] { return to_mask(array); });
}

py::object Converter::convert_struct(const DeviceArray& array) const {
  py::dict fields;
  const std::vector<Type>& children = array.type().children;
  const ColumnForms* by_column = options_.by_column;
  if (by_column != nullptr) by_column->check_names(list_names(children));
  for (std::size_t i = 0; i < children.size(); ++i) {
    const char* name = children[i].name();
    const py::object key = intern_field_name(name);
    const auto index = static_cast<int64_t>(i);
    const py::object value =
        by_column == nullptr
            ? convert_field_of(array, index, name)
            : with_options(options_.for_column(name)).convert_field_of(array, index, name);
    if (PyDict_SetItem(fields.ptr(), key.ptr(), value.ptr()) != 0) throw py::error_already_set();
    if (fields.size() != i + 1) {
      raise_value_error("several fields are named \"", name,
                        "\", and a dict holds only one: rename or select columns first");
    }
  }
  return std::move(fields);
}

/// `convert()`; errors name the field.
template <typename Convert>
py::object Converter::naming_field(const char* name, const Convert& convert) {
  try {
    return convert();
  } catch (const UnfitValue& error) {
    throw error.in_field(name);
  } catch (const Error& error) {
    throw Error(error.kind(), concat("field \"", name, "\": ", error.what()));
  } catch (py::error_already_set& error) {
    name_field_in(error, name);
    throw;
  }
}

/// `convert(array)`; errors name the field.
py::object Converter::convert_field(const DeviceArray& array, const char* name) const {
  return naming_field(name, [&] { return convert(array); });
}

/// The tensor of field `i` of a struct if it shares the memory as it is; an empty object otherwise.
py::object Converter::convert_plain_field(const DeviceArray& array, int64_t i) const {
  const bool may_share = options_.access == Access::kShared || options_.access == Access::kOwn;
  if (!may_share || framework_.api == nullptr || options_.dtype != nullptr || options_.device ||
      is_masked() || !parents_.empty()) {
    return {};
  }
  OwnedTensor tensor = share_plain_field(array, i);
  if (!tensor) return {};
  if (options_.access == Access::kOwn) tensor = allow_writes(std::move(tensor));
  return to_object(*framework_.api, std::move(tensor));
}

/// Converts field `i` of a struct.
py::object Converter::convert_field_of(const DeviceArray& array, int64_t i,
                                       const char* name) const {
  if (py::object made = naming_field(name, [&] { return convert_plain_field(array, i); })) {
    return made;
  }
  const Device device = array.device();
  const bool has_nulls = !parents_.empty() || array.known_null_count() != 0;
  if (has_nulls && !is_host_readable(device) && find_kernels(device) == nullptr) {
    return with_parent(array).convert_field(array.child(i), name);
  }
  if (has_runs(array.type().children[static_cast<std::size_t>(i)])) {
    naming_field(name, [&] {
      require_copy_allowed(array.child(i), "its runs have to be decoded");
      return py::object();
    });
  }
  return convert_field(read_field(array, i), name);
}

/// A converter of the fields of `array`, for devices where only the framework can apply the nulls
/// of a struct to its fields.
Converter Converter::with_parent(const DeviceArray& array) const {
  Converter converter(framework_, options_);
  converter.parents_ = parents_;
  converter.parents_.push_back(array);
  return converter;
}

/// A converter of an array in new memory.
Converter Converter::with_access_to_new() const {
  Converter converter(*this);
  if (options_.access == Access::kCopied) converter.options_.access = Access::kOwn;
  converter.options_.is_new = true;
  return converter;
}

Converter Converter::with_options(const ConvertOptions& options) const {
  Converter converter(framework_, options);
  converter.parents_ = parents_;
  return converter;
}

/// Whether `type` is of values that are cast, or refused; lists and structs cast their parts.
bool Converter::casts(const Type& type) const {
  const bool has_parts = is_split(type.layout) || type.layout == Layout::kStruct;
  if (type.dictionary == nullptr && has_parts) return false;
  return options_.cast_which == CastWhich::kAll || has_numbers(type, options_.cast_which);
}

/// The values of `array` as the dtype that is asked for.
DeviceArray Converter::cast(const DeviceArray& array) const {
  if (is_changed(array.type(), *options_.dtype)) {
    require_copy_allowed(array, "its numbers have to be cast");
  }
  std::optional<py::gil_scoped_release> release;
  if (array.nbytes() >= kLargeSize) release.emplace();
  return cast_dtype(array, *options_.dtype, options_.cast_which);
}

/// For what `cast` returns.
Converter Converter::after_cast() const {
  Converter converter(*this);
  converter.options_.dtype = nullptr;
  return converter;
}

/// The columns of a matrix, each as its dtype. A matrix has one, so bools and codes are cast too.
DeviceArray Converter::cast_fields(const DeviceArray& array) const {
  std::vector<std::string> names;
  std::vector<DeviceArray> fields;
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    names.emplace_back(array.type().children[i].name());
    Converter column = with_options(options_.for_column(names.back()));
    column.options_.cast_which = CastWhich::kAll;
    DeviceArray field = read_field(array, static_cast<int64_t>(i));
    try {
      if (field.type().extension == Extension::kRefused) {
        raise_buffer_error(why_not_tensor(field.type()));
      }
      fields.push_back(as_cpu(column.options_.dtype == nullptr ? field : column.cast(field)));
    } catch (const UnfitValue& error) {
      throw error.in_field(names.back());
    } catch (const Error& error) {
      throw Error(error.kind(), concat("field \"", names.back(), "\": ", error.what()));
    }
  }
  return make_struct(names, fields);
}

/// The policies of the columns of a matrix.
std::vector<Nulls> Converter::list_nulls(const DeviceArray& array) const {
  std::vector<Nulls> policies;
  std::size_t masks = 0;
  for (const Type& field : array.type().children) {
    policies.push_back(to_nulls(options_.for_column(field.name()).nulls));
    masks += policies.back() == Nulls::kKeep ? 1 : 0;
  }
  if (masks != 0 && masks != policies.size()) {
    raise_value_error(
        "nulls=\"mask\" makes a mask of the whole matrix: give all of its columns this policy, or "
        "none");
  }
  return policies;
}

/// Whether the tensors are copied from `from` to another device.
bool Converter::moves(const Device& from) const {
  return options_.device && *options_.device != (is_host_readable(from) ? Device{} : from);
}

void Converter::require_copy_allowed(const DeviceArray& array, const char* reason) const {
  if (options_.access != Access::kInPlace) return;
  raise_buffer_error("an array of ", to_string(array.type()),
                     " cannot become a tensor without a copy, since ", reason,
                     ": allow it with copy=None or copy=True");
}

Copy Converter::choose_copy(const DeviceArray& array) const {
  switch (options_.access) {
    case Access::kInPlace:
      return Copy::kNever;
    case Access::kCopied:
      return moves(array.device()) ? Copy::kIfNeeded : Copy::kAlways;
    case Access::kOwn:
      // pyarrow's arrays of nothing but nulls share one buffer for all fields, bitmaps included.
      return is_masked() && array.known_null_count() != 0 ? Copy::kAlways : Copy::kIfNeeded;
    case Access::kShared:
      break;
  }
  return Copy::kIfNeeded;
}

/// Exports host-readable memory as CPU memory: torch and jax take no other.
OwnedTensor Converter::export_values(const DeviceArray& array) const {
  ToDlpackOptions options;
  options.nulls = value_nulls();
  options.as_cpu = array.device().type != kDLCPU;
  options.copy = choose_copy(array);
  return export_elements(array, options);
}

OwnedTensor Converter::export_elements(const DeviceArray& array,
                                       const ToDlpackOptions& options) const {
  OwnedTensor tensor = to_dlpack(array, options);
  return options_.access == Access::kOwn ? allow_writes(std::move(tensor)) : std::move(tensor);
}

py::object Converter::make(OwnedTensor tensor) const {
  return make_by(framework_.from_dlpack, std::move(tensor));
}

py::object Converter::make_offsets(OwnedTensor tensor) const {
  return make_by(framework_.from_offsets, std::move(tensor));
}

py::object Converter::make_by(PyObject* from_dlpack, OwnedTensor tensor) const {
  const bool is_moved = moves(from_dl_device(tensor->device));
  if (is_moved && options_.access == Access::kInPlace) {
    raise_buffer_error("copy=False: the array is on another device than ",
                       to_string(*options_.device), ": allow a copy with copy=None or copy=True");
  }
  if (framework_.api != nullptr) {
    if (is_moved) tensor = copy_by(*framework_.api, std::move(tensor), *options_.device);
    return to_object(*framework_.api, std::move(tensor));
  }
  if (from_dlpack == framework_.from_dlpack && framework_.from_plain != Py_None &&
      is_plain(*tensor)) {
    from_dlpack = framework_.from_plain;
  }
  if (framework_.alignment > 1) tensor = align_large(std::move(tensor));
  const bool in_place = options_.access == Access::kInPlace;
  const py::object box = py::cast(Tensor(std::move(tensor), in_place));
  py::object made = checked(PyObject_CallOneArg(from_dlpack, box.ptr()));
  if (!is_moved) return made;
  return call_framework(framework_.put, made, py::str(device_type_name(options_.device->type)),
                        py::int_(options_.device->id));
}

/// Aligns large tensors. The framework would copy an unaligned tensor itself, several times slower;
/// small ones as fast.
OwnedTensor Converter::align_large(OwnedTensor tensor) const {
  if (view_tensor(tensor).nbytes() < kLargeSize) return tensor;
  const py::gil_scoped_release release;
  return align_tensor(std::move(tensor), framework_.alignment);
}

}  // namespace arrowdl::python
