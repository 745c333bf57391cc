// Casts the numbers of an array to another dtype.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "util/explained_error.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A value that a dtype cannot hold, with the row of the array that was cast.
class UnfitValue : public ExplainedError {
 public:
  UnfitValue(int64_t row, std::string value, const std::string& reason, Hint hint)
      : ExplainedError(ErrorKind::kValue, value + reason, std::move(hint), row),
        value_(std::move(value)) {}
  /// The value, as text.
  const std::string& value() const noexcept { return value_; }

 private:
  std::string value_;
};

/// Which values cast_dtype casts.
enum class CastWhich {
  kNumbers,  ///< integers and floats; arrays without them are returned as they are
  kAll,      ///< also bools and the codes of dictionaries; raises ValueError for other arrays
};

/// Whether cast_dtype casts to `dtype`: integers, float16, bfloat16, float32, float64.
bool can_cast_to(const Dtype& dtype);

/// Whether arrays of `type` are values that cast_dtype casts: not of lists of any length, which the
/// caller splits.
bool has_numbers(const Type& type, CastWhich which);

/// The elements of `array`, numbers in host memory, as `dtype`, rounded to the nearest float.
/// Raises UnfitValue as cast_dtype, for rows that `is_read` says.
Buffer convert_numbers(const DeviceArray& array, const Dtype& dtype,
                       const std::function<bool(int64_t)>& is_read);

/// `array`, of values or of fixed-size lists of them at any depth, with its values as `dtype`, in
/// new host memory; `array` itself if they are of that dtype. Shapes and nulls stay; values under
/// nulls are not checked. Floats and integers are rounded to the nearest float, to even on ties.
///
/// Raises UnfitValue for a number beyond the range of `dtype`, and for a float that is not a whole
/// number if the type is an integer. Raises ValueError for types that are not cast, as `which`
/// says. Raises BufferError for memory that the host cannot read, and for the codes of a dictionary
/// that has nulls among its values.
DeviceArray cast_dtype(const DeviceArray& array, const Dtype& dtype, CastWhich which);

ARROWDL_END_NAMESPACE
