// The fake driver's streams, each with a worker thread, and its memory.
#include "machine.hpp"

#include <cstdlib>

namespace arrowdl::testing::fake {

thread_local ThreadState this_thread;

int current_device() {
  if (!kHasContexts) return this_thread.device;
  return this_thread.contexts.empty() ? -1 : this_thread.contexts.back() % kDevices;
}

bool is_in_green_context() {
  return !this_thread.contexts.empty() && this_thread.contexts.back() >= kDevices;
}

/// The devices that the runtime's environment variable leaves, in its order.
Machine::Machine() {
  const char* const list =
      std::getenv(kHasContexts ? "CUDA_VISIBLE_DEVICES" : "HIP_VISIBLE_DEVICES");
  for (int device = 0; list == nullptr && device < kDevices; ++device) visible.push_back(device);
  for (const char* at = list; at != nullptr && *at != '\0'; ++at) {
    if (*at >= '0' && *at < '0' + kDevices) visible.push_back(*at - '0');
  }
  device_count = static_cast<int>(visible.size());
}

void* Machine::make_stream_handle() {
  if (!reuses_handles || free_handles.empty()) return make_handle();
  void* const handle = free_handles.back();
  free_handles.pop_back();
  return handle;
}

void Machine::work(const StreamPtr& stream) {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    stream->arrived.wait(lock,
                         [&stream] { return !stream->operations.empty() || stream->is_destroyed; });
    if (stream->operations.empty()) return;
    Operation& operation = stream->operations.front();
    changed.wait(lock, [&operation] { return !operation.is_ready || operation.is_ready(); });
    if (operation.run) {
      lock.unlock();
      operation.run();
      lock.lock();
    }
    if (operation.mark) operation.mark->is_passed = true;
    stream->operations.pop_front();
    changed.notify_all();
  }
}

StreamPtr Machine::start_stream(int device, bool is_blocking) {
  auto stream = std::make_shared<FakeStream>();
  stream->device = device;
  stream->is_blocking = is_blocking;
  std::thread([this, stream] { work(stream); }).detach();
  return stream;
}

StreamPtr Machine::find_stream(void* handle, int device) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (number > 2) {
    const auto found = streams.find(handle);
    if (found != streams.end()) return found->second;
    ++misuses;
    return nullptr;
  }
  if (device < 0) return nullptr;
  StreamPtr& stream = number == 2 ? per_thread[{device, std::this_thread::get_id()}]
                                  : defaults[static_cast<std::size_t>(device)];
  if (stream == nullptr) {
    stream = start_stream(device, true);
    stream->is_default = number != 2;
  }
  return stream;
}

std::vector<StreamPtr> Machine::all_streams() const {
  std::vector<StreamPtr> all;
  for (const auto& [handle, stream] : streams) all.push_back(stream);
  for (const auto& [key, stream] : per_thread) all.push_back(stream);
  for (const StreamPtr& stream : defaults) {
    if (stream != nullptr) all.push_back(stream);
  }
  return all;
}

void Machine::push_wait(const StreamPtr& stream, MarkPtr mark) {
  stream->push({[mark = std::move(mark)] { return mark->is_passed; }, nullptr, nullptr});
}

MarkPtr Machine::push_mark(const StreamPtr& stream) {
  auto mark = std::make_shared<Mark>();
  stream->push({nullptr, nullptr, mark});
  return mark;
}

void Machine::submit(const StreamPtr& stream, Operation operation) {
  MarkPtr& last = last_default[static_cast<std::size_t>(stream->device)];
  if (stream->is_default) {
    for (const StreamPtr& other : all_streams()) {
      if (other == stream || !other->is_blocking || other->device != stream->device) continue;
      if (!other->operations.empty()) push_wait(stream, push_mark(other));
    }
  } else if (stream->is_blocking && last != nullptr && !last->is_passed) {
    push_wait(stream, last);
  }
  stream->push(std::move(operation));
  if (stream->is_default) last = push_mark(stream);
  changed.notify_all();
}

void Machine::wait_until_idle(std::unique_lock<std::mutex>& lock, const StreamPtr& stream) {
  changed.wait(lock, [&stream] { return stream->operations.empty(); });
}

Allocation* Machine::find_allocation(const void* address) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  auto next = allocations.upper_bound(number);
  if (next == allocations.begin()) return nullptr;
  --next;
  return number < next->first + next->second.size ? &next->second : nullptr;
}

bool Machine::is_usable(const void* address, std::size_t size, bool runs) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  auto next = allocations.upper_bound(number);
  if (next == allocations.begin()) return true;
  const auto& [start, one] = *--next;
  if (number >= start + one.size) return true;
  return !(runs ? one.is_gone : one.is_freed) && size <= start + one.size - number;
}

void Machine::submit_use(const StreamPtr& stream,
                         std::vector<std::pair<const void*, std::size_t>> used,
                         std::function<void()> run) {
  submit(stream, {nullptr,
                  [this, used = std::move(used), run = std::move(run)] {
                    {
                      const std::lock_guard<std::mutex> lock(mutex);
                      for (const auto& [address, size] : used) {
                        if (!is_usable(address, size, true)) ++misuses;
                      }
                    }
                    run();
                  },
                  nullptr});
}

void* Machine::add_allocation(std::size_t size, bool is_pooled, Memory memory) {
  Allocation allocation;
  allocation.bytes.assign(size, 0xAA);
  allocation.memory = memory;
  allocation.device = current_device();
  allocation.is_pooled = is_pooled;
  allocation.size = size;
  uint8_t* const bytes = allocation.bytes.data();
  allocations[reinterpret_cast<uintptr_t>(bytes)] = std::move(allocation);
  return bytes;
}

Machine& machine() {
  static auto* const one = new Machine;
  return *one;
}

const char* name_of(int status) noexcept {
  switch (status) {
    case kSuccess:
      return "FAKE_SUCCESS";
    case kOutOfMemory:
      return "FAKE_OUT_OF_MEMORY";
    case kInvalidContext:
      return "FAKE_INVALID_CONTEXT";
    case kInvalidHandle:
      return "FAKE_INVALID_HANDLE";
    case kIllegalAddress:
      return "FAKE_ILLEGAL_ADDRESS";
    default:
      return "FAKE_ERROR";
  }
}

}  // namespace arrowdl::testing::fake
