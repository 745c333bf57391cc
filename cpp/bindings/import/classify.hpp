// What kind of object a caller passed, asked once.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/owned.hpp"

namespace arrowdl::python {

enum class Kind {
  kArrow,      ///< speaks an Arrow protocol or the dataframe interchange protocol
  kTensor,     ///< what `take_tensor_of` takes
  kContainer,  ///< a dict or another mapping of tensors, or torch's nested tensor
  kOther,
};

struct Classified {
  Kind kind;
  const DLPackExchangeAPI* api;  ///< of its class, or nullptr
};

/// Arrow data that is also a tensor is kArrow, since that says more: type, nulls, dictionary. An
/// object with an exchange API is a tensor, unless it is a DeviceArray. A data frame has items as
/// well, and is Arrow data.
Classified classify(PyObject* object);

}  // namespace arrowdl::python
