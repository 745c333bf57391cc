// Receives an asynchronous stream for Python.
#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "arrowdl/async_stream.hpp"
#include "classes/classes.hpp"
#include "classes/schema.hpp"
#include "schema/make_schema.hpp"
#include "support/capsule.hpp"
#include "support/constructor.hpp"
#include "support/device_array_object.hpp"
#include "support/gil.hpp"
#include "support/values.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

class Receiver {
 public:
  Receiver() = default;  ///< holds nothing yet
  explicit Receiver(int64_t depth)
      : receiver_(std::make_shared<AsyncReceiver>(depth, release_with_gil)) {}
  Receiver(Receiver&& other) noexcept = default;
  Receiver& operator=(Receiver&& other) noexcept = default;
  ~Receiver() {
    if (receiver_ == nullptr) return;
    const WithoutGil release;  // the producer's `cancel` may run any code
    receiver_.reset();
  }

  uintptr_t handler() { return reinterpret_cast<uintptr_t>(receiver_->handler()); }

  void release_handler() {
    const py::gil_scoped_release release;
    receiver_->release_handler();
  }

  py::object schema() const {
    const auto schema = receiver_->schema();
    if (schema == nullptr) return py::none();
    return py::cast(Schema(copy_schema(*schema->schema.get())));
  }

  py::object poll() {
    std::optional<DeviceArray> array;
    {
      const py::gil_scoped_release release;
      array = receiver_->poll();
    }
    if (!array) return py::none();
    return py::make_tuple(*array ? wrap(std::move(*array)) : py::none());
  }

  uint64_t changes() const { return receiver_->changes(); }

  bool notify(uint64_t seen, const py::object& callback) {
    std::function<void()> call;
    if (!callback.is_none()) call = [held = share_object(callback.ptr())] { call_object(held); };
    return receiver_->notify(seen, std::move(call));
  }

  py::object open_stream() {
    OwnedStream stream;
    {
      const py::gil_scoped_release release;
      stream = read_async(receiver_);
    }
    return wrap(std::move(stream));
  }

  void cancel() {
    const py::gil_scoped_release release;
    receiver_->cancel();
  }

 private:
  static void call_object(const std::shared_ptr<const void>& held) noexcept {
    with_gil([&held] {
      auto* const object = static_cast<PyObject*>(const_cast<void*>(held.get()));
      if (PyObject* const result = PyObject_CallNoArgs(object)) {
        Py_DECREF(result);
      } else {
        PyErr_WriteUnraisable(object);
      }
    });
  }

  std::shared_ptr<AsyncReceiver> receiver_;
};

Receiver construct_receiver(const py::object&, int64_t depth) { return Receiver(depth); }

}  // namespace
}  // namespace arrowdl::python

ARROWDL_CAST_BY_VALUE(arrowdl::python::Receiver)

namespace arrowdl::python {

void register_async_receiver(py::module_& m) {
  py::options options;
  options.disable_function_signatures();
  py::class_<Receiver> type(m, "AsyncReceiver", py::is_final(),
                            "The queue behind an `arrowdl.AsyncDeviceStream`.");
  define_constructor(type, &construct_receiver, py::arg("depth"));
  type.def_property_readonly("handler", &Receiver::handler,
                             "The address of the ArrowAsyncDeviceStreamHandler.")
      .def("release_handler", &Receiver::release_handler,
           "release_handler(self, /)\n--\n\nRelease the handler in place of a producer that did "
           "not start.")
      .def("schema", &Receiver::schema,
           "schema(self, /)\n--\n\nReturn the schema, or None if it has not arrived.")
      .def("poll", &Receiver::poll,
           "poll(self, /)\n--\n\nReturn the next array in a tuple of one, (None,) at the end, or "
           "None if no array is ready.")
      .def("changes", &Receiver::changes,
           "changes(self, /)\n--\n\nReturn how often the producer has changed what `schema` or "
           "`poll` return.")
      .def("notify", &Receiver::notify, py::arg("seen"), py::arg("callback"),
           "notify(self, /, seen, callback)\n--\n\nCall `callback` once after the next change, on "
           "any thread; None: never. Return False instead if `changes()` is not `seen`.")
      .def("open_stream", &Receiver::open_stream,
           "open_stream(self, /)\n--\n\nReturn the arrays as a DeviceStream. Waits for the schema.")
      .def("cancel", &Receiver::cancel,
           "cancel(self, /)\n--\n\nDrop the arrays that wait, and ask the producer to stop.");
}

}  // namespace arrowdl::python
