// Finds and calls the exchange API of a class.
#include "support/exchange_api.hpp"

#include "support/capsule.hpp"
#include "support/names.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {

namespace py = pybind11;

const DLPackExchangeAPI* find_exchange_api(PyTypeObject* type) {
  const py::object capsule =
      find_attribute(reinterpret_cast<PyObject*>(type), names::dlpack_c_exchange_api);
  if (!capsule) return nullptr;
  const DLPackExchangeAPIHeader* header = find_exchange_api_header(capsule.ptr());
  while (header != nullptr && header->version.major != DLPACK_MAJOR_VERSION) {
    header = header->prev_api;
  }
  return reinterpret_cast<const DLPackExchangeAPI*>(header);
}

StreamHandle current_stream(const DLPackExchangeAPI& api, const Device& device) {
  const DLDevice dl_device = to_dl_device(device);
  void* stream = nullptr;
  if (api.current_work_stream(dl_device.device_type, dl_device.device_id, &stream) != 0) {
    throw py::error_already_set();
  }
  return StreamHandle(stream);
}

}  // namespace arrowdl::python
