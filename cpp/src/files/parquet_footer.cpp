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

/// Calls `read` for each item of a list of structs; fails if it is not one.
template <typename Read>
void read_structs(ThriftReader& input, const ThriftReader::Field& field, const Read& read) {
  if (field.type != Wire::kList) return input.fail();
  const ThriftReader::List list = input.read_list();
  if (list.size > 0 && list.type != Wire::kStruct) input.fail();
  for (uint64_t i = 0; i < list.size && !input.failed(); ++i) read();
}

constexpr int64_t kTypes = 8, kByteArray = 6, kCodecs = 8;
constexpr int64_t kEncryption = 8;  // a field of ColumnChunk, and of FileMetaData

/// A column of a schema: its physical type and its most levels.
struct Leaf {
  int64_t type;
  int64_t repetition = 0;
  int64_t definition = 0;
};

/// The columns of a schema: the SchemaElements are in the order of a walk.
class Leaves {
 public:
  void read(ThriftReader& input) {
    enum : int64_t { kType = 1, kRepetitionType = 3, kNumChildren = 5 };
    enum : int64_t { kRequired, kOptional, kRepeated };
    int64_t parts[kNumChildren + 1] = {};
    parts[kType] = -1;
    read_complete(input, kSchemaElement, [&](const ThriftReader::Field& field) {
      if (field.type != Wire::kInt32 || field.id < kType || field.id > kNumChildren) return false;
      parts[field.id] = input.read_int();
      return true;
    });
    const int64_t repetition = parts[kRepetitionType], children = parts[kNumChildren];
    const bool is_root = !has_root_;
    has_root_ = true;
    while (!open_.empty() && open_.back().left == 0) open_.pop_back();
    if (children < 0 || (!is_root && open_.empty())) return input.fail();
    if (repetition < kRequired || repetition > kRepeated) return input.fail();
    Leaf leaf{parts[kType]};
    if (!is_root) {
      Group& group = open_.back();
      --group.left;
      leaf.repetition = group.levels.repetition + (repetition == kRepeated ? 1 : 0);
      leaf.definition = group.levels.definition + (repetition == kRequired ? 0 : 1);
    }
    if (children > 0) open_.push_back({children, leaf});
    if (children > 0 || is_root) return;
    leaves_.push_back(leaf);
    if (leaf.type < 0 || leaf.type >= kTypes) input.fail();
  }

  const std::vector<Leaf>& get() const noexcept { return leaves_; }

 private:
  struct Group {
    int64_t left;  // children to come
    Leaf levels;
  };

  std::vector<Group> open_;
  std::vector<Leaf> leaves_;
  bool has_root_ = false;
};

/// Fails if a bound, should there be one, has fewer bytes than a value of the column.
void read_statistics(ThriftReader& input, const Leaf& leaf) {
  constexpr size_t kWidths[kTypes] = {1, 4, 8, 12, 4, 8, 0, 0};  // by physical type
  read_struct(input, [&](const ThriftReader::Field& field) {
    if (field.type != Wire::kBinary) return false;
    const size_t size = input.read_binary().size();
    if (size > 0 && size < kWidths[leaf.type]) input.fail();
    return true;
  });
}

/// Fails if a histogram, should there be one, lacks a number for a level, or has more.
void read_size_statistics(ThriftReader& input, const Leaf& leaf) {
  enum : int64_t { kByteArrayBytes = 1, kRepetitions = 2, kDefinitions = 3 };
  read_struct(input, [&](const ThriftReader::Field& field) {
    if (is_int64(field, kByteArrayBytes) && leaf.type != kByteArray) input.fail();
    if (field.type != Wire::kList || field.id < kRepetitions || field.id > kDefinitions)
      return false;
    const auto size = static_cast<int64_t>(ThriftReader(input).read_list().size);
    const int64_t levels = field.id == kRepetitions ? leaf.repetition : leaf.definition;
    if (size != 0 && size != levels + 1) input.fail();
    return false;
  });
}

/// Returns the values of a column; -1 if they are unknown, or of another file. Fails if pyarrow
/// cannot show it.
int64_t read_chunk(ThriftReader& input, const Leaf& leaf) {
  enum : int64_t { kFilePath = 1, kMetadata = 3 };
  enum : int64_t { kType = 1, kCodec = 4, kNumValues = 5, kStatistics = 12, kSizeStatistics = 16 };
  int64_t values = -1;
  bool names_file = false;
  read_complete(input, kColumnChunk, [&](const ThriftReader::Field& field) {
    names_file = names_file || field.id == kFilePath;
    if (field.id == kEncryption) input.fail();
    if (field.id != kMetadata || field.type != Wire::kStruct) return false;
    read_complete(input, kColumnMetadata, [&](const ThriftReader::Field& part) {
      if (part.type == Wire::kInt32 && (part.id == kType || part.id == kCodec)) {
        const int64_t value = input.read_int();
        if (part.id == kType ? value != leaf.type : value < 0 || value >= kCodecs) input.fail();
      } else if (is_int64(part, kNumValues)) {
        values = input.read_int();
      } else if (part.type == Wire::kStruct && part.id == kStatistics) {
        read_statistics(input, leaf);
      } else if (part.type == Wire::kStruct && part.id == kSizeStatistics) {
        read_size_statistics(input, leaf);
      } else {
        return false;
      }
      return true;
    });
    return true;
  });
  return names_file ? -1 : values;
}

