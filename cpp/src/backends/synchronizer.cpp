#include "backends/synchronizer.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "arrowdl/error.hpp"

namespace arrowdl {
namespace {

/// All it can do is wait on the host.
class SynchronizerBackend final : public Backend {
 public:
  /// Returns the last one, to be dropped when no lock is held: its deleter may run any code.
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
  bool has_streams() const noexcept override { return false; }

  EventHandle record(const Device& device, StreamHandle) override {
    refuse(device, "record an event");
  }
  void wait(const Device& device, StreamHandle, EventHandle event) override {
    synchronize(device, event);
  }
  void synchronize(const Device& device, EventHandle event) override {
    const std::shared_ptr<Synchronizer> synchronizer = get();  // it may be replaced meanwhile
    if (synchronizer == nullptr || !*synchronizer) refuse(device, "wait for an event");
    (*synchronizer)(event, device.id);
  }
  bool is_complete(const Device&, EventHandle) override { return false; }
  void destroy(const Device&, EventHandle) noexcept override {}  // it records none

  EventHandle join(const Device& device, const std::vector<EventHandle>& events) override {
    for (const EventHandle event : events) synchronize(device, event);
    return {};
  }
  StreamHandle take_stream(const Device& device) override { refuse(device, "make a stream"); }
  void give_stream(const Device&, StreamHandle) noexcept override {}  // it makes none
  StreamHandle work_stream(const Device& device) override { refuse(device, "make a stream"); }
  bool is_capturing(const Device&, StreamHandle) override { return false; }
  void* allocate(const Device& device, int64_t, StreamHandle) override {
    refuse(device, "allocate");
  }
  void free(const Device&, void*, StreamHandle) noexcept override {}  // it allocates nothing
  void copy(const Device& to, void*, const Device& from, const void*, int64_t,
            StreamHandle) override {
    refuse(to.type == kDLCPU ? from : to, "copy");
  }

 private:
  [[noreturn]] static void refuse(const Device& device, const char* verb) {
    raise_buffer_error("cannot ", verb, " on ", to_string(device),
                       ": arrowdl knows a synchronizer for it and nothing else");
  }

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

}  // namespace arrowdl
