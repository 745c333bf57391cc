// Reads the footers of Parquet files, for the Loader.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/joined_parquet.hpp"
#include "files/parquet_footer.hpp"
#include "functions/functions.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

std::vector<std::string> read_paths(const py::list& paths) {
  std::vector<std::string> encoded;
  encoded.reserve(paths.size());
  for (const py::handle path : paths) {
    PyObject* text = nullptr;
    if (PyUnicode_FSConverter(path.ptr(), &text) == 0) throw py::error_already_set();
    encoded.push_back(py::reinterpret_steal<py::bytes>(text));
  }
  return encoded;
}

py::bytes to_bytes(const std::vector<int64_t>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)};
}

py::tuple read_footers(const py::list& paths) {
  const std::vector<std::string> encoded = read_paths(paths);
  std::vector<int64_t> stamps, groups, rows, nbytes;
  std::vector<std::string> schemas;  // of files that follow one another, those that differ
  std::vector<size_t> places;        // of each file's in `schemas`
  size_t guess = size_t{1} << 14;    // most footers are shorter
  {
    const py::gil_scoped_release release;
    for (const std::string& path : encoded) {
      ParquetFooter footer = read_parquet_footer(path.c_str(), &guess).value_or(ParquetFooter{});
      stamps.insert(stamps.end(), footer.stamp.begin(), footer.stamp.end());
      groups.push_back(static_cast<int64_t>(footer.rows.size()));
      rows.insert(rows.end(), footer.rows.begin(), footer.rows.end());
      nbytes.insert(nbytes.end(), footer.nbytes.begin(), footer.nbytes.end());
      if (schemas.empty() || schemas.back() != footer.schema) schemas.push_back(footer.schema);
      places.push_back(schemas.size() - 1);
    }
  }
  const std::vector<py::bytes> unlike(schemas.begin(), schemas.end());
  py::list shared(places.size());
  for (size_t i = 0; i < places.size(); ++i) shared[i] = unlike[places[i]];
  return py::make_tuple(to_bytes(stamps), to_bytes(groups), to_bytes(rows), to_bytes(nbytes),
                        shared);
}

py::list list_changed(const py::list& paths, const py::bytes& stamps) {
  const std::vector<std::string> encoded = read_paths(paths);
  const std::string_view bytes = stamps;
  std::vector<FileStamp> before(encoded.size());
  if (bytes.size() != before.size() * sizeof(FileStamp)) {
    throw py::value_error("there have to be three 64-bit integers for each path");
  }
  if (!bytes.empty()) std::memcpy(before.data(), bytes.data(), bytes.size());
  std::vector<size_t> changed;
  {
    const py::gil_scoped_release release;
    for (size_t i = 0; i < before.size(); ++i) {
      if (take_file_stamp(encoded[i].c_str()) != before[i]) changed.push_back(i);
    }
  }
  py::list result;
  for (const size_t i : changed) result.append(paths[i]);
  return result;
}

py::object parse_footer(std::string_view bytes) {
  const std::optional<ParquetFooter> footer =
      parse_parquet_footer(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (!footer) return py::none();
  return py::make_tuple(to_bytes(footer->rows), to_bytes(footer->nbytes),
                        py::bytes(footer->schema));
}

py::object join_files(const py::list& paths, size_t most) {
  const std::vector<std::string> encoded = read_paths(paths);
  std::optional<JoinedParquet> joined;
  {
    const py::gil_scoped_release release;
    joined = join_parquet_files(encoded, most);
  }
  return joined ? py::cast(std::move(*joined)) : py::none();
}

}  // namespace

void register_footers(py::module_& m) {
  py::class_<JoinedParquet>(m, "JoinedParquet", py::buffer_protocol(), py::is_final())
      .def_buffer([](JoinedParquet& joined) {
        return py::buffer_info(joined.bytes.data(), static_cast<py::ssize_t>(joined.bytes.size()),
                               true);
      });
  m.def("join_parquet_files", &join_files, py::arg("paths"), py::arg("most"),
        "Read local Parquet files of equal columns as one, which is returned as a buffer. None if "
        "they have more bytes than `most`, or a full reader has to look at one.");
  m.def("read_parquet_footers", &read_footers, py::arg("paths"),
        "Read the footers of local Parquet files, as columns of 64-bit integers: the size, the "
        "time of change in ns and the inode of each file, where -1, 0, 0 is one that a full reader "
        "has to look at; its row groups; the rows, and the uncompressed bytes, of each row group. "
        "Then bytes for each file that are equal for equal columns.");
  m.def("list_changed_files", &list_changed, py::arg("paths"), py::arg("stamps"),
        "List those of local files that may not have the stamps in `stamps`, as "
        "`read_parquet_footers` returns them.");
  m.def(
      "parse_parquet_footer", &parse_footer, py::arg("data"),
      "Read the Thrift of a Parquet footer, without its length and magic bytes: the rows, and the "
      "uncompressed bytes, of each row group, as 64-bit integers, and bytes that are equal for "
      "equal columns. None for what a full reader has to look at.");
  m.def(
      "is_sound_parquet_footer",
      [](std::string_view data) {
        return is_sound_parquet_footer(reinterpret_cast<const uint8_t*>(data.data()), data.size());
      },
      py::arg("data"),
      "Whether pyarrow can show each column of a Parquet footer: it ends the process for others. "
      "None if that needs keys. `data` is as of `parse_parquet_footer`.");
}

}  // namespace arrowdl::python