/// Adds a row group to a footer, which is `known` as long as a column has a value for each row, or
/// some more within lists.
void read_row_group(ThriftReader& input, const std::vector<Leaf>& leaves, ParquetFooter* footer,
                    bool* known) {
  enum : int64_t { kColumns = 1, kTotalByteSize = 2, kNumRows = 3 };
  int64_t rows = -1;
  int64_t nbytes = -1;
  std::vector<int64_t> values;
  values.reserve(leaves.size());
  read_complete(input, kRowGroup, [&](const ThriftReader::Field& field) {
    if (field.id == kColumns) {
      read_structs(input, field, [&] {
        if (values.size() == leaves.size()) return input.fail();
        values.push_back(read_chunk(input, leaves[values.size()]));
      });
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
  if (values.size() != leaves.size()) input.fail();
  *known = *known && rows >= 0 && nbytes >= 0;
  for (size_t i = 0; i < values.size(); ++i) {
    *known = *known && values[i] >= rows && (values[i] == rows || leaves[i].repetition > 0);
  }
}

std::string_view between(const uint8_t* begin, const uint8_t* end) {
  return {reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin)};
}

/// Appends the pair of key and value if it decides on the types or the names of columns.
void read_key_value(ThriftReader& input, std::string* schema) {
  constexpr int64_t kKey = 1;
  std::string_view key;
  const uint8_t* const begin = input.position();
  read_struct(input, [&](const ThriftReader::Field& field) {
    if (field.id != kKey || field.type != Wire::kBinary) return false;
    key = input.read_binary();
    return true;
  });
  if (key == "ARROW:schema" || key == "pandas") schema->append(between(begin, input.position()));
}

/// Reads FileMetaData; returns nothing if it is not well-formed, or pyarrow cannot show its
/// columns.
std::optional<ParquetFooter> read_footer(ThriftReader& input, bool* known) {
  enum : int64_t { kSchema = 2, kNumRows = 3, kRowGroups = 4, kKeyValues = 5, kSigningKey = 9 };
  ParquetFooter footer;
  std::string_view columns;
  Leaves leaves;
  int64_t rows = -1;
  *known = true;
  read_complete(input, kFileMetadata, [&](const ThriftReader::Field& field) {
    if (field.id == kSchema) {
      const uint8_t* const begin = input.position();
      read_structs(input, field, [&] { leaves.read(input); });
      columns = between(begin, input.position());
    } else if (is_int64(field, kNumRows)) {
      rows = input.read_int();
    } else if (field.id == kRowGroups) {
      read_structs(input, field, [&] { read_row_group(input, leaves.get(), &footer, known); });
    } else if (field.id == kKeyValues) {
      read_structs(input, field, [&] { read_key_value(input, &footer.schema); });
    } else {
      *known = *known && field.id != kEncryption && field.id != kSigningKey;
      return false;
    }
    return true;
  });
  if (input.failed() || columns.empty()) return std::nullopt;
  int64_t total = 0;
  for (const int64_t group : footer.rows) *known = *known && checked_add(total, group, &total);
  *known = *known && total == rows;
  for (const Leaf& leaf : leaves.get()) footer.has_lists = footer.has_lists || leaf.repetition > 0;
  // The length tells where one part ends.
  footer.schema.insert(0, std::to_string(columns.size()).append(":").append(columns));
  return footer;
}

constexpr size_t kTail = 8;  // the length of the footer in four bytes, and "PAR1"

}  // namespace

std::optional<ParquetFooter> parse_parquet_footer(const uint8_t* data, size_t size) {
  ThriftReader input(data, size);
  bool is_known = false;
  std::optional<ParquetFooter> footer = read_footer(input, &is_known);
  return is_known ? footer : std::nullopt;
}

std::optional<bool> is_sound_parquet_footer(const uint8_t* data, size_t size) {
  ThriftReader input(data, size);
  bool is_encrypted = false, is_known = false;
  read_struct(input, [&](const ThriftReader::Field& field) {
    is_encrypted = is_encrypted || field.id == kEncryption;
    return false;
  });
  if (is_encrypted) return std::nullopt;
  input = ThriftReader(data, size);
  return read_footer(input, &is_known).has_value();
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
