// Takes rows of arrays by row numbers, which it reads from slices, sequences and arrays of
// integers.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

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
#include "support/constructor.hpp"
#include "support/device_array_object.hpp"
#include "support/objects.hpp"
#include "support/values.hpp"
#include "util/visit_integer.hpp"

ARROWDL_CAST_BY_VALUE(arrowdl::ChunkedRows)

namespace arrowdl::python {
namespace {

namespace py = pybind11;

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

  [[noreturn]] void raise_outside(int64_t number) const { raise_outside(concat(number)); }
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

void append_item(PyObject* item, NumberWriter* writer) {
  if (PyBool_Check(item)) raise_type_error("a bool is no row number: ", kAdvice);
  const py::object number = PyLong_CheckExact(item) != 0 ? py::reinterpret_borrow<py::object>(item)
                                                         : checked(PyNumber_Index(item));
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) writer->raise_outside(py::str(number).cast<std::string>());
  if (value == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  writer->append(value);
}

py::object read_sequence(PyObject* sequence, int64_t num_rows) {
  // A copy: the code of an item's __index__ may change a list.
  const py::object items = checked(PySequence_Tuple(sequence));
  const Py_ssize_t count = PyTuple_GET_SIZE(items.ptr());
  NumberWriter writer(count, num_rows);
  for (Py_ssize_t i = 0; i < count; ++i) append_item(PyTuple_GET_ITEM(items.ptr(), i), &writer);
  return std::move(writer).finish();
}

/// The array of a tensor or of Arrow data, in host memory.
DeviceArray take_integers(PyObject* object) {
  const auto [kind, api] = classify(object);
  DeviceArray array;
  if (kind == Kind::kArrow) {
    array = take_array_of(object);
  } else if (kind == Kind::kTensor) {
    TakenTensor taken = take_tensor_of(object, api, Copy::kIfNeeded, nullptr);
    array = to_arrow(std::move(taken.tensor), ToArrowOptions{}, std::move(taken.event));
  } else {
    raise_type_error("row numbers of type ", Py_TYPE(object)->tp_name, ": ", kAdvice);
  }
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

py::object read_array(PyObject* object, int64_t num_rows) {
  const DeviceArray array = take_integers(object);
  NumberWriter writer(array.length(), num_rows);
  visit_integer(array.type().schema->format, [&](auto zero) {
    using Integer = decltype(zero);
    const Integer* const numbers = array.buffer_as<Integer>(1) + array.offset();
    for (int64_t i = 0; i < array.length(); ++i) {
      if constexpr (std::is_same_v<Integer, uint64_t>) {
        if (numbers[i] > static_cast<uint64_t>(INT64_MAX)) {
          writer.raise_outside(concat(numbers[i]));
        }
      }
      writer.append(static_cast<int64_t>(numbers[i]));
    }
  });
  return std::move(writer).finish();
}

py::object read_row_numbers(const py::object& rows, int64_t num_rows) {
  PyObject* const object = rows.ptr();
  if (PySlice_Check(object) != 0) return read_slice(object, num_rows);
  const bool is_sequence =
      PyList_Check(object) != 0 || PyTuple_Check(object) != 0 || PyRange_Check(object) != 0;
  return is_sequence ? read_sequence(object, num_rows) : read_array(object, num_rows);
}

/// Numbers that `read_row_numbers` has made.
RowNumbers view_numbers(const DeviceArray& array) {
  const Type& type = array.type();
  if (std::string_view(type.schema->format) != "l" || array.device().type != kDLCPU) {
    raise_type_error("read_row_numbers makes row numbers, these are ", to_string(type));
  }
  return {array.buffer_as<int64_t>(1) + array.offset(), array.length()};
}

// ---------------------------------------------------------------- rows

ChunkedRows make_rows(const py::object&, const std::vector<py::object>& arrays,
                      const std::vector<int64_t>& starts) {
  std::vector<DeviceArray> taken;
  for (const py::object& array : arrays) taken.push_back(take_array_of(array.ptr()));
  const auto schema = make_stream(taken)->schema();  // checks that there is one
  return {schema, std::move(taken), starts};
}

py::tuple take_rows(const ChunkedRows& self, const py::object& numbers) {
  const DeviceArray array = take_array_of(numbers.ptr());
  TakenRows taken;
  {
    const py::gil_scoped_release release;
    taken = self.take(view_numbers(array));
  }
  return py::make_tuple(wrap(std::move(taken.rows)), taken.is_shared);
}

py::tuple group_rows(const py::object& numbers, const std::vector<int64_t>& starts) {
  const DeviceArray array = take_array_of(numbers.ptr());
  PartedNumbers parted = group_by_part(view_numbers(array), RowStarts(starts));
  const auto make = [&](Buffer buffer) {
    return DeviceArray::make_primitive(*find_dtype("int64"), array.length(), std::move(buffer),
                                       Device{});
  };
  const DeviceArray by_part = make(std::move(parted.numbers));
  py::list parts;
  int64_t start = 0;
  for (std::size_t i = 0; i < parted.parts.size(); ++i) {
    const int64_t end = parted.ends[i];
    parts.append(py::make_tuple(parted.parts[i], wrap(by_part.slice(start, end - start))));
    start = end;
  }
  return py::make_tuple(parts, wrap(make(std::move(parted.order))));
}

}  // namespace

void register_take_rows(py::module_& m) {
  py::class_<ChunkedRows> type(
      m, "ChunkedRows", py::is_final(),
      "ChunkedRows(arrays, starts)\n--\n\n"
      "Arrays of one schema whose rows are numbered: row 0 of each has the number in `starts`.\n\n"
      "Many threads may take rows at once.");
  define_constructor(type, &make_rows, py::arg("arrays"), py::arg("starts"));
  type.def(
      "take", &take_rows, py::arg("numbers"),
      "Return the rows with `numbers`, which `read_row_numbers` has made, and whether they are "
      "a window of one of the arrays. Other rows are in new memory.");
  m.def("read_row_numbers", &read_row_numbers, py::arg("rows"), py::arg("num_rows"),
        "Return row numbers from 0, as int64 in host "
        "memory. `rows` is a slice, or a sequence, tensor or Arrow array of integers, of which "
        "negative ones count from the end.");
  m.def("group_rows", &group_rows, py::arg("numbers"), py::arg("starts"),
        "Return the parts that have rows with `numbers`, each "
        "with its numbers, and where each row is among those of all parts. `starts` has the number "
        "of the first row of each part.");
}

}  // namespace arrowdl::python
