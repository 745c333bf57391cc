// Loads each array framework once.
#include "export/framework.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>

#include "arrowdl/error.hpp"
#include "support/exchange_api.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

std::atomic<const Framework*> frameworks[std::size(kFrameworkNames)];

std::unique_ptr<const Framework> load(const char* name) {
  const py::object loaded = find_hook(Hook::kLoadFramework)(name);
  auto framework = std::make_unique<Framework>();
  const py::object tensor_type = loaded.attr("tensor_type");
  if (!tensor_type.is_none()) {
    framework->api = find_exchange_api(reinterpret_cast<PyTypeObject*>(tensor_type.ptr()));
  }
  const auto take = [&loaded](const char* name) {
    return py::object(loaded.attr(name)).release().ptr();
  };
  framework->from_dlpack = take("from_dlpack");
  framework->from_plain = take("from_plain");
  framework->from_offsets = take("from_offsets");
  framework->make_jagged = take("make_jagged");
  framework->make_variable = take("make_variable");
  framework->unpack_bits_on_device = take("unpack_bits");
  framework->fill = take("fill");
  framework->all_valid = take("all_valid");
  framework->copy = take("copy");
  framework->arrange = take("arrange");
  framework->put = take("put");
  framework->alignment = loaded.attr("alignment").cast<std::size_t>();
  framework->device_alignment = loaded.attr("device_alignment").cast<std::size_t>();
  framework->donates = py::object(loaded.attr("donates")).is(py::bool_(true));
  return framework;
}

}  // namespace

const Framework& find_framework(std::size_t index) {
  const Framework* framework = frameworks[index].load(std::memory_order_acquire);
  if (framework != nullptr) return *framework;
  std::unique_ptr<const Framework> loaded = load(kFrameworkNames[index]);
  // If two threads load it, the first one's is kept.
  if (frameworks[index].compare_exchange_strong(framework, loaded.get())) {
    return *loaded.release();
  }
  return *framework;
}

const Framework& find_framework(std::string_view name) {
  const auto* found = std::find(std::begin(kFrameworkNames), std::end(kFrameworkNames), name);
  if (found == std::end(kFrameworkNames)) raise_value_error("no framework is named ", name);
  return find_framework(static_cast<std::size_t>(found - kFrameworkNames));
}

}  // namespace arrowdl::python
