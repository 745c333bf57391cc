// The fake driver's calls for devices, contexts, events and streams.
#include <cstddef>
#include <memory>
#include <utility>

#include "machine.hpp"

namespace arrowdl::testing::fake {

int init(unsigned) {
  return call(kAnyCall, [](Machine& m, Lock&) {
    if (m.device_count == 0) return kNoDevice;
    m.is_initialized = true;
    return kSuccess;
  });
}

int get_version(int* version, int value) {
  return call(kAnyCall, [&](Machine&, Lock&) {
    *version = value;
    return kSuccess;
  });
}

int count_devices(int* count) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    *count = m.device_count;
    return m.is_initialized ? kSuccess : kNotInitialized;
  });
}

int get_device(int* device, int ordinal) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    if (ordinal < 0 || ordinal >= m.device_count) return kInvalidDevice;
    *device = ordinal;
    return kSuccess;
  });
}

int exchange_capture_mode(int* mode) {
  return call(*mode == kRelaxedCapture ? kAnyCall : kGivesBack, [&](Machine&, Lock&) {
    std::swap(this_thread.capture_mode, *mode);
    return kSuccess;
  });
}

// ---------------------------------------------------------------- contexts

int retain_primary(void** context, int device) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    if (device < 0 || device >= m.device_count) return kInvalidDevice;
    ++m.retained[static_cast<std::size_t>(device)];
    *context = &m.contexts[static_cast<std::size_t>(device)];
    return kSuccess;
  });
}

int push_context(void* context) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    for (int device = 0; device < kDevices; ++device) {
      const auto i = static_cast<std::size_t>(device);
      const bool is_green = context == &m.green_contexts[i];
      if (!is_green && (context != &m.contexts[i] || m.retained[i] == 0)) continue;
      this_thread.contexts.push_back(is_green ? device + kDevices : device);
      return kSuccess;
    }
    return kInvalidContext;
  });
}

int pop_context(void** context) {
  return call(kGivesBack, [&](Machine& m, Lock&) {
    if (this_thread.contexts.empty()) return kInvalidContext;
    const auto device = static_cast<std::size_t>(current_device());
    *context = is_in_green_context() ? &m.green_contexts[device] : &m.contexts[device];
    this_thread.contexts.pop_back();
    return kSuccess;
  });
}

int get_current_device(int* device) {
  return call(kAnyCall, [&](Machine&, Lock&) {
    *device = this_thread.device;
    return kSuccess;
  });
}

int set_current_device(int device) {
  return call(kGivesBack, [&](Machine& m, Lock&) {
    if (device < 0 || device >= m.device_count) return kInvalidDevice;
    this_thread.device = device;
    return kSuccess;
  });
}

// ---------------------------------------------------------------- events

int create_event(void** event, unsigned) {
  return call_in_context(kAnyCall, [&](Machine& m, Lock&) {
    *event = m.make_handle();
    m.events[*event] = Event{current_device(), is_in_green_context(), nullptr};
    return kSuccess;
  });
}

int record_event(void* event, void* handle) {
  return call_on_stream(kAnyCall, handle, [&](Machine& m, Lock&, const StreamPtr& stream) {
    const auto found = m.events.find(event);
    // "hEvent and hStream must be from the same context" (cuEventRecord).
    if (found == m.events.end() || found->second.device != stream->device ||
        found->second.is_green != stream->is_green) {
      ++m.misuses;
      return kInvalidHandle;
    }
    found->second.mark = std::make_shared<Mark>();
    m.submit(stream, {nullptr, nullptr, found->second.mark});
    return kSuccess;
  });
}

int query_event(void* handle) {
  return call_on_event(kMaySynchronize, handle, [&](Machine& m, Lock&, const Event& event) {
    if (const int failure = failure_of(m, event.device)) return failure;
    return static_cast<int>(event.mark == nullptr || event.mark->is_passed ? kSuccess : kNotReady);
  });
}

