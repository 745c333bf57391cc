// A tensor taken from a producer, with the event of the work on its memory.
#pragma once

#include <string>

#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// A producer's tensor, and the event that completes when its memory is ready.
struct TakenTensor {
  OwnedTensor tensor;
  OwnedEvent event;
  std::string time_format = {};  ///< of `ToArrowOptions`; empty for numbers
};

/// Which elements a caller takes.
enum class Elements {
  kDlpacks,  ///< those that the producer exports by DLPack, or by a protocol like it
  kArrows,   ///< also NumPy's times and the types of ml_dtypes
};

}  // namespace arrowdl::python
