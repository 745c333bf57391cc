#include <cerrno>
#include <new>
#include <string>

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "host_access.hpp"

namespace arrowdl {
namespace {

int to_errno(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kMemory:
      return ENOMEM;
    case ErrorKind::kRuntime:
      return EIO;
    default:
      return EINVAL;
  }
}

/// What an exported stream owns.
struct Exported {
  explicit Exported(OwnedStream from) : stream(std::move(from)) {}

  OwnedStream stream;
  std::string last_error;
};

/// Where there is no memory for the text, the number is said without.
void keep_text(Exported& exported, const std::exception& error) noexcept {
  try {
    exported.last_error = error.what();
  } catch (const std::bad_alloc&) {
    exported.last_error.clear();
  }
}

/// Runs `body`, and turns what it throws into what `get_last_error` says.
template <typename Body>
int guarded(Exported& exported, const Body& body) noexcept {
  try {
    exported.last_error.clear();
    body();
    return 0;
  } catch (const Error& error) {
    keep_text(exported, error);
    return to_errno(error.kind());
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::exception& error) {
    keep_text(exported, error);
    return EIO;
  }
}

void export_next(const DeviceArray& array, ArrowArray* out) { array.export_array().move(out); }
void export_next(const DeviceArray& array, ArrowDeviceArray* out) {
  array.export_device_array().move(out);
}

template <typename Stream, typename Array>
int get_next(Stream* self, Array* out) noexcept {
  auto& exported = *static_cast<Exported*>(self->private_data);
  *out = {};
  return guarded(exported, [&] {
    const DeviceArray array = exported.stream->next();
    if (array) export_next(array, out);
  });
}

template <typename Stream>
int get_schema(Stream* self, ArrowSchema* out) noexcept {
  auto& exported = *static_cast<Exported*>(self->private_data);
  return guarded(exported, [&] {
    const ArrowSchema* schema = exported.stream->schema()->schema.get();
    if (ArrowSchemaDeepCopy(schema, out) != NANOARROW_OK) throw std::bad_alloc();
  });
}

template <typename Stream>
const char* get_last_error(Stream* self) noexcept {
  const std::string& message = static_cast<Exported*>(self->private_data)->last_error;
  return message.empty() ? nullptr : message.c_str();
}

template <typename Stream>
void release(Stream* self) noexcept {
  delete static_cast<Exported*>(self->private_data);
  self->release = nullptr;
}

template <typename Stream>
void fill(Exported* exported, Stream* stream) noexcept {
  stream->get_schema = get_schema<Stream>;
  stream->get_last_error = get_last_error<Stream>;
  stream->release = release<Stream>;
  stream->private_data = exported;
}

}  // namespace

OwnedDeviceArrayStream export_device_stream(OwnedStream stream) {
  OwnedDeviceArrayStream exported;
  exported->device_type = stream->device_type();
  exported->get_next = get_next<ArrowDeviceArrayStream, ArrowDeviceArray>;
  fill(std::make_unique<Exported>(std::move(stream)).release(), exported.get());
  return exported;
}

OwnedArrayStream export_stream(OwnedStream stream) {
  require_host_readable(Device{stream->device_type(), 0}, "hand out a stream of host memory");
  OwnedArrayStream exported;
  exported->get_next = get_next<ArrowArrayStream, ArrowArray>;
  fill(std::make_unique<Exported>(std::move(stream)).release(), exported.get());
  return exported;
}

}  // namespace arrowdl
