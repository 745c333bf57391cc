// The counters of arrowdl.debug, list_backends for arrowdl.doctor(), capsules for arrowdl.testing.
#include <pybind11/pybind11.h>

#include "arrowdl/backend.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/deferred_release.hpp"
#include "arrowdl/device.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/stream.hpp"
#include "functions/functions.hpp"
#include "support/capsule.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// One row for each runtime: its name, version and devices, or why it cannot be used.
py::list list_backends() {
  py::list rows;
  for (const std::vector<int32_t>& types : list_runtimes()) {
    py::list names;
    for (const int32_t type : types) names.append(device_type_name(type));
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

void register_diagnostics(py::module_& m) {
  py::options options;
  options.disable_function_signatures();  // inspect.signature cannot read pybind11's
  m.def("live_objects", &live_objects,
        R"(live_objects()
--

Count the objects that own foreign or exported memory.

Returns
-------
int
    0 if no array, stream or export is alive and nothing leaks.)");
  m.def("pending_releases", &pending_releases,
        R"(pending_releases()
--

Count the memory blocks that wait for work of GPU streams before they are released.

Returns
-------
int)");
  m.def("abandoned_releases", &abandoned_releases,
        R"(abandoned_releases()
--

Count the arrays of this process whose memory was never released.

Their device or GPU stream failed, or can no longer be queried.

Returns
-------
int
    0 if nothing failed.)");
  m.def("stream_copy_seconds", &stream_copy_seconds);
  m.def("staged_bytes", &staged_bytes);
  m.def("staging_bytes", &staging_bytes,
        R"(staging_bytes()
--

Return the size of the pinned memory that arrowdl keeps for copies to devices.

Returns
-------
int
    Bytes, in use or idle; at most ``arrowdl.config.staging_limit`` while no copy runs.)");
  m.def("list_backends", &list_backends,
        R"(list_backends()
--

Return what each device runtime finds on this machine.

Returns
-------
list of dict
    For each runtime ``types`` (names) and ``problem`` (empty if it works); if it works also
    ``name``, ``version`` and ``device_count``.)");
  m.def(
      "make_borrowed_capsule",
      [](uintptr_t address, std::string_view name) {
        return make_borrowed_capsule(reinterpret_cast<void*>(address), name);
      },
      py::arg("address"), py::arg("name"),
      R"(make_borrowed_capsule(address, name)
--

Make a capsule of a C struct that its caller owns, and keeps until the capsule is deleted.

Parameters
----------
address : int
    The address of an ArrowSchema, ArrowArray, DLManagedTensor or another struct that has capsules.
name : str
    The name of such capsules.

Returns
-------
capsule
    It calls the release callback or the deleter when it is deleted, unless a consumer took the
    struct.)");
}

}  // namespace arrowdl::python
