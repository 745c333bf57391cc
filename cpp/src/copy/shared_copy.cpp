// Copies arrays to memory that processes share, describes them, and opens them by that.
#include "arrowdl/shared_copy.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/wait.hpp"
#include "copy/copy_plan.hpp"
#include "copy/copy_ranges.hpp"
#include "schema/layout.hpp"
#include "sync/release_thread.hpp"
#include "sync/stream_work.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The first text of a description, to be changed with what follows it.
constexpr std::string_view kVersion = "arrowdl shared copy 1";
constexpr int64_t kAbsent = -1;  // the size of a text or a buffer that is not there

// ---------------------------------------------------------------- memory

SharedMemoryOps& require_shared_memory(const Device& device) {
  SharedMemoryOps* shared = nullptr;
  if (device.type == kDLCUDA || device.type == kDLROCM) {
    shared = require_backend(device, "share memory").shared_memory();
  }
  if (shared == nullptr) {
    raise_buffer_error(
        "memory on ", to_string(device),
        " cannot be shared with other processes: only that of cuda and rocm can, on "
        "Linux and with a driver for CUDA 11.4, or a HIP that exports memory: copy the array to "
        "the CPU");
  }
  return *shared;
}

/// Unmaps memory at its end.
class SharedMapping : private Counted {
 public:
  SharedMapping(SharedMemoryOps& shared, const Device& device, int64_t size,
                FileDescriptor* created)
      : shared_(shared), device_(device), mapping_(shared.create_shared(device, size, created)) {}
  SharedMapping(SharedMemoryOps& shared, const Device& device, int64_t size, int descriptor)
      : shared_(shared), device_(device), mapping_(shared.map_shared(device, size, descriptor)) {}
  ~SharedMapping() { shared_.unmap_shared(device_, mapping_); }

  uint8_t* address() const noexcept { return static_cast<uint8_t*>(mapping_.address); }
  int64_t size() const noexcept { return mapping_.size; }

 private:
  SharedMemoryOps& shared_;
  const Device device_;
  const Mapping mapping_;
};

