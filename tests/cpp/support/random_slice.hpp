// Random arrays of any type as windows of larger ones.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "support/build_array.hpp"

namespace arrowdl::testing {

/// An array and its rows.
struct RandomSlice {
  DeviceArray array;
  Values rows;
};

/// A random window of up to 20 rows, with nulls, an offset, and garbage around its rows. The
/// buffers have exactly the size that the rows need, so that a sanitizer sees a read past them.
inline RandomSlice make_slice(Builder& builder, const OwnedSchema& schema) {
  const Values rows = builder.make_values(parse_schema(*schema.get()), builder.pick(0, 20));
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t start = builder.pick(0, count);
  const int64_t length = builder.pick(0, count - start);
  return {builder.import(schema, rows).slice(start, length),
          Values(rows.begin() + start, rows.begin() + start + length)};
}

}  // namespace arrowdl::testing
