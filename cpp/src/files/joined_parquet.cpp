// Moves the offsets in footers of files that become one.
#include "files/joined_parquet.hpp"

#include <fstream>
#include <iterator>

#include "files/parquet_footer.hpp"
#include "files/thrift_reader.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE

namespace {

constexpr int64_t kMagic = 4;
constexpr size_t kLengthAndMagic = 8;

void append_varint(uint64_t value, std::string* target) {
  for (; value >= 0x80; value >>= 7) target->push_back(static_cast<char>(value | 0x80));
  target->push_back(static_cast<char>(value));
}

void append_number(int64_t value, std::string* target) {
  append_varint(static_cast<uint64_t>(value) << 1, target);  // none is negative
}

void append_bytes(const uint8_t* begin, const uint8_t* end, std::string* target) {
  target->append(reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin));
}

/// Reads the header of a page; returns its values that are rows, -1 if they are unknown.
int64_t read_page(ThriftReader& input, int64_t* size) {
  enum : int64_t { kType = 1, kCompressedSize = 3, kData = 5, kDataV2 = 8 };
  enum : int64_t { kIsData = 0, kIsDictionary = 2, kIsDataV2 = 3 };
  int64_t type = -1, values = -1, values_v2 = -1;
  *size = -1;
  read_struct(input, [&](const ThriftReader::Field& field) {
    if (field.type == Wire::kInt32 && (field.id == kType || field.id == kCompressedSize)) {
      (field.id == kType ? type : *size) = input.read_int();
      return true;
    }
    if (field.type != Wire::kStruct || (field.id != kData && field.id != kDataV2)) return false;
    read_struct(input, [&](const ThriftReader::Field& part) {
      constexpr int64_t kNumValues = 1;
      if (part.id != kNumValues || part.type != Wire::kInt32) return false;
      (field.id == kData ? values : values_v2) = input.read_int();
      return true;
    });
    return true;
  });
  if (input.failed() || *size < 0) return -1;
  return type == kIsData ? values : type == kIsDataV2 ? values_v2 : type == kIsDictionary ? 0 : -1;
}

/// Whether pages have as many values as a column: a reader takes those that lack from the next
/// file.
bool has_values(const uint8_t* at, const uint8_t* end, int64_t values) {
  while (at != end) {
    ThriftReader input(at, static_cast<size_t>(end - at));
    int64_t size = 0;
    const int64_t count = read_page(input, &size);
    if (count < 0 || count > values || size > end - input.position()) return false;
    values -= count;
    at = input.position() + size;
  }
  return values == 0;
}

/// Copies the row groups of a file that is well-formed, `by` bytes behind others.
class GroupCopy {
 public:
  GroupCopy(const uint8_t* data, int64_t size, size_t by, std::string* target)
      : data_(data), size_(size), by_(static_cast<int64_t>(by)), target_(target) {}

  /// Returns whether the pages are as the row groups say.
  bool copy(ThriftReader& input, uint64_t count) {
    done_ = input.position();
    for (; count > 0; --count) read(input, 0);
    append_bytes(done_, input.position(), target_);
    return is_valid_;
  }

 private:
  /// Reads a RowGroup, in which are ColumnChunks with a ColumnMetaData each.
  void read(ThriftReader& input, size_t level) {
    constexpr ThriftReader::Field kPath[] = {{1, Wire::kList}, {3, Wire::kStruct}};
    if (level == std::size(kPath)) return read_metadata(input);
    read_struct(input, [&](const ThriftReader::Field& field) {
      if (field.id != kPath[level].id || field.type != kPath[level].type) return false;
      uint64_t count = field.type == Wire::kList ? input.read_list().size : 1;
      for (; count > 0; --count) read(input, level + 1);
      return true;
    });
  }

