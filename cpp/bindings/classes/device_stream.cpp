#include "classes/device_stream.hpp"

#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "classes/device.hpp"
#include "classes/device_array.hpp"
#include "classes/schema.hpp"
#include "import/arrow.hpp"
#include "support/capsule.hpp"
#include "support/gil.hpp"
#include "support/objects.hpp"
#include "support/values.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// A Python exception on its way through streams, whose text may be asked for on any thread.
/// pybind11's makes it in `what`, and ends the process where there is no memory.
class PassingError final : public py::error_already_set {
 public:
  explicit PassingError(const py::error_already_set& error)
      : py::error_already_set(error), text_(describe(error.value().ptr())) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  static std::string describe(PyObject* error) {
    const auto text = py::reinterpret_steal<py::object>(PyObject_Str(error));
    const char* utf8 = text ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
    if (utf8 == nullptr) PyErr_Clear();
    return concat(Py_TYPE(error)->tp_name, ": ", utf8 == nullptr ? "its text fails" : utf8);
  }

  std::string text_;
};

/// What a thread that waits looks at now and then, without the interpreter lock.
void check_signals() {
  if (is_ending()) throw Error(ErrorKind::kRuntime, "the interpreter ends: nobody waits any more");
  require_gil([] {
    if (PyErr_CheckSignals() != 0) throw PassingError(py::error_already_set());
  });
}

/// The arrays that a Python iterator gives, of the type of the first.
class IteratorStream final : public ArrayStream {
 public:
  IteratorStream(py::object iterator, DeviceArray first)
      : ArrayStream(share_schema(first.export_schema()), first.device().type),
        iterator_(share_object(iterator.ptr())),
        first_(std::move(first)) {}

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
      PyErr_Clear();  // one that there was no memory to throw
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
    DeviceArray array = take_array_of(item.ptr());
    check_chunk(*schema(), device_type(), array, ++position_);
    return array;
  }

  std::shared_ptr<const void> iterator_;
  DeviceArray first_;
  std::size_t position_ = 0;
};

/// A stream with its one owner at a time: whoever adapts it takes it.
class DeviceStream {
 public:
  DeviceStream() = default;  ///< holds nothing yet
  explicit DeviceStream(OwnedStream stream)
      : schema_(stream->schema()),
        device_type_(stream->device_type()),
        stream_(std::move(stream)) {}
  DeviceStream(DeviceStream&& other) noexcept
      : schema_(std::move(other.schema_)),
        device_type_(other.device_type_),
        stream_(std::move(other.stream_)) {}
  DeviceStream& operator=(DeviceStream&& other) noexcept {
    schema_ = std::move(other.schema_);
    device_type_ = other.device_type_;
    stream_ = std::move(other.stream_);
    return *this;
  }

  const ParsedSchema& schema() const noexcept { return *schema_; }
  int32_t device_type() const noexcept { return device_type_; }

  py::object next() {
    DeviceArray array;
    {
      const py::gil_scoped_release release;
      const Turn turn(*this);
      require_open();
      array = stream_->next();
    }
    if (!array) throw py::stop_iteration();
    return wrap(std::move(array));
  }

  /// What `adapt(OwnedStream&&)` makes of the stream, which is spent then; where it raises, it is
  /// as before.
  template <typename Adapt>
  auto hand_on(const Adapt& adapt) {
    const py::gil_scoped_release release;
    const Turn turn(*this);
    require_open();
    return adapt(std::move(stream_));
  }

  void close() {
    const py::gil_scoped_release release;
    const Turn turn(*this);
    stream_.reset();
  }

 private:
  /// One thread at a time has the stream. Raises RuntimeError where this one has it already: what
  /// the stream reads from, Python code as it may be, asks for the stream itself.
  class Turn {
   public:
    explicit Turn(DeviceStream& stream) : stream_(stream) {
      const std::thread::id own = std::this_thread::get_id();
      if (stream_.holder_ == own) {
        throw Error(ErrorKind::kRuntime,
                    "this DeviceStream is being read by this thread: its source cannot read, adapt "
                    "or close it in turn");
      }
      lock();
      stream_.holder_ = own;
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      stream_.holder_ = std::thread::id();
      stream_.mutex_.unlock();
    }

   private:
    /// Whoever had the lock may have been stopped with the interpreter: then it stays locked.
    void lock() {
      constexpr std::chrono::milliseconds kInterval{50};
      while (!stream_.mutex_.try_lock_for(kInterval)) {
        if (is_ending()) {
          throw Error(ErrorKind::kRuntime,
                      "another thread was reading this DeviceStream when the interpreter ended");
        }
        check_signals();
      }
    }

