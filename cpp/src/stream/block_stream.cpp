// Slices blocks of rows for consumers that want fewer.
#include "stream/block_stream.hpp"

#include <algorithm>

ARROWDL_BEGIN_NAMESPACE

DeviceArray BlockStream::next(int64_t max_rows) {
  if (!block_) block_ = make_block(max_rows);
  if (!block_) return {};
  const int64_t count = std::min(block_.length(), max_rows);
  DeviceArray rows = block_.slice(0, count);
  block_ = count < block_.length() ? block_.slice(count, block_.length() - count) : DeviceArray();
  return rows;
}

bool BlockStream::has_rows(int64_t rows) const { return block_ && rows <= block_.length(); }

ARROWDL_END_NAMESPACE
