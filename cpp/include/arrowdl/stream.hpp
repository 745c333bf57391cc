// Arrow streams: reading chunks as DeviceArrays.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// All chunks of a stream with its schema. Chunks of zero rows are kept, so that an empty stream
/// of one empty chunk keeps its dictionaries.
struct Chunks {
  std::shared_ptr<const ParsedSchema> schema;
  std::vector<DeviceArray> arrays;
};

/// Reads `stream` to its end and releases it. A producer's failure is a RuntimeError with its own
/// message. `releaser` as in DeviceArray::import, for the schema and each chunk.
Chunks read_stream(OwnedArrayStream stream, Releaser releaser = nullptr);
Chunks read_stream(OwnedDeviceArrayStream stream, Releaser releaser = nullptr);

/// A stream of `chunks`, which it keeps alive, for the C interface to hand on: each with its own
/// event in a device stream. Raises ValueError unless all have the schema's types and names, and
/// one device type; BufferError for an ArrowArrayStream of memory that the host can't read (an
/// event that is pending is waited for).
OwnedArrayStream make_array_stream(const Chunks& chunks);
OwnedDeviceArrayStream make_device_array_stream(const Chunks& chunks);

/// The rows of all chunks as one array: the only chunk as it is, several concatenated, none an
/// empty array of the schema.
DeviceArray gather(Chunks chunks);

/// An array of `schema` with no rows.
DeviceArray make_empty(std::shared_ptr<const ParsedSchema> schema, Device device = {});

}  // namespace arrowdl
