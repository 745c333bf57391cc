// Copies a host tensor into a tensor on a device.
#include <memory>
#include <utility>

#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/tensor_view.hpp"
#include "copy/copy_ranges.hpp"
#include "sync/stream_work.hpp"

ARROWDL_BEGIN_NAMESPACE

void copy_tensor(OwnedTensor source, const DLTensor& target, StreamHandle stream) {
  const TensorView from = view_tensor(source);
  const TensorView to = view_tensor(target);
  StreamWork work(require_memory(to.device, "copy"), to.device, stream, {});
  work.hold(std::make_shared<OwnedTensor>(std::move(source)));
  if (from.size() == 0) return;
  copy_ranges(work, Device{}, to.device, const_cast<uint8_t*>(to.data),
              {{from.data, from.nbytes(), 0}}, true);
}

ARROWDL_END_NAMESPACE
