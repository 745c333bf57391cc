// Walks the Thrift structures of footers.
#include "files/parquet_footer.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "arrowdl/file_descriptor.hpp"
#include "files/thrift_reader.hpp"
#include "util/overflow.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

ARROWDL_BEGIN_NAMESPACE

namespace {

/// Calls `read` with each field of a struct. It returns whether it has read the value; other values
/// are skipped.
template <typename Read>
void read_struct(ThriftReader& input, const Read& read) {
  int64_t id = 0;
  while (true) {
    const ThriftReader::Field field = input.read_field(id);
    if (field.type == Wire::kStop) return;
    id = field.id;
    if (!read(field)) input.skip(field.type);
  }
}

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

/// Which leaves of a schema are within lists: the SchemaElements are in the order of a walk.
class Leaves {
 public:
  bool read(ThriftReader& input) {
    enum : int64_t { kRepetitionType = 3, kNumChildren = 5 };
    constexpr int64_t kRepeated = 2;
    int64_t repetition = 0;
    int64_t children = 0;
    read_complete(input, kSchemaElement, [&](const ThriftReader::Field& field) {
      if (field.type != Wire::kInt32) return false;
      if (field.id == kRepetitionType) {
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
    if (children == 0 && !is_root) repeated_.push_back(is_repeated);
    return true;
  }

  size_t size() const noexcept { return repeated_.size(); }
  bool is_repeated(size_t i) const { return repeated_[i]; }

 private:
  struct Group {
    int64_t left;  // children to come
    bool is_repeated;
  };

  std::vector<Group> open_;
  std::vector<bool> repeated_;
  bool has_root_ = false;
};

/// Reads a ColumnChunk; returns the number of its values, -1 if it is of another file or unknown.
int64_t read_chunk(ThriftReader& input) {
  enum : int64_t { kFilePath = 1, kMetadata = 3, kNumValues = 5 };
  int64_t values = -1;
  bool names_file = false;
  read_complete(input, kColumnChunk, [&](const ThriftReader::Field& field) {
    names_file = names_file || field.id == kFilePath;
    if (field.id != kMetadata || field.type != Wire::kStruct) return false;
    read_complete(input, kColumnMetadata, [&](const ThriftReader::Field& part) {
      if (!is_int64(part, kNumValues)) return false;
      values = input.read_int();
      return true;
    });
    return true;
  });
  return names_file ? -1 : values;
}

/// A column has a value for each row, or some more within lists.
bool fit_rows(const std::vector<int64_t>& values, const Leaves& leaves, int64_t rows) {
  if (values.size() != leaves.size()) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < rows || (values[i] > rows && !leaves.is_repeated(i))) return false;
  }
  return true;
}

bool read_row_group(ThriftReader& input, const Leaves& leaves, ParquetFooter* footer) {
  enum : int64_t { kColumns = 1, kTotalByteSize = 2, kNumRows = 3 };
  int64_t rows = -1;
  int64_t nbytes = -1;
  std::vector<int64_t> values;
  read_complete(input, kRowGroup, [&](const ThriftReader::Field& field) {
    if (field.id == kColumns) {
      const bool is_valid = read_structs(input, field, [&] {
        values.push_back(read_chunk(input));
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
  return rows >= 0 && nbytes >= 0 && fit_rows(values, leaves, rows);
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
  // The length tells where one part ends.
  footer.schema = std::to_string(columns.size()) + ":" + std::string(columns) + footer.schema;
  return footer;
}

constexpr size_t kTail = 8;  // the length of the footer in four bytes, and "PAR1"

/// The length of a footer by the last bytes of its file; 0 if it is not of plain Parquet.
size_t read_length(const uint8_t* tail) {
  if (std::memcmp(tail + 4, "PAR1", 4) != 0) return 0;
  return static_cast<size_t>(tail[0]) | static_cast<size_t>(tail[1]) << 8 |
         static_cast<size_t>(tail[2]) << 16 | static_cast<size_t>(tail[3]) << 24;
}

}  // namespace

std::optional<ParquetFooter> parse_parquet_footer(const uint8_t* data, size_t size) {
  ThriftReader input(data, size);
  return read_footer(input);
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

int64_t find_time(const struct stat& status) {
#if defined(__APPLE__)
  const timespec& time = status.st_mtimespec;
#else
  const timespec& time = status.st_mtim;
#endif
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// Reads the last bytes of a file with the footer in them.
std::optional<ParquetFooter> read_end(int file, int64_t file_size) {
  constexpr size_t kGuess = 1 << 14;  // most footers are shorter
  if (file_size < static_cast<int64_t>(kTail)) return std::nullopt;
  size_t size = static_cast<size_t>(std::min<int64_t>(file_size, kGuess));
  std::vector<uint8_t> end(size);
  if (!read_at(file, file_size - static_cast<int64_t>(size), end.data(), size)) return std::nullopt;
  const size_t length = read_length(end.data() + size - kTail);
  if (length == 0 || static_cast<int64_t>(length + kTail) > file_size) return std::nullopt;
  if (length + kTail > size) {
    size = length + kTail;
    end.resize(size);
    if (!read_at(file, file_size - static_cast<int64_t>(size), end.data(), size)) {
      return std::nullopt;
    }
  }
  return parse_parquet_footer(end.data() + size - kTail - length, length);
}

}  // namespace

std::optional<FileFooter> read_parquet_footer(const char* path) {
  // A pipe would wait for its writer.
  const FileDescriptor file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::optional<ParquetFooter> footer = read_end(file.get(), status.st_size);
  if (!footer) return std::nullopt;
  return FileFooter{*std::move(footer), status.st_size, find_time(status), status.st_ino};
}

#else

std::optional<FileFooter> read_parquet_footer(const char*) { return std::nullopt; }

#endif

ARROWDL_END_NAMESPACE
