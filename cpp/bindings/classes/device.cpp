#include "classes/device.hpp"

#include <charconv>
#include <exception>

#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/deferred_release.hpp"
#include "arrowdl/device.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/threads.hpp"
#include "support/arguments.hpp"
#include "support/gil.hpp"
#include "support/values.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// `name` without the id behind a colon, which is read into `*id`.
std::string split_id(const std::string& name, int64_t* id) {
  const std::size_t colon = name.find(':');
  if (colon == std::string::npos) return name;
  if (*id != 0) raise_value_error("the device \"", name, "\" has an id already, and id=", *id);
  const char* const first = name.data() + colon + 1;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(first, last, *id);
  if (error != std::errc() || end != last) {
    raise_value_error("the device \"", name,
                      "\" has no number behind the colon, as \"cuda:0\" has");
  }
  return name.substr(0, colon);
}

Device make_device(const py::object& type, int64_t id) {
  const DeviceType* row = nullptr;
  if (py::isinstance<py::str>(type)) {
    row = find_device_type(split_id(py::cast<std::string>(type), &id));
  } else {
    row = find_device_type(read_int32("a device type", type.ptr()));
  }
  if (row == nullptr) {
    std::string known;
    for (const DeviceType& known_row : DeviceTypes()) known += concat(" ", known_row.name);
    raise_value_error("device type ", py::repr(type).cast<std::string>(), " is unknown: a name of",
                      known, ", or its number");
  }
  if (row->value == kDLCPU) return Device{};  // there is one, whatever its number
  if (id < 0) raise_value_error("a device id is 0 or more, got ", id, " for ", row->name);
  return Device{row->value, id};
}

bool equals(const Device& device, const py::object& other) {
  if (py::isinstance<Device>(other)) return device == py::cast<Device>(other);
  return py::make_tuple(device.type, device.id).equal(other);
}

/// Calls a Python function from wherever somebody waits.
struct PythonSynchronizer {
  std::shared_ptr<PyObject> function;

  void operator()(EventHandle event, int64_t id) const {
    std::string failure;
    std::exception_ptr no_memory;
    const bool called = with_gil([&] {
      try {
        py::handle(function.get())(event.value(), id);
      } catch (const py::error_already_set& error) {
        try {
          failure = error.what();
        } catch (...) {  // no memory for the text
          no_memory = std::current_exception();
        }
      }
    });
    if (no_memory) std::rethrow_exception(no_memory);
    if (!called) failure = "the interpreter is gone";
    if (!failure.empty()) {
      throw Error(ErrorKind::kRuntime, concat("the registered synchronizer failed: ", failure));
    }
  }
};

void register_python_synchronizer(int32_t device_type, const py::object& function) {
  if (function.is_none()) {
    register_synchronizer(device_type, {});
    return;
  }
  if (PyCallable_Check(function.ptr()) == 0) {
    raise_type_error("a synchronizer is a function of (sync_event, device_id), got ",
                     py::repr(function).cast<std::string>());
  }
  const auto drop = [](PyObject* held) { with_gil([&] { Py_DECREF(held); }); };
  std::shared_ptr<PyObject> held(py::object(function).release().ptr(), drop);
  register_synchronizer(device_type, PythonSynchronizer{std::move(held)});
}

/// One row for each runtime: what it says of itself, or why it cannot be used.
py::list list_backends() {
  py::list rows;
  for (const std::vector<int32_t>& types : list_runtimes()) {
    py::list names;
    for (const int32_t type : types) names.append(find_device_type(type)->name);
    py::dict row;
    row["types"] = names;
    row["problem"] = "";
    try {
      std::string why_not;
      Backend* backend = find_backend(types.front(), &why_not);
      row["problem"] = why_not;
      if (backend != nullptr) {
        row["name"] = backend->name();
        row["version"] = backend->version();
        row["device_count"] = backend->device_count();
      }
    } catch (const Error& error) {
      row["problem"] = error.what();
    }
    rows.append(row);
  }
  return rows;
}

}  // namespace

Device read_device(PyObject* object) {
  const auto given = py::reinterpret_borrow<py::object>(object);
  if (py::isinstance<Device>(given)) return py::cast<Device>(given);
  if (py::isinstance<py::str>(given)) return make_device(given, 0);
  if (py::isinstance<py::tuple>(given) && py::len(given) == 2) {
    const py::object id = given[py::int_(1)];
    return make_device(given[py::int_(0)], id.is_none() ? 0 : read_int("a device id", id.ptr()));
  }
  const py::object type = py::getattr(given, "type", py::none());
  if (py::isinstance<py::str>(type) && py::hasattr(given, "index")) {  // torch.device
    const py::tuple pair = py::module_::import("arrowdl._frameworks").attr("find_device")(given);
    return make_device(pair[0], pair[1].cast<int64_t>());
  }
  raise_type_error("a device is a Device, a name such as \"cuda:0\" or a pair (type, id), got ",
                   py::repr(given).cast<std::string>());
}

