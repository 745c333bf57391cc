// Rows of lists and binary as values and offsets of a requested width.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "cast/misfit.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Rows as values that follow one another, cut at offsets.
template <typename Offset>
struct OffsetRows {
  DeviceArray values;
  Buffer offsets;  ///< length + 1, the first one 0

  Offset operator[](int64_t i) const noexcept {
    Offset offset;
    std::memcpy(&offset, offsets.data() + i * int64_t{sizeof(Offset)}, sizeof(Offset));
    return offset;
  }
  int64_t length_of(int64_t i) const noexcept { return int64_t{(*this)[i + 1]} - (*this)[i]; }
};

/// Raises Misfit if an offset of `to` cannot be `offset`.
template <typename Offset>
void require_offset(const Type& to, int64_t offset) {
  if (offset <= std::numeric_limits<Offset>::max()) return;
  raise_misfit("the rows hold ", offset, " values together, more than the offsets of ",
               to_string(to), " can count: request 64-bit offsets, or those of the array");
}

/// Offsets of `length` rows of `size` values each. Raises Misfit if `to` cannot count the values.
template <typename Offset>
Buffer make_even_offsets(int64_t length, int64_t size, const Type& to);

extern template Buffer make_even_offsets<int32_t>(int64_t, int64_t, const Type&);
extern template Buffer make_even_offsets<int64_t>(int64_t, int64_t, const Type&);

/// The rows of `array`, any list, binary with offsets or view of these. Raises Misfit if `to`
/// cannot count the values.
template <typename Offset>
OffsetRows<Offset> read_offset_rows(const DeviceArray& array, const Type& to);

extern template OffsetRows<int32_t> read_offset_rows(const DeviceArray&, const Type&);
extern template OffsetRows<int64_t> read_offset_rows(const DeviceArray&, const Type&);

ARROWDL_END_NAMESPACE
