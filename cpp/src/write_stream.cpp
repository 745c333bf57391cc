#include <cerrno>
#include <cstring>
#include <new>

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "share.hpp"

namespace arrowdl {
namespace {

std::string_view text(const char* string) { return string == nullptr ? "" : string; }

/// Whether arrays of `a` and `b` may be chunks of one stream: types and names of all nodes but of
/// the root, whose name says nothing.
bool is_same(const Type& a, const Type& b, bool is_root = true) {
  constexpr const char* kKeys[] = {"ARROW:extension:name", "ARROW:extension:metadata"};
  if (text(a.schema->format) != text(b.schema->format)) return false;
  if (!is_root && text(a.name()) != text(b.name())) return false;
  for (const char* key : kKeys) {
    if (find_metadata(*a.schema, key) != find_metadata(*b.schema, key)) return false;
  }
  if (a.children.size() != b.children.size()) return false;
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    if (!is_same(a.children[i], b.children[i], false)) return false;
  }
  if ((a.dictionary == nullptr) != (b.dictionary == nullptr)) return false;
  return a.dictionary == nullptr || is_same(*a.dictionary, *b.dictionary);
}

void check_chunks(const Chunks& chunks) {
  for (std::size_t i = 0; i < chunks.arrays.size(); ++i) {
    const DeviceArray& chunk = chunks.arrays[i];
    if (!is_same(chunks.schema->type, chunk.type())) {
      raise_value_error("chunk ", i, " is ", to_string(chunk.type()), ", the stream is of ",
                        to_string(chunks.schema->type), ": a stream has one schema");
    }
    if (chunk.device().type != chunks.arrays[0].device().type) {
      raise_value_error("chunk ", i, " is on ", to_string(chunk.device()), ", chunk 0 on ",
                        to_string(chunks.arrays[0].device()),
                        ": an Arrow stream is of one device type");
    }
  }
}

/// What a stream holds: its chunks as C structs, made before anything was handed out.
template <typename OwnedChunk>
struct Source : private Counted {
  std::shared_ptr<const ParsedSchema> schema;
  std::vector<OwnedChunk> chunks;
  std::size_t next = 0;
};

template <typename OwnedChunk, typename OwnedStream>
OwnedStream wrap_source(std::unique_ptr<Source<OwnedChunk>> source) {
  using From = Source<OwnedChunk>;
  using Stream = std::remove_pointer_t<decltype(OwnedStream().get())>;
  using Chunk = std::remove_pointer_t<decltype(OwnedChunk().get())>;
  OwnedStream stream;
  stream->private_data = source.release();
  stream->get_schema = [](Stream* self, ArrowSchema* out) noexcept {
    const auto& schema = static_cast<From*>(self->private_data)->schema;
    try {
      share_tree(*schema->schema.get(), std::shared_ptr<const void>(schema), out);
      return 0;
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
  };
  stream->get_next = [](Stream* self, Chunk* out) noexcept {
    auto* from = static_cast<From*>(self->private_data);
    if (from->next == from->chunks.size()) {
      std::memset(out, 0, sizeof(Chunk));  // released: the end
    } else {
      from->chunks[from->next++].move(out);
    }
    return 0;
  };
  stream->get_last_error = [](Stream*) noexcept -> const char* { return nullptr; };
  stream->release = [](Stream* self) noexcept {
    delete static_cast<From*>(self->private_data);
    self->release = nullptr;
  };
  return stream;
}

}  // namespace

OwnedArrayStream make_array_stream(const Chunks& chunks) {
  check_chunks(chunks);
  auto source = std::make_unique<Source<OwnedArray>>();
  source->schema = chunks.schema;
  for (const DeviceArray& chunk : chunks.arrays) source->chunks.push_back(chunk.export_array());
  return wrap_source<OwnedArray, OwnedArrayStream>(std::move(source));
}

OwnedDeviceArrayStream make_device_array_stream(const Chunks& chunks) {
  check_chunks(chunks);
  auto source = std::make_unique<Source<OwnedDeviceArray>>();
  source->schema = chunks.schema;
  for (const DeviceArray& chunk : chunks.arrays) {
    source->chunks.push_back(chunk.export_device_array());
  }
  OwnedDeviceArrayStream stream =
      wrap_source<OwnedDeviceArray, OwnedDeviceArrayStream>(std::move(source));
  stream->device_type = chunks.arrays.empty() ? ARROW_DEVICE_CPU : chunks.arrays[0].device().type;
  return stream;
}

}  // namespace arrowdl