void register_device(py::module_& m) {
  py::class_<Device> type(
      m, "Device", py::is_final(),
      "Device(type, id=0)\n--\n\n"
      "Where memory lies: a DLPack device type and id.\n\n"
      "Compares equal to, and unpacks as, the tuple of `__dlpack_device__`.\n\n"
      "Parameters\n----------\n"
      "type : str or int\n"
      "    A name, alone or with the id (``\"cuda\"``, ``\"cuda:1\"``), or a number of "
      "`device_types`.\n"
      "id : int\n"
      "    Which device of the type. There is one CPU, whatever its number.");
  define_constructor(
      type,
      [](const py::object&, const py::object& name, int64_t id) { return make_device(name, id); },
      py::arg("type"), py::arg("id") = 0);
  type.def_property_readonly(
          "type", [](const Device& self) { return self.type; },
          "The DLDeviceType, which is also the ArrowDeviceType of that number.")
      .def_property_readonly(
          "id", [](const Device& self) { return self.id; },
          "Which device of the type; 0 for the CPU.")
      .def_property_readonly(
          "name", [](const Device& self) { return find_device_type(self.type)->name; },
          "The type's name, such as \"cpu\" or \"cuda\".")
      .def("__iter__",
           [](const Device& self) { return py::iter(py::make_tuple(self.type, self.id)); })
      .def("__eq__", &equals)
      .def("__copy__", [](py::object self) { return self; })  // it cannot change
      .def("__deepcopy__", [](py::object self, const py::object&) { return self; })
      .def("__hash__",
           [](const Device& self) { return py::hash(py::make_tuple(self.type, self.id)); })
      .def("__repr__", [](const Device& self) {
        return concat("Device(\"", find_device_type(self.type)->name, "\", ", self.id, ")");
      });
  py::options options;
  options.disable_function_signatures();  // pybind11's are not what inspect.signature reads
  m.def(
      "register_synchronizer", &register_python_synchronizer, py::arg("device_type"),
      py::arg("function"),
      "register_synchronizer(device_type, function)\n--\n\n"
      "Let arrays of a device type that arrowdl has no backend for carry events.\n\n"
      "Parameters\n----------\n"
      "device_type : int\n"
      "    A number of `device_types`.\n"
      "function : callable or None\n"
      "    ``function(sync_event, device_id)`` waits on the host for the event at the address\n"
      "    `sync_event`. It is called wherever arrowdl waits, on any thread. None takes the last\n"
      "    one back.\n\n"
      "Raises\n------\n"
      "ValueError\n    A type whose events are always NULL, or that has a backend.");
  m.def(
      "set_blocking_release", &set_blocking_release, py::arg("blocking"),
      "set_blocking_release(blocking)\n--\n\n"
      "Choose whether giving memory back waits on the host for the streams that used it.\n\n"
      "Parameters\n----------\n"
      "blocking : bool\n"
      "    False, the default: the memory goes back from a thread of arrowdl's own, once the work\n"
      "    is done. True: whoever drops the last reference waits for that.");
  m.def(
      "set_release_limit", &set_release_limit, py::arg("bytes"),
      "set_release_limit(bytes)\n--\n\n"
      "Bound the memory that waits for the work of streams before it is given back.\n\n"
      "Parameters\n----------\n"
      "bytes : int\n"
      "    1 GiB by default. Whoever drops the last reference to memory that would exceed it "
      "waits\n"
      "    on the host, until the work on that memory is done or less memory waits. One piece may\n"
      "    always wait, however large.\n\n"
      "Raises\n------\n"
      "ValueError\n    Less than 0.");
  m.def(
      "set_staging_limit", &set_staging_limit, py::arg("bytes"),
      py::call_guard<py::gil_scoped_release>(),
      "set_staging_limit(bytes)\n--\n\n"
      "Bound the pinned memory that copies from pageable memory to a device go through.\n\n"
      "Parameters\n----------\n"
      "bytes : int\n"
      "    256 MiB by default. It is allocated as copies need it, in blocks of 64 KiB to 4 MiB, "
      "and\n"
      "    used again. A copy that finds all of it in use waits on the host until an earlier one "
      "is\n"
      "    done. One block there may always be, and one for each further thread that copies. What "
      "is\n"
      "    beyond a lower limit is given back once no copy uses it.\n\n"
      "Raises\n------\n"
      "ValueError\n    Less than 0.");
  m.def(
      "set_thread_limit", &set_thread_limit, py::arg("threads"),
      "set_thread_limit(threads)\n--\n\n"
      "Bound the threads that copy rows: of a shuffle, across batches, into pinned memory.\n\n"
      "Parameters\n----------\n"
      "threads : int\n"
      "    The one that asks included. By default what ``OMP_NUM_THREADS`` says, else one for "
      "each\n"
      "    processor that this process may use, 8 at most; 1 in worker processes of a loader. One\n"
      "    operation at a time has the others, from some 512 KiB on; they end when they are "
      "idle.\n\n"
      "Raises\n------\n"
      "ValueError\n    Less than 1.");
  m.def("staging_bytes", &staging_bytes,
        "How many bytes of pinned memory there are for copies to devices, in use or not.");
  m.def("abandoned_releases", &abandoned_releases,
        "How many arrays of this process never gave their memory back: the device or stream that "
        "may\nhave used it failed, or could not be asked any more. Zero where nothing did.");
  m.def("pending_releases", &pending_releases,
        "How many pieces of memory wait for the work of streams before they are given back.");
  m.def("list_backends", &list_backends, "What arrowdl's backends find on this machine.");
  m.attr("dlpack_version") = py::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  py::dict types;
  for (const DeviceType& row : DeviceTypes()) types[row.name] = row.value;
  m.attr("device_type_numbers") = types;
}

}  // namespace arrowdl::python
