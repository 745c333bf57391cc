// The controls by which tests steer and observe the fake driver.
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "machine.hpp"

namespace arrowdl::testing::fake {
namespace {

class Controls final : public FakeDriver {
 public:
  int close_gate() override {
    const Lock lock(m_.mutex);
    m_.closed_gates.insert(m_.next_gate);
    return m_.next_gate++;
  }
  void open_gate(int gate) override {
    const Lock lock(m_.mutex);
    m_.closed_gates.erase(gate);
    m_.changed.notify_all();
  }
  void enqueue_gate(int device, StreamHandle stream, int gate) override {
    Machine& m = m_;
    submit(device, stream, {[&m, gate] { return m.closed_gates.count(gate) == 0; }, {}, {}});
  }
  void enqueue_fill(int device, StreamHandle stream, void* memory, uint8_t value,
                    std::size_t size) override {
    use(device, stream, {{memory, size}}, [=] { std::memset(memory, value, size); });
  }
  void enqueue_copy(int device, StreamHandle stream, void* target, const void* source,
                    std::size_t size) override {
    use(device, stream, {{target, size}, {source, size}},
        [=] { std::memcpy(target, source, size); });
  }
  void enqueue_failure(int device, StreamHandle stream) override {
    Machine& m = m_;
    submit(device, stream,
           {{},
            [&m, device] {
              const Lock lock(m.mutex);
              m.failures[static_cast<std::size_t>(device)] = kIllegalAddress;
            },
            {}});
  }
  void drain(int device, StreamHandle stream) override {
    Lock lock(m_.mutex);
    std::vector<StreamPtr> all = m_.all_streams();
    if (!stream.is_null()) all = {m_.find_stream(stream.get(), device)};
    for (const StreamPtr& one : all) m_.wait_until_idle(lock, one);
  }

  void fail_call(int n, int status) override {
    const Lock lock(m_.mutex);
    m_.fail_in = n;
    m_.fail_status = status;
    if (n > 0) m_.has_failed = false;
  }
  bool has_failed() override {
    const Lock lock(m_.mutex);
    return m_.has_failed;
  }
  void set_device_count(int count) override {
    const Lock lock(m_.mutex);
    m_.device_count = count;
  }
  void set_pools(bool supported) override {
    const Lock lock(m_.mutex);
    m_.has_pools = supported;
  }
  void set_pinning(bool possible) override {
    const Lock lock(m_.mutex);
    m_.can_pin = possible;
  }
  void set_capturing(StreamHandle stream, bool capturing) override {
    const Lock lock(m_.mutex);
    m_.find_stream(stream.get(), 0)->is_capturing = capturing;
  }
  void set_global_capture(bool capturing) override {
    const Lock lock(m_.mutex);
    m_.is_globally_capturing = capturing;
    m_.is_capture_broken = false;
  }
  bool is_capture_broken() override {
    const Lock lock(m_.mutex);
    return m_.is_capture_broken;
  }
  void reset() override {
    {
      const Lock lock(m_.mutex);
      m_.closed_gates.clear();
      m_.changed.notify_all();
    }
    drain(0, {});
    const Lock lock(m_.mutex);
    m_.device_count = static_cast<int>(m_.visible.size());
    m_.has_pools = m_.can_pin = true;
    m_.reuses_handles = false;
    m_.is_globally_capturing = m_.is_capture_broken = false;
    m_.has_peers = m_.has_concurrent_managed = true;
    m_.module_status = 0;
    m_.host_node = m_.pinned_node = -1;
    m_.capacity = UINT64_MAX;
    m_.fail_in = 0;
    m_.has_failed = false;
    m_.misuses = 0;
    for (int& failure : m_.failures) failure = 0;
    for (const StreamPtr& stream : m_.all_streams()) stream->is_capturing = false;
    for (auto it = m_.allocations.begin(); it != m_.allocations.end();) {
      it = it->second.is_freed ? m_.allocations.erase(it) : std::next(it);
    }
  }

