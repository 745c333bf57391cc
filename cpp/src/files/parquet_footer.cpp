// Walks the Thrift structures of footers.
#include "files/parquet_footer.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "files/thrift_reader.hpp"
#include "util/overflow.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

ARROWDL_BEGIN_NAMESPACE

namespace {

bool is_int64(const ThriftReader::Field& field, int64_t id) {
  return field.id == id && field.type == Wire::kInt64;
}

/// Fields that a struct has to have, one bit for each number up to 31.
class Required {
 public:
  constexpr Required(std::initializer_list<ThriftReader::Field> fields) {
    for (const ThriftReader::Field& field : fields) {
      types_[field.id] = field.type;
      missing_ |= uint32_t{1} << field.id;
    }
  }

  void see(const ThriftReader::Field& field) {
    if (field.id < 0 || field.id >= kFields || types_[field.id] != field.type) return;
    missing_ &= ~(uint32_t{1} << field.id);
  }

  bool is_complete() const noexcept { return missing_ == 0; }

 private:
  static constexpr int64_t kFields = 10;

  Wire types_[kFields] = {};
  uint32_t missing_ = 0;
};

constexpr Required kColumnMetadata{{1, Wire::kInt32}, {2, Wire::kList},  {3, Wire::kList},
                                   {4, Wire::kInt32}, {5, Wire::kInt64}, {6, Wire::kInt64},
                                   {7, Wire::kInt64}, {9, Wire::kInt64}};
constexpr Required kColumnChunk{{2, Wire::kInt64}, {3, Wire::kStruct}};
constexpr Required kSchemaElement{{4, Wire::kBinary}};
constexpr Required kRowGroup{{1, Wire::kList}, {2, Wire::kInt64}, {3, Wire::kInt64}};
constexpr Required kFileMetadata{
    {1, Wire::kInt32}, {2, Wire::kList}, {3, Wire::kInt64}, {4, Wire::kList}};

/// As `read_struct`; fails if the struct lacks a field that it has to have.
template <typename Read>
void read_complete(ThriftReader& input, Required required, const Read& read) {
  read_struct(input, [&](const ThriftReader::Field& field) {
    required.see(field);
    return read(field);
  });
  if (!required.is_complete()) input.fail();
}

/// Calls `read` for each item of a list of structs. Returns whether this is one, and all are valid.
template <typename Read>
bool read_structs(ThriftReader& input, const ThriftReader::Field& field, const Read& read) {
  if (field.type != Wire::kList) return false;
  const ThriftReader::List list = input.read_list();
  if (list.size > 0 && list.type != Wire::kStruct) return false;
  for (uint64_t i = 0; i < list.size && !input.failed(); ++i) {
    if (!read()) return false;
  }
  return !input.failed();
}

/// The physical types of the leaves of a schema, and which are within lists: the SchemaElements are
/// in the order of a walk.
class Leaves {
 public:
  bool read(ThriftReader& input) {
    enum : int64_t { kType = 1, kRepetitionType = 3, kNumChildren = 5 };
    constexpr int64_t kRepeated = 2;
    int64_t type = -1;
    int64_t repetition = 0;
    int64_t children = 0;
    read_complete(input, kSchemaElement, [&](const ThriftReader::Field& field) {
      if (field.type != Wire::kInt32) return false;
      if (field.id == kType) {
        type = input.read_int();
      } else if (field.id == kRepetitionType) {
        repetition = input.read_int();
      } else if (field.id == kNumChildren) {
        children = input.read_int();
      } else {
        return false;
      }
      return true;
    });
    const bool is_root = !has_root_;
    has_root_ = true;
    while (!open_.empty() && open_.back().left == 0) open_.pop_back();
    if (children < 0 || (!is_root && open_.empty())) return false;
    const bool is_repeated = !is_root && (open_.back().is_repeated || repetition == kRepeated);
    if (!is_root) --open_.back().left;
    if (children > 0) open_.push_back({children, is_repeated});
    if (children == 0 && !is_root) {
      types_.push_back(type);
      repeated_.push_back(is_repeated);
    }
    return true;
  }

  size_t size() const noexcept { return repeated_.size(); }
  int64_t type(size_t i) const { return types_[i]; }
  bool is_repeated(size_t i) const { return repeated_[i]; }
  bool is_any_repeated() const { return std::count(repeated_.begin(), repeated_.end(), true) > 0; }

