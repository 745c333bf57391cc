// Plans a cast to a requested schema from the types alone, and casts by it.
#pragma once

#include <memory>
#include <optional>

#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/device_array.hpp"
#include "cast/find_fit.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A cast of arrays of one type.
struct CastPlan {
  std::shared_ptr<const ParsedSchema> schema;  ///< of the result
  Fit fit;
};

/// What a plan may use.
struct CastScope {
  Device device;  ///< of the arrays
  CastTarget target;
  bool knows_nulls;  ///< arrays that the host cannot read may know their null counts
};

/// The cast of arrays of `from` to `requested`; nothing if they already are of that type, or are
/// not converted. Raises ValueError for incompatible types.
std::optional<CastPlan> plan_cast(const Type& from,
                                  const std::shared_ptr<const ParsedSchema>& requested,
                                  const CastScope& scope);

/// The cast that plan_cast has planned for the type of `array`. Waits for the event of the array if
/// it has to be converted. Raises Misfit for values that do not fit, ValueError for nulls in a
/// field that is requested as not nullable.
DeviceArray apply_cast(const DeviceArray& array, const CastPlan& plan);

ARROWDL_END_NAMESPACE