  FakeCounts count() override {
    const Lock lock(m_.mutex);
    FakeCounts counts;
    counts.events = static_cast<int>(m_.events.size());
    counts.streams = static_cast<int>(m_.streams.size());
    for (const auto& [address, allocation] : m_.allocations) {
      counts.allocations += allocation.is_freed ? 0 : 1;
    }
    for (const int retained : m_.retained) counts.contexts += retained;
    return counts;
  }
  int calls() override {
    const Lock lock(m_.mutex);
    return m_.calls;
  }
  int calls_of_forked_child() override { return m_.child_calls; }
  int misuses() override {
    const Lock lock(m_.mutex);
    return m_.misuses;
  }
  int64_t current_context() override { return current_device() + 1; }
  void set_current_context(int device) override {
    this_thread.device = device < 0 ? 0 : device;
    this_thread.contexts.clear();
    if (device >= 0) this_thread.contexts.push_back(device);
  }
  int contexts_of(int device) override {
    const Lock lock(m_.mutex);
    return m_.retained[static_cast<std::size_t>(device)];
  }
  int capture_mode() override { return this_thread.capture_mode; }

  void set_peer_access(bool possible) override {
    const Lock lock(m_.mutex);
    m_.has_peers = possible;
  }
  void set_concurrent_managed(bool possible) override {
    const Lock lock(m_.mutex);
    m_.has_concurrent_managed = possible;
  }
  void set_host_node(int node) override {
    const Lock lock(m_.mutex);
    m_.host_node = node;
    m_.pinned_node = -1;
  }
  int pinned_node() override {
    const Lock lock(m_.mutex);
    return m_.pinned_node;
  }
  void set_module_status(int status) override {
    const Lock lock(m_.mutex);
    m_.module_status = status;
  }
  void set_capacity(uint64_t bytes) override {
    const Lock lock(m_.mutex);
    m_.capacity = bytes;
    if (bytes == UINT64_MAX) return;
    for (const auto& [address, one] : m_.allocations) {
      const bool is_live = one.device == 0 && one.memory == Memory::kDevice && !one.is_freed;
      m_.capacity += is_live ? one.size : 0;
    }
  }
  int copies() override {
    const Lock lock(m_.mutex);
    return m_.copies;
  }
  int growths() override {
    const Lock lock(m_.mutex);
    return m_.growths;
  }
  int host_waits() override {
    const Lock lock(m_.mutex);
    return m_.host_waits;
  }
  int64_t page_locks() override {
    const Lock lock(m_.mutex);
    return m_.page_locks;
  }
  int launches() override {
    const Lock lock(m_.mutex);
    return m_.launches;
  }
  int pool_allocations() override {
    const Lock lock(m_.mutex);
    return m_.pool_allocations;
  }
  int device_allocations() override {
    const Lock lock(m_.mutex);
    return m_.device_allocations + m_.growths;
  }
  void* allocate_elsewhere(int device, std::size_t size) override {
    const Lock lock(m_.mutex);
    return m_.add_pooled(size, nullptr, device);
  }
  void* allocate_mapped(int device, std::size_t size) override {
    const Lock lock(m_.mutex);
    void* const memory = m_.add_allocation(size, false, Memory::kDevice);
    Allocation& allocation = *m_.find_allocation(memory);
    allocation.device = device;
    allocation.is_mapped = true;
    allocation.granted = {device};
    return memory;
  }
  void free_elsewhere(void* memory) override {
    const Lock lock(m_.mutex);
    Allocation* const allocation = m_.find_allocation(memory);
    allocation->is_freed = true;
    m_.return_to_pool(*allocation);
  }
  void set_handle_reuse(bool reuses) override {
    const Lock lock(m_.mutex);
    m_.reuses_handles = reuses;
  }
  void set_green(StreamHandle stream, bool green) override {
    const Lock lock(m_.mutex);
    m_.find_stream(stream.get(), 0)->is_green = green;
  }

 private:
  void use(int device, StreamHandle stream, std::vector<std::pair<const void*, std::size_t>> used,
           std::function<void()> run) {
    const Lock lock(m_.mutex);
    m_.submit_use(m_.find_stream(stream.get(), device), std::move(used), std::move(run));
  }
  void submit(int device, StreamHandle stream, Operation operation) {
    const Lock lock(m_.mutex);
    m_.submit(m_.find_stream(stream.get(), device), std::move(operation));
  }

