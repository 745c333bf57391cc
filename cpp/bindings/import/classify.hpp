// Classifies the objects that callers pass: Arrow data, a tensor, or a container of them.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/owned.hpp"

namespace arrowdl::python {

enum class Kind {
  kArrow,      ///< has an Arrow protocol or the dataframe interchange protocol
  kTensor,     ///< `take_tensor_of` takes it
  kContainer,  ///< a dict or another mapping of tensors, or torch's nested tensor
  kOther,
};

struct Classified {
  Kind kind;
  const DLPackExchangeAPI* api;  ///< the exchange API of its class, or nullptr
};

/// Arrow data that is also a tensor is kArrow, which carries more: type, nulls, dictionary. An
/// object with an exchange API is a tensor, unless it is a DeviceArray. A data frame has `items`
/// too, and is Arrow data.
Classified classify(PyObject* object);

}  // namespace arrowdl::python
