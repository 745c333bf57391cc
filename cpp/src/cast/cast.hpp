// Arrays under another schema of the same data: the parts of cast_to_schema that are files of their
// own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/schema.hpp"

namespace arrowdl {

/// Values that a type cannot hold which others of their type could: a time that is no whole number
/// of the units asked for, lists that are not all of one length.
class Misfit : public Error {
 public:
  explicit Misfit(std::string message) : Error(ErrorKind::kValue, std::move(message)) {}
};

template <typename... Parts>
[[noreturn]] void raise_misfit(const Parts&... parts) {
  throw Misfit(concat(parts...));
}

/// How one node becomes one of another type, its children aside.
enum class Cast : uint8_t {
  kIncompatible,  ///< the types are not of the same data
  kNone,          ///< they are, and arrowdl does not convert them
  kSame,          ///< the same buffers
  kStruct,        ///< the same fields, in an order of its own
  kNulls,         ///< rows of the null type
  kNumbers,       ///< to a wider type, exactly
  kUnits,         ///< times, durations and dates in other units
  kPackBits,      ///< bool8 to bits
  kUnpackBits,
  kBinary,   ///< other offsets, or views
  kList,     ///< other offsets, sizes, or none
  kReshape,  ///< a fixed_shape_tensor as lists in lists, or the reverse
  kIndices,  ///< wider indices into a dictionary
  kDecode,   ///< a dictionary's values in the place of indices
  kEncode,
  kRuns,  ///< wider run ends
  kDecodeRuns,
};

/// What a whole type takes to become another one. The more, the later.
enum class Fit : uint8_t {
  kSame,       ///< the tree of buffers as it is
  kShared,     ///< the same buffers, in another tree
  kConverted,  ///< memory of the host, read and written
  kNone,
};

struct FoundCast {
  Cast cast = Cast::kIncompatible;
  std::string why_not = {};  ///< of kIncompatible, if there is more to say than the types
};

/// How a node of `from` becomes one of `to`.
FoundCast find_cast(const Type& from, const Type& to);

/// What `from` takes to become `to`. Raises ValueError, naming the field, where they are
/// incompatible.
Fit find_fit(const Type& from, const Type& to);

/// Whether some field that may hold nulls is asked for as one that may not.
bool narrows_nullability(const Type& from, const Type& to);

/// The number of the field of `from` that is each field of `to`, in its order: by name where all
/// names are there, else by position. Empty where they do not match.
std::vector<std::size_t> match_fields(const Type& from, const Type& to);

/// The shape of a fixed_shape_tensor without a permutation of which one of the types is and the
/// other one the lists in lists, of two dimensions and more; else nullptr.
const std::vector<int64_t>* find_common_shape(const Type& from, const Type& to);

/// The rows of `array` as `to` has them, which find_fit has seen. Above Fit::kShared, `array` is in
/// host memory and there. Raises Misfit for values that do not fit, and ValueError for nulls where
/// `to` may have none; `is_whole` says that all of its rows count: none is under a null, or beyond
/// what a list takes.
OwnedArray cast_rows(const DeviceArray& array, const Type& to, bool is_whole = true);

/// The validity of the rows of `array` from bit 0 on, no buffer where none is null.
Buffer copy_validity(const DeviceArray& array, int64_t* null_count);

// Each appends the buffers after the validity, and the children.
void cast_numbers(const DeviceArray& array, const Type& to, ArrayParts* parts);
void cast_units(const DeviceArray& array, const Type& to, ArrayParts* parts);
void cast_binary(const DeviceArray& array, const Type& to, ArrayParts* parts);
void cast_list(const DeviceArray& array, const Type& to, bool is_whole, ArrayParts* parts);
void reshape_lists(const DeviceArray& array, const Type& to, ArrayParts* parts);
void encode_dictionary(const DeviceArray& array, const Type& to, ArrayParts* parts);

/// The values that the indices of `array` stand for, as `to` has them.
OwnedArray decode_dictionary(const DeviceArray& array, const Type& to);

/// Whether there are nulls of `type` that make_nulls can make: not where a field below them needs a
/// value, as the indices into a dictionary do.
bool can_be_null(const Type& type);

/// `length` nulls of `type`. Raises Misfit where there is no such array.
OwnedArray make_nulls(const Type& type, int64_t length);

}  // namespace arrowdl
