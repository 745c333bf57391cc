// Reads and exports a Schema.
#include "classes/schema.hpp"

#include <pybind11/pybind11.h>

#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"
#include "schema/make_schema.hpp"
#include "support/capsule.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

py::object make_schema_capsule(const Schema& self) {
  return make_capsule(copy_schema(self.node()));
}

py::dict read_metadata(const Schema& self) {
  py::dict metadata;
  visit_metadata(self.node(), [&](std::string_view key, std::string_view value) {
    metadata[py::bytes(key.data(), key.size())] = py::bytes(value.data(), value.size());
  });
  return metadata;
}

py::list list_children(const Schema& self) {
  py::list children;
  for (int64_t i = 0; i < self.node().n_children; ++i) {
    children.append(self.child(self.node().children[i]));
  }
  return children;
}

py::object find_dictionary(const Schema& self) {
  if (self.node().dictionary == nullptr) return py::none();
  return py::cast(self.child(self.node().dictionary));
}

const char* name_of(const Schema& self) {
  return self.node().name == nullptr ? "" : self.node().name;
}

std::string repr_schema(const Schema& self) {
  const char* name = name_of(self);
  const std::string type = to_string(parse_schema(self.node()));
  return *name == '\0' ? concat("<arrowdl.Schema ", type, ">")
                       : concat("<arrowdl.Schema ", name, ": ", type, ">");
}

}  // namespace

Schema::Schema(OwnedSchema schema)
    : root_(std::make_shared<const OwnedSchema>(std::move(schema))), node_(root_->get()) {}

void register_schema(py::module_& m) {
  py::options options;
  options.disable_function_signatures();
  py::class_<Schema>(m, "Schema", py::is_final(), "An Arrow type with its name and metadata.")
      .def("__arrow_c_schema__", &make_schema_capsule,
           "__arrow_c_schema__(self, /)\n--\n\nArrow PyCapsule interface: export the schema.")
      .def_property_readonly("name", &name_of, "The field's name, or an empty string.")
      .def_property_readonly(
          "format", [](const Schema& self) { return self.node().format; },
          "The format string of the Arrow C data interface.")
      .def_property_readonly(
          "nullable",
          [](const Schema& self) { return (self.node().flags & ARROW_FLAG_NULLABLE) != 0; },
          "Whether the field may have nulls.")
      .def_property_readonly("metadata", &read_metadata, "Key and value of each entry, as bytes.")
      .def_property_readonly("children", &list_children, "The schemas of nested fields.")
      .def_property_readonly("dictionary", &find_dictionary,
                             "The schema of a dictionary's values, or None.")
      .def_property_readonly(
          "ordered",
          [](const Schema& self) {
            return (self.node().flags & ARROW_FLAG_DICTIONARY_ORDERED) != 0;
          },
          "Whether the values of the dictionary are ordered.")
      .def("__copy__", [](py::object self) { return self; })  // it cannot change
      .def("__deepcopy__", [](py::object self, const py::object&) { return self; })
      .def("__repr__", &repr_schema);
}

}  // namespace arrowdl::python