  void read_metadata(ThriftReader& input) {
    enum : int64_t { kNumValues = 5, kCompressedSize = 7, kDataPage = 9, kDictionaryPage = 11 };
    int64_t values = 0, size = -1, data_page = 0, dictionary_page = 0;
    read_struct(input, [&](const ThriftReader::Field& field) {
      if (field.type != Wire::kInt64) return false;
      if (field.id == kNumValues) {
        values = input.read_int();
      } else if (field.id == kCompressedSize) {
        size = input.read_int();
      } else if (field.id == kDataPage || field.id == kDictionaryPage) {
        (field.id == kDataPage ? data_page : dictionary_page) = move_offset(input);
      } else {
        return false;
      }
      return true;
    });
    const bool has_dictionary = dictionary_page > 0 && dictionary_page < data_page;
    const int64_t begin = has_dictionary ? dictionary_page : data_page;
    is_valid_ = is_valid_ && begin >= kMagic && size >= 0 && size <= size_ - begin &&
                has_values(data_ + begin, data_ + begin + size, values);
  }

  int64_t move_offset(ThriftReader& input) {
    append_bytes(done_, input.position(), target_);
    const int64_t offset = input.read_int();
    done_ = input.position();
    is_valid_ = is_valid_ && offset >= 0 && offset <= size_;
    if (is_valid_) append_number(offset == 0 ? 0 : offset + by_, target_);  // 0: no dictionary
    return offset;
  }

  const uint8_t* data_;
  int64_t size_;
  int64_t by_;
  std::string* target_;
  const uint8_t* done_ = nullptr;
  bool is_valid_ = true;
};

}  // namespace

bool JoinedParquet::add(size_t begin) {
  enum : int64_t { kNumRows = 3, kRowGroups = 4 };
  const uint8_t* const data = bytes.data() + begin;
  if (bytes.size() - begin < kLengthAndMagic) return false;
  const uint8_t* const end = bytes.data() + bytes.size() - kLengthAndMagic;
  const size_t length = read_footer_length(end);
  if (length > static_cast<size_t>(end - data)) return false;
  const uint8_t* const footer = end - length;
  const std::optional<ParquetFooter> known = parse_parquet_footer(footer, length);
  if (!known || known->has_lists) return false;
  std::string head, tail;
  const uint8_t* rows_end = nullptr;
  bool is_valid = true;
  ThriftReader input(footer, length);
  read_struct(input, [&](const ThriftReader::Field& field) {
    if (field.id == kNumRows && field.type == Wire::kInt64) {
      append_bytes(footer, input.position(), &head);
      is_valid = checked_add(rows_, input.read_int(), &rows_) && rows_end == nullptr && is_valid;
      rows_end = input.position();
      return true;
    }
    if (field.id != kRowGroups) return false;
    is_valid = is_valid && rows_end != nullptr && input.position() == rows_end + 1;
    const uint64_t count = input.read_list().size;
    GroupCopy groups(data, footer - data, begin, &groups_);
    is_valid = groups.copy(input, count) && is_valid;
    count_ += count;
    append_bytes(input.position(), end, &tail);
    return true;
  });
  if (head_.empty()) {
    head_ = head;
    tail_ = tail;
  }
  if (!is_valid || head != head_ || tail != tail_) return false;
  bytes.resize(static_cast<size_t>(footer - bytes.data()));
  return true;
}

void JoinedParquet::finish() {
  std::string footer = head_;
  append_number(rows_, &footer);
  footer += "\x19\xfc";  // the next field: a list of structs, whose number follows
  append_varint(count_, &footer);
  footer += groups_ + tail_;
  const size_t length = footer.size();
  for (int shift = 0; shift < 32; shift += 8) footer.push_back(static_cast<char>(length >> shift));
  footer += "PAR1";
  bytes.insert(bytes.end(), footer.begin(), footer.end());
}

std::optional<JoinedParquet> join_parquet_files(const std::vector<std::string>& paths,
                                                size_t most) {
  JoinedParquet joined;
  joined.bytes.reserve(most);
  for (const std::string& path : paths) {
    const size_t begin = joined.bytes.size();
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = file.tellg();
    if (size < 0 || static_cast<uint64_t>(size) > most - begin) return std::nullopt;
    joined.bytes.resize(begin + static_cast<size_t>(size));
    file.seekg(0).read(reinterpret_cast<char*>(joined.bytes.data() + begin), size);
    if (!file || !joined.add(begin)) return std::nullopt;
  }
  joined.finish();
  return joined;
}

ARROWDL_END_NAMESPACE
