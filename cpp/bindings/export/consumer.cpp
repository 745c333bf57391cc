// Keeps the memory of a tensor for the work of a consumer that only passed the number of a stream.
#include "export/consumer.hpp"

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "arrowdl/deferred_release.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "support/gil.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// The computations of XLA on a device. It drops a buffer when the last use is enqueued on its
/// compute stream, and calls the deleter of foreign memory at once. Sources: kComputeSynchronized
/// in XLA's local_device_state.h, ~TrackedDeviceBuffer.
class XlaWork final : public ConsumerWork {
 public:
  /// The compute stream is not known: a computation that is dispatched now ends after the others.
  void order_before(const Device& device, StreamHandle stream) const override {
    std::string error;
    require_gil([&] {
      try {
        find_hook(Hook::kOrderAfterJax)(device.type, device.id, stream.value());
      } catch (py::error_already_set& raised) {
        error = raised.what();
      }
    });
    if (!error.empty()) throw Error(ErrorKind::kRuntime, error);
  }
};

/// The same for all tensors, which JAX is asked for together.
std::shared_ptr<const ConsumerWork> work_of_jax() {
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::shared_ptr<const ConsumerWork>;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (*known == nullptr || !(*known)->is_of_this_process()) {
    *known = std::make_shared<const XlaWork>();
  }
  return *known;
}

/// Whether JAX passes `stream` to `__dlpack__`. Imports nothing.
bool is_stream_of_jax(const Device& device, StreamHandle stream) {
  if (!find_module("jax")) return false;
  return find_hook(Hook::kIsStreamOfJax)(device.type, device.id, stream.value()).cast<bool>();
}

/// A tensor that its consumer has until this is destroyed, and whose work uses it after that.
class UsedTensor {
 public:
  UsedTensor(OwnedTensor tensor, const Device& device, StreamHandle stream,
             std::shared_ptr<const ConsumerWork> work)
      : bytes_(view_tensor(tensor).nbytes()),
        device_(device),
        stream_(stream),
        work_(std::move(work)),
        tensor_(std::make_shared<OwnedTensor>(std::move(tensor))) {}
  ~UsedTensor() {
    if (work_ != nullptr) {
      release_after_work(device_, std::move(work_), std::move(tensor_), bytes_);
    } else {
      release_after(device_, stream_, std::move(tensor_), {}, bytes_);
    }
  }
  UsedTensor(const UsedTensor&) = delete;
  UsedTensor& operator=(const UsedTensor&) = delete;

 private:
  const int64_t bytes_;
  const Device device_;
  const StreamHandle stream_;
  std::shared_ptr<const ConsumerWork> work_;  ///< nullptr: that of the stream
  std::shared_ptr<const void> tensor_;
};

/// XLA, kEntryParameterAlignBytes: an execution with another parameter fails.
constexpr uintptr_t kAlignmentOfJax = 16;

}  // namespace

bool must_align_for(const TensorView& view, const Device& device, const Order& order) {
  return order.is_borrowed && view.size() > 0 &&
         reinterpret_cast<uintptr_t>(view.data) % kAlignmentOfJax != 0 &&
         is_stream_of_jax(device, order.stream);
}

OwnedTensor hold_for_consumer(OwnedTensor tensor, const Device& device, const Order& order) {
  if (!order.is_borrowed) return tensor;
  std::shared_ptr<const ConsumerWork> work;
  if (is_stream_of_jax(device, order.stream)) work = work_of_jax();
  const TensorView view = view_tensor(tensor);
  const uint64_t flags = tensor.versioned()->flags;
  auto used =
      std::make_shared<UsedTensor>(std::move(tensor), device, order.stream, std::move(work));
  return make_tensor(view, std::move(used), flags);
}

}  // namespace arrowdl::python
