// to_torch(obj), to_jax(obj), to_numpy(obj): an Arrow array as tensors of a framework.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "arrowdl/copy.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_arrow.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "classes/device.hpp"
#include "compute/decoded_field.hpp"
#include "convert/split_tensor.hpp"
#include "functions/functions.hpp"
#include "functions/tensor_block.hpp"
#include "import/arrow.hpp"
#include "import/pyarrow.hpp"
#include "import/tensor.hpp"
#include "support/arguments.hpp"
#include "support/capsule.hpp"
#include "support/device_streams.hpp"
#include "support/errors.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"
#include "support/values.hpp"
#include "tensor/align_tensor.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// Reads a tensor from an array on a device, for a consumer that is ordered as it is told.
using ReadTensor = std::function<OwnedTensor(const Order&)>;

/// A tensor on its way to a consumer that asks by the Python protocol: good for one `__dlpack__`.
/// One of a device is read only then, when the consumer's stream is known.
class Tensor {
 public:
  Tensor() = default;  ///< holds nothing yet
  explicit Tensor(OwnedTensor tensor)
      : device_(from_dl_device(tensor->device)),
        dtype_(find_dtype(tensor->dtype)),
        tensor_(std::move(tensor)) {}
  Tensor(const Device& device, const Dtype& dtype, ReadTensor read)
      : device_(device), dtype_(&dtype), read_(std::move(read)) {}

  py::object dlpack(const py::object& stream, const py::object& max_version, const py::object&,
                    const py::object&) {
    if (read_) {
      tensor_ = read_(read_order(device_, stream.ptr()));
      read_ = nullptr;
    }
    if (!tensor_) raise_value_error("this tensor has been consumed already");
    if (max_version.is_none()) return make_capsule(to_legacy(std::move(tensor_)));
    return make_capsule(std::move(tensor_));
  }

  py::tuple dlpack_device() const {
    const DLDevice device = to_dl_device(device_);
    return py::make_tuple(static_cast<int>(device.device_type), device.device_id);
  }

  const char* dtype() const { return dtype_->name; }

 private:
  Device device_;
  const Dtype* dtype_ = nullptr;
  ReadTensor read_;
  OwnedTensor tensor_;
};

}  // namespace
}  // namespace arrowdl::python

ARROWDL_CAST_BY_VALUE(arrowdl::python::Tensor)

