// Finds the fields of a table that are columns.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The metadata of pandas on the schema of a table, JSON: which fields are an index of the frame.
/// Source: pandas' developer documentation, "Storing pandas DataFrame objects".
constexpr const char* kPandasKey = "pandas";

/// The fields of a struct that are columns, in order: all but pandas' index without a name, the row
/// numbers that a filter or a split leaves on a frame, where the metadata names one. Empty if all
/// fields are, or none would be left.
std::vector<int64_t> find_columns(const Type& type);

ARROWDL_END_NAMESPACE
