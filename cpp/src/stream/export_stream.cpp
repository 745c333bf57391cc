// Exports a stream as a C struct that owns it.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "array/host_access.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/wait.hpp"
#include "cast/nulls.hpp"
#include "schema/make_schema.hpp"
#include "stream/stream_errors.hpp"
#include "util/fork.hpp"
#include "util/interrupt.hpp"
#include "util/timed_lock.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The state of an exported stream, shared with the thread that is reading it, since a release does
/// not wait for that thread. Consumers may count on the interpreter lock to admit one thread at a
/// time; a read releases that lock, so it takes `mutex`. `last_error` is written with the
/// consumer's lock held.
struct Exported {
  std::timed_mutex mutex;
  std::atomic<std::thread::id> holder{};  ///< of the mutex
  std::atomic<uint64_t> process{0};       ///< of the holder
  OwnedStream stream;
  std::string last_error;
};

/// Lets one thread at a time read, and waits for the reading thread. If that thread never returns,
/// since its interpreter has ended or it is in the parent of a fork, the interrupt check or the
/// fork count ends the wait. Raises RuntimeError if this thread is reading already.
class ReadLock {
 public:
  explicit ReadLock(Exported& exported) : exported_(exported) {
    const std::thread::id own = std::this_thread::get_id();
    if (exported_.holder == own && exported_.process == fork_count()) {
      throw Error(ErrorKind::kRuntime,
                  "this stream is being read by this thread: its source cannot read it in turn");
    }
    lock();
    exported_.process = fork_count();
    exported_.holder = own;
  }
  ~ReadLock() {
    exported_.holder = std::thread::id();
    exported_.mutex.unlock();
  }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

 private:
  void lock() {
    while (!try_lock_for(exported_.mutex, kInterruptInterval)) {
      if (exported_.holder != std::thread::id()) require_own_process(exported_.process);
      check_interrupt();
    }
  }

  Exported& exported_;
};

using SharedExported = std::shared_ptr<Exported>;

template <typename CStream>
const SharedExported& exported_of(CStream* self) noexcept {
  return *static_cast<SharedExported*>(self->private_data);
}

void export_next(const DeviceArray& array, ArrowArray* out) {
  fold_nulls(array).export_array().move(out);
}
void export_next(const DeviceArray& array, ArrowDeviceArray* out) {
  array.export_device_array().move(out);
}

template <typename CStream, typename Array>
int get_next(CStream* self, Array* out) noexcept {
  const SharedExported exported = exported_of(self);
  *out = {};
  return run_as_errno(&exported->last_error, [&] {
    wait_guarded([&](const Waiting&) {
      const ReadLock lock(*exported);
      const DeviceArray array = exported->stream->next();
      if (array) export_next(array, out);
    });
  });
}

template <typename CStream>
int get_schema(CStream* self, ArrowSchema* out) noexcept {
  Exported& exported = *exported_of(self);
  return run_as_errno(&exported.last_error,
                      [&] { copy_schema(*exported.stream->schema()->schema.get()).move(out); });
}

template <typename CStream>
const char* get_last_error(CStream* self) noexcept {
  const std::string& message = exported_of(self)->last_error;
  return message.empty() ? nullptr : message.c_str();
}

template <typename CStream>
void release(CStream* self) noexcept {
  const auto* const exported = static_cast<SharedExported*>(self->private_data);
  self->private_data = nullptr;
  self->release = nullptr;
  wait_guarded([exported](const Waiting&) { delete exported; });
}

/// Moves `from` into `exported`. If memory runs out, the caller keeps `from`.
template <typename CStream>
void export_into(OwnedStream&& from, CStream* exported) {
  auto owner = std::make_unique<SharedExported>(std::make_shared<Exported>());
  (*owner)->stream = std::move(from);
  exported->get_schema = get_schema<CStream>;
  exported->get_last_error = get_last_error<CStream>;
  exported->release = release<CStream>;
  exported->private_data = owner.release();
}

}  // namespace

OwnedDeviceArrayStream export_device_stream(OwnedStream&& stream) {
  OwnedDeviceArrayStream exported;
  exported->device_type = stream->device_type();
  exported->get_next = get_next<ArrowDeviceArrayStream, ArrowDeviceArray>;
  export_into(std::move(stream), exported.get());
  return exported;
}

OwnedArrayStream export_stream(OwnedStream&& stream) {
  require_host_readable(Device{stream->device_type(), 0}, "export a stream of host memory");
  OwnedArrayStream exported;
  exported->get_next = get_next<ArrowArrayStream, ArrowArray>;
  export_into(std::move(stream), exported.get());
  return exported;
}

ARROWDL_END_NAMESPACE
