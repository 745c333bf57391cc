// Casts arrays to the schema that a consumer requests.
#include "arrowdl/cast_to_schema.hpp"

#include "arrowdl/device_array.hpp"
#include "cast/misfit.hpp"
#include "cast/plan_cast.hpp"

ARROWDL_BEGIN_NAMESPACE

DeviceArray cast_to_schema(const DeviceArray& array,
                           const std::shared_ptr<const ParsedSchema>& requested,
                           CastTarget target) {
  const auto plan = plan_cast(array.type(), requested, {array.device(), target, true});
  if (!plan) return array;
  try {
    return apply_cast(array, *plan);
  } catch (const Undecided&) {
    return array;  // what the protocol returns for a request that cannot be met
  }
}

ARROWDL_END_NAMESPACE
