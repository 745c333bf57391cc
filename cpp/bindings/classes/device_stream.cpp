// Reads, adapts and exports a DeviceStream.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrowdl/async_stream.hpp"
#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/pack.hpp"
#include "classes/classes.hpp"
#include "classes/device_stream_docs.hpp"
#include "classes/pack_options.hpp"
#include "classes/schema.hpp"
#include "export/allocator.hpp"
#include "import/arrow.hpp"
#include "import/iterator_stream.hpp"
#include "schema/make_schema.hpp"
#include "support/capsule.hpp"
#include "support/device_array_object.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"
#include "support/read_lock.hpp"
#include "support/values.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;
namespace stream_docs = device_stream_docs;

/// A stream and its lock. An adaptor or a consumer takes the stream over. It may be opened by a
/// Python function, when it is first used.
class DeviceStream {
 public:
  DeviceStream() = default;  ///< holds nothing yet
  explicit DeviceStream(std::shared_ptr<const void> opener) : opener_(std::move(opener)) {}
  explicit DeviceStream(OwnedStream stream)
      : schema_(stream->schema()),
        device_type_(stream->device_type()),
        is_typed_(true),
        stream_(std::move(stream)) {}
  DeviceStream(DeviceStream&& other) noexcept { *this = std::move(other); }
  DeviceStream& operator=(DeviceStream&& other) noexcept {
    schema_ = std::move(other.schema_);
    device_type_ = other.device_type_;
    is_typed_ = other.is_typed_.load();
    stream_ = std::move(other.stream_);
    opener_ = std::move(other.opener_);
    return *this;
  }

  const ParsedSchema& schema() { return *opened().schema_; }
  int32_t device_type() { return opened().device_type_; }
  /// Whether `schema` opens nothing.
  bool is_typed() const noexcept { return is_typed_; }

  /// The next array, or an empty object at the end.
  py::object next() {
    DeviceArray array;
    {
      const py::gil_scoped_release release;
      const ReadLock lock(mutex_);
      open();
      array = stream_->next();
    }
    return array ? wrap(std::move(array)) : py::object();
  }

  /// The result of `use(OwnedStream&&)`, which takes the stream over. If it raises before that, the
  /// stream stays.
  template <typename Use>
  auto consume(const Use& use) {
    const py::gil_scoped_release release;
    const ReadLock lock(mutex_);
    open();
    return use(std::move(stream_));
  }

  void close() {
    const py::gil_scoped_release release;
    const ReadLock lock(mutex_);
    stream_.reset();
    opener_.reset();
  }

 private:
  /// This object, with its type known. A stream that was taken still has its type.
  DeviceStream& opened() {
    if (is_typed_) return *this;  // without the lock: another thread may read for long
    const py::gil_scoped_release release;
    const ReadLock lock(mutex_);
    if (!is_typed_) open();
    return *this;
  }

  /// Opens the stream; the caller holds the lock. Raises ValueError if it is closed.
  void open();
  void call_opener();

  std::shared_ptr<const ParsedSchema> schema_;
  int32_t device_type_ = 0;
  std::atomic<bool> is_typed_{false};  ///< whether the two above are known; they stay
  ReadMutex mutex_;
  OwnedStream stream_;
  std::shared_ptr<const void> opener_;  ///< a Python function without arguments
};

}  // namespace
}  // namespace arrowdl::python

ARROWDL_CAST_BY_VALUE(arrowdl::python::DeviceStream)