namespace arrowdl::python {
namespace {

bool changes_order(const std::vector<int64_t>& permutation) {
  return !std::is_sorted(permutation.begin(), permutation.end());
}

/// How tensors of one framework are made: by its exchange API where it has one, else by its
/// `from_dlpack`. Kept for the life of the process.
struct Framework {
  const DLPackExchangeAPI* api = nullptr;
  PyObject* from_dlpack = nullptr;
  PyObject* from_positions = nullptr;  ///< the same for offsets and lengths, whose dtype is free
  PyObject* make_jagged = nullptr;     ///< (values, offsets) -> object
  PyObject* make_variable = nullptr;   ///< (values, offsets, shapes, permutation) -> object
  PyObject* unpack_bits_on_device = nullptr;  ///< (bytes, offset, length, repeat) -> bool tensor
  PyObject* fill = nullptr;                   ///< (values, valid, item) -> tensor
  PyObject* all_valid = nullptr;              ///< (values) -> bool tensor
  PyObject* copy = nullptr;                   ///< (tensor) -> tensor in new memory
  PyObject* arrange = nullptr;                ///< (values, shape, axes) -> tensor
  PyObject* put = nullptr;    ///< (tensor, device name, id) -> tensor; without an API
  std::size_t alignment = 1;  ///< of memory that is read in place, in bytes
};

constexpr const char* kFrameworkNames[] = {"torch", "jax", "numpy"};
constexpr const char* kFunctionNames[] = {"to_torch", "to_jax", "to_numpy"};
std::atomic<const Framework*> frameworks[std::size(kFrameworkNames)];

std::unique_ptr<const Framework> load(const char* name) {
  const py::object loaded = find_hook(Hook::kLoadFramework)(name);
  auto framework = std::make_unique<Framework>();
  const py::object tensor_type = loaded.attr("tensor_type");
  if (!tensor_type.is_none()) {
    framework->api = find_exchange_api(reinterpret_cast<PyTypeObject*>(tensor_type.ptr()));
  }
  const auto take = [&loaded](const char* name) {
    return py::object(loaded.attr(name)).release().ptr();
  };
  framework->from_dlpack = take("from_dlpack");
  framework->from_positions = take("from_positions");
  framework->make_jagged = take("make_jagged");
  framework->make_variable = take("make_variable");
  framework->unpack_bits_on_device = take("expand_bits");
  framework->fill = take("fill");
  framework->all_valid = take("all_valid");
  framework->copy = take("copy");
  framework->arrange = take("arrange");
  framework->put = take("put");
  framework->alignment = loaded.attr("alignment").cast<std::size_t>();
  return framework;
}

/// The framework, imported on first use. Two threads may both import it; the first one's is kept.
const Framework& find_framework(std::size_t index) {
  const Framework* framework = frameworks[index].load(std::memory_order_acquire);
  if (framework != nullptr) return *framework;
  std::unique_ptr<const Framework> loaded = load(kFrameworkNames[index]);
  if (frameworks[index].compare_exchange_strong(framework, loaded.get())) {
    return *loaded.release();
  }
  return *framework;
}

enum class NullPolicy { kRaise, kFill, kNan, kMask };
enum class Ragged { kJagged, kPadded, kOffsets };

/// Whose memory the tensors are in.
enum class Access {
  kShared,   ///< copy=None: the array's, to be read, or new memory
  kInPlace,  ///< copy=False: the array's, or BufferError
  kCopied,   ///< copy=True: new memory, the caller's own
  kOwn,      ///< the array's, which is the caller's own, or new memory
};

struct Options {
  NullPolicy nulls = NullPolicy::kRaise;
  Ragged ragged = Ragged::kJagged;
  bool stack = false;
  Access access = Access::kShared;
  std::optional<Device> device = {};
};

py::list to_list(const std::vector<int64_t>& numbers) {
  py::list list;
  for (const int64_t number : numbers) list.append(number);
  return list;
}

/// Turns one Arrow array into an object tree of a framework's tensors.
class Converter {
 public:
  Converter(const Framework& framework, const Options& options)
      : framework_(framework), options_(options) {}

  py::object convert(const DeviceArray& array) const {
    const Type& type = array.type();
    const bool is_dictionary = type.dictionary != nullptr;
    if (!is_dictionary && type.layout == Layout::kStruct &&
        type.extension != Extension::kVariableShapeTensor) {
      return convert_struct(array);
    }
    if (!above_.empty() && (is_dictionary || why_not_tensor(type).empty())) {
      return convert_there(array);
    }
    if (above_.empty()) return convert_column(array);
    DeviceArray column = array;
    for (const DeviceArray& parent : above_) column = column.with_nulls_of(parent);
    return convert_column(column);
  }

  py::object stack(const DeviceArray& array) const {
    if (array.type().layout != Layout::kStruct) {
      raise_value_error("stack=True puts the fields of a struct or a table side by side, this is ",
                        to_string(array.type()));
    }
    require_copy_allowed(array, "its fields have to be put side by side");
    return with_mask(make(stack_fields(array, value_nulls())), [&] { return stack_masks(array); });
  }

  /// A tensor that has no nulls to ask about.
  py::object convert(OwnedTensor tensor) const { return make(std::move(tensor)); }

  /// The same of `view`, a part of `array`, whose memory is there where the host can read it, and
  /// the caller's own.
  py::object convert(const DeviceArray& array, TensorView view) const {
    if (!is_host_readable(array.device())) return lend(array, view);
    view.device = Device{};
    return make(make_tensor(view, array.storage(), 0));
  }

 private:
  /// An array that is not a struct of columns.
  py::object convert_column(const DeviceArray& array) const {
    const Type& type = array.type();
    if (type.dictionary == nullptr) {
      switch (type.layout) {
        case Layout::kStruct:
          return convert_variable(array);
        case Layout::kBinary:
        case Layout::kLargeBinary:
        case Layout::kBinaryView:
        case Layout::kList:
        case Layout::kLargeList:
        case Layout::kListView:
        case Layout::kLargeListView:
          return convert_list(array);
        case Layout::kRunEndEncoded:
          require_copy_allowed(array, "its runs have to be decoded");
          return with_access_to_new().convert(decode_run_ends(array));
        default:
          break;
      }
    }
    if (!is_host_readable(array.device())) return convert_there(array);
    return with_mask(make(export_values(array)), [&] { return to_mask(array); });
  }

