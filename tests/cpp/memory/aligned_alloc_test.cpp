// Tests aligned blocks and their reuse.
#include "memory/aligned_alloc.hpp"

#include <gtest/gtest.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "util/sanitizers.hpp"

namespace arrowdl {
namespace {

constexpr std::size_t kMega = std::size_t{1} << 20;

std::size_t misalignment(const void* block) { return reinterpret_cast<uintptr_t>(block) % 64; }

TEST(BlockCache, BlocksAreAlignedAndHaveTheirSize) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{4095}, std::size_t{4096},
        std::size_t{16385}, kMega / 8, kMega - 1, 4 * kMega, 40 * kMega}) {
    for (int round = 0; round < 2; ++round) {
      void* block = allocate_aligned(size);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(misalignment(block), 0U);
      std::memset(block, 1, size);  // AddressSanitizer checks the write
      free_aligned(block, size);
    }
  }
}

TEST(BlockCache, NoBlockIsGivenOutTwice) {
  std::vector<void*> blocks;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) blocks.push_back(allocate_aligned(kMega));
    std::sort(blocks.begin(), blocks.end());
    EXPECT_EQ(std::adjacent_find(blocks.begin(), blocks.end()), blocks.end());
    for (void* block : blocks) free_aligned(block, kMega);
    blocks.clear();
  }
}

TEST(BlockCache, MoreThanIsKeptIsFreed) {  // LeakSanitizer finds blocks that are not freed
  for (const auto& [size, count] : {std::pair{kMega, 50}, std::pair{std::size_t{5000}, 600}}) {
    std::vector<void*> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(allocate_aligned(size));
    for (void* block : blocks) free_aligned(block, size);
  }
}

#if !ARROWDL_HAS_ASAN  // under which no block is kept
TEST(BlockCache, LargeBlocksAreKeptWhileAsMuchIsInUse) {
  constexpr std::size_t kLarge = 40 * kMega;
  void* first = allocate_aligned(kLarge);
  void* second = allocate_aligned(kLarge);
  for (int round = 0; round < 4; ++round) {  // as a shuffle, of two blocks
    free_aligned(first, kLarge);
    void* const third = allocate_aligned(kLarge);
    EXPECT_EQ(third, first);
    first = std::exchange(second, third);
  }
  free_aligned(first, kLarge);
  free_aligned(second, kLarge);
#if defined(__linux__) && !ARROWDL_HAS_TSAN
  // At the end the process has no memory there.
  for (void* block : {first, second}) {
    const auto page = reinterpret_cast<uintptr_t>(block) / 4096 * 4096;
    unsigned char is_resident = 0;
    EXPECT_NE(mincore(reinterpret_cast<void*>(page), 1, &is_resident), 0);
  }
#endif
}
#endif

TEST(BlockCache, BlocksOfOtherSizesMakeRoom) {
  constexpr std::size_t kAlive = 20;
  std::vector<void*> blocks;
  const auto size_of = [](std::size_t i) { return 4096 + 97 * (i % 311); };
  for (std::size_t i = 0; i < 1000; ++i) {
    blocks.push_back(allocate_aligned(size_of(i)));
    std::memset(blocks[i], 1, size_of(i));
    if (i >= kAlive) free_aligned(blocks[i - kAlive], size_of(i - kAlive));
  }
  for (std::size_t i = 1000 - kAlive; i < 1000; ++i) free_aligned(blocks[i], size_of(i));
}

TEST(BlockCache, BlocksOfManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const std::size_t size = kMega / 4 + static_cast<std::size_t>(i % 3) * kMega / 4;
        auto* block = static_cast<uint8_t*>(allocate_aligned(size));
        std::memset(block, t, 64);
        std::this_thread::yield();
        EXPECT_EQ(std::count(block, block + 64, static_cast<uint8_t>(t)), 64);
        free_aligned(block, size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace arrowdl
