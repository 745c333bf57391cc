// Reads a stream to its end.
#include "arrowdl/concatenate.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/stream.hpp"

ARROWDL_BEGIN_NAMESPACE

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

ARROWDL_END_NAMESPACE
