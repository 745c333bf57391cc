// Casts the numbers of an array to another dtype.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "cast/misfit.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Which values cast_dtype casts.
enum class CastWhich {
  kNumbers,  ///< integers, floats and decimals; arrays without them are returned as they are
  kAll,      ///< also bools and the codes of dictionaries; raises ValueError for other arrays
};

/// What casts times to a unit: "timestamp[us]" or "duration[us]", or nullptr. Numbers stay.
const Dtype* find_time_unit(std::string_view name);

/// Whether values of `type` are those of `dtype`.
bool is_of(const Type& type, const Dtype& dtype);

/// Whether cast_dtype casts to `dtype`: integers, float16, bfloat16, float32, float64.
bool can_cast_to(const Dtype& dtype);

/// Whether arrays of `type` are values that cast_dtype casts to `dtype`: not of lists of any
/// length, which the caller splits.
bool has_numbers(const Type& type, const Dtype& dtype, CastWhich which);

/// The elements of `array`, numbers in host memory, as `dtype`, rounded to the nearest float.
/// Raises UnfitValue as cast_dtype, for rows that `is_read` says.
Buffer convert_numbers(const DeviceArray& array, const Dtype& dtype,
                       const std::function<bool(int64_t)>& is_read);

/// `array`, of values or of fixed-size lists of them at any depth, with its values as `dtype`, in
/// new host memory; `array` itself if they are of that dtype. Shapes and nulls stay; values under
/// nulls are not checked. Floats and integers are rounded to the nearest float, to even on ties;
/// decimals to the nearest float64, and this to the dtype. Dates and timestamps become timestamps
/// of the unit of `dtype`, durations become durations.
///
/// Raises UnfitValue for a number beyond the range of `dtype`, for a float or a decimal that is not
/// a whole number if the type is an integer, and for a time that is not a whole number of units.
/// Raises ValueError for types that are not cast, as `which` says. Raises BufferError for memory
/// that the host cannot read, and for the codes of a dictionary that has nulls among its values.
DeviceArray cast_dtype(const DeviceArray& array, const Dtype& dtype, CastWhich which);

ARROWDL_END_NAMESPACE
