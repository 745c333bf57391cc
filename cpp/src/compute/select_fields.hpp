// Selects fields of a struct.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The schema of the fields `columns` of a struct, with its metadata but for pandas', which
/// describes all fields.
std::shared_ptr<const ParsedSchema> select_schema(const Type& type,
                                                  const std::vector<int64_t>& columns);

/// The fields `columns` of a struct, whose memory it shares; `schema` is of `select_schema`.
DeviceArray select_fields(const DeviceArray& array, const std::vector<int64_t>& columns,
                          const std::shared_ptr<const ParsedSchema>& schema);

ARROWDL_END_NAMESPACE
