// Reads the footers of local Parquet files, for the Loader.
#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "files/parquet_footer.hpp"
#include "functions/functions.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

std::vector<std::string> read_paths(const py::sequence& paths) {
  std::vector<std::string> encoded;
  encoded.reserve(paths.size());
  for (const py::handle path : paths) {
    PyObject* text = nullptr;
    if (PyUnicode_FSConverter(path.ptr(), &text) == 0) throw py::error_already_set();
    encoded.push_back(py::reinterpret_steal<py::bytes>(text));
  }
  return encoded;
}

py::tuple to_tuple(const std::vector<int64_t>& numbers) {
  py::tuple tuple(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) tuple[i] = numbers[i];
  return tuple;
}

py::object describe_footer(const std::optional<FileFooter>& file) {
  if (!file) return py::none();
  const ParquetFooter& footer = file->footer;
  return py::make_tuple(file->size, file->mtime_ns, file->inode, to_tuple(footer.rows),
                        to_tuple(footer.nbytes), py::bytes(footer.schema));
}

py::list read_footers(const py::sequence& paths) {
  const std::vector<std::string> encoded = read_paths(paths);
  std::vector<std::optional<FileFooter>> footers(encoded.size());
  {
    const py::gil_scoped_release release;
    for (size_t i = 0; i < encoded.size(); ++i)
      footers[i] = read_parquet_footer(encoded[i].c_str());
  }
  py::list described(footers.size());
  for (size_t i = 0; i < footers.size(); ++i) described[i] = describe_footer(footers[i]);
  return described;
}

}  // namespace

void register_footers(py::module_& m) {
  m.def("read_parquet_footers", &read_footers, py::arg("paths"),
        "Read the footers of local Parquet files: the size, the time of change in ns, the inode, "
        "the rows and the uncompressed bytes of each row group, and bytes that are equal for equal "
        "columns. None for a file that a full reader has to look at.");
}

}  // namespace arrowdl::python
