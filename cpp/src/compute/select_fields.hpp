// Finds the fields of a table that are columns, and selects fields of a struct.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The metadata of pandas on the schema of a table, JSON: which fields are an index of the frame.
/// Source: pandas' developer documentation, "Storing pandas DataFrame objects".
constexpr const char* kPandasKey = "pandas";

/// The fields of a struct that are columns, in order: all but pandas' index without a name, the row
/// numbers that a filter or a split leaves on a frame, where the metadata names one. Empty if all
/// fields are, or none would be left.
std::vector<int64_t> find_columns(const Type& type);

/// The schema of the fields `columns` of a struct, with its metadata but for pandas', which
/// describes all fields.
std::shared_ptr<const ParsedSchema> select_schema(const Type& type,
                                                  const std::vector<int64_t>& columns);

/// The fields `columns` of a struct, whose memory it shares; `schema` is of `select_schema`.
DeviceArray select_fields(const DeviceArray& array, const std::vector<int64_t>& columns,
                          const std::shared_ptr<const ParsedSchema>& schema);

ARROWDL_END_NAMESPACE
