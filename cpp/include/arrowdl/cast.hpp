// An array in the form that a consumer asks for.
#pragma once

#include <memory>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// Where what cast_to_schema and cast_stream make may lie.
enum class CastTarget {
  kDevice,  ///< on the array's own device: new memory is made on the CPU alone
  kHost,    ///< on the CPU, for a consumer that takes whatever the host can read for its memory
};

/// `array` as an array of `requested`, another form of the same data, where its own buffers serve
/// or a cheap conversion in host memory does; else `array` itself. Never loses anything. On a
/// device no memory is read or made.
///
/// Given are, at every level: other names, metadata and extension types over one storage; fields of
/// a struct in another order, by name where all names are there and else by position; fields that
/// are not nullable where no value is null; dictionaries and run ends decoded, dictionaries made,
/// wider indices and run ends; binary and strings of any offsets, views included; lists of any
/// kind, of a fixed size where all have it; bool8 and bits; wider integers and floats, exactly;
/// times, durations and dates in other units, exactly; rows of the null type. Whether the root of
/// a struct may be null is left as it is: pyarrow's schemas say of theirs that it may not.
///
/// Raises ValueError for what is not the same data: another number of fields, numbers for strings,
/// a struct for a list, nulls where there may be none. Source: Arrow "PyCapsule Interface", Schema
/// Requests.
DeviceArray cast_to_schema(const DeviceArray& array,
                           const std::shared_ptr<const ParsedSchema>& requested,
                           CastTarget target = CastTarget::kDevice);

}  // namespace arrowdl
