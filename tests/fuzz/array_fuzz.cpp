// Fuzzes imported arrays. Half of them have wrong structs, which the import must notice unless they
// do no harm. The others have right sizes and wrong contents (offsets, views, run ends), which
// every reader must survive.

#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "arrowdl/concatenate.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/list_tensors.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"

namespace {

using arrowdl::DeviceArray;
using arrowdl::Layout;
using arrowdl::OwnedArray;
using arrowdl::OwnedSchema;
using arrowdl::Type;

constexpr std::int64_t kMaxRows = 24;

// Nested formats name how many children they take.
struct Format {
  const char* text;
  std::int64_t children;
};
constexpr Format kFormats[] = {
    {"n", 0},  {"b", 0},       {"c", 0},       {"S", 0},       {"i", 0},    {"l", 0},
    {"f", 0},  {"w:3", 0},     {"u", 0},       {"Z", 0},       {"vu", 0},   {"+l", 1},
    {"+L", 1}, {"+vl", 1},     {"+vL", 1},     {"+w:0", 1},    {"+w:3", 1}, {"+s", 2},
    {"+r", 2}, {"+us:0,1", 2}, {"+ud:0,1", 2}, {"tsu:UTC", 0}, {"e", 0}};

void check(bool done) {
  if (!done) std::abort();
}

void fill_schema(FuzzedDataProvider& input, ArrowSchema* schema, int depth) {
  Format format = input.PickValueInArray(kFormats);
  while (depth == 0 && format.children > 0) format = kFormats[4];
  ArrowSchemaInit(schema);
  check(ArrowSchemaSetFormat(schema, format.text) == NANOARROW_OK);
  schema->flags = ARROW_FLAG_NULLABLE;
  check(ArrowSchemaAllocateChildren(schema, format.children) == NANOARROW_OK);
  for (std::int64_t i = 0; i < format.children; ++i) {
    fill_schema(input, schema->children[i], depth - 1);
  }
  if (std::strcmp(format.text, "+r") == 0) {
    schema->children[0]->release(schema->children[0]);
    ArrowSchemaInit(schema->children[0]);
    check(ArrowSchemaSetFormat(schema->children[0], "i") == NANOARROW_OK);
  }
  if (std::strcmp(format.text, "i") == 0 && depth > 0 && input.ConsumeBool()) {
    check(ArrowSchemaAllocateDictionary(schema) == NANOARROW_OK);
    fill_schema(input, schema->dictionary, depth - 1);
  }
}

/// Memory of exactly `size` bytes, so that AddressSanitizer sees any access past its end.
arrowdl::Buffer exact(FuzzedDataProvider& input, std::int64_t size) {
  const auto bytes = static_cast<std::size_t>(size);
  std::shared_ptr<std::uint8_t[]> memory(new std::uint8_t[bytes]());
  const std::vector<std::uint8_t> content = input.ConsumeBytes<std::uint8_t>(bytes);
  std::copy(content.begin(), content.end(), memory.get());
  return arrowdl::Buffer(memory, memory.get(), size);
}

constexpr std::int64_t kDataSize = 64;

/// Offsets into the bytes of a binary array. They may descend or be negative, but the last one is
/// right: the interface has no buffer sizes, so no consumer can check it.
template <typename Offset>
arrowdl::Buffer offsets_into_data(FuzzedDataProvider& input, std::int64_t rows) {
  std::shared_ptr<Offset[]> offsets(new Offset[static_cast<std::size_t>(rows + 1)]());
  for (std::int64_t i = 0; i <= rows; ++i) {
    const auto offset = input.ConsumeIntegral<Offset>();
    offsets[i] = offset > kDataSize ? static_cast<Offset>(offset % (kDataSize + 1)) : offset;
  }
  return arrowdl::Buffer(offsets, offsets.get(), (rows + 1) * std::int64_t{sizeof(Offset)});
}

std::vector<arrowdl::Buffer> honest_buffers(FuzzedDataProvider& input, const Type& type,
                                            std::int64_t rows) {
  std::vector<arrowdl::Buffer> buffers;
  if (type.has_validity()) {
    buffers.push_back(input.ConsumeBool() ? exact(input, (rows + 7) / 8) : arrowdl::Buffer());
  }
  const auto add = [&](std::int64_t size) { buffers.push_back(exact(input, size)); };
  switch (type.layout) {
    case Layout::kBoolean:
      add((rows + 7) / 8);
      break;
    case Layout::kFixedWidth:
      add(rows * type.byte_width);
      break;
    case Layout::kBinary:
      buffers.push_back(offsets_into_data<std::int32_t>(input, rows));
      add(kDataSize);
      break;
    case Layout::kLargeBinary:
      buffers.push_back(offsets_into_data<std::int64_t>(input, rows));
      add(kDataSize);
      break;
    case Layout::kBinaryView: {
      add(rows * 16);
      add(kDataSize);
      auto sizes = std::make_shared<std::int64_t>(kDataSize);
      buffers.emplace_back(sizes, sizes.get(), 8);
      break;
    }
    case Layout::kList:
      add((rows + 1) * 4);
      break;
    case Layout::kLargeList:
      add((rows + 1) * 8);
      break;
    case Layout::kListView:
      add(rows * 4);
      add(rows * 4);
      break;
    case Layout::kLargeListView:
      add(rows * 8);
      add(rows * 8);
      break;
    case Layout::kSparseUnion:
      add(rows);
      break;
    case Layout::kDenseUnion:
      add(rows);
      add(rows * 4);
      break;
    default:
      break;
  }
  return buffers;
}

/// An array of `type` that holds at least `rows` rows.
OwnedArray honest_array(FuzzedDataProvider& input, const Type& type, std::int64_t rows) {
  arrowdl::ArrayParts parts;
  parts.offset = input.ConsumeIntegralInRange<std::int64_t>(0, 9);
  parts.length = rows;
  const std::int64_t end = parts.offset + parts.length;
  parts.buffers = honest_buffers(input, type, end);
  const bool has_bitmap = type.has_validity() && parts.buffers[0].data() != nullptr;
  parts.null_count = has_bitmap ? -1 : 0;
  for (const Type& child : type.children) {
    const std::int64_t below = type.layout == Layout::kFixedSizeList ? end * type.list_size : end;
    parts.children.push_back(honest_array(input, child, below));
  }
  if (type.dictionary != nullptr) parts.dictionary = honest_array(input, *type.dictionary, 3);
  return make_array(std::move(parts));
}

/// Changes one field in one node of `array` to a value that may be wrong. The release does not use
/// the fields.
void corrupt(FuzzedDataProvider& input, ArrowArray* array) {
  while (array->n_children > 0 && input.ConsumeBool()) {
    array = array->children[input.ConsumeIntegralInRange<std::int64_t>(0, array->n_children - 1)];
  }
  const auto number = input.PickValueInArray<std::int64_t>(
      {-1, 0, 1, 2, 3, 1000, INT64_MAX, INT64_MIN, INT64_MAX / 2, INT32_MAX});
  switch (input.ConsumeIntegralInRange(0, 7)) {
    case 0:
      array->length = number;
      break;
    case 1:
      array->offset = number;
      break;
    case 2:
      array->null_count = number;
      break;
    case 3:
      if (number <= array->n_buffers) array->n_buffers = number;
      break;
    case 4:
      if (array->n_buffers > 0) {
        array->buffers[input.ConsumeIntegralInRange<std::int64_t>(0, array->n_buffers - 1)] =
            nullptr;
      }
      break;
    case 5:
      if (number <= array->n_children) array->n_children = number;
      break;
    case 6: {
      static constexpr std::int64_t kSizes[] = {-1, INT64_MIN, INT64_MAX, 0};
      if (array->n_buffers == 4) {  // binary views with one data buffer
        array->buffers[3] = &kSizes[input.ConsumeIntegralInRange(0, 3)];
      }
      break;
    }
    default:
      array->buffers = nullptr;
      array->n_buffers = 3;
  }
}

/// Runs `read`, which may refuse the data with an Error.
void attempt(const std::function<void()>& read) {
  try {
    read();
  } catch (const arrowdl::Error&) {
  }
}

/// Adds up all elements, so that a sanitizer sees missing memory here.
void touch(const arrowdl::OwnedTensor& tensor) {
  const arrowdl::TensorView view = arrowdl::view_tensor(tensor);
  std::vector<std::uint8_t> copy(static_cast<std::size_t>(view.nbytes()));
  if (!copy.empty()) arrowdl::copy_contiguous(view, copy.data());
}

void read_everything(const DeviceArray& array) {
  attempt([&] { array.null_count(); });
  attempt([&] { touch(arrowdl::to_dlpack(array)); });
  attempt(
      [&] { touch(arrowdl::to_dlpack(array, {arrowdl::Copy::kIfNeeded, arrowdl::Nulls::kFill})); });
  attempt([&] { touch(arrowdl::to_mask(array)); });
  attempt([&] { touch(arrowdl::to_row_mask(array)); });
  attempt([&] { touch(arrowdl::stack_fields(array, arrowdl::Nulls::kFill)); });
  attempt([&] {
    const arrowdl::ListParts parts = arrowdl::split_list(array, true);
    attempt([&] { touch(arrowdl::to_dlpack(parts.values)); });
    attempt([&] { touch(arrowdl::list_lengths(parts)); });
    attempt([&] { touch(arrowdl::pad_list(parts, arrowdl::Nulls::kFill)); });
  });
  attempt([&] { read_everything(arrowdl::decode_run_ends(array)); });
}

void use(FuzzedDataProvider& input, const DeviceArray& array) {
  const std::int64_t start = input.ConsumeIntegralInRange<std::int64_t>(0, array.length());
  const DeviceArray part = array.slice(start, (array.length() - start) / 2);
  read_everything(array);
  read_everything(part);
  attempt([&] { read_everything(arrowdl::concatenate({part, array, part})); });
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    attempt([&] { read_everything(part.child(static_cast<std::int64_t>(i))); });
    attempt([&] { read_everything(part.field(static_cast<std::int64_t>(i))); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  OwnedSchema schema;
  fill_schema(input, schema.get(), 3);
  const bool honest = input.ConsumeBool();
  const auto rows = input.ConsumeIntegralInRange<std::int64_t>(0, kMaxRows);
  attempt([&] {
    const Type type = arrowdl::parse_schema(*schema.get());
    OwnedArray array = honest_array(input, type, rows);
    if (!honest) corrupt(input, array.get());
    const DeviceArray imported = DeviceArray::import(std::move(schema), std::move(array));
    check(imported.storage()->known_nbytes() >= 0);
    if (honest) use(input, imported);
  });
  check(arrowdl::live_objects() == 0);
  return 0;
}