  bool is_masked() const { return options_.nulls == NullPolicy::kMask; }

  Nulls value_nulls() const {
    switch (options_.nulls) {
      case NullPolicy::kFill:
        return Nulls::kFill;
      case NullPolicy::kNan:
        return Nulls::kNan;
      case NullPolicy::kMask:
        return Nulls::kKeep;
      case NullPolicy::kRaise:
        break;
    }
    return Nulls::kRaise;
  }

  /// Memory that the CPU reads goes to every framework as the CPU's: torch and jax know no other.
  OwnedTensor export_values(const DeviceArray& array) const {
    ToDlpackOptions options;
    options.nulls = value_nulls();
    options.as_cpu = array.device().type != kDLCPU;
    options.copy = choose_copy(array);
    return export_elements(array, options);
  }

  /// Bytes from which on a copy is worth to be done without the interpreter lock.
  static constexpr int64_t kLargeSize = 64 << 10;

  OwnedTensor export_elements(const DeviceArray& array, const ToDlpackOptions& options) const {
    std::optional<py::gil_scoped_release> release;
    if (options.copy == Copy::kAlways && array.nbytes() >= kLargeSize) release.emplace();
    OwnedTensor tensor = to_dlpack(array, options);
    return options_.access == Access::kOwn ? allow_writes(std::move(tensor)) : std::move(tensor);
  }

  static OwnedTensor allow_writes(OwnedTensor tensor) {
    DLManagedTensorVersioned* managed = tensor.take_versioned();
    managed->flags &= ~uint64_t{DLPACK_FLAG_BITMASK_READ_ONLY};
    return OwnedTensor(managed);
  }

  Copy choose_copy(const DeviceArray& array) const {
    switch (options_.access) {
      case Access::kInPlace:
        return Copy::kNever;
      case Access::kCopied:
        return moves(array.device()) ? Copy::kIfNeeded : Copy::kAlways;
      case Access::kOwn:
        // Of arrays of nothing but nulls pyarrow has one buffer for all fields, bitmaps included.
        return is_masked() && array.known_null_count() != 0 ? Copy::kAlways : Copy::kIfNeeded;
      case Access::kShared:
        break;
    }
    return Copy::kIfNeeded;
  }

  /// Whether the tensors go to another device than `from`, into new memory.
  bool moves(const Device& from) const {
    return options_.device && *options_.device != (is_host_readable(from) ? Device{} : from);
  }

  void require_copy_allowed(const DeviceArray& array, const char* reason) const {
    if (options_.access != Access::kInPlace) return;
    raise_buffer_error("an array of ", to_string(array.type()),
                       " cannot become a tensor without a copy, since ", reason,
                       ": allow it with copy=None or copy=True");
  }

  /// For an array of new memory.
  Converter with_access_to_new() const {
    Converter converter(*this);
    if (options_.access == Access::kCopied) converter.options_.access = Access::kOwn;
    return converter;
  }

  static bool has_kernels(const Device& device) { return find_kernels(device) != nullptr; }

  /// An array that the host cannot read: by the device itself, else by the framework's operations.
  py::object convert_there(const DeviceArray& array) const {
    if (!has_kernels(array.device())) {
      const TensorParts parts = split_tensor(array, value_nulls(), above_);
      if (is_masked() || !parts.values || replaces_nulls(parts)) return expand(array, parts);
    }
    const Dtype& dtype = *describe_tensor(array.type(), array.length()).dtype;
    const Copy copy = options_.access == Access::kInPlace ? Copy::kNever : Copy::kIfNeeded;
    py::object values =
        make_there(array, dtype, [array, nulls = value_nulls(), copy](const Order& order) {
          ToDlpackOptions options;
          options.nulls = nulls;
          options.order = order;
          options.copy = copy;
          return to_dlpack(array, options);
        });
    // By the framework, into its own memory, and on devices that arrowdl does not copy on too.
    if (options_.access == Access::kCopied && is_lent(split_tensor(array, value_nulls(), above_))) {
      values = call(framework_.copy, values);
    }
    if (!is_masked()) return values;
    return py::make_tuple(std::move(values),
                          make_there(array, *find_dtype("bool"), [array](const Order& order) {
                            return to_mask(array, order);
                          }));
  }

