// Reads Thrift's compact protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The types of Thrift's compact protocol.
enum class Wire : uint8_t {
  kStop = 0,
  kTrue = 1,
  kFalse = 2,
  kByte = 3,
  kInt16 = 4,
  kInt32 = 5,
  kInt64 = 6,
  kDouble = 7,
  kBinary = 8,
  kList = 9,
  kSet = 10,
  kMap = 11,
  kStruct = 12,
  kUuid = 13,
};

/// Reads values one behind the other. After the first that is malformed, all are 0 or empty.
class ThriftReader {
 public:
  ThriftReader(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool failed() const noexcept { return failed_; }
  const uint8_t* position() const noexcept { return at_; }

  struct Field {
    int64_t id = 0;
    Wire type = Wire::kStop;
  };

  /// The header of the field behind the one with number `previous`; kStop at the end of a struct.
  Field read_field(int64_t previous) {
    const uint8_t header = read_byte();
    Field field;
    field.type = static_cast<Wire>(header & 0xf);
    if (field.type == Wire::kStop) return field;
    const int delta = header >> 4;
    field.id = delta != 0 ? previous + delta : read_int();
    return field;
  }

  struct List {
    uint64_t size = 0;
    Wire type = Wire::kStop;
  };

  List read_list() {
    const uint8_t header = read_byte();
    List list;
    list.type = static_cast<Wire>(header & 0xf);
    list.size = header >> 4;
    if (list.size == 15) list.size = read_varint();
    // An item takes a byte or more.
    if (list.size > static_cast<size_t>(end_ - at_)) fail();
    if (failed_) list.size = 0;
    return list;
  }

  int64_t read_int() {
    const uint64_t value = read_varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }

  std::string_view read_binary() {
    const uint64_t size = read_varint();
    const uint8_t* const begin = at_;
    if (!advance(size)) return {};
    return {reinterpret_cast<const char*>(begin), static_cast<size_t>(size)};
  }

  void skip(Wire type, int level = 0) {
    if (level > kMostLevels) fail();
    if (failed_) return;
    switch (type) {
      case Wire::kTrue:
      case Wire::kFalse:
        return;
      case Wire::kByte:
        advance(1);
        return;
      case Wire::kInt16:
      case Wire::kInt32:
      case Wire::kInt64:
        read_varint();
        return;
      case Wire::kDouble:
        advance(8);
        return;
      case Wire::kBinary:
        advance(read_varint());
        return;
      case Wire::kUuid:
        advance(16);
        return;
      case Wire::kList:
      case Wire::kSet: {
        const List list = read_list();
        for (uint64_t i = 0; i < list.size && !failed_; ++i) skip_item(list.type, level + 1);
        return;
      }
      case Wire::kMap:
        skip_map(level + 1);
        return;
      case Wire::kStruct:
        skip_struct(level + 1);
        return;
      case Wire::kStop:
        break;
    }
    fail();
  }

  void fail() noexcept {
    failed_ = true;
    at_ = end_;
  }

 private:
  static constexpr int kMostLevels = 32;

  uint8_t read_byte() {
    if (at_ == end_) {
      fail();
      return 0;
    }
    return *at_++;
  }

  uint64_t read_varint() {
    if (at_ != end_ && *at_ < 0x80) return *at_++;  // most
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = read_byte();
      if (failed_) return 0;
      if (shift == 63 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail();
    return 0;
  }

  bool advance(uint64_t size) {
    if (size > static_cast<size_t>(end_ - at_)) fail();
    if (failed_) return false;
    at_ += size;
    return true;
  }

  /// In lists and maps, a bool is a byte.
  void skip_item(Wire type, int level) {
    const bool is_bool = type == Wire::kTrue || type == Wire::kFalse;
    skip(is_bool ? Wire::kByte : type, level);
  }

  void skip_map(int level) {
    const uint64_t size = read_varint();
    if (size == 0) return;
    const uint8_t types = read_byte();
    for (uint64_t i = 0; i < size && !failed_; ++i) {
      skip_item(static_cast<Wire>(types >> 4), level);
      skip_item(static_cast<Wire>(types & 0xf), level);
    }
  }

  void skip_struct(int level) {
    int64_t id = 0;
    while (true) {
      const Field field = read_field(id);
      if (field.type == Wire::kStop) return;
      id = field.id;
      skip(field.type, level);
    }
  }

  const uint8_t* at_;
  const uint8_t* end_;
  bool failed_ = false;
};

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

ARROWDL_END_NAMESPACE
