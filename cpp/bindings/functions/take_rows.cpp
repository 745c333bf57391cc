// Takes rows of arrays by row numbers, which it reads from slices, sequences and arrays of
// integers. Raw functions: they are called for each batch.
#include <pybind11/pybind11.h>

#include <cstring>
#include <memory>

#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/to_arrow.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/chunked_rows.hpp"
#include "functions/functions.hpp"
#include "import/arrow.hpp"
#include "import/classify.hpp"
#include "import/tensor.hpp"
#include "support/arguments.hpp"
#include "support/device_array_object.hpp"
#include "support/errors.hpp"
#include "support/names.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// The functions of this file take two arguments.
void require_count(const char* function, Py_ssize_t count) {
  if (count != 2) raise_type_error(function, "() takes 2 positional arguments, got ", count);
}

// ---------------------------------------------------------------- row numbers

/// Writes row numbers, from 0, into new memory.
class NumberWriter {
 public:
  NumberWriter(int64_t count, int64_t num_rows) : count_(count), num_rows_(num_rows) {
    numbers_ = allocate_elements(count, &target_);
  }

  /// `number` counts from the first row, or back from the last one if it is negative.
  void append(int64_t number) {
    if (number < -num_rows_ || number >= num_rows_) raise_outside(number);
    *target_++ = number < 0 ? number + num_rows_ : number;
  }

  [[noreturn]] void raise_outside(int64_t number) const { raise_outside(std::to_string(number)); }
  [[noreturn]] void raise_outside(const std::string& number) const {
    if (num_rows_ == 0) raise_index_error("row ", number, " of a source without rows");
    raise_index_error("row ", number, " of ", num_rows_, ": rows have the numbers 0 to ",
                      num_rows_ - 1, ", or from the end -1 to ", -num_rows_);
  }

  py::object finish() && {
    return wrap(
        DeviceArray::make_primitive(*find_dtype("int64"), count_, std::move(numbers_), Device{}));
  }

 private:
  int64_t count_;
  int64_t num_rows_;
  int64_t* target_ = nullptr;
  Buffer numbers_;
};

constexpr const char* kAdvice =
    "give an int, a slice, or a list or one-dimensional array of integers; the rows of a mask are "
    "numpy.flatnonzero(mask)";

py::object read_slice(PyObject* slice, int64_t num_rows) {
  Py_ssize_t start;
  Py_ssize_t stop;
  Py_ssize_t step;
  if (PySlice_Unpack(slice, &start, &stop, &step) != 0) throw py::error_already_set();
  const Py_ssize_t count = PySlice_AdjustIndices(num_rows, &start, &stop, step);
  NumberWriter writer(count, num_rows);
  for (Py_ssize_t i = 0; i < count; ++i) writer.append(start + i * step);
  return std::move(writer).finish();
}

/// Raises TypeError for a tensor of bool, which has `__index__`. `known` is the dtype of the item
/// before, which most items share.
void refuse_bool(PyObject* item, py::object* known) {
  py::object dtype = find_attribute(item, names::dtype);
  if (!dtype || dtype.is(*known)) return;
  const auto text = py::str(dtype).cast<std::string>();
  if (text.find("bool") != std::string::npos)
    raise_type_error("a bool is not a row number: ", kAdvice);
  *known = std::move(dtype);
}

void append_item(PyObject* item, py::object* known_dtype, NumberWriter* writer) {
  py::object number = py::reinterpret_borrow<py::object>(item);
  if (PyLong_CheckExact(item) == 0) {
    if (PyBool_Check(item)) raise_type_error("a bool is not a row number: ", kAdvice);
    refuse_bool(item, known_dtype);
    if (PyIndex_Check(item) == 0)
      raise_type_error("a row number of type ", Py_TYPE(item)->tp_name, ": ", kAdvice);
    number = checked(PyNumber_Index(item));
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) writer->raise_outside(py::str(number).cast<std::string>());
  writer->append(value);
}

py::object read_sequence(PyObject* sequence, int64_t num_rows) {
  // A copy: the code of an item's __index__ may change a list.
  const py::object items = checked(PySequence_Tuple(sequence));
  const Py_ssize_t count = PyTuple_GET_SIZE(items.ptr());
  NumberWriter writer(count, num_rows);
  py::object known_dtype;
  for (Py_ssize_t i = 0; i < count; ++i) {
    append_item(PyTuple_GET_ITEM(items.ptr(), i), &known_dtype, &writer);
  }
  return std::move(writer).finish();
}

