// Classifies the objects that callers pass.
#include "import/classify.hpp"

#include <cstring>

#include "import/arrow.hpp"
#include "import/tensor.hpp"
#include "support/device_array_object.hpp"
#include "support/exchange_api.hpp"
#include "support/names.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {

Classified classify(PyObject* object) {
  if (PyType_Check(object) != 0) return {Kind::kOther, nullptr};  // has the methods of instances
  if (PyDict_Check(object) != 0) return {Kind::kContainer, nullptr};
  const DLPackExchangeAPI* api = find_exchange_api(Py_TYPE(object));
  if (find_array(object)) return {Kind::kArrow, api};
  // torch.masked.MaskedTensor, a tensor whose data DLPack would take without the mask.
  if (std::strcmp(Py_TYPE(object)->tp_name, "MaskedTensor") == 0) return {Kind::kContainer, api};
  if (const auto nested = find_attribute(object, names::is_nested);
      nested && nested.ptr() == Py_True) {
    return {Kind::kContainer, api};
  }
  if (api != nullptr) return {Kind::kTensor, api};
  if (is_arrow(object)) return {Kind::kArrow, nullptr};
  if (is_tensor(object)) return {Kind::kTensor, nullptr};
  return {find_attribute(object, names::items) ? Kind::kContainer : Kind::kOther, nullptr};
}

}  // namespace arrowdl::python
