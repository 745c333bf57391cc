// A backend that can only wait on the host, with a function of the user.
#include "backends/synchronizer.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using Synchronizer = std::function<void(EventHandle event, int64_t device_id)>;

class SynchronizerBackend final : public Backend {
 public:
  /// Returns the previous one, which the caller drops without a lock: its deleter may run any code.
  std::shared_ptr<Synchronizer> set(Synchronizer synchronizer) {
    auto next = std::make_shared<Synchronizer>(std::move(synchronizer));
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(synchronizer_, std::move(next));
  }

  bool is_set() {
    const std::shared_ptr<Synchronizer> synchronizer = get();
    return synchronizer != nullptr && *synchronizer;
  }

  const char* name() const noexcept override { return "a registered synchronizer"; }
  std::string version() override { return {}; }
  int64_t device_count() override { return 0; }
  const char* limits() const noexcept override {
    return "arrowdl knows a synchronizer for it and nothing else; do it in the library that made "
           "the data";
  }

  void synchronize(const Device& device, EventHandle event) override {
    const std::shared_ptr<Synchronizer> synchronizer = get();  // it may be replaced meanwhile
    if (synchronizer == nullptr || !*synchronizer) {
      raise_buffer_error("cannot wait for an event on ", to_string(device),
                         ": its synchronizer was removed; register another one");
    }
    (*synchronizer)(event, device.id);
  }
  bool is_complete(const Device&, EventHandle) override { return false; }

 private:
  std::shared_ptr<Synchronizer> get() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return synchronizer_;
  }

  std::mutex mutex_;
  std::shared_ptr<Synchronizer> synchronizer_;
};

struct Registered {
  std::mutex mutex;
  std::map<int32_t, std::unique_ptr<SynchronizerBackend>> backends;
};

Registered& registered() {
  static auto* const all = new Registered;  // never freed: arrays outlive statics
  return *all;
}

}  // namespace

Backend* find_synchronizer(int32_t device_type) {
  const std::lock_guard<std::mutex> lock(registered().mutex);
  const auto found = registered().backends.find(device_type);
  if (found == registered().backends.end() || !found->second->is_set()) return nullptr;
  return found->second.get();
}

void set_synchronizer(int32_t device_type, Synchronizer synchronizer) {
  std::shared_ptr<Synchronizer> last;
  const std::lock_guard<std::mutex> lock(registered().mutex);
  std::unique_ptr<SynchronizerBackend>& backend = registered().backends[device_type];
  if (backend == nullptr) backend = std::make_unique<SynchronizerBackend>();
  last = backend->set(std::move(synchronizer));
}

ARROWDL_END_NAMESPACE
