// Makes and reads the class Device.
#include "arrowdl/device.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <charconv>
#include <optional>

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "classes/classes.hpp"
#include "support/arguments.hpp"
#include "support/constructor.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

using Id = std::optional<int64_t>;

/// `name` without the id after the colon, which is stored in `*id`.
std::string split_id(const std::string& name, Id* id) {
  const std::size_t colon = name.find(':');
  if (colon == std::string::npos) return name;
  if (*id) raise_value_error("the device \"", name, "\" has an id already, and id=", **id);
  const char* const first = name.data() + colon + 1;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(first, last, id->emplace());
  if (error != std::errc() || end != last) {
    raise_value_error("the device \"", name,
                      "\" has no number behind the colon, as \"cuda:0\" has");
  }
  return name.substr(0, colon);
}

/// Whether the type's library has a current device.
bool has_current(int32_t type) {
  return type == kDLCUDA || type == kDLCUDAHost || type == kDLCUDAManaged || type == kDLROCM ||
         type == kDLROCMHost || type == kDLOneAPI;
}

/// The current device, as torch's "cuda" names it: a process of a distributed training sets its
/// own.
int64_t find_current(int32_t type, const char* framework) {
  if (!has_current(type)) return 0;
  const std::optional<int64_t> driver = find_current_device(type);
  const py::object known = driver ? py::object(py::int_(*driver)) : py::none();
  return find_hook(Hook::kFindCurrent)(device_type_name(type), known, framework).cast<int64_t>();
}

/// The number of a type, which may be one that no table has; 0 if there is none. Reads an id after
/// a name.
int32_t find_type(const py::object& type, Id* id) {
  if (!py::isinstance<py::str>(type)) return read_int32("a device type", type.ptr());
  const DeviceType* row = find_device_type(split_id(py::cast<std::string>(type), id));
  return row == nullptr ? 0 : row->value;
}

Device make_device(const py::object& type, Id id, const char* framework) {
  const int32_t number = find_type(type, &id);
  if (number < 1) {
    std::string known;
    for (const DeviceType& known_row : DeviceTypes()) known += concat(" ", known_row.name);
    raise_value_error("device type ", py::repr(type).cast<std::string>(), " is unknown: a name of",
                      known, ", or its number");
  }
  if (number == kDLCPU) return Device{};  // there is one, whatever its number
  if (!id) return Device{number, find_current(number, framework)};
  if (*id < 0) {
    raise_value_error("a device id is 0 or more, got ", *id, " for ", device_type_name(number));
  }
  return Device{number, *id};
}

/// Device("cuda", 1), Device(2, 1), or Device(what read_device takes).
Device construct_device(const py::object&, const py::object& type, Id id) {
  const bool is_type = py::isinstance<py::str>(type) || PyIndex_Check(type.ptr()) != 0;
  if (is_type) return make_device(type, id, "");
  if (!id) return read_device(type.ptr());
  raise_type_error("id=", *id, " goes with a device type, ", py::repr(type).cast<std::string>(),
                   " is a device with an id: leave id= out");
}

/// torch.device has `type` and `index`, jax.Device `platform` and `local_hardware_id`.
bool is_framework_device(const py::object& object) {
  if (py::isinstance<py::str>(py::getattr(object, "type", py::none()))) {
    return py::hasattr(object, "index");
  }
  return py::isinstance<py::str>(py::getattr(object, "platform", py::none())) &&
         py::hasattr(object, "local_hardware_id");
}

bool equals(const Device& device, const py::object& other) {
  if (py::isinstance<Device>(other)) return device == py::cast<Device>(other);
  return py::make_tuple(device.type, device.id).equal(other);
}

}  // namespace

Device read_device(PyObject* object, const char* framework) {
  const auto given = py::reinterpret_borrow<py::object>(object);
  if (py::isinstance<Device>(given)) return py::cast<Device>(given);
  if (py::isinstance<py::str>(given)) return make_device(given, {}, framework);
  if (py::isinstance<py::tuple>(given) && py::len(given) == 2) {
    const py::object id = given[py::int_(1)];
    return make_device(given[py::int_(0)],
                       id.is_none() ? Id() : Id(read_int("a device id", id.ptr())), framework);
  }
  if (is_framework_device(given)) {
    const py::tuple pair = find_hook(Hook::kFindDevice)(given);
    return make_device(pair[0], pair[1].cast<int64_t>(), framework);
  }
  raise_type_error("a device is a Device, a name such as \"cuda:0\", a pair (type, id), a ",
                   "torch.device or a jax.Device, got ", py::repr(given).cast<std::string>());
}

void register_device(py::module_& m) {
  py::class_<Device> type(m, "Device", py::is_final(),
                          R"(Device(type, id=None)
--

A device that holds memory: a DLPack device type and an id.

Compares and unpacks as the tuple of ``__dlpack_device__``. Immutable and hashable.

Parameters
----------
type : str, DeviceType, int, tuple, torch.device or jax.Device
    A `DeviceType`, its number or its name, a number of a later DLPack, or a type with the id: ``"cuda:1"``, a pair (type, id),
    a Device, or a framework's device object.
id : int, optional
    The index of the device among those of its type. By default that of the current device, as in
    torch: of torch where it uses the GPU, else of the calling thread's context in the driver (what
    cupy and numba set), else of JAX, else 0. The CPU's id is always 0.

Raises
------
ValueError
    No type has this name, its number is below 1, the id is negative, or `type` already has an id.
TypeError
    `type` names no device.
BufferError
    Arrow and DLPack have no type for the framework's device.)");
  define_constructor(type, &construct_device, py::arg("type"), py::arg("id") = py::none());
  type.def_property_readonly(
          "type", [](const Device& self) { return self.type; },
          "The DLDeviceType, a number of `DeviceType`; ArrowDeviceType has the same numbers.")
      .def_property_readonly(
          "id", [](const Device& self) { return self.id; },
          "The index of the device among those of its type; 0 for the CPU.")
      .def_property_readonly(
          "name", [](const Device& self) { return device_type_name(self.type); },
          "The type's name, such as \"cpu\" or \"cuda\"; \"device type 99\" for a number without "
          "one.")
      .def("__iter__",
           [](const Device& self) { return py::iter(py::make_tuple(self.type, self.id)); })
      .def("__eq__", &equals)
      .def("__copy__", [](py::object self) { return self; })  // it cannot change
      .def("__deepcopy__", [](py::object self, const py::object&) { return self; })
      .def("__hash__",
           [](const Device& self) { return py::hash(py::make_tuple(self.type, self.id)); })
      .def("__repr__", [](const Device& self) {
        const DeviceType* row = find_device_type(self.type);
        if (row == nullptr) return concat("Device(", self.type, ", ", self.id, ")");
        return concat("Device(\"", row->name, "\", ", self.id, ")");
      });
  m.def(
      "read_device",
      [](const py::object& device, const std::string& framework) {
        return read_device(device.ptr(), framework.c_str());
      },
      py::arg("device"), py::arg("framework") = "",
      "The Device that `device` names; without an id the current one of `framework`.");
  m.attr("dlpack_version") = py::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  py::dict types;
  for (const DeviceType& row : DeviceTypes()) types[row.name] = row.value;
  m.attr("device_type_numbers") = types;
}

}  // namespace arrowdl::python