 private:
  struct Group {
    int64_t left;  // children to come
    bool is_repeated;
  };

  std::vector<Group> open_;
  std::vector<int64_t> types_;
  std::vector<bool> repeated_;
  bool has_root_ = false;
};

struct Chunk {
  int64_t type = -1;
  int64_t values = -1;  // unknown, or of another file
};

Chunk read_chunk(ThriftReader& input) {
  enum : int64_t { kFilePath = 1, kMetadata = 3, kType = 1, kNumValues = 5 };
  Chunk chunk;
  bool names_file = false;
  read_complete(input, kColumnChunk, [&](const ThriftReader::Field& field) {
    names_file = names_file || field.id == kFilePath;
    if (field.id != kMetadata || field.type != Wire::kStruct) return false;
    read_complete(input, kColumnMetadata, [&](const ThriftReader::Field& part) {
      const bool is_type = part.id == kType && part.type == Wire::kInt32;
      if (!is_type && !is_int64(part, kNumValues)) return false;
      (is_type ? chunk.type : chunk.values) = input.read_int();
      return true;
    });
    return true;
  });
  if (names_file) chunk.values = -1;
  return chunk;
}

/// A column has the type of its leaf, and a value for each row, or some more within lists.
bool fit_leaves(const std::vector<Chunk>& chunks, const Leaves& leaves, int64_t rows) {
  if (chunks.size() != leaves.size()) return false;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const auto [type, values] = chunks[i];
    if (type != leaves.type(i)) return false;
    if (values < rows || (values > rows && !leaves.is_repeated(i))) return false;
  }
  return true;
}

bool read_row_group(ThriftReader& input, const Leaves& leaves, ParquetFooter* footer) {
  enum : int64_t { kColumns = 1, kTotalByteSize = 2, kNumRows = 3 };
  int64_t rows = -1;
  int64_t nbytes = -1;
  std::vector<Chunk> chunks;
  chunks.reserve(leaves.size());
  read_complete(input, kRowGroup, [&](const ThriftReader::Field& field) {
    if (field.id == kColumns) {
      const bool is_valid = read_structs(input, field, [&] {
        chunks.push_back(read_chunk(input));
        return true;
      });
      if (!is_valid) input.fail();
    } else if (is_int64(field, kTotalByteSize)) {
      nbytes = input.read_int();
    } else if (is_int64(field, kNumRows)) {
      rows = input.read_int();
    } else {
      return false;
    }
    return true;
  });
  footer->rows.push_back(rows);
  footer->nbytes.push_back(nbytes);
  return rows >= 0 && nbytes >= 0 && fit_leaves(chunks, leaves, rows);
}

std::string_view between(const uint8_t* begin, const uint8_t* end) {
  return {reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin)};
}

/// Appends the pair of key and value if it decides on the types or the names of columns.
bool read_key_value(ThriftReader& input, std::string* schema) {
  constexpr int64_t kKey = 1;
  std::string_view key;
  const uint8_t* const begin = input.position();
  read_struct(input, [&](const ThriftReader::Field& field) {
    if (field.id != kKey || field.type != Wire::kBinary) return false;
    key = input.read_binary();
    return true;
  });
  if (key == "ARROW:schema" || key == "pandas") schema->append(between(begin, input.position()));
  return true;
}