  bool replaces_nulls(const TensorParts& parts) const {
    return options_.nulls != NullPolicy::kRaise && !parts.validity.empty();
  }

  /// Whether the tensor of `parts` is the array's memory.
  bool is_lent(const TensorParts& parts) const {
    return parts.values && (is_masked() || !replaces_nulls(parts));
  }

  /// The framework puts its own tensor together from what lies on the device.
  py::object expand(const DeviceArray& array, const TensorParts& parts) const {
    if (!is_lent(parts)) require_copy_allowed(array, "its bits or nulls have to be replaced");
    py::object valid = py::none();
    for (const BitParts& bits : parts.validity) {
      const py::object level = unpack_bits_on_device(array, bits);
      valid = valid.is_none() ? level : valid & level;
    }
    py::object values =
        parts.values ? lend(array, *parts.values) : unpack_bits_on_device(array, *parts.bits);
    if (is_lent(parts) && options_.access == Access::kCopied) {
      values = call(framework_.copy, values);
    }
    if (!valid.is_none() && !is_masked()) {
      const py::object item = options_.nulls == NullPolicy::kNan ? py::object(py::float_(NAN))
                                                                 : py::object(py::int_(0));
      values = call(framework_.fill, values, valid, item);
    }
    if (is_masked() && valid.is_none()) valid = call(framework_.all_valid, values);
    const auto arrange = [&](const py::object& flat) {
      return call(framework_.arrange, flat, to_list(parts.shape), to_list(parts.axes));
    };
    if (!is_masked()) return arrange(values);
    return py::make_tuple(arrange(values), arrange(valid));
  }

  py::object unpack_bits_on_device(const DeviceArray& array, const BitParts& bits) const {
    return call(framework_.unpack_bits_on_device, lend(array, bits.bytes), py::int_(bits.offset),
                py::int_(bits.length), py::int_(bits.repeat));
  }

  /// `view`, a part of `array`.
  py::object lend(const DeviceArray& array, const TensorView& view) const {
    return make_there(array, *view.dtype, [array, view](const Order& order) {
      order_consumer(array, order);
      return make_tensor(view, array.storage(), DLPACK_FLAG_BITMASK_READ_ONLY);
    });
  }

  /// The stream of the framework's work, which its exchange API names, is what reads the tensor; a
  /// framework without one names its stream when it asks.
  py::object make_there(const DeviceArray& array, const Dtype& dtype, ReadTensor read) const {
    const Device device = array.device();
    if (framework_.api != nullptr) {
      return to_object(*framework_.api, read(choose_order(device)));
    }
    const py::object box = py::cast(Tensor(device, dtype, std::move(read)));
    return checked(PyObject_CallOneArg(framework_.from_dlpack, box.ptr()));
  }

  template <typename... Args>
  static py::object call(PyObject* function, const Args&... args) {
    return checked(PyObject_CallFunctionObjArgs(function, args.ptr()..., nullptr));
  }

  /// Offsets, which the host has read already.
  OwnedTensor export_positions(const DeviceArray& offsets) const {
    ToDlpackOptions options;
    options.as_cpu = offsets.device().type != kDLCPU;
    // The end of one batch's rows is the start of the next one's: no memory to write to.
    const bool is_shared =
        options_.access == Access::kShared || options_.access == Access::kInPlace;
    if (!is_shared) options.copy = Copy::kAlways;
    return to_dlpack(offsets, options);
  }

  Order choose_order(const Device& device) const {
    if (find_stream_backend(device) == nullptr) return {};
    return {Order::kStream, current_stream(*framework_.api, device)};
  }

  py::object make(OwnedTensor tensor) const {
    return make_by(framework_.from_dlpack, std::move(tensor));
  }

  py::object make_positions(OwnedTensor tensor) const {
    return make_by(framework_.from_positions, std::move(tensor));
  }

  /// The framework would copy it as well, several times slower. For small tensors it is as quick.
  OwnedTensor align_large(OwnedTensor tensor) const {
    if (view_tensor(*tensor).nbytes() < kLargeSize) return tensor;
    const py::gil_scoped_release release;
    return align_tensor(std::move(tensor), framework_.alignment);
  }

