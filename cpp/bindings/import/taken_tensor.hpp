// A tensor taken from a producer, with the event of the work on its memory.
#pragma once

#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// A producer's tensor, and the event that completes when its memory is ready.
struct TakenTensor {
  OwnedTensor tensor;
  OwnedEvent event;
};

}  // namespace arrowdl::python
