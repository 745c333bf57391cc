// nanoarrow's ArrowDevice on top of a Backend: for code that works with nanoarrow's device
// functions. arrowdl's own does not need it.
#pragma once

#include "arrowdl/backend.hpp"
#include "arrowdl/device.hpp"
#include "nanoarrow/nanoarrow_device.hpp"

namespace arrowdl {

/// Released with it; what was made with it may live longer.
using OwnedArrowDevice = nanoarrow::device::UniqueDevice;

/// `device` as nanoarrow's functions take it. All slots are filled, and each honours its contract
/// in nanoarrow_device.h or says ENOTSUP:
/// - A stream of nullptr stands for none: what is asked for is done when the call returns. (ROCm's
///   default stream has that number: give another one.)
/// - `array_init` owns a `sync_event` that the backend recorded, and destroys it with the array.
/// - `buffer_init` copies between the CPU and devices of the backend. The memory of its buffers is
///   given back after the copy; who uses it on a stream waits for that before releasing it.
/// - `array_move` and `buffer_move` move within one device, and are ENOTSUP between two.
/// Failures are ENOMEM, EINVAL, ENOTSUP or EIO.
OwnedArrowDevice make_arrow_device(Backend& backend, const Device& device);

}  // namespace arrowdl
