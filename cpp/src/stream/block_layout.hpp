// The columns of a packed stream: which are packed, and the types of all.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/pack.hpp"
#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A column that packing adds. The order is that of kAddedColumns.
enum class AddedColumn : uint8_t { kPositionIds, kSegmentIds, kCuSeqlens, kResumeFrom };

/// What a block is made of.
struct BlockLayout {
  int64_t length = 0;
  std::vector<std::size_t> packed;   ///< the columns that are packed, the tokens first
  std::vector<DeviceArray> padding;  ///< of each column, `length` items; empty if not packed
  std::vector<AddedColumn> added;
  std::vector<int32_t> indices;  ///< 0 to `length` - 1, if there are position ids
  int64_t array_length = 1;      ///< the blocks of an array whose length is not requested
  std::shared_ptr<const ParsedSchema> schema;

  bool is_packed(std::size_t column) const noexcept { return static_cast<bool>(padding[column]); }
};

/// The layout of the blocks of a stream of `type`. Raises as `pack` does.
BlockLayout make_block_layout(const Type& type, const PackOptions& options);

ARROWDL_END_NAMESPACE