/// Whether the release thread takes it: not without one, or without memory.
bool try_defer(ReleaseThread& thread, Release& release) {
  try {
    return thread.take(release);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Unmaps it on the release thread, since that may wait for the device. At the end of the process,
/// which must not wait, it stays: the system unmaps it.
void unmap_later(std::shared_ptr<const SharedMapping> mapping) noexcept {
  const int64_t size = mapping->size();
  Release release{nullptr, std::move(mapping), size};
  try {
    ReleaseThread& thread = ReleaseThread::get();
    if (thread.is_forked() || try_defer(thread, release)) return;  // a child calls no driver
    if (!thread.is_stopped()) {
      return wait_guarded([&](const Waiting&) { release.owner.reset(); });
    }
  } catch (...) {  // no thread, and no guard
  }
  abandon(std::move(release));
}

/// Ends the memory's use by giving its mapping to `unmap_later`.
template <typename Memory>
std::shared_ptr<const SharedMapping> map(SharedMemoryOps& shared, const Device& device,
                                         int64_t size, Memory memory) {
  std::shared_ptr<const SharedMapping> mapping =
      std::make_shared<SharedMapping>(shared, device, size, memory);
  const SharedMapping* const address = mapping.get();
  return {address, [own = std::move(mapping)](const SharedMapping*) mutable noexcept {
            unmap_later(std::move(own));
          }};
}

// ---------------------------------------------------------------- descriptions

class Writer {
 public:
  void write(int64_t number) {
    text_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void write(const char* text, int64_t size) {
    write(text == nullptr ? kAbsent : size);
    if (text != nullptr) text_.append(text, static_cast<std::size_t>(size));
  }
  void write(std::string_view text) { write(text.data(), static_cast<int64_t>(text.size())); }
  void write_string(const char* text) {
    write(text, text == nullptr ? 0 : static_cast<int64_t>(std::strlen(text)));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

[[noreturn]] void raise_malformed() {
  raise_value_error(
      "this does not describe a shared array, or another version of arrowdl wrote it: processes "
      "that share arrays have to use the same version");
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  template <typename Number = int64_t>
  Number read() {
    Number number;
    std::memcpy(&number, take(sizeof(number)).data(), sizeof(number));
    return number;
  }
  /// A number of things that follow, each of at least one byte.
  int64_t read_count() {
    const int64_t count = read();
    if (count < 0 || count > static_cast<int64_t>(rest_.size())) raise_malformed();
    return count;
  }
  /// Its data() is nullptr for an absent text.
  std::string_view read_text() {
    const int64_t size = read();
    if (size == kAbsent) return {};
    if (size < 0) raise_malformed();
    return take(static_cast<std::size_t>(size));
  }
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) raise_malformed();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view rest_;
};

void write_node(Writer& out, const ArrowSchema& schema, const CopyPlan& plan) {
  out.write_string(schema.format);
  out.write_string(schema.name);
  out.write(schema.metadata, ArrowMetadataSizeOf(schema.metadata));
  out.write(schema.flags);
  out.write(plan.length);
  out.write(plan.offset);
  out.write(plan.null_count);
  out.write(static_cast<int64_t>(plan.buffers.size()));
  for (const CopyRange& range : plan.buffers) {
    out.write(range.source == nullptr ? kAbsent : range.size);
    out.write(range.offset);
  }
  out.write(schema.n_children);
  for (int64_t i = 0; i < schema.n_children; ++i) {
    write_node(out, *schema.children[i], plan.children[static_cast<std::size_t>(i)]);
  }
  out.write(schema.dictionary != nullptr ? 1 : 0);
  if (schema.dictionary != nullptr) write_node(out, *schema.dictionary, *plan.dictionary);
}

void check(ArrowErrorCode code) {
  if (code == ENOMEM) throw std::bad_alloc();
  if (code != NANOARROW_OK) raise_malformed();
}

/// nanoarrow trusts the sizes in it: a number of pairs, and the size of each key and value.
void check_metadata(std::string_view metadata) {
  if (metadata.data() == nullptr) return;
  Reader in(metadata);
  const auto pairs = in.read<int32_t>();
  if (pairs < 0) raise_malformed();
  for (int64_t i = 0; i < 2 * int64_t{pairs}; ++i) {
    in.take(static_cast<std::size_t>(in.read<int32_t>()));
  }
}

/// What the buffers of a node have to hold, and their sizes.
struct NodeSizes {
  int64_t rows = 0;  ///< also those before the offset
  std::vector<int64_t> sizes;
};

/// `*node` is that of `type`, which those of its children follow. The array has been validated.
void check_sizes(const Type& type, std::vector<NodeSizes>::const_iterator* node) {
  const NodeSizes& given = *(*node)++;
  for (std::size_t i = 0; i < given.sizes.size(); ++i) {
    const int64_t needed = buffer_size(type, static_cast<int64_t>(i), given.rows);
    if (given.sizes[i] != kAbsent && given.sizes[i] < needed) raise_malformed();
  }
  for (const Type& child : type.children) check_sizes(child, node);
  if (type.dictionary != nullptr) check_sizes(*type.dictionary, node);
}

/// Makes the schema of a node and its array in `memory`, level by level.
class NodeReader {
 public:
  NodeReader(Reader& in, std::shared_ptr<const SharedMapping> memory)
      : in_(in), memory_(std::move(memory)) {}

  DeviceArray read(const Device& device) {
    OwnedSchema schema;
    OwnedArray array = read(schema.get(), 0);
    DeviceArray made = DeviceArray::import(std::move(schema), std::move(array), device);
    auto node = nodes_.cbegin();
    check_sizes(made.type(), &node);
    return made;
  }

 private:
  OwnedArray read(ArrowSchema* schema, int depth) {
    if (depth > kMaxDepth) raise_malformed();
    ArrowSchemaInit(schema);
    check(ArrowSchemaSetFormat(schema, read_string("").c_str()));
    const std::string_view name = in_.read_text();
    if (name.data() != nullptr) check(ArrowSchemaSetName(schema, std::string(name).c_str()));
    const std::string_view metadata = in_.read_text();
    check_metadata(metadata);
    check(ArrowSchemaSetMetadata(schema, metadata.data()));
    schema->flags = in_.read();
    ArrayParts parts;
    parts.length = in_.read();
    parts.offset = in_.read();
    parts.null_count = in_.read();
    NodeSizes given;
    if (!checked_add(parts.length, parts.offset, &given.rows)) raise_malformed();
    for (int64_t count = in_.read_count(); count > 0; --count) {
      parts.buffers.push_back(read_buffer(&given.sizes));
    }
    nodes_.push_back(std::move(given));
    const int64_t n_children = in_.read_count();
    check(ArrowSchemaAllocateChildren(schema, n_children));
    for (int64_t i = 0; i < n_children; ++i) {
      parts.children.push_back(read(schema->children[i], depth + 1));
    }
    if (in_.read() != 0) {
      check(ArrowSchemaAllocateDictionary(schema));
      parts.dictionary = read(schema->dictionary, depth + 1);
    }
    return make_array(std::move(parts));
  }

  std::string read_string(std::string_view otherwise) {
    const std::string_view text = in_.read_text();
    return std::string(text.data() != nullptr ? text : otherwise);
  }

  Buffer read_buffer(std::vector<int64_t>* sizes) {
    const int64_t size = in_.read();
    const int64_t offset = in_.read();
    sizes->push_back(size);
    if (size == kAbsent) return {};
    if (memory_ == nullptr || size < 0 || offset < 0 || size > memory_->size() ||
        offset > memory_->size() - size) {
      raise_malformed();
    }
    return {memory_, memory_->address() + offset, size};
  }

  Reader& in_;
  std::shared_ptr<const SharedMapping> memory_;
  std::vector<NodeSizes> nodes_;
};

/// The device of `type` that is called `name`.
Device find_device(SharedMemoryOps& shared, int32_t type, std::string_view name) {
  const int64_t count = require_backend({type, 0}, "share memory").device_count();
  std::string known;
  for (int64_t id = 0; id < count; ++id) {
    const std::string found = shared.identify({type, id});
    if (found == name) return {type, id};
    known += concat(id == 0 ? "" : ", ", found);
  }
  raise_buffer_error("the array is in memory of the GPU ", std::string(name),
                     ", and this process has ", known,
                     ": let it see the GPU of the sender (CUDA_VISIBLE_DEVICES, "
                     "HIP_VISIBLE_DEVICES), or send a copy on the CPU");
}

}  // namespace

SharedCopy make_shared_copy(const DeviceArray& array) {
  const Device device = array.device();
  SharedMemoryOps& shared = require_shared_memory(device);
  StreamWork work(require_memory(device, "share memory"), device, {}, {});
  work.hold(array.storage());
  wait_event(device, work.stream(), array.sync_event());
  CopyPlanner planner(device, device, &work);
  const CopyPlan plan = planner.plan(array);
  SharedCopy made;
  int64_t size = 0;
  if (planner.size() > 0) {
    const auto memory = map(shared, device, planner.size(), &made.descriptor);
    work.hold(memory);
    size = memory->size();
    copy_ranges(work, device, device, memory->address(), planner.ranges(), false);
    work.wait();
  }
  Writer out;
  out.write(kVersion);
  out.write(device.type);
  out.write(shared.identify(device));
  out.write(size);
  write_node(out, *array.export_schema().get(), plan);
  made.description = out.take();
  return made;
}

DeviceArray open_shared_copy(std::string_view description, int descriptor) {
  Reader in(description);
  if (in.read_text() != kVersion) raise_malformed();
  const auto type = static_cast<int32_t>(in.read());
  SharedMemoryOps& shared = require_shared_memory({type, 0});
  const Device device = find_device(shared, type, in.read_text());
  const int64_t size = in.read();
  std::shared_ptr<const SharedMapping> memory;
  if (size > 0) memory = map(shared, device, size, descriptor);
  return NodeReader(in, memory).read(device);
}

ARROWDL_END_NAMESPACE