/// Raises TypeError unless `array` has integers; copies it to the host.
DeviceArray require_integers(DeviceArray array) {
  const Type& type = array.type();
  const bool is_integer =
      type.layout == Layout::kFixedWidth && type.dictionary == nullptr &&
      std::string_view("cCsSiIlL").find(type.schema->format) != std::string_view::npos &&
      type.extension == Extension::kNone;
  if (!is_integer) raise_type_error("row numbers of type ", to_string(type), ": ", kAdvice);
  if (array.device().type != kDLCPU) array = copy_array(array, Device{});
  array.synchronize();
  if (array.has_nulls()) raise_value_error("the row numbers have nulls: drop them first");
  return array;
}

/// The usual type, without a switch on it for each number.
void append_int64(const uint8_t* bytes, int64_t count, NumberWriter* writer) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t value;
    std::memcpy(&value, bytes + i * int64_t{sizeof(value)}, sizeof(value));
    writer->append(value);
  }
}

py::object read_integers(const DeviceArray& array, int64_t num_rows) {
  const auto width = array.type().byte_width;
  const int shift = static_cast<int>(64 - 8 * width);
  const bool is_signed = std::strchr("csil", array.type().schema->format[0]) != nullptr;
  const auto* bytes = array.buffer_as<uint8_t>(1) + array.offset() * width;
  NumberWriter writer(array.length(), num_rows);
  if (is_signed && width == int64_t{sizeof(int64_t)}) {
    append_int64(bytes, array.length(), &writer);
    return std::move(writer).finish();
  }
  for (int64_t i = 0; i < array.length(); ++i, bytes += width) {
    uint64_t value = 0;
    std::memcpy(&value, bytes, static_cast<std::size_t>(width));
    if (!is_signed && value > static_cast<uint64_t>(INT64_MAX)) {
      writer.raise_outside(std::to_string(value));
    }
    writer.append(is_signed ? static_cast<int64_t>(value << shift) >> shift
                            : static_cast<int64_t>(value));
  }
  return std::move(writer).finish();
}

py::object read_rows(PyObject* rows, int64_t num_rows) {
  if (PySlice_Check(rows) != 0) return read_slice(rows, num_rows);
  if (PyList_Check(rows) != 0 || PyTuple_Check(rows) != 0) return read_sequence(rows, num_rows);
  const bool is_text = PyUnicode_Check(rows) != 0 || PyBytes_Check(rows) != 0;
  const auto [kind, api] = classify(rows);
  if (kind == Kind::kArrow) return read_integers(require_integers(take_array_of(rows)), num_rows);
  if (kind == Kind::kTensor && !is_text) {
    TakenTensor taken = take_tensor_of(rows, api, Copy::kIfNeeded, nullptr);
    DeviceArray array = to_arrow(std::move(taken.tensor), {}, std::move(taken.event));
    return read_integers(require_integers(std::move(array)), num_rows);
  }
  // Items of what has no length may have no end.
  const PySequenceMethods* const methods = Py_TYPE(rows)->tp_as_sequence;
  const bool has_length = methods != nullptr && methods->sq_length != nullptr;
  if (kind == Kind::kOther && !is_text && has_length && PySequence_Check(rows) != 0) {
    return read_sequence(rows, num_rows);
  }
  raise_type_error("row numbers of type ", Py_TYPE(rows)->tp_name, ": ", kAdvice);
}

PyObject* read_row_numbers(PyObject*, PyObject* const* args, Py_ssize_t n) noexcept {
  return guarded([&] {
    require_count("read_row_numbers", n);
    return read_rows(args[0], read_int("num_rows", args[1])).release().ptr();
  });
}

/// Numbers that `read_row_numbers` has made, as long as `array` lives.
RowNumbers view_numbers(const DeviceArray& array) {
  const Type& type = array.type();
  if (std::strcmp(type.schema->format, "l") != 0 || array.device().type != kDLCPU) {
    raise_type_error("read_row_numbers makes row numbers, these are ", to_string(type));
  }
  return {array.buffer_as<int64_t>(1) + array.offset(), array.length()};
}

std::vector<int64_t> copy_numbers(PyObject* object) {
  const DeviceArray array = take_array_of(object);
  const RowNumbers numbers = view_numbers(array);
  return {numbers.begin, numbers.begin + numbers.count};
}

