#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "array/host_access.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/wait.hpp"
#include "cast/fold_nulls.hpp"
#include "util/fork.hpp"
#include "util/interrupt.hpp"

namespace arrowdl {
namespace {

int to_errno(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kMemory:
      return ENOMEM;
    case ErrorKind::kRuntime:
      return EIO;
    case ErrorKind::kNotImplemented:
      return ENOSYS;
    default:
      return EINVAL;
  }
}

/// What an exported stream owns. A consumer may count on the interpreter lock, with which it calls,
/// to let one thread in at a time; it is let go of while the stream works. So that has a lock of
/// its own, and belongs to whoever is inside as well: a release does not wait for them. What the
/// consumer reads is written with its lock held.
struct Exported {
  explicit Exported(OwnedStream from) : stream(std::move(from)) {}

  std::timed_mutex mutex;
  std::atomic<std::thread::id> holder{};  ///< of the mutex
  std::atomic<uint64_t> process{0};       ///< of the holder
  OwnedStream stream;
  std::string last_error;
};

/// One thread at a time is inside. Waits for the one that is; where the end of its interpreter or a
/// fork has left it there it does not come back: the interrupt check and the fork say so. Raises
/// RuntimeError where this thread is inside already.
class Turn {
 public:
  explicit Turn(Exported& exported) : exported_(exported) {
    const std::thread::id own = std::this_thread::get_id();
    if (exported_.holder == own && exported_.process == fork_count()) {
      throw Error(ErrorKind::kRuntime,
                  "this stream is being read by this thread: its source cannot read it in turn");
    }
    lock();
    exported_.process = fork_count();
    exported_.holder = own;
  }
  ~Turn() {
    exported_.holder = std::thread::id();
    exported_.mutex.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  void lock() {
    while (!exported_.mutex.try_lock_for(kInterruptInterval)) {
      if (exported_.holder != std::thread::id() && exported_.process != fork_count()) {
        throw Error(ErrorKind::kRuntime,
                    "this stream was being read in another process, the one that was forked: make "
                    "the stream in the process that reads it");
      }
      check_interrupt();
    }
  }

  Exported& exported_;
};

using SharedExported = std::shared_ptr<Exported>;

template <typename StreamHandle>
const SharedExported& exported_of(StreamHandle* self) noexcept {
  return *static_cast<SharedExported*>(self->private_data);
}

int fail(Exported& exported, int code, const char* message) noexcept {
  try {
    exported.last_error = message;
    return code;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

/// Runs `body`, and turns what it throws into what `get_last_error` says.
template <typename Body>
int guarded(Exported& exported, const Body& body) noexcept {
  try {
    exported.last_error.clear();
    body();
    return 0;
  } catch (const ProducerError& error) {
    return fail(exported, error.code(), error.reported().c_str());
  } catch (const Error& error) {
    return fail(exported, to_errno(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::exception& error) {
    return fail(exported, EIO, error.what());
  }
}

void export_next(const DeviceArray& array, ArrowArray* out) {
  fold_nulls(array).export_array().move(out);
}
void export_next(const DeviceArray& array, ArrowDeviceArray* out) {
  array.export_device_array().move(out);
}

template <typename StreamHandle, typename Array>
int get_next(StreamHandle* self, Array* out) noexcept {
  const SharedExported exported = exported_of(self);
  *out = {};
  return guarded(*exported, [&] {
    wait_guarded([&](const Waiting&) {
      const Turn turn(*exported);
      const DeviceArray array = exported->stream->next();
      if (array) export_next(array, out);
    });
  });
}

template <typename StreamHandle>
int get_schema(StreamHandle* self, ArrowSchema* out) noexcept {
  Exported& exported = *exported_of(self);
  return guarded(exported, [&] {
    const ArrowSchema* schema = exported.stream->schema()->schema.get();
    if (ArrowSchemaDeepCopy(schema, out) != NANOARROW_OK) throw std::bad_alloc();
  });
}

template <typename StreamHandle>
const char* get_last_error(StreamHandle* self) noexcept {
  const std::string& message = exported_of(self)->last_error;
  return message.empty() ? nullptr : message.c_str();
}

template <typename StreamHandle>
void release(StreamHandle* self) noexcept {
  const auto* const exported = static_cast<SharedExported*>(self->private_data);
  self->private_data = nullptr;
  self->release = nullptr;
  wait_guarded([exported](const Waiting&) { delete exported; });
}

template <typename StreamHandle>
void fill(OwnedStream from, StreamHandle* stream) {
  auto exported = std::make_unique<SharedExported>(std::make_shared<Exported>(std::move(from)));
  stream->get_schema = get_schema<StreamHandle>;
  stream->get_last_error = get_last_error<StreamHandle>;
  stream->release = release<StreamHandle>;
  stream->private_data = exported.release();
}

}  // namespace

OwnedDeviceArrayStream export_device_stream(OwnedStream stream) {
  OwnedDeviceArrayStream exported;
  exported->device_type = stream->device_type();
  exported->get_next = get_next<ArrowDeviceArrayStream, ArrowDeviceArray>;
  fill(std::move(stream), exported.get());
  return exported;
}

OwnedArrayStream export_stream(OwnedStream&& stream) {
  require_host_readable(Device{stream->device_type(), 0}, "hand out a stream of host memory");
  OwnedArrayStream exported;
  exported->get_next = get_next<ArrowArrayStream, ArrowArray>;
  fill(std::move(stream), exported.get());
  return exported;
}

}  // namespace arrowdl