namespace arrowdl::python {
namespace {

void DeviceStream::open() {
  if (opener_ != nullptr) {
    require_gil([this] { call_opener(); });
    opener_.reset();
  }
  if (stream_ == nullptr) {
    raise_value_error(
        "this DeviceStream is closed, or an adaptor or a consumer has taken it: a stream can be "
        "read once, continue with what was made of it");
  }
}

void DeviceStream::call_opener() {
  try {
    const py::object made = py::reinterpret_borrow<py::object>(
        static_cast<PyObject*>(const_cast<void*>(opener_.get())))();
    auto& other = made.cast<DeviceStream&>();
    stream_ = other.consume([](OwnedStream&& stream) { return std::move(stream); });
  } catch (const py::error_already_set& error) {
    throw PassingError(error);
  }
  schema_ = stream_->schema();
  device_type_ = stream_->device_type();
  is_typed_ = true;
}

/// Returns a stream that calls `opener`, which returns another DeviceStream, when it is first used.
DeviceStream open_later(const py::object& opener) {
  return DeviceStream(share_object(opener.ptr()));
}

/// Returns a stream of the arrays of a Python iterator, which reads no array before it is
/// requested.
py::object read_arrays(const py::object& iterator, const py::object& schema, int32_t device_type) {
  const auto parsed = read_requested_schema(schema.attr("__arrow_c_schema__")().ptr());
  return wrap(iterate(iterator, parsed, device_type));
}

py::object map_batches(const py::object& self, const py::args& model, const py::kwargs& options) {
  const py::tuple given = py::make_tuple(self) + model;
  return checked(PyObject_Call(find_hook(Hook::kMap).ptr(), given.ptr(), options.ptr()));
}

py::object from_arrow_stream(const py::object& object) {
  if (py::isinstance<DeviceStream>(object)) return object;
  if (OwnedStream stream = find_stream(object.ptr())) return wrap(std::move(stream));
  const py::object opened = find_hook(Hook::kOpenStream)(object);
  if (opened.is_none()) return wrap(iterate(object));
  if (OwnedStream stream = find_stream(opened.ptr())) return wrap(std::move(stream));
  return wrap(iterate(opened));
}

// ---------------------------------------------------------------- adaptors

template <typename Adapt>
DeviceStream adapt(DeviceStream& self, const Adapt& make) {
  return DeviceStream(self.consume(make));
}

/// Calls an adaptor of the core with the arguments that Python gave.
template <auto Adaptor, typename... Arguments>
DeviceStream adapt_by(DeviceStream& self, const Arguments&... arguments) {
  return adapt(self,
               [&](OwnedStream&& stream) { return Adaptor(std::move(stream), arguments...); });
}

DeviceStream slice(DeviceStream& self, int64_t start, std::optional<int64_t> length) {
  constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
  return adapt(self, [&](OwnedStream&& stream) {
    return slice_stream(std::move(stream), start, length.value_or(kToTheEnd));
  });
}

DeviceStream pack_sequences(DeviceStream& self, std::string column, int64_t length,
                            py::object strategy, int64_t buffer_size, py::object longer,
                            py::object pad_value, bool drop_last,
                            std::optional<std::vector<std::string>> aligned,
                            std::vector<std::string> add, std::array<int64_t, 3> resume_from) {
  PackOptions options;
  options.column = std::move(column);
  options.length = length;
  options.buffer_size = buffer_size;
  options.drop_last = drop_last;
  options.added = std::move(add);
  read_pack_options(self.schema().type,
                    {std::move(strategy), std::move(longer), std::move(pad_value),
                     std::move(aligned), resume_from},
                    &options);
  return adapt(self, [&](OwnedStream&& stream) { return pack(std::move(stream), options); });
}

DeviceStream copy_to_device(DeviceStream& self, const py::object& device, bool pin_memory,
                            const py::object& allocator) {
  const Device target = read_device(device.ptr());
  Allocator allocate = read_allocator(allocator.ptr());
  return adapt(self, [&](OwnedStream&& stream) {
    return copy_stream_to(std::move(stream), target, pin_memory, std::move(allocate));
  });
}

// ---------------------------------------------------------------- protocols

py::object arrow_c_stream(DeviceStream& self, const py::object& requested_schema) {
  const auto requested = read_requested_schema(requested_schema.ptr());
  return make_capsule(self.consume([&](OwnedStream&& stream) {
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
  return make_capsule(self.consume([&](OwnedStream&& stream) {
    if (requested == nullptr) return export_device_stream(std::move(stream));
    return export_device_stream(cast_stream(std::move(stream), requested));
  }));
}

/// For a receiver of ours: without the C stream between, errors keep their types.
void send_to_receiver(DeviceStream& self, uintptr_t handler) {
  auto* const receiver = reinterpret_cast<ArrowAsyncDeviceStreamHandler*>(handler);
  self.consume([&](OwnedStream&& stream) { export_async_stream(std::move(stream), receiver); });
}

DeviceStream chain(const std::vector<py::object>& arrays) {
  std::vector<DeviceArray> taken;
  taken.reserve(arrays.size());
  for (const py::object& array : arrays) taken.push_back(take_array_of(array.ptr()));
  return DeviceStream(make_stream(std::move(taken)));
}

/// Streams that were taken are gone if a later one is closed.
std::vector<OwnedStream> take_streams(const std::vector<py::object>& streams) {
  std::vector<OwnedStream> taken;
  taken.reserve(streams.size());
  for (const py::object& stream : streams) {
    taken.push_back(stream.cast<DeviceStream&>().consume(
        [](OwnedStream&& owned) { return OwnedStream(std::move(owned)); }));
  }
  return taken;
}

DeviceStream interleave_streams(const std::vector<py::object>& streams, int64_t rows,
                                int64_t skip) {
  return DeviceStream(interleave(take_streams(streams), rows, skip));
}

DeviceStream fill_stream(DeviceStream& self, const py::object& options) {
  const ColumnOptions& columns = find_column_options(options.ptr());
  return adapt(self, [&](OwnedStream&& stream) {
    std::vector<Nulls> nulls;
    for (const Type& field : stream->schema()->type.children) {
      nulls.push_back(columns.find_null_policy(field.name()));
    }
    return fill_nulls(std::move(stream), nulls);
  });
}

/// A phase is its rows, and then stream, weight and progress of each share.
DeviceStream mix_streams(const std::vector<py::object>& streams,
                         const std::vector<std::vector<uint64_t>>& phases) {
  std::vector<MixPhase> read;
  for (const std::vector<uint64_t>& numbers : phases) {
    MixPhase phase{static_cast<int64_t>(numbers.at(0)), {}};
    for (std::size_t i = 1; i + 2 < numbers.size(); i += 3) {
      phase.shares.push_back({static_cast<uint32_t>(numbers[i]), numbers[i + 1], numbers[i + 2]});
    }
    read.push_back(std::move(phase));
  }
  return DeviceStream(mix(take_streams(streams), std::move(read)));
}

std::string repr_stream(DeviceStream& self) {
  if (!self.is_typed()) return "<arrowdl.DeviceStream, not opened>";
  return concat("<arrowdl.DeviceStream of ", to_string(self.schema().type), ", ",
                device_type_name(self.device_type()), ">");
}

py::object make_schema(DeviceStream& self) {
  return py::cast(Schema(copy_schema(*self.schema().schema.get())));
}

py::object stream_arrow_c_schema(DeviceStream& self) {
  return make_schema(self).attr("__arrow_c_schema__")();
}

// ---------------------------------------------------------------- the class

py::object next_array(DeviceStream& self) {
  py::object array = self.next();
  if (!array) throw py::stop_iteration();
  return array;
}

/// `__next__` for loops, without pybind11's dispatch.
PyObject* iterate_next(PyObject* self) noexcept {
  return guarded([&] { return py::cast<DeviceStream&>(py::handle(self)).next().release().ptr(); });
}

void define_protocols(py::class_<DeviceStream>& type) {
  type.def("__iter__", [](const py::object& self) { return self; })
      .def("__next__", &next_array)
      .def(
          "__aiter__", [](const py::object& self) { return find_hook(Hook::kIterateAsync)(self); },
          stream_docs::kAsyncIterate)
      .def("_send", &send_to_receiver)
      .def("__repr__", &repr_stream)
      .def("__arrow_c_schema__", &stream_arrow_c_schema,
           "__arrow_c_schema__(self, /)\n--\n\nArrow PyCapsule interface: export the schema.")
      .def("__arrow_c_stream__", &arrow_c_stream, py::arg("requested_schema") = py::none(),
           stream_docs::kArrowCStream)
      .def("__arrow_c_device_stream__", &arrow_c_device_stream,
           py::arg("requested_schema") = py::none(), stream_docs::kArrowCDeviceStream)
      .def_property_readonly("schema", &make_schema, "The Arrow schema of every array.")
      .def_property_readonly(
          "device_type", [](DeviceStream& self) { return self.device_type(); },
          "The device type of every array, a number of `DeviceType`.")
      .def("close", &DeviceStream::close,
           "close(self, /)\n--\n\nRelease what the stream holds, its threads included. Arrays that "
           "it returned stay valid.");
}

void define_adaptors(py::class_<DeviceStream>& type) {
  type.def("select", &adapt_by<select_columns, std::vector<std::string>>, py::arg("columns"),
           stream_docs::kSelect)
      .def("rebatch", &adapt_by<rebatch, int64_t, bool>, py::arg("batch_size"), py::kw_only(),
           py::arg("drop_last") = false, stream_docs::kRebatch)
      .def("slice", &slice, py::arg("start"), py::arg("length") = py::none(), stream_docs::kSlice)
      .def("shuffle", &adapt_by<shuffle, int64_t, uint64_t, uint64_t, bool>, py::arg("buffer_size"),
           py::arg("seed"), py::kw_only(), py::arg("first_window") = 0, py::arg("in_place") = false,
           stream_docs::kShuffle)
      .def("shard", &adapt_by<shard, int64_t, int64_t, bool>, py::arg("num_shards"),
           py::arg("index"), py::kw_only(), py::arg("pad") = false, stream_docs::kShard)
      .def("pack", &pack_sequences, py::arg("column"), py::arg("length"),
           py::arg("strategy") = "concat", py::kw_only(), py::arg("buffer_size") = 256,
           py::arg("long") = "split", py::arg("pad_value") = 0, py::arg("drop_last") = false,
           py::arg("aligned") = py::none(),
           py::arg("add") = py::make_tuple("position_ids", "segment_ids", "cu_seqlens"),
           py::arg("resume_from") = py::make_tuple(0, 0, 0), stream_docs::kPack)
      .def("to", &copy_to_device, py::arg("device"), py::kw_only(), py::arg("pin_memory") = true,
           py::arg("allocator") = py::none(), stream_docs::kTo)
      .def("map", &map_batches, stream_docs::kMap)
      .def("prefetch", &adapt_by<prefetch, int64_t>, py::arg("depth") = 2, stream_docs::kPrefetch);
}

}  // namespace

py::object wrap(OwnedStream stream) { return py::cast(DeviceStream(std::move(stream))); }

void register_device_stream(py::module_& m) {
  py::options options;
  options.disable_function_signatures();
  py::class_<DeviceStream> type(m, "DeviceStream", py::is_final(), stream_docs::kClass);
  define_protocols(type);
  define_adaptors(type);
  reinterpret_cast<PyTypeObject*>(type.ptr())->tp_iternext = iterate_next;
  m.def("from_arrow_stream", &from_arrow_stream, py::arg("obj"), py::pos_only(),
        stream_docs::kFromArrowStream);
  m.def("chain", &chain, py::arg("arrays"),
        "chain(arrays)\n--\n\nReturn a stream of one or more DeviceArrays, without Python between "
        "them.");
  m.def("interleave", &interleave_streams, py::arg("streams"), py::arg("rows"), py::arg("skip") = 0,
        "interleave(streams, rows, skip=0)\n--\n\nReturn a stream of `rows` rows of each "
        "DeviceStream in turn, in new memory; between its turns, each loses `skip` rows.");
  m.def(
      "fill_nulls", &fill_stream, py::arg("stream"), py::arg("options"),
      "fill_nulls(stream, options)\n--\n\nReturn a stream with zero or NaN in place of the nulls "
      "of "
      "columns of numbers, as `options`, a ColumnOptions, say. Its memory must have no other user: "
      "it is written to.");
  m.def("mix", &mix_streams, py::arg("streams"), py::arg("phases"),
        "mix(streams, phases)\n--\n\nReturn a stream of the rows of DeviceStreams in turn, in new "
        "memory. A phase is a list: its rows, and the index, weight and progress of each stream.");
  m.def("open_later", &open_later, py::arg("opener"),
        "open_later(opener)\n--\n\nReturn a stream that `opener`, which returns a DeviceStream, "
        "opens when the stream or its type is first used.");
  m.def("read_arrays", &read_arrays, py::arg("iterator"), py::arg("schema"), py::arg("device_type"),
        "read_arrays(iterator, schema, device_type)\n--\n\nReturn a stream of the arrays of an "
        "iterator, none of which is read before it is requested.");
  m.def("permute", &permute, py::arg("count"), py::arg("seed"),
        "permute(count, seed)\n--\n\nReturn the numbers 0 to count - 1 in an order that depends "
        "only on `seed` and `count`.");
  m.def(
      "flatten_cu_seqlens",
      [](const py::object& column) {
        return wrap(
            flatten_cu_seqlens(take_array_of(column.ptr(), Copy::kIfNeeded, "flatten_cu_seqlens")));
      },
      py::arg("column"), py::pos_only(), stream_docs::kFlattenCuSeqlens);
  set_interrupt_check(check_signals);
}

}  // namespace arrowdl::python