  py::object make_by(PyObject* from_dlpack, OwnedTensor tensor) const {
    const bool is_moved = moves(from_dl_device(tensor->device));
    if (is_moved && options_.access == Access::kInPlace) {
      raise_buffer_error("copy=False: the array lies on another device than ",
                         to_string(*options_.device));
    }
    if (framework_.api != nullptr) {
      if (is_moved) tensor = copy_by(*framework_.api, std::move(tensor), *options_.device);
      return to_object(*framework_.api, std::move(tensor));
    }
    if (framework_.alignment > 1) tensor = align_large(std::move(tensor));
    const py::object box = py::cast(Tensor(std::move(tensor)));
    py::object made = checked(PyObject_CallOneArg(from_dlpack, box.ptr()));
    if (!is_moved) return made;
    const DeviceType* type = find_device_type(options_.device->type);
    return call(framework_.put, made, py::str(type->name), py::int_(options_.device->id));
  }

  template <typename MakeMask>
  py::object with_mask(py::object values, const MakeMask& make_mask) const {
    if (!is_masked()) return values;
    return py::make_tuple(std::move(values), make(make_mask()));
  }

  /// `convert(array)`; an error names the field on its way out.
  py::object convert_field(const DeviceArray& array, const char* name) const {
    try {
      return convert(array);
    } catch (const Error& error) {
      throw Error(error.kind(), concat("field \"", name, "\": ", error.what()));
    } catch (py::error_already_set& error) {  // the framework's own: its class and text stay
      error.value().attr("add_note")(concat("in the field \"", name, "\""));
      throw;
    }
  }

  /// For the fields of a struct whose nulls only the framework can give to them.
  Converter below(const DeviceArray& array) const {
    Converter converter(framework_, options_);
    converter.above_ = above_;
    converter.above_.push_back(array);
    return converter;
  }

  /// Field `i` as the framework's.
  py::object convert_field_of(const DeviceArray& array, int64_t i, const char* name) const {
    const Device device = array.device();
    const bool has_nulls = !above_.empty() || array.known_null_count() != 0;
    if (has_nulls && !is_host_readable(device) && !has_kernels(device)) {
      return below(array).convert_field(array.child(i), name);
    }
    return convert_field(read_field(array, i), name);
  }

  py::object convert_struct(const DeviceArray& array) const {
    py::dict fields;
    const std::vector<Type>& children = array.type().children;
    for (std::size_t i = 0; i < children.size(); ++i) {
      const char* name = children[i].name();
      const py::str key(name);
      const py::object value = convert_field_of(array, static_cast<int64_t>(i), name);
      if (PyDict_SetItem(fields.ptr(), key.ptr(), value.ptr()) != 0) throw py::error_already_set();
      if (fields.size() != i + 1) {
        raise_value_error("several fields are named \"", name,
                          "\" and a dict has one place for "
                          "them: rename or select columns first");
      }
    }
    return std::move(fields);
  }

  /// Rows that are null have no values here; what the mask, or an empty row, says of them is the
  /// policy's choice.
  ListParts split(const DeviceArray& array) const {
    if (array.has_nulls() && options_.nulls == NullPolicy::kRaise) {
      raise_buffer_error("the array of ", to_string(array.type()),
                         " has null rows: use "
                         "nulls=\"fill\" for empty ones, nulls=\"mask\" for a mask beside them, or "
                         "drop them first");
    }
    if (array.has_nulls() && options_.nulls == NullPolicy::kNan) {
      raise_buffer_error("nulls=\"nan\" has no meaning for the null rows of ",
                         to_string(array.type()),
                         ": use nulls=\"fill\" for empty ones or "
                         "nulls=\"mask\"");
    }
    return split_list(array, true);
  }

  py::object convert_list(const DeviceArray& array) const {
    const ListParts parts = split(array);
    py::object rows = options_.ragged == Ragged::kPadded ? pad(parts) : jag(parts, array);
    return with_mask(std::move(rows), [&] { return to_row_mask(array); });
  }

