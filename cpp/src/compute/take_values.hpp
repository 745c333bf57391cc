// Takes the values of lists, binary and strings whose rows come in any order.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/offsets.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The bytes of binary and strings. Raises ValueError where a source has no bytes and a row has.
Buffer take_bytes(const std::vector<DeviceArray>& sources, const TakenValues& values);

/// Whether `take_child` takes values of `sources`: elements of a fixed width without nulls and
/// dictionaries, and fixed-size lists and structs of such.
bool can_take_child(const std::vector<DeviceArray>& sources);

/// The values of lists, whose child the sources are.
OwnedArray take_child(const std::vector<DeviceArray>& sources, const TakenValues& values);

ARROWDL_END_NAMESPACE
