// The Python class ColumnOptions: options of a Loader, read once for all of its batches.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <utility>

#include "classes/classes.hpp"
#include "export/read_column_options.hpp"
#include "support/constructor.hpp"
#include "support/values.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

struct OptionsObject {
  ColumnOptions options;
  py::tuple given;  ///< the arguments, for pickles
};

/// `stack` as it was read. The caller may change its lists before the object is pickled.
py::object copy_stack(const py::object& stack, const std::vector<Matrix>& matrices) {
  if (matrices.empty()) return copy_mapping(stack.ptr());
  py::dict columns;
  for (const Matrix& matrix : matrices) columns[py::str(matrix.name)] = matrix.columns;
  return std::move(columns);
}

OptionsObject make_options(const py::object&, const py::object& nulls, const py::object& ragged,
                           const py::object& dtype, const py::object& stack) {
  const py::object given[] = {copy_mapping(nulls.ptr()), copy_mapping(ragged.ptr()),
                              copy_mapping(dtype.ptr()), copy_mapping(stack.ptr())};
  ColumnArguments arguments;
  arguments.nulls = given[0].ptr();
  arguments.ragged = given[1].ptr();
  arguments.dtype = given[2].ptr();
  arguments.stack = given[3].ptr();
  OptionsObject made;
  made.options = read_column_options(arguments);
  made.given =
      py::make_tuple(given[0], given[1], given[2], copy_stack(given[3], made.options.matrices));
  return made;
}

const ColumnForms& forms_of(const OptionsObject& self) { return self.options.forms; }

py::object find_max_length(const OptionsObject& self, const std::string& column) {
  const int64_t most = forms_of(self).find_max_length(column);
  return most < 0 ? py::none() : py::object(py::int_(most));
}

bool fills(const OptionsObject& self, const std::vector<std::string>& columns) {
  for (const std::string& column : columns) {
    if (self.options.find_null_policy(column).replaces()) return true;
  }
  return false;
}

void check_names(const OptionsObject& self, const std::vector<std::string>& columns) {
  self.options.check_names(Names(columns.begin(), columns.end()));
}

}  // namespace
}  // namespace arrowdl::python

ARROWDL_CAST_BY_VALUE(arrowdl::python::OptionsObject)

namespace arrowdl::python {

const ColumnOptions& find_column_options(PyObject* object) {
  return py::cast<const OptionsObject&>(py::handle(object)).options;
}

void register_column_options(py::module_& m) {
  py::class_<OptionsObject> type(
      m, "ColumnOptions", py::is_final(),
      "ColumnOptions(nulls='raise', ragged='jagged', dtype=None, stack=None)\n--\n\n"
      "Options of `to_torch` and its like, read and checked once; they never change.\n\n"
      "A mapping has names of columns, or of matrices of `stack`. Raises ValueError or TypeError, "
      "naming the option and the column.");
  define_constructor(type, &make_options, py::arg("nulls") = "raise", py::arg("ragged") = "jagged",
                     py::arg("dtype") = py::none(), py::arg("stack") = py::none());
  type.def_property_readonly(
          "has_names", [](const OptionsObject& self) { return forms_of(self).has_names(); },
          "Whether an option is a mapping.")
      .def_property_readonly(
          "casts", [](const OptionsObject& self) { return forms_of(self).casts(); },
          "Whether numbers are cast.")
      .def_property_readonly(
          "is_jagged",
          [](const OptionsObject& self) {
            const auto& ragged = forms_of(self).ragged;
            return !ragged.is_mapping && ragged.all == Ragged::kJagged;
          },
          "Whether all lists are jagged.")
      .def_property_readonly(
          "is_matrix", [](const OptionsObject& self) { return self.options.is_matrix; },
          "Whether all columns become one matrix.")
      .def_property_readonly(
          "stacks",
          [](const OptionsObject& self) {
            return self.options.is_matrix || !self.options.matrices.empty();
          },
          "Whether columns become a matrix.")
      .def_property_readonly(
          "pad_to_multiple", [](const OptionsObject& self) { return forms_of(self).pad_multiple; },
          "The width of padded rows is a multiple of this.")
      .def(
          "pads",
          [](const OptionsObject& self, const std::string& column) {
            return forms_of(self).pads(column);
          },
          py::arg("column"), "Whether rows of `column` are padded, if they have several lengths.")
      .def(
          "may_pad",
          [](const OptionsObject& self, const std::string& column) {
            return forms_of(self).may_pad(column);
          },
          py::arg("column"),
          "Whether rows of `column` are padded, or of others if no form is given for it.")
      .def("find_max_length", &find_max_length, py::arg("column"),
           "Return the values of a padded row of `column` that are kept; None for all. A column "
           "without a form keeps as many as the longest of the padded columns.")
      .def("fills", &fills, py::arg("columns"), "Whether nulls of a column are replaced.")
      .def("check_names", &check_names, py::arg("columns"),
           "Raise ValueError if an option names neither one of `columns` nor a matrix.")
      .def("__reduce__", [](const py::object& self) {
        return py::make_tuple(py::type::of(self), self.cast<OptionsObject&>().given);
      });
}

}  // namespace arrowdl::python
