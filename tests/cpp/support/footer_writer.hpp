// Writes the Thrift of Parquet files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace arrowdl::testing {

inline constexpr int kWireInt32 = 5;
inline constexpr int kWireInt64 = 6;
inline constexpr int kWireBinary = 8;
inline constexpr int kWireStruct = 12;

/// Writes Thrift's compact protocol.
class FooterWriter {
 public:
  FooterWriter& byte(int value) {
    bytes_.push_back(static_cast<uint8_t>(value));
    return *this;
  }
  FooterWriter& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<int>(value & 0x7f) | 0x80);
    return byte(static_cast<int>(value));
  }
  FooterWriter& number(int64_t value) {
    return varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  /// The header of a field whose number is `delta` higher than that of the field before.
  FooterWriter& field(int delta, int type) { return byte(delta << 4 | type); }
  FooterWriter& int64(int delta, int64_t value) { return field(delta, 6).number(value); }
  FooterWriter& text(const std::string& value) {
    varint(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }
  FooterWriter& list(int delta, size_t size, int type) {
    field(delta, 9);
    if (size < 15) return byte(static_cast<int>(size) << 4 | type);
    return byte(0xf0 | type).varint(size);
  }
  FooterWriter& stop() { return byte(0); }
  /// The version, and a schema of one INT32 column, which is a list if `repetition` is 2.
  FooterWriter& schema(const std::string& column, int64_t repetition) {
    field(1, kWireInt32).number(2);
    list(1, 2, kWireStruct).field(4, kWireBinary).text("schema");
    field(1, kWireInt32).number(1).stop();
    field(1, kWireInt32).number(1).field(2, kWireInt32).number(repetition);
    return field(1, kWireBinary).text(column).stop();
  }
  FooterWriter& append(const std::vector<uint8_t>& bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace arrowdl::testing
