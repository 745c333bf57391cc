// The key-value metadata of a schema, read without a copy.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Calls visit(key, value) for each pair of an ArrowSchema's metadata until it returns true. Raises
/// ValueError for a negative size.
/// Source: Arrow "C Data Interface", ArrowSchema.metadata.
template <typename Visit>
void visit_pairs(const char* metadata, const Visit& visit) {
  if (metadata == nullptr) return;
  const auto read_size = [&metadata] {
    int32_t size;
    std::memcpy(&size, metadata, sizeof(size));
    if (size < 0) raise_value_error("malformed Arrow schema: negative size in its metadata");
    metadata += sizeof(size);
    return static_cast<std::size_t>(size);
  };
  const auto read_string = [&metadata, &read_size] {
    const std::size_t size = read_size();
    const std::string_view text(metadata, size);
    metadata += size;
    return text;
  };
  for (std::size_t remaining = read_size(); remaining > 0; --remaining) {
    const std::string_view key = read_string();
    const std::string_view value = read_string();
    if (visit(key, value)) return;
  }
}

ARROWDL_END_NAMESPACE
