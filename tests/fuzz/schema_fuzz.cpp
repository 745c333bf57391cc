// Fuzzes imported schemas: any format string, children, metadata and dictionary.

#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/schema.hpp"
#include "arrowdl/to_dlpack.hpp"

namespace {

using arrowdl::OwnedSchema;

constexpr const char* kFormats[] = {
    "n",  "b",    "c",    "i",   "g",    "w:4",   "d:9,2",    "u",        "vu", "tsu:UTC",
    "+l", "+w:2", "+w:6", "+vl", "+s",   "+m",    "+us:0,1",  "+ud:1,0",  "+r", "+L",
    "e",  "C",    "s",    "+vL", "w:-1", "+w:-1", "+us:0,,1", "+ud:0,200"};
constexpr const char* kExtensions[] = {
    "arrow.bool8",      "arrow.fixed_shape_tensor", "arrow.variable_shape_tensor",
    "arrowdl.bfloat16", "arrowdl.float8_e4m3fn",    "arrowdl.complex64"};
constexpr const char* kJson[] = {R"({"shape":[2,3]})", R"({"shape":[2,3],"permutation":[1,0]})",
                                 R"({"shape":[2],"dim_names":["a"]})",
                                 R"({"uniform_shape":[null,3]})"};

template <std::size_t N>
std::string pick(FuzzedDataProvider& input, const char* const (&known)[N]) {
  const auto i = input.ConsumeIntegralInRange<std::size_t>(0, N);
  return i < N ? known[i] : input.ConsumeRandomLengthString(64);
}

void set_metadata(FuzzedDataProvider& input, ArrowSchema* schema) {
  ArrowBuffer metadata;
  if (ArrowMetadataBuilderInit(&metadata, nullptr) != NANOARROW_OK) std::abort();
  const std::string name = pick(input, kExtensions);
  const std::string json = pick(input, kJson);
  const auto view = [](const std::string& text) {
    return ArrowStringView{text.data(), static_cast<std::int64_t>(text.size())};
  };
  const bool done =
      ArrowMetadataBuilderAppend(&metadata, ArrowCharView("ARROW:extension:name"), view(name)) ==
          NANOARROW_OK &&
      ArrowMetadataBuilderAppend(&metadata, ArrowCharView("ARROW:extension:metadata"),
                                 view(json)) == NANOARROW_OK &&
      ArrowSchemaSetMetadata(schema, reinterpret_cast<const char*>(metadata.data)) == NANOARROW_OK;
  ArrowBufferReset(&metadata);
  if (!done) std::abort();
}

void fill(FuzzedDataProvider& input, ArrowSchema* schema, int depth) {
  ArrowSchemaInit(schema);
  if (ArrowSchemaSetFormat(schema, pick(input, kFormats).c_str()) != NANOARROW_OK) std::abort();
  if (input.ConsumeBool()) set_metadata(input, schema);
  schema->flags = input.ConsumeIntegral<std::uint8_t>();
  if (depth == 0) return;
  const auto children = input.ConsumeIntegralInRange<std::int64_t>(0, 3);
  if (ArrowSchemaAllocateChildren(schema, children) != NANOARROW_OK) std::abort();
  for (std::int64_t i = 0; i < children; ++i) fill(input, schema->children[i], depth - 1);
  if (input.ConsumeIntegralInRange(0, 7) == 0) {
    if (ArrowSchemaAllocateDictionary(schema) != NANOARROW_OK) std::abort();
    fill(input, schema->dictionary, depth - 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  OwnedSchema schema;
  fill(input, schema.get(), 3);
  try {
    const arrowdl::Type type = arrowdl::parse_schema(*schema.get());
    if (arrowdl::to_string(type).empty()) std::abort();
    const bool is_tensor = arrowdl::why_not_tensor(type).empty();
    try {
      arrowdl::describe_tensor(type, 3);
      if (!is_tensor) std::abort();
    } catch (const arrowdl::Error& error) {
      if (error.kind() != arrowdl::ErrorKind::kBuffer) std::abort();
    }
  } catch (const arrowdl::Error& error) {
    if (error.kind() != arrowdl::ErrorKind::kValue) std::abort();
  }
  return 0;
}