    DeviceStream& stream_;
  };

  void require_open() const {
    if (stream_ == nullptr) {
      raise_value_error(
          "this DeviceStream has been closed or handed on, to an adaptor or a consumer: a stream "
          "can be read once, go on with what was made of it");
    }
  }

  std::shared_ptr<const ParsedSchema> schema_;
  int32_t device_type_ = 0;
  std::timed_mutex mutex_;
  std::atomic<std::thread::id> holder_{};  ///< of the mutex
  OwnedStream stream_;
};

}  // namespace
}  // namespace arrowdl::python

ARROWDL_CAST_BY_VALUE(arrowdl::python::DeviceStream)

namespace arrowdl::python {
namespace {

DeviceStream iterate(const py::object& object) {
  py::object iterator = py::reinterpret_steal<py::object>(PyObject_GetIter(object.ptr()));
  if (!iterator) {
    PyErr_Clear();
    raise_type_error("stream() cannot read an object of type ", Py_TYPE(object.ptr())->tp_name,
                     ": it has no Arrow protocol, and is no iterable of what has one");
  }
  const auto first = py::reinterpret_steal<py::object>(PyIter_Next(iterator.ptr()));
  if (!first) {
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    raise_value_error(
        "the iterable is empty, and an Arrow stream has a type: give at least one "
        "array, of no rows if need be");
  }
  return DeviceStream(std::make_unique<IteratorStream>(iterator, take_array_of(first.ptr())));
}

py::object open(const py::object& object) {
  if (py::isinstance<DeviceStream>(object)) return object;
  if (OwnedStream stream = find_stream(object.ptr())) {
    return py::cast(DeviceStream(std::move(stream)));
  }
  return py::cast(iterate(object));
}

template <typename Adapt>
DeviceStream make_adapted(DeviceStream& self, const Adapt& adapt) {
  return DeviceStream(self.hand_on(adapt));
}

DeviceStream select(DeviceStream& self, const std::vector<std::string>& columns) {
  return make_adapted(
      self, [&](OwnedStream&& stream) { return select_columns(std::move(stream), columns); });
}

DeviceStream rebatch_rows(DeviceStream& self, int64_t rows, bool drop_last) {
  return make_adapted(
      self, [&](OwnedStream&& stream) { return rebatch(std::move(stream), rows, drop_last); });
}

DeviceStream slice(DeviceStream& self, int64_t start, std::optional<int64_t> length) {
  constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
  return make_adapted(self, [&](OwnedStream&& stream) {
    return slice_stream(std::move(stream), start, length.value_or(kToTheEnd));
  });
}

DeviceStream shuffle_rows(DeviceStream& self, int64_t buffer_rows, uint64_t seed,
                          uint64_t first_window) {
  return make_adapted(self, [&](OwnedStream&& stream) {
    return shuffle(std::move(stream), buffer_rows, seed, first_window);
  });
}

DeviceStream take_shard(DeviceStream& self, int64_t index, int64_t count, bool pad) {
  return make_adapted(
      self, [&](OwnedStream&& stream) { return shard(std::move(stream), index, count, pad); });
}

DeviceStream copy_to_device(DeviceStream& self, const py::object& device, bool pin) {
  const Device target = read_device(device.ptr());
  return make_adapted(
      self, [&](OwnedStream&& stream) { return copy_stream_to(std::move(stream), target, pin); });
}

DeviceStream prefetch_arrays(DeviceStream& self, int64_t depth) {
  return make_adapted(self,
                      [&](OwnedStream&& stream) { return prefetch(std::move(stream), depth); });
}

py::object arrow_c_stream(DeviceStream& self, const py::object& requested_schema) {
  const auto requested = read_requested_schema(requested_schema.ptr());
  return make_capsule(self.hand_on([&](OwnedStream&& stream) {
    if (requested == nullptr) return export_stream(std::move(stream));
    return export_stream(cast_stream(std::move(stream), requested, CastTarget::kHost));
  }));
}

py::object arrow_c_device_stream(DeviceStream& self, const py::object& requested_schema,
                                 const py::kwargs& more) {
  for (const auto& [name, value] : more) {
    if (value.is_none()) continue;
    PyErr_Format(PyExc_NotImplementedError,
                 "__arrow_c_device_stream__(): the keyword '%U' is not supported", name.ptr());
    throw py::error_already_set();
  }
  const auto requested = read_requested_schema(requested_schema.ptr());
  return make_capsule(self.hand_on([&](OwnedStream&& stream) {
    if (requested == nullptr) return export_device_stream(std::move(stream));
    return export_device_stream(cast_stream(std::move(stream), requested));
  }));
}

DeviceStream chain(const std::vector<py::object>& arrays) {
  std::vector<DeviceArray> taken;
  taken.reserve(arrays.size());
  for (const py::object& array : arrays) taken.push_back(take_array_of(array.ptr()));
  return DeviceStream(make_stream(std::move(taken)));
}

std::string repr(const DeviceStream& self) {
  return concat("<arrowdl.DeviceStream of ", to_string(self.schema().type), ", ",
                find_device_type(self.device_type())->name, ">");
}

py::object make_schema(const DeviceStream& self) {
  OwnedSchema copy;
  if (ArrowSchemaDeepCopy(self.schema().schema.get(), copy.get()) != NANOARROW_OK) {
    throw std::bad_alloc();
  }
  return py::cast(Schema(std::move(copy)));
}

/// A frame can be read again and a stream cannot: all of its arrays are its chunks.
py::object make_dataframe(DeviceStream& self, bool nan_as_null, bool allow_copy) {
  Chunks chunks = self.hand_on([](OwnedStream&& stream) {
    const OwnedStream source = std::move(stream);
    return read_stream(*source);
  });
  if (chunks.arrays.empty()) chunks.arrays.push_back(make_empty(chunks.schema));
  py::list arrays;
  for (DeviceArray& array : chunks.arrays) arrays.append(wrap(std::move(array)));
  const py::object make = py::module_::import("arrowdl._interchange.export").attr("DataFrame");
  return make(arrays, py::arg("nan_as_null") = nan_as_null, py::arg("allow_copy") = allow_copy);
}

py::object arrow_c_schema(const DeviceStream& self) {
  return make_schema(self).attr("__arrow_c_schema__")();
}

constexpr const char* kDoc =
    R"(Arrow arrays of one type, one after another, on any device.

Made by `stream`. An iterator of `DeviceArray`, and itself an Arrow stream for any consumer
(``__arrow_c_stream__``, ``__arrow_c_device_stream__``). The adaptors each return a new DeviceStream
and take this one over: it is spent then, as it is when a consumer has taken it. Nothing is read
before an array is asked for, and the interpreter lock is free while the streams work.)";

/// A consumer that waits for another thread looks at signals itself; and when the interpreter ends,
/// that thread may have been stopped.
void define_protocols(py::class_<DeviceStream>& type) {
  type.def("__iter__", [](const py::object& self) { return self; })
      .def("__next__", &DeviceStream::next)
      .def("__repr__", &repr)
      .def("__arrow_c_schema__", &arrow_c_schema,
           "__arrow_c_schema__(self, /)\n--\n\nArrow PyCapsule interface: the schema.")
      .def("__arrow_c_stream__", &arrow_c_stream, py::arg("requested_schema") = py::none(),
           "__arrow_c_stream__(self, /, requested_schema=None)\n--\n\nArrow PyCapsule interface: "
           "the stream, of memory that the host can read. This object is spent then.\n\n"
           "Given as `requested_schema` has it where its type can be, and as it is otherwise. An "
           "array whose\nvalues cannot is a ValueError of the reading; so is, at once, a schema "
           "that is incompatible.")
      .def("__arrow_c_device_stream__", &arrow_c_device_stream,
           py::arg("requested_schema") = py::none(),
           "__arrow_c_device_stream__(self, /, requested_schema=None, **kwargs)\n--\n\nArrow "
           "PyCapsule interface: the device stream. This object is spent then.")
      .def("__dataframe__", &make_dataframe, py::arg("nan_as_null") = false,
           py::arg("allow_copy") = true,
           "__dataframe__(self, /, nan_as_null=False, allow_copy=True)\n--\n\nDataframe "
           "interchange protocol: the arrays of a stream of structs as the chunks of a frame, read "
           "to the end. This object is spent then.")
      .def_property_readonly("schema", &make_schema, "The Arrow schema of every array.")
      .def_property_readonly(
          "device_type", [](const DeviceStream& self) { return self.device_type(); },
          "The device type of every array, a number of `device_types`.")
      .def("close", &DeviceStream::close,
           "close(self, /)\n--\n\nGive back what the stream holds, its threads included. Arrays "
           "that it gave stay good.");
}

void define_adaptors(py::class_<DeviceStream>& type) {
  type.def("select", &select, py::arg("columns"),
           R"(select(self, /, columns)
--

The named columns, in that order; zero-copy.

Parameters
----------
columns : sequence of str

Raises
------
ValueError
    A name that is not there, or not unique.
TypeError
    A stream of anything but structs.)")
      .def("rebatch", &rebatch_rows, py::arg("rows"), py::kw_only(), py::arg("drop_last") = false,
           R"(rebatch(self, /, rows, *, drop_last=False)
--

Arrays of `rows` rows, the last one of what is left.

A slice where one array holds all the rows, one copy of each buffer where they lie in several.

Parameters
----------
rows : int
    At least 1.
drop_last : bool
    Leave an incomplete last array out.

Raises
------
BufferError
    From the iteration: rows of several arrays on a device that the host cannot read. Rebatch
    first, then copy with `to`.)")
      .def("slice", &slice, py::arg("start"), py::arg("length") = py::none(),
           R"(slice(self, /, start, length=None)
--

Rows `start` to ``start + length`` of the whole stream, or to its end.)")
      .def("shuffle", &shuffle_rows, py::arg("buffer_rows"), py::arg("seed"), py::kw_only(),
           py::arg("first_window") = 0,
           R"(shuffle(self, /, buffer_rows, seed, *, first_window=0)
--

The rows in another order: each window of `buffer_rows` consecutive rows is permuted.

The order depends on nothing but `seed`, `buffer_rows` and a row's position, on every machine and
however the source cuts its arrays. One window is held in memory.

Parameters
----------
buffer_rows : int
    1 to 2**32 - 1.
seed : int
    0 to 2**64 - 1.
first_window : int
    The number of the window that the stream starts with: one that starts later goes on as the
    whole one does.

Raises
------
BufferError
    From the iteration: memory that the host cannot read.)")
      .def("shard", &take_shard, py::arg("index"), py::arg("count"), py::kw_only(),
           py::arg("pad") = false,
           R"(shard(self, /, index, count, *, pad=False)
--

Part `index` of `count` of every array, cut into as equal parts as there can be.

Parameters
----------
index, count : int
    0 <= index < count.
pad : bool
    Where an array has fewer rows than there are parts, those without one get its last row again;
    otherwise they get an array of no rows.)")
      .def("to", &copy_to_device, py::arg("device"), py::kw_only(), py::arg("pin") = true,
           R"(to(self, /, device, *, pin=True)
--

The arrays in memory of `device`, as `DeviceArray.to` copies them: on a stream of arrowdl's, each
with one event for all of its copies, and nobody waits.

Parameters
----------
device : Device, str, tuple or device object
pin : bool
    Whether pageable memory goes to CUDA and ROCm devices through pinned memory of arrowdl's, which
    is used again: see `set_staging_limit`.)")
      .def("prefetch", &prefetch_arrays, py::arg("depth") = 2,
           R"(prefetch(self, /, depth=2)
--

The same arrays, read ahead by a native thread that holds up to `depth` of them.

An error of the source is raised when its place in the order comes. The thread starts with the first
array that is asked for, and ends with the stream. In a forked child, which has not the thread,
iterating raises RuntimeError.)");
}

}  // namespace