int synchronize_event(void* handle) {
  return call_on_event(kMaySynchronize, handle, [&](Machine& m, Lock& lock, const Event& event) {
    const MarkPtr mark = event.mark;
    const int device = event.device;  // the event may be destroyed during the wait
    ++m.host_waits;
    if (mark != nullptr) m.changed.wait(lock, [&mark] { return mark->is_passed; });
    m.trim_pools();
    return failure_of(m, device);
  });
}

int destroy_event(void* handle) {
  return call_on_event(kGivesBack, handle, [&](Machine& m, Lock&, const Event& event) {
    static_cast<void>(event);
    m.events.erase(handle);
    return kSuccess;
  });
}

int wait_for_event(void* stream, void* event, unsigned) {
  return call_on_stream(kAnyCall, stream, [&](Machine& m, Lock&, const StreamPtr& waiting) {
    const auto found = m.events.find(event);
    if (found == m.events.end()) {
      ++m.misuses;
      return kInvalidHandle;
    }
    const MarkPtr mark = found->second.mark;  // a later record replaces it in the event
    if (mark != nullptr) {
      m.submit(waiting, {[mark] { return mark->is_passed; }, nullptr, nullptr});
    }
    return kSuccess;
  });
}

// ---------------------------------------------------------------- streams

int create_stream(void** stream, unsigned flags) {
  return call_in_context(kAnyCall, [&](Machine& m, Lock&) {
    *stream = m.make_stream_handle();
    m.streams[*stream] = m.start_stream(current_device(), (flags & kNonBlocking) == 0);
    return kSuccess;
  });
}

int query_stream(void* handle) {
  return call_on_stream(kMaySynchronize, handle, [](Machine& m, Lock&, const StreamPtr& stream) {
    if (const int failure = failure_of(m, stream->device)) return failure;
    return static_cast<int>(stream->operations.empty() ? kSuccess : kNotReady);
  });
}

int synchronize_stream(void* handle) {
  return call_on_stream(kMaySynchronize, handle,
                        [](Machine& m, Lock& lock, const StreamPtr& stream) {
                          ++m.host_waits;
                          m.wait_until_idle(lock, stream);
                          m.trim_pools();
                          return failure_of(m, stream->device);
                        });
}

int destroy_stream(void* handle) {
  return call_on_stream(kGivesBack, handle, [&](Machine& m, Lock&, const StreamPtr& stream) {
    stream->is_destroyed = true;  // its worker ends after the work
    m.streams.erase(handle);
    m.free_handles.push_back(handle);
    stream->arrived.notify_all();
    return kSuccess;
  });
}

int get_stream_context(void* handle, void** context) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const StreamPtr stream = m.find_stream(handle, current_device());
    if (stream == nullptr) return kInvalidHandle;
    // For a green context's stream it is "equivalent to the one returned by cuCtxFromGreenCtx".
    const auto device = static_cast<std::size_t>(stream->device);
    *context = stream->is_green ? &m.green_contexts[device] : &m.contexts[device];
    return kSuccess;
  });
}

int get_stream_contexts(void* handle, void** context, void** green) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const StreamPtr stream = m.find_stream(handle, current_device());
    if (stream == nullptr) return kInvalidHandle;
    const auto device = static_cast<std::size_t>(stream->device);
    *context = &m.contexts[device];
    *green = stream->is_green ? &m.green_contexts[device] : nullptr;
    return kSuccess;
  });
}

int get_stream_device(void* handle, int* device) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const StreamPtr stream = m.find_stream(handle, current_device());
    if (stream == nullptr) return kInvalidHandle;
    *device = stream->device;
    return kSuccess;
  });
}

int is_capturing(void* handle, int* status) {
  return call_in_context(kAnyCall, [&](Machine& m, Lock&) {
    const StreamPtr stream = m.find_stream(handle, current_device());
    if (stream == nullptr) return kInvalidHandle;
    if (stream->is_default && m.is_globally_capturing) return kCaptureImplicit;
    *status = stream->is_capturing ? 1 : 0;
    return kSuccess;
  });
}

int take_last_error() { return std::exchange(this_thread.last_error, 0); }

}  // namespace arrowdl::testing::fake
