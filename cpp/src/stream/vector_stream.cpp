// A stream of arrays in memory, and the arrays of a stream as one.
#include "arrowdl/concatenate.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::string_view text(const char* string) { return string == nullptr ? "" : string; }

/// Whether arrays of `a` and `b` may be chunks of one stream: all nodes have the same type and
/// name, except for the name of the root.
bool is_same(const Type& a, const Type& b, bool is_root = true) {
  constexpr const char* kKeys[] = {kExtensionNameKey, kExtensionMetadataKey};
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

class VectorStream final : public ArrayStream {
 public:
  VectorStream(std::shared_ptr<const ParsedSchema> schema, std::vector<DeviceArray> arrays)
      : ArrayStream(std::move(schema), arrays.empty() ? kDLCPU : arrays.front().device().type),
        arrays_(std::move(arrays)) {}

  DeviceArray next(int64_t) override {
    return position_ < arrays_.size() ? std::move(arrays_[position_++]) : DeviceArray();
  }

 private:
  std::vector<DeviceArray> arrays_;
  std::size_t position_ = 0;
};

}  // namespace

Chunks read_stream(ArrayStream& stream) {
  Chunks chunks;
  chunks.schema = stream.schema();
  while (DeviceArray array = stream.next()) chunks.arrays.push_back(std::move(array));
  return chunks;
}

DeviceArray gather(Chunks chunks) {
  if (chunks.arrays.empty()) return make_empty(std::move(chunks.schema));
  return concatenate(chunks.arrays);
}

void check_chunk(const ParsedSchema& schema, int32_t device_type, const DeviceArray& array,
                 std::size_t index) {
  if (!is_same(schema.type, array.type())) {
    raise_value_error("array ", index, " is of ", to_string(array.type()), ", the stream of ",
                      to_string(schema.type), ": a stream has one schema, cast them to one type");
  }
  if (array.device().type != device_type) {
    raise_value_error("array ", index, " is on ", to_string(array.device()), ", the stream on ",
                      device_type_name(device_type),
                      ": a stream is of one device type, copy the arrays to one");
  }
}

OwnedStream make_stream(std::shared_ptr<const ParsedSchema> schema,
                        std::vector<DeviceArray> arrays) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    check_chunk(*schema, arrays.front().device().type, arrays[i], i);
  }
  return std::make_unique<VectorStream>(std::move(schema), std::move(arrays));
}

OwnedStream make_stream(std::vector<DeviceArray> arrays) {
  if (arrays.empty())
    raise_value_error("a stream of no arrays has no schema: pass one empty array");
  auto schema = share_schema(arrays.front().export_schema());
  return make_stream(std::move(schema), std::move(arrays));
}

ARROWDL_END_NAMESPACE
