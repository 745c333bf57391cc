// Reads small Parquet files as one: a reader takes longer to open a file than for its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A Parquet file of the row groups of several. Their page indexes and bloom filters are lost.
class JoinedParquet {
 public:
  /// Adds the row groups of the file that `bytes` have from `begin` on. Returns false, and is of no
  /// more use, if its rows might not be those that it has alone: its footer differs from that of
  /// the first one in more than row groups, a column has lists, or pages are not as the footer
  /// says.
  bool add(size_t begin);
  /// Ends `bytes` with the footer.
  void finish();

  std::vector<uint8_t> bytes;

 private:
  std::string head_;    // the footer up to the number of rows
  std::string groups_;  // the row groups
  std::string tail_;    // the footer behind the row groups
  int64_t rows_ = 0;
  uint64_t count_ = 0;  // of row groups
};

/// Joins local files of `most` bytes together. Returns nothing if they have more, or one cannot be
/// added: ask a full reader for each. Blocks for the file system alone.
std::optional<JoinedParquet> join_parquet_files(const std::vector<std::string>& paths, size_t most);

ARROWDL_END_NAMESPACE
