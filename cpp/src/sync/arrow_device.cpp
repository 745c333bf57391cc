#include "arrowdl/arrow_device.hpp"

#include <cerrno>
#include <memory>
#include <utility>

#include "arrowdl/deferred_release.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/wait.hpp"

namespace arrowdl {
namespace {

/// What an ArrowDevice of ours points to.
struct Target {
  Backend& backend;
  Device device;
};

int code_of(const Error& error) noexcept {
  switch (error.kind()) {
    case ErrorKind::kMemory:
      return ENOMEM;
    case ErrorKind::kBuffer:
      return ENOTSUP;
    case ErrorKind::kRuntime:
      return EIO;
    case ErrorKind::kNotImplemented:
      return ENOSYS;
    default:
      return EINVAL;
  }
}

/// `verb`'s errors as C knows them.
template <typename Verb>
int guard(const Verb& verb, ArrowError* error = nullptr) noexcept {
  try {
    return verb();
  } catch (const Error& raised) {
    ArrowErrorSet(error, "%s", raised.what());
    return code_of(raised);
  } catch (const std::exception& raised) {
    ArrowErrorSet(error, "%s", raised.what());
    return ENOMEM;
  }
}

/// An event of a backend's, destroyed with it.
class Event {
 public:
  Event(const Target& target, void* handle) noexcept : target_(target), handle_(handle) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { reset(nullptr); }

  void* get() const noexcept { return handle_; }
  void* take() noexcept { return std::exchange(handle_, nullptr); }
  void reset(void* handle) noexcept {
    if (handle_ != nullptr) target_.backend.destroy(target_.device, handle_);
    handle_ = handle;
  }

