// Tests copies of host memory.
#include "util/copy_bytes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace arrowdl {
namespace {

TEST(CopyBytesTest, CopiesAllBytesAndNoOther) {
  constexpr int64_t kShare = int64_t{512} << 10;
  for (const int64_t size : {int64_t{0}, int64_t{1}, kShare - 1, kShare, kShare + 1, 2 * kShare - 1,
                             2 * kShare, 2 * kShare + 1, 5 * kShare + 12345}) {
    std::vector<uint8_t> source(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 31 >> 5);
    std::vector<uint8_t> target(source.size() + 2, 0xEE);
    copy_bytes(target.data() + 1, source.data(), size);
    source.insert(source.begin(), 0xEE);
    source.push_back(0xEE);
    EXPECT_TRUE(target == source) << size;
  }
}

}  // namespace
}  // namespace arrowdl
