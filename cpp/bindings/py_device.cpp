#include "py_device.hpp"

#include "arrowdl/device.hpp"
#include "arrowdl/error.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

Device make_device(const py::object& type, int64_t id) {
  const DeviceType* row = nullptr;
  if (py::isinstance<py::str>(type)) {
    row = find_device_type(py::cast<std::string>(type));
  } else {
    row = find_device_type(py::cast<int32_t>(type));
  }
  if (row == nullptr) {
    std::string known;
    for (const DeviceType& known_row : DeviceTypes()) known += concat(" ", known_row.name);
    raise_value_error("device type ", py::repr(type).cast<std::string>(), " is unknown: a name of",
                      known, ", or its number");
  }
  return Device{row->value, row->value == kDLCPU ? 0 : id};
}

bool equals(const Device& device, const py::object& other) {
  if (py::isinstance<Device>(other)) return device == py::cast<Device>(other);
  return py::make_tuple(device.type, device.id).equal(other);
}

}  // namespace

void register_device(py::module_& m) {
  py::class_<Device>(m, "Device", py::is_final(),
                     "Where memory lies: a DLPack device type and id.\n\n"
                     "Compares equal to, and unpacks as, the tuple of `__dlpack_device__`.")
      .def(py::init(&make_device), py::arg("type"), py::arg("id") = 0)
      .def_property_readonly(
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
      .def("__hash__",
           [](const Device& self) { return py::hash(py::make_tuple(self.type, self.id)); })
      .def("__repr__", [](const Device& self) {
        return concat("Device(\"", find_device_type(self.type)->name, "\", ", self.id, ")");
      });
  py::dict types;
  for (const DeviceType& row : DeviceTypes()) types[row.name] = row.value;
  m.attr("device_type_numbers") = types;
}

}  // namespace arrowdl::python