 private:
  const Target target_;
  void* handle_;
};

void wait_on_host(const Target& target, void* event) {
  wait_guarded([&](const Waiting&) { target.backend.synchronize(target.device, event); });
}

void wait_for_stream(const Target& target, StreamHandle stream) {
  const Event event(target, target.backend.record(target.device, stream));
  wait_on_host(target, event.get());
}

bool is_same(const ArrowDevice& a, const ArrowDevice& b) noexcept {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

void release_device(ArrowDevice* device) noexcept {
  delete static_cast<Target*>(device->private_data);
  device->release = nullptr;
}

/// The target of a device that this file made, or nullptr.
const Target* find_target(const ArrowDevice& device) noexcept {
  return device.release == release_device ? static_cast<const Target*>(device.private_data)
                                          : nullptr;
}

Device device_of(const ArrowDevice& device) {
  return from_arrow_device(device.device_type, device.device_id);
}

/// The one of two devices that is ours and not the CPU, the target first; nullptr when each is
/// another library's business.
const Target* find_worker(const ArrowDevice& source, const ArrowDevice& target) noexcept {
  const Target* const worker = find_target(target);
  const ArrowDevice& other = worker != nullptr ? source : target;
  if (find_target(other) == nullptr && other.device_type != ARROW_DEVICE_CPU) return nullptr;
  return worker != nullptr ? worker : find_target(source);
}

// ---------------------------------------------------------------- arrays

/// An array with the event it became one with.
struct ArrayWithEvent {
  ArrayWithEvent(const Target& target, void* handle) noexcept : event(target, handle) {}

  ArrowArray array{};
  Event event;
};

void release_array(ArrowArray* array) noexcept {
  const std::unique_ptr<ArrayWithEvent> holder(static_cast<ArrayWithEvent*>(array->private_data));
  if (holder->array.release != nullptr) ArrowArrayRelease(&holder->array);
  array->release = nullptr;
}

/// What has happened once `event`, if any, and the work of `stream`, if any, have.
void* make_event(const Target& target, Event& event, StreamHandle stream) {
  if (stream == nullptr) return event.take();
  Event recorded(target, target.backend.record(target.device, stream));
  if (event.get() == nullptr) return recorded.take();
  return target.backend.join(target.device, {event.get(), recorded.get()});
}

int init_array(ArrowDevice* device, ArrowDeviceArray* device_array, ArrowArray* array,
               void* sync_event, void* stream) noexcept {
  const Target& target = *static_cast<Target*>(device->private_data);
  Event given(target, sync_event);
  const int code = guard([&] {
    auto holder = std::make_unique<ArrayWithEvent>(target, nullptr);
    ArrowDeviceArray result{};
    result.device_type = device->device_type;
    result.device_id = device->device_id;
    // The end of a stream is an array that is released: it gets no event, and no new release.
    if (array->release != nullptr) {
      void* const event = make_event(target, given, stream);
      result.sync_event = event;
      if (event == nullptr) {
        ArrowArrayMove(array, &result.array);
      } else {
        holder->event.reset(event);
        result.array = *array;
        ArrowArrayMove(array, &holder->array);
        result.array.release = release_array;
        result.array.private_data = holder.release();
      }
    }
    *device_array = result;
    return NANOARROW_OK;
  });
  if (code != NANOARROW_OK) given.take();  // on error it is the caller's
  return code;
}

int move_array(ArrowDevice* from, ArrowDeviceArray* source, ArrowDevice* to,
               ArrowDeviceArray* target) noexcept {
  if (!is_same(*from, *to)) return ENOTSUP;
  ArrowDeviceArrayMove(source, target);
  return NANOARROW_OK;
}

// ---------------------------------------------------------------- buffers

/// Memory of a buffer and the copy that filled it.
struct Allocation {
  Allocation(const Target& from, int64_t size)
      : target(from),
        memory(from.backend.allocate(from.device, size, from.backend.work_stream(from.device))),
        copied(from, nullptr) {}
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation() {
    if (memory == nullptr) return;
    try {
      const StreamHandle stream = target.backend.work_stream(target.device);
      if (copied.get() != nullptr) target.backend.wait(target.device, stream, copied.get());
      target.backend.free(target.device, memory, stream);
    } catch (...) {  // a copy may still write there: it stays
    }
  }

  const Target target;
  void* memory;
  Event copied;
};

void free_buffer(ArrowBufferAllocator* allocator, uint8_t*, int64_t) noexcept {
  delete static_cast<Allocation*>(allocator->private_data);
}

int init_device_buffer(const Target& target, const Device& from, ArrowBufferView source,
                       ArrowBuffer* buffer, StreamHandle stream) {
  auto allocation = std::make_unique<Allocation>(target, source.size_bytes);
  Backend& backend = target.backend;
  const StreamHandle work = backend.work_stream(target.device);
  if (stream != nullptr) {
    const Event allocated(target, backend.record(target.device, work));
    backend.wait(target.device, stream, allocated.get());
  }
  const StreamHandle on = stream != nullptr ? stream : work;
  backend.copy(target.device, allocation->memory, from, source.data.data, source.size_bytes, on);
  void* const memory = std::exchange(allocation->memory, nullptr);
  allocation->copied.reset(backend.record(target.device, on));
  allocation->memory = memory;  // with no event it stays: the copy may still run
  if (stream == nullptr) wait_on_host(target, allocation->copied.get());
  ArrowBufferInit(buffer);
  buffer->data = static_cast<uint8_t*>(allocation->memory);
  buffer->size_bytes = buffer->capacity_bytes = source.size_bytes;
  buffer->allocator = ArrowBufferDeallocator(free_buffer, allocation.release());
  return NANOARROW_OK;
}

int copy_bytes(const Target& worker, const Device& to, void* target, const Device& from,
               ArrowBufferView source, int64_t size, StreamHandle stream) {
  const StreamHandle on = stream != nullptr ? stream : worker.backend.work_stream(worker.device);
  worker.backend.copy(to, target, from, source.data.data, size, on);
  if (stream == nullptr) wait_for_stream(worker, on);
  return NANOARROW_OK;
}

int init_host_buffer(const Target& worker, ArrowBufferView source, ArrowBuffer* buffer,
                     StreamHandle stream) {
  const auto copy = std::make_shared<nanoarrow::UniqueBuffer>();
  if (ArrowBufferResize(copy->get(), source.size_bytes, 0) != NANOARROW_OK) return ENOMEM;
  const StreamHandle on = stream != nullptr ? stream : worker.backend.work_stream(worker.device);
  try {
    copy_bytes(worker, Device{}, (*copy)->data, worker.device, source, source.size_bytes, stream);
  } catch (...) {  // where the wait has failed, the copy may still write there
    release_after(worker.device, on, copy);
    throw;
  }
  ArrowBufferMove(copy->get(), buffer);
  return NANOARROW_OK;
}

int init_buffer(ArrowDevice* from, ArrowBufferView source, ArrowDevice* to, ArrowBuffer* buffer,
                void* stream) noexcept {
  const Target* const worker = find_worker(*from, *to);
  if (worker == nullptr) return ENOTSUP;
  return guard([&] {
    if (find_target(*to) != nullptr) {
      return init_device_buffer(*worker, device_of(*from), source, buffer, stream);
    }
    return init_host_buffer(*worker, source, buffer, stream);
  });
}

int move_buffer(ArrowDevice* from, ArrowBuffer* source, ArrowDevice* to,
                ArrowBuffer* target) noexcept {
  if (!is_same(*from, *to)) return ENOTSUP;
  ArrowBufferMove(source, target);
  return NANOARROW_OK;
}

int copy_buffer(ArrowDevice* from, ArrowBufferView source, ArrowDevice* to, ArrowBufferView target,
                void* stream) noexcept {
  const Target* const worker = find_worker(*from, *to);
  if (worker == nullptr) return ENOTSUP;
  if (source.size_bytes < target.size_bytes) return EINVAL;
  return guard([&] {
    return copy_bytes(*worker, device_of(*to), const_cast<void*>(target.data.data),
                      device_of(*from), source, target.size_bytes, stream);
  });
}

int synchronize(ArrowDevice* device, void* sync_event, void* stream, ArrowError* error) noexcept {
  const Target& target = *static_cast<Target*>(device->private_data);
  return guard(
      [&] {
        if (sync_event != nullptr && stream != nullptr) {
          target.backend.wait(target.device, stream, sync_event);
        } else if (sync_event != nullptr) {
          wait_on_host(target, sync_event);
        } else if (stream != nullptr) {
          wait_for_stream(target, stream);
        }
        return NANOARROW_OK;
      },
      error);
}

}  // namespace

OwnedArrowDevice make_arrow_device(Backend& backend, const Device& device) {
  auto target = std::make_unique<Target>(Target{backend, device});
  OwnedArrowDevice made;
  made->device_type = device.type;
  made->device_id = to_arrow_device_id(device);
  made->array_init = init_array;
  made->array_move = move_array;
  made->buffer_init = init_buffer;
  made->buffer_move = move_buffer;
  made->buffer_copy = copy_buffer;
  made->synchronize_event = synchronize;
  made->release = release_device;
  made->private_data = target.release();
  return made;
}

}  // namespace arrowdl