  py::object pad(const ListParts& parts) const {
    const Type& element = parts.values.type();
    if (element.layout != Layout::kRunEndEncoded && !why_not_tensor(element).empty()) {
      raise_buffer_error(
          "ragged=\"padded\" pads rows of elements that are tensors themselves, not ",
          to_string(element), ": use ragged=\"jagged\"");
    }
    require_whole(parts.values);
    require_copy_allowed(parts.values, "its rows have to be padded");
    const Nulls nulls = is_masked() ? Nulls::kRaise : value_nulls();
    return py::make_tuple(make(pad_list(parts, nulls)), make_positions(list_lengths(parts)));
  }

  void require_whole(const DeviceArray& elements) const {
    if (!is_masked() || !elements.has_nulls()) return;
    raise_buffer_error(
        "the elements of the lists have nulls, and the mask of a list array is of its rows: use "
        "nulls=\"fill\" or \"nan\", or drop them first");
  }

  /// Whether `split_list` made new memory for the values of `lists`.
  static bool is_gathered(const DeviceArray& values, const DeviceArray& lists) {
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

  /// The elements of ragged rows. Under nulls="mask" the mask is of rows, so elements must be
  /// whole.
  py::object convert_elements(const DeviceArray& values, const DeviceArray& lists) const {
    require_whole(values);
    const bool is_new = is_gathered(values, lists);
    if (is_new) require_copy_allowed(lists, "the values of its rows have to be gathered");
    Options options = is_new ? with_access_to_new().options_ : options_;
    if (is_masked()) options.nulls = NullPolicy::kRaise;
    return Converter(framework_, options).convert_field(values, "(list elements)");
  }

  py::object jag(const ListParts& parts, const DeviceArray& lists) const {
    const py::object values = convert_elements(parts.values, lists);
    const py::object offsets = make_positions(export_positions(parts.offsets));
    if (options_.ragged == Ragged::kOffsets) return py::make_tuple(values, offsets);
    return checked(
        PyObject_CallFunctionObjArgs(framework_.make_jagged, values.ptr(), offsets.ptr(), nullptr));
  }

  /// A row is null where the struct, its data or its shape is.
  py::object convert_variable(const DeviceArray& array) const {
    if (options_.ragged == Ragged::kPadded) {
      raise_buffer_error(
          "ragged=\"padded\" pads lists, and the rows of ", to_string(array.type()),
          " differ in several dimensions: use ragged=\"jagged\" or ragged=\"offsets\"");
    }
    const DeviceArray shape_field = array.field(1);
    const DeviceArray rows = array.field(0).with_nulls_of(shape_field);
    const ListParts parts = split(rows);
    ToDlpackOptions options;
    options.nulls = Nulls::kFill;
    options.as_cpu = array.device().type != kDLCPU;
    options.copy = choose_copy(shape_field);
    OwnedTensor shapes = export_elements(shape_field.with_nulls_of(rows), options);
    check_variable_shapes(parts, shapes, *array.type().tensor);
    const std::vector<int64_t>& order = array.type().tensor->permutation;
    if (options_.ragged == Ragged::kOffsets && changes_order(order)) {
      raise_buffer_error("a permuted ", to_string(array.type()),
                         " has no reading as (values, offsets, shapes), which are in the order of "
                         "memory: use to_torch(ragged=\"jagged\"), or take its fields \"data\" and "
                         "\"shape\" for what they are");
    }
    const py::list permutation = changes_order(order) ? to_list(order) : py::list();
    const py::object values = convert_elements(parts.values, rows);
    const py::object offsets = make_positions(export_positions(parts.offsets));
    const py::object shape_object = make(std::move(shapes));
    py::object tensors = options_.ragged == Ragged::kOffsets
                             ? py::make_tuple(values, offsets, shape_object)
                             : checked(PyObject_CallFunctionObjArgs(
                                   framework_.make_variable, values.ptr(), offsets.ptr(),
                                   shape_object.ptr(), permutation.ptr(), nullptr));
    return with_mask(std::move(tensors), [&] { return to_row_mask(rows); });
  }

  /// One mask per field, side by side as the values are.
  static OwnedTensor stack_masks(const DeviceArray& array) {
    std::vector<std::string> names;
    std::vector<DeviceArray> masks;
    for (std::size_t i = 0; i < array.type().children.size(); ++i) {
      names.push_back(array.type().children[i].name());
      masks.push_back(to_arrow(to_mask(read_field(array, static_cast<int64_t>(i)))));
    }
    return stack_fields(make_struct(names, masks), Nulls::kRaise);
  }

  const Framework& framework_;
  Options options_;
  std::vector<DeviceArray> above_ = {};  ///< structs whose nulls are not in their fields
};

bool read_option(Options& options, std::string_view name, PyObject* value) {
  static constexpr std::pair<const char*, NullPolicy> kNulls[] = {{"raise", NullPolicy::kRaise},
                                                                  {"fill", NullPolicy::kFill},
                                                                  {"nan", NullPolicy::kNan},
                                                                  {"mask", NullPolicy::kMask}};
  static constexpr std::pair<const char*, Ragged> kRagged[] = {
      {"jagged", Ragged::kJagged}, {"padded", Ragged::kPadded}, {"offsets", Ragged::kOffsets}};
  if (name == "nulls") {
    options.nulls = read_choice("nulls", value, kNulls);
  } else if (name == "ragged") {
    options.ragged = read_choice("ragged", value, kRagged);
  } else if (name == "stack") {
    options.stack = read_bool("stack", value);
  } else if (name == "device") {
    if (value != Py_None) options.device = read_device(value);
  } else if (name == "copy") {
    if (value != Py_None) {
      options.access = read_bool("copy", value) ? Access::kCopied : Access::kInPlace;
    }
  } else if (name == "_own") {  // what arrowdl's own Python knows to be nobody else's memory
    if (read_bool("_own", value)) options.access = Access::kOwn;
  } else {
    return false;
  }
  return true;
}

/// `array` where its tensors can be read as those of `device`: what the host can read is moved
/// tensor by tensor, into the framework's own memory.
DeviceArray move_to(Options& options, DeviceArray array) {
  const std::optional<Device>& device = options.device;
  if (!device || array.device() == *device || is_host_readable(array.device())) return array;
  if (options.access == Access::kInPlace) {
    raise_buffer_error("copy=False: the array lies on ", to_string(array.device()), ", not on ",
                       to_string(*device));
  }
  if (options.access == Access::kCopied) options.access = Access::kOwn;
  const py::gil_scoped_release release;
  return copy_array(array, *device);
}

template <std::size_t index>
PyObject* to_framework(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  return guarded([&] {
    const Framework& framework = find_framework(index);
    if (n == 0) raise_type_error(kFunctionNames[index], "() needs an Arrow object");
    Options options;
    read_keywords(
        kFunctionNames[index], n, 1, args, names,
        [&](std::string_view name, PyObject* value) { return read_option(options, name, value); });
    if (options.nulls == NullPolicy::kRaise && !options.stack &&
        options.access == Access::kShared) {
      if (OwnedTensor tensor = take_pyarrow_numbers(args[0])) {
        return Converter(framework, options).convert(std::move(tensor)).release().ptr();
      }
    }
    const Copy copy = options.access == Access::kInPlace ? Copy::kNever : Copy::kIfNeeded;
    const DeviceArray array = move_to(options, take_array_of(args[0], copy));
    const Converter converter(framework, options);
    py::object result = options.stack ? converter.stack(array) : converter.convert(array);
    return result.release().ptr();
  });
}

const Framework& find_framework(const py::handle& name) {
  const auto given = name.cast<std::string_view>();
  const auto* found = std::find(std::begin(kFrameworkNames), std::end(kFrameworkNames), given);
  if (found == std::end(kFrameworkNames)) raise_value_error("no framework is named ", given);
  return find_framework(static_cast<std::size_t>(found - kFrameworkNames));
}

/// The tensors of a block, each as its framework's; None for an entry without one.
py::list read_tensors(const py::object& block, const py::bytes& table,
                      const py::sequence& frameworks) {
  const DeviceArray array = take_array_of(block.ptr());
  if (array.type().layout != Layout::kFixedWidth || array.type().byte_width != 1) {
    raise_type_error("a block of tensors is an array of bytes, not of ", to_string(array.type()));
  }
  if (is_host_readable(array.device())) array.synchronize();
  TableReader reader(table, array.buffer_as<uint8_t>(1) + array.offset(), array.length());
  const Options options;
  py::list tensors(frameworks.size());
  for (std::size_t i = 0; i < frameworks.size(); ++i) {
    TensorView view;
    py::object tensor = py::none();
    if (reader.next(&view)) {
      tensor = Converter(find_framework(py::object(frameworks[i])), options).convert(array, view);
    }
    PyList_SET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(i), tensor.release().ptr());
  }
  return tensors;
}

#define ARROWDL_TO_FRAMEWORK_DOC(name, tensor, ragged)                                           \
  "to_" name                                                                                     \
  "(obj, /, *, nulls='raise', ragged='jagged', stack=False, device=None, copy=None)\n--\n\n"     \
  "Read an Arrow array or table as " tensor                                                      \
  ", zero-copy where the layout allows.\n\n"                                                     \
  "Parameters\n----------\n"                                                                     \
  "obj : DeviceArray or Arrow producer\n"                                                        \
  "    Anything that `from_arrow` takes.\n"                                                      \
  "nulls : {'raise', 'fill', 'nan', 'mask'}\n"                                                   \
  "    What becomes of nulls: BufferError, zeros (False, empty rows), NaN (floating types\n"     \
  "    only), or a pair (values, mask) with True where a value is valid.\n"                      \
  "ragged : {'jagged', 'padded', 'offsets'}\n"                                                   \
  "    Lists, strings and binary as " ragged                                                     \
  ",\n"                                                                                          \
  "    or as (padded, lengths) with zeros after each row's end, or as (values, offsets).\n"      \
  "stack : bool\n"                                                                               \
  "    The fields of a struct as one matrix (rows, columns); they must have one dtype.\n"        \
  "device : Device, str, tuple, device object or None\n"                                         \
  "    Where the tensors shall lie, as in `DeviceArray.to`: what lies elsewhere is copied "      \
  "there,\n"                                                                                     \
  "    from memory that the CPU reads into memory of the framework's own. None: where it "       \
  "lies.\n"                                                                                      \
  "copy : bool, optional\n"                                                                      \
  "    None: tensors share the memory of `obj` where the layout allows, and must not be "        \
  "written to.\n"                                                                                \
  "    True: they are in new memory, the caller's own. False: BufferError where the values "     \
  "would\n"                                                                                      \
  "    have to be copied (booleans unpacked, nulls replaced, runs decoded, chunks joined).\n\n"  \
  "Returns\n-------\n"                                                                           \
  "tensor, tuple or dict\n"                                                                      \
  "    A dict by field name for structs, record batches and tables; nested structs nest.\n\n"    \
  "Raises\n------\n"                                                                             \
  "BufferError\n    Nulls under nulls='raise', a type with no tensor reading, or a device that " \
  "the\n"                                                                                        \
  "    framework or arrowdl cannot copy to.\n"                                                   \
  "TypeError\n    Not an Arrow object."

template <typename Function>
PyCFunction as_method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[] = {
    {"to_torch", as_method(to_framework<0>), METH_FASTCALL | METH_KEYWORDS,
     ARROWDL_TO_FRAMEWORK_DOC("torch", "torch tensors", "torch jagged nested tensors")},
    {"to_jax", as_method(to_framework<1>), METH_FASTCALL | METH_KEYWORDS,
     ARROWDL_TO_FRAMEWORK_DOC("jax", "JAX arrays", "pairs (values, offsets)")},
    {"to_numpy", as_method(to_framework<2>), METH_FASTCALL | METH_KEYWORDS,
     ARROWDL_TO_FRAMEWORK_DOC("numpy", "NumPy arrays", "pairs (values, offsets)")},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void register_to_framework(py::module_& m) {
  py::class_<Tensor>(m, "Tensor", py::is_final(),
                     "A tensor on its way to a consumer: good for one `__dlpack__`.")
      .def("__dlpack__", &Tensor::dlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack_device__", &Tensor::dlpack_device)
      .def_property_readonly("dtype", &Tensor::dtype, "The element type by name.");
  m.def("read_tensors", &read_tensors, py::arg("block"), py::arg("table"), py::arg("frameworks"),
        "The tensors that a `TensorBlock` wrote, where `block` is an array of its bytes on any "
        "device: views of it, of the framework that is named for each. None for those left out.");
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw py::error_already_set();
}

}  // namespace arrowdl::python
