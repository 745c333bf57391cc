// What the order of rows needs of the footer of a Parquet file: a few integers. All else is walked
// over, which takes a hundredth of the time of decoding it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// What a footer says of the rows of its file.
struct ParquetFooter {
  std::vector<int64_t> rows;    ///< of each row group
  std::vector<int64_t> nbytes;  ///< of each row group, uncompressed
  /// The schema and what Arrow and pandas add to it, as the file has them: files with equal bytes
  /// have columns of the same names and types.
  std::string schema;
};

/// Reads the Thrift (compact protocol) of a footer, without the length and the magic bytes behind
/// it. Returns nothing for what is not well-formed, contradicts itself, or is encrypted: ask a full
/// reader, which says why. The structs are FileMetaData, RowGroup and ColumnChunk of
/// parquet.thrift.
std::optional<ParquetFooter> parse_parquet_footer(const uint8_t* data, size_t size);

/// The file that a footer was read of, as its file system describes it.
struct FileFooter {
  ParquetFooter footer;
  int64_t size = 0;      ///< bytes
  int64_t mtime_ns = 0;  ///< since 1970
  uint64_t inode = 0;
};

/// Reads the footer of a regular local file. Returns nothing if it cannot be read or parsed, and on
/// Windows. Blocks for the file system alone.
std::optional<FileFooter> read_parquet_footer(const char* path);

ARROWDL_END_NAMESPACE
