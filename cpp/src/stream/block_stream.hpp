// Slices blocks of rows for consumers that want fewer.
#pragma once

#include "arrowdl/stream.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A stream whose rows are made in blocks of several arrays' worth.
class BlockStream : public ArrayStream {
 public:
  DeviceArray next(int64_t max_rows) final;
  bool has_rows(int64_t rows) const final;

 protected:
  using ArrayStream::ArrayStream;

  /// Whether rows of the last block are left.
  bool has_block() const noexcept { return static_cast<bool>(block_); }

  /// The next block, for arrays of `max_rows`; an empty DeviceArray at the end.
  virtual DeviceArray make_block(int64_t max_rows) = 0;

 private:
  DeviceArray block_;  // what is left of the last one
};

ARROWDL_END_NAMESPACE