  Machine& m_ = machine();
};

}  // namespace
}  // namespace arrowdl::testing::fake

extern "C" __attribute__((visibility("default"))) arrowdl::testing::FakeDriver*
arrowdl_fake_driver() {
  static auto* const controls = new arrowdl::testing::fake::Controls;
  return controls;
}

extern "C" __attribute__((visibility("default"))) int arrowdl_fake_close_gate(void* stream) {
  const int gate = arrowdl_fake_driver()->close_gate();
  arrowdl_fake_driver()->enqueue_gate(0, arrowdl::StreamHandle(stream), gate);
  return gate;
}

extern "C" __attribute__((visibility("default"))) void arrowdl_fake_open_gate(int gate) {
  arrowdl_fake_driver()->open_gate(gate);
}

// Conditions for tests in Python.
extern "C" __attribute__((visibility("default"))) void arrowdl_fake_set_capacity(
    unsigned long long bytes) {
  arrowdl_fake_driver()->set_capacity(bytes);
}

extern "C" __attribute__((visibility("default"))) void arrowdl_fake_set_concurrent_managed(
    int possible) {
  arrowdl_fake_driver()->set_concurrent_managed(possible != 0);
}

extern "C" __attribute__((visibility("default"))) void arrowdl_fake_set_module_status(int status) {
  arrowdl_fake_driver()->set_module_status(status);
}

#define FAKE_CONTROL extern "C" __attribute__((visibility("default")))

FAKE_CONTROL void arrowdl_fake_set_peers(int possible) {
  arrowdl_fake_driver()->set_peer_access(possible != 0);
}
FAKE_CONTROL int arrowdl_fake_allocations() { return arrowdl_fake_driver()->count().allocations; }
FAKE_CONTROL int arrowdl_fake_host_waits() { return arrowdl_fake_driver()->host_waits(); }
FAKE_CONTROL int arrowdl_fake_page_locks() {
  return static_cast<int>(arrowdl_fake_driver()->page_locks());
}
FAKE_CONTROL int arrowdl_fake_launches() { return arrowdl_fake_driver()->launches(); }
FAKE_CONTROL int arrowdl_fake_device_allocations() {
  return arrowdl_fake_driver()->device_allocations();
}
FAKE_CONTROL int arrowdl_fake_pool_allocations() {
  return arrowdl_fake_driver()->pool_allocations();
}
FAKE_CONTROL int arrowdl_fake_copies() { return arrowdl_fake_driver()->copies(); }
FAKE_CONTROL int arrowdl_fake_misuses() { return arrowdl_fake_driver()->misuses(); }
FAKE_CONTROL void arrowdl_fake_set_handle_reuse(int reuses) {
  arrowdl_fake_driver()->set_handle_reuse(reuses != 0);
}
FAKE_CONTROL void arrowdl_fake_set_green(void* stream, int green) {
  arrowdl_fake_driver()->set_green(arrowdl::StreamHandle(stream), green != 0);
}
FAKE_CONTROL void arrowdl_fake_set_capturing(void* stream, int capturing) {
  arrowdl_fake_driver()->set_capturing(arrowdl::StreamHandle(stream), capturing != 0);
}
FAKE_CONTROL void arrowdl_fake_set_global_capture(int capturing) {
  arrowdl_fake_driver()->set_global_capture(capturing != 0);
}
FAKE_CONTROL int arrowdl_fake_is_capture_broken() {
  return arrowdl_fake_driver()->is_capture_broken() ? 1 : 0;
}
FAKE_CONTROL int arrowdl_fake_close_gate_on(int device, void* stream) {
  const int gate = arrowdl_fake_driver()->close_gate();
  arrowdl_fake_driver()->enqueue_gate(device, arrowdl::StreamHandle(stream), gate);
  return gate;
}
FAKE_CONTROL void arrowdl_fake_enqueue_copy(int device, void* stream, void* target,
                                            const void* source, std::size_t size) {
  arrowdl_fake_driver()->enqueue_copy(device, arrowdl::StreamHandle(stream), target, source, size);
}