// ---------------------------------------------------------------- rows

constexpr const char* kCapsuleName = "arrowdl.ChunkedRows";

void delete_rows(PyObject* capsule) noexcept {
  const PendingError pending;  // a foreign release may be Python code
  delete static_cast<ChunkedRows*>(PyCapsule_GetPointer(capsule, kCapsuleName));
}

PyObject* number_rows(PyObject*, PyObject* const* args, Py_ssize_t n) noexcept {
  return guarded([&] {
    require_count("number_rows", n);
    std::vector<DeviceArray> arrays;
    for (const py::object array : py::reinterpret_borrow<py::sequence>(args[0])) {
      arrays.push_back(take_array_of(array.ptr()));
    }
    const auto schema = make_stream(arrays)->schema();  // checks that there is one
    auto rows = std::make_unique<ChunkedRows>(schema, std::move(arrays), copy_numbers(args[1]));
    py::object capsule = checked(PyCapsule_New(rows.get(), kCapsuleName, delete_rows));
    rows.release();
    return capsule.release().ptr();
  });
}

PyObject* take_rows(PyObject*, PyObject* const* args, Py_ssize_t n) noexcept {
  return guarded([&] {
    require_count("take_rows", n);
    const auto* rows = static_cast<ChunkedRows*>(PyCapsule_GetPointer(args[0], kCapsuleName));
    if (rows == nullptr) throw py::error_already_set();
    const DeviceArray array = take_array_of(args[1]);
    const RowNumbers numbers = view_numbers(array);
    TakenArray taken;
    {
      const py::gil_scoped_release release;
      taken = rows->take(numbers);
    }
    const py::object array_object = wrap(std::move(taken.rows));
    return checked(PyTuple_Pack(2, array_object.ptr(), taken.is_shared ? Py_True : Py_False))
        .release()
        .ptr();
  });
}

PyObject* group_rows(PyObject*, PyObject* const* args, Py_ssize_t n) noexcept {
  return guarded([&] {
    require_count("group_rows", n);
    const DeviceArray array = take_array_of(args[0]);
    PartedNumbers parted = group_by_part(view_numbers(array), RowStarts(copy_numbers(args[1])));
    const auto make = [&](Buffer buffer) {
      return DeviceArray::make_primitive(*find_dtype("int64"), array.length(), std::move(buffer),
                                         Device{});
    };
    const DeviceArray by_part = make(std::move(parted.numbers));
    py::dict parts;
    int64_t start = 0;
    for (std::size_t i = 0; i < parted.parts.size(); ++i) {
      const int64_t end = parted.ends[i];
      parts[py::int_(parted.parts[i])] = wrap(by_part.slice(start, end - start));
      start = end;
    }
    const py::object order = wrap(make(std::move(parted.order)));
    return checked(PyTuple_Pack(2, parts.ptr(), order.ptr())).release().ptr();
  });
}

PyMethodDef take_rows_functions[] = {
    {"read_row_numbers", as_method(read_row_numbers), METH_FASTCALL,
     "read_row_numbers(rows, num_rows, /)\n--\n\n"
     "Return row numbers from 0, as int64 in host memory. `rows` is a slice, or a sequence, tensor "
     "or Arrow array of integers, of which negative ones count from the end."},
    {"number_rows", as_method(number_rows), METH_FASTCALL,
     "number_rows(arrays, starts, /)\n--\n\n"
     "Return the rows of arrays of one schema, for `take_rows`. Row 0 of each has the number in "
     "`starts`, of `read_row_numbers`."},
    {"take_rows", as_method(take_rows), METH_FASTCALL,
     "take_rows(rows, numbers, /)\n--\n\n"
     "Return the rows of `number_rows` with the numbers of `read_row_numbers`, and whether they "
     "are "
     "a window of one of the arrays. Other rows are in new memory. Many threads may take rows."},
    {"group_rows", as_method(group_rows), METH_FASTCALL,
     "group_rows(numbers, starts, /)\n--\n\n"
     "Return the parts that have rows with `numbers`, each with its numbers, and where each row is "
     "among those of all parts. `starts` has the number of the first row of each part."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void register_take_rows(py::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), take_rows_functions) != 0) throw py::error_already_set();
}

}  // namespace arrowdl::python
