// Memory of exactly the requested size, so that AddressSanitizer sees any access past its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>

namespace arrowdl::testing {

class ExactBytes {
 public:
  explicit ExactBytes(int64_t size, uint8_t fill = 0)
      : bytes_(new uint8_t[static_cast<std::size_t>(size)]), size_(size) {
    for (int64_t i = 0; i < size; ++i) data()[i] = fill;
  }

  static ExactBytes random(int64_t size, unsigned seed) {
    ExactBytes bytes(size);
    std::mt19937 engine(seed);
    for (int64_t i = 0; i < size; ++i) bytes.data()[i] = static_cast<uint8_t>(engine());
    return bytes;
  }

  uint8_t* data() { return bytes_.get(); }
  const uint8_t* data() const { return bytes_.get(); }
  int64_t size() const { return size_; }
  uint8_t& operator[](int64_t i) { return bytes_[static_cast<std::size_t>(i)]; }
  uint8_t operator[](int64_t i) const { return bytes_[static_cast<std::size_t>(i)]; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  int64_t size_;
};

}  // namespace arrowdl::testing
