// What the order of rows needs of the footer of a Parquet file: a few integers. All else is walked
// over, which takes a hundredth of the time of decoding it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The size of a file, the time of its last change in ns since 1970, and its inode.
using FileStamp = std::array<int64_t, 3>;

/// What a footer says of the rows of its file.
struct ParquetFooter {
  std::vector<int64_t> rows;    ///< of each row group
  std::vector<int64_t> nbytes;  ///< of each row group, uncompressed
  /// The schema and what Arrow and pandas add to it, as the file has them: files with equal bytes
  /// have columns of the same names and types.
  std::string schema;
  FileStamp stamp{-1, 0, 0};  ///< of the file, if one was read
  bool has_lists = false;     ///< whether a column has more values than rows
};

/// Reads the Thrift (compact protocol) of a footer, without the length and the magic bytes behind
/// it. Returns nothing for what is not well-formed, contradicts itself, or is encrypted: ask a full
/// reader, which says why. The structs are FileMetaData, RowGroup and ColumnChunk of
/// parquet.thrift.
std::optional<ParquetFooter> parse_parquet_footer(const uint8_t* data, size_t size);

/// Whether pyarrow can show each column of each row group: it ends the process for one whose
/// histograms, bounds, codec or type contradict the schema. Returns nothing if it needs keys. The
/// arguments are those of `parse_parquet_footer`, which reads none but sound ones.
std::optional<bool> is_sound_parquet_footer(const uint8_t* data, size_t size);

/// Returns the length of a footer by the last 8 bytes of its file; 0 if it is not of plain Parquet.
size_t read_footer_length(const uint8_t* tail);

/// Reads the footer of a regular local file. Returns nothing if it cannot be read or parsed, and on
/// Windows. Blocks for the file system alone. `guess` is how many bytes of the file's end are read
/// first, at least 8; it becomes what fits a next file whose footer is somewhat longer.
std::optional<ParquetFooter> read_parquet_footer(const char* path, size_t* guess);

/// Returns the stamp of a path. Returns nothing if it does not exist, and on Windows.
std::optional<FileStamp> take_file_stamp(const char* path);

ARROWDL_END_NAMESPACE