void register_device_stream(py::module_& m) {
  py::options options;
  options.disable_function_signatures();
  py::class_<DeviceStream> type(m, "DeviceStream", py::is_final(), kDoc);
  define_protocols(type);
  define_adaptors(type);
  m.def("stream", &open, py::arg("obj"), py::pos_only(),
        R"(stream(obj, /)
--

Read an Arrow stream of any library, array by array.

Parameters
----------
obj : DeviceStream, Arrow producer, capsule, or iterable
    Anything with ``__arrow_c_device_stream__`` or ``__arrow_c_stream__`` (tried in that order), a
    stream capsule, whatever else `from_arrow` takes (a stream of one array), or an iterable of
    such arrays, which must be of one type and device type.

Returns
-------
DeviceStream
    `obj` itself if it is one.

Raises
------
TypeError
    None of these.
RuntimeError
    The producer failed; its message is in the error.)");
  m.def(
      "chain", &chain, py::arg("arrays"),
      "chain(arrays)\n--\n\nA stream of DeviceArrays, at least one, with no Python between them.");
  m.def("permute", &permute, py::arg("count"), py::arg("seed"),
        "permute(count, seed)\n--\n\nThe numbers 0 to count - 1 in an order that depends on "
        "nothing but `seed` and `count`.");
  set_interrupt_check(check_signals);
}

}  // namespace arrowdl::python
