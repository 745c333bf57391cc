// Reads a Python iterator as a stream.
#include "import/iterator_stream.hpp"

#include <memory>
#include <utility>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "import/arrow.hpp"
#include "support/gil.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

constexpr const char* kFunction = "from_arrow_stream";

/// The first item of an iterator of `object`. An object without `__iter__` is iterated by its
/// `__getitem__`, which may be for other keys than 0.
py::object read_first(PyObject* iterator, PyObject* object) {
  auto first = py::reinterpret_steal<py::object>(PyIter_Next(iterator));
  if (first || PyErr_Occurred() == nullptr) return first;
  py::error_already_set error;
  if (Py_TYPE(object)->tp_iter != nullptr || !error.matches(PyExc_Exception)) throw error;
  raise_unread(kFunction, object);
}

class IteratorStream final : public ArrayStream {
 public:
  IteratorStream(const py::object& iterator, DeviceArray first)
      : ArrayStream(share_schema(first.export_schema()), first.device().type),
        iterator_(share_object(iterator.ptr())),
        first_(std::move(first)) {}
  IteratorStream(const py::object& iterator, std::shared_ptr<const ParsedSchema> schema,
                 int32_t device_type)
      : ArrayStream(std::move(schema), device_type), iterator_(share_object(iterator.ptr())) {}

  DeviceArray next(int64_t) override {
    if (first_) return std::exchange(first_, DeviceArray());
    DeviceArray array;
    if (iterator_ != nullptr) require_gil([&] { array = take_next(); });
    return array;
  }

 private:
  DeviceArray take_next() {
    try {
      return read();
    } catch (const py::error_already_set& error) {
      throw PassingError(error);
    } catch (const std::bad_alloc&) {
      PyErr_Clear();  // the error that pybind11 had no memory to throw
      throw;
    }
  }

  DeviceArray read() {
    const auto item = py::reinterpret_steal<py::object>(
        PyIter_Next(static_cast<PyObject*>(const_cast<void*>(iterator_.get()))));
    if (!item) {
      iterator_.reset();
      if (PyErr_Occurred() != nullptr) throw py::error_already_set();
      return {};
    }
    DeviceArray array = take_array_of(item.ptr(), Copy::kIfNeeded, kFunction);
    check_chunk(*schema(), device_type(), array, ++position_);
    return array;
  }

  std::shared_ptr<const void> iterator_;
  DeviceArray first_;
  std::size_t position_ = 0;
};

}  // namespace

OwnedStream iterate(const py::object& iterator, std::shared_ptr<const ParsedSchema> schema,
                    int32_t device_type) {
  return std::make_unique<IteratorStream>(iterator, std::move(schema), device_type);
}

OwnedStream iterate(const py::object& object) {
  const auto iterator = py::reinterpret_steal<py::object>(PyObject_GetIter(object.ptr()));
  if (!iterator) {
    PyErr_Clear();
    raise_unread(kFunction, object.ptr());
  }
  const py::object first = read_first(iterator.ptr(), object.ptr());
  if (!first) {
    raise_value_error(
        "the iterable is empty, and an Arrow stream needs a type: yield at least one array, which "
        "may have no rows");
  }
  return std::make_unique<IteratorStream>(iterator,
                                          take_array_of(first.ptr(), Copy::kIfNeeded, kFunction));
}

}  // namespace arrowdl::python