/// Reads FileMetaData.
std::optional<ParquetFooter> read_footer(ThriftReader& input) {
  enum : int64_t {
    kSchema = 2,
    kNumRows = 3,
    kRowGroups = 4,
    kKeyValues = 5,
    kEncryption = 8,
    kSigningKey = 9
  };
  ParquetFooter footer;
  std::string_view columns;
  Leaves leaves;
  int64_t rows = -1;
  bool is_valid = true;
  read_complete(input, kFileMetadata, [&](const ThriftReader::Field& field) {
    if (field.id == kSchema) {
      const uint8_t* const begin = input.position();
      is_valid = read_structs(input, field, [&] { return leaves.read(input); });
      columns = between(begin, input.position());
    } else if (is_int64(field, kNumRows)) {
      rows = input.read_int();
    } else if (field.id == kRowGroups) {
      const auto read = [&] { return read_row_group(input, leaves, &footer); };
      is_valid = read_structs(input, field, read);
    } else if (field.id == kKeyValues) {
      is_valid = read_structs(input, field, [&] { return read_key_value(input, &footer.schema); });
    } else {
      is_valid = field.id != kEncryption && field.id != kSigningKey;
      if (is_valid) return false;
    }
    if (!is_valid) input.fail();
    return true;
  });
  if (input.failed() || columns.empty()) return std::nullopt;
  int64_t total = 0;
  for (const int64_t group : footer.rows) {
    if (!checked_add(total, group, &total)) return std::nullopt;
  }
  if (total != rows) return std::nullopt;
  footer.has_lists = leaves.is_any_repeated();
  // The length tells where one part ends.
  footer.schema.insert(0, std::to_string(columns.size()).append(":").append(columns));
  return footer;
}

constexpr size_t kTail = 8;  // the length of the footer in four bytes, and "PAR1"

}  // namespace

std::optional<ParquetFooter> parse_parquet_footer(const uint8_t* data, size_t size) {
  ThriftReader input(data, size);
  return read_footer(input);
}

size_t read_footer_length(const uint8_t* tail) {
  if (std::memcmp(tail + 4, "PAR1", 4) != 0) return 0;
  return static_cast<size_t>(tail[0]) | static_cast<size_t>(tail[1]) << 8 |
         static_cast<size_t>(tail[2]) << 16 | static_cast<size_t>(tail[3]) << 24;
}

#if defined(__unix__) || defined(__APPLE__)

namespace {

/// Fills `target` from an offset of a file; false if it ends before, or cannot be read.
bool read_at(int file, int64_t offset, uint8_t* target, size_t size) {
  while (size > 0) {
    const ssize_t count = ::pread(file, target, size, static_cast<off_t>(offset));
    if (count <= 0) return false;
    target += count;
    offset += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

/// A file that is closed at its end; -1: none.
class OpenFile {
 public:
  explicit OpenFile(int number) noexcept : number_(number) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const noexcept { return number_; }

 private:
  const int number_;
};

FileStamp to_stamp(const struct stat& status) {
#if defined(__APPLE__)
  const timespec& time = status.st_mtimespec;
#else
  const timespec& time = status.st_mtim;
#endif
  const int64_t mtime = static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  return {status.st_size, mtime, static_cast<int64_t>(status.st_ino)};
}

/// Reads the last bytes of a file with the footer in them.
std::optional<ParquetFooter> read_end(int file, int64_t file_size, size_t* guess) {
  constexpr size_t kMost = 1 << 14;
  if (file_size < static_cast<int64_t>(kTail)) return std::nullopt;
  const size_t size = std::min({static_cast<size_t>(file_size), *guess, kMost});
  uint8_t end[kMost];
  if (!read_at(file, file_size - static_cast<int64_t>(size), end, size)) return std::nullopt;
  const size_t length = read_footer_length(end + size - kTail);
  if (length == 0 || static_cast<int64_t>(length + kTail) > file_size) return std::nullopt;
  *guess = length + length / 8 + kTail;
  if (length + kTail <= size) return parse_parquet_footer(end + size - kTail - length, length);
  std::vector<uint8_t> footer(length);
  const int64_t begin = file_size - static_cast<int64_t>(length + kTail);
  if (!read_at(file, begin, footer.data(), length)) return std::nullopt;
  return parse_parquet_footer(footer.data(), length);
}

}  // namespace

std::optional<ParquetFooter> read_parquet_footer(const char* path, size_t* guess) {
  // A pipe would wait for its writer.
  const OpenFile file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::optional<ParquetFooter> footer = read_end(file.get(), status.st_size, guess);
  if (footer) footer->stamp = to_stamp(status);
  return footer;
}

std::optional<FileStamp> take_file_stamp(const char* path) {
  struct stat status;
  if (::stat(path, &status) != 0) return std::nullopt;
  return to_stamp(status);
}

#else

std::optional<ParquetFooter> read_parquet_footer(const char*, size_t*) { return std::nullopt; }
std::optional<FileStamp> take_file_stamp(const char*) { return std::nullopt; }

#endif

ARROWDL_END_NAMESPACE
