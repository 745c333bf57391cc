// Fuzzes the JSON of the tensor extensions: an error, or metadata that is the same after a round
// trip.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"

namespace {

void parse(std::string_view json, arrowdl::Extension extension) {
  using arrowdl::TensorMetadata;
  try {
    const TensorMetadata metadata = arrowdl::parse_tensor_metadata(json, extension);
    if (extension != arrowdl::Extension::kFixedShapeTensor) return;
    const TensorMetadata again =
        arrowdl::parse_tensor_metadata(arrowdl::to_json(metadata), extension);
    const bool same = again.shape == metadata.shape && again.permutation == metadata.permutation &&
                      again.dim_names == metadata.dim_names;
    if (!same) std::abort();
  } catch (const arrowdl::Error& error) {
    if (error.kind() != arrowdl::ErrorKind::kValue) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  parse(json, arrowdl::Extension::kFixedShapeTensor);
  parse(json, arrowdl::Extension::kVariableShapeTensor);
  return 0;
}
