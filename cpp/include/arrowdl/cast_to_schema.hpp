// Casts arrays to the schema that a consumer requests.
#pragma once

#include <memory>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Where cast_to_schema and cast_stream may make new memory.
enum class CastTarget {
  kDevice,  ///< on the device of the array: only if that is the CPU
  kHost,    ///< on the CPU, for any array that the host can read
};

/// `array` cast to `requested` if that is another form of the same data and its buffers can be
/// shared or a cheap conversion in host memory is enough. `array` itself if that takes new memory
/// on a device, or if only nulls under nulls are where none may be. Lossless, but for floats that
/// are rounded to shorter ones. Reads and makes no memory on devices that the host cannot read.
///
/// Supported at every level: other names, metadata and extension types of the same storage; fields
/// of a struct in another order, by name if all names match and else by position; fields that are
/// not nullable if no row is null; dictionaries and run ends decoded, dictionaries encoded, other
/// indices and run ends; binary and strings with other offsets and as views; lists of any kind, of
/// a fixed size if all rows have it; bool8, bits and numbers of bools; integers and floats of
/// another type; times, durations and dates in other units, exactly, and as the integers that they
/// are; the null type as any type. The nullability of the root of a struct is kept: pyarrow marks
/// the root of its schemas as not nullable.
///
/// A row is null if its validity bit is not set, or if its dictionary value or run is null.
///
/// Raises ValueError for other types, and for nulls in a field that is requested as not nullable.
/// Raises it for values of rows that the requested type does not hold. Source: Arrow "PyCapsule
/// Interface", Schema Requests.
DeviceArray cast_to_schema(const DeviceArray& array,
                           const std::shared_ptr<const ParsedSchema>& requested,
                           CastTarget target = CastTarget::kDevice);

ARROWDL_END_NAMESPACE
