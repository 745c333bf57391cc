// Tests that the caller keeps the stream if memory runs out during an export.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "arrowdl/stream.hpp"
#include "support/build_array.hpp"
#include "support/values.hpp"

namespace {

/// How many allocations succeed on this thread before one fails; -1 for all.
thread_local int64_t allocations_left = -1;

}  // namespace

void* operator new(std::size_t size) {
  if (allocations_left == 0) {
    allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace arrowdl::testing {
namespace {

/// Calls `export_it` with one stream until it succeeds, failing its allocations in turn. The caller
/// must keep the stream after each failure. Returns the number of failures.
template <typename Export>
int64_t fail_each_allocation(const Export& export_it) {
  OwnedStream stream = make_stream({Builder(1).import(field("i"), numbers({1, 2}))});
  for (int64_t n = 0;; ++n) {
    allocations_left = n;
    try {
      export_it(std::move(stream));
      allocations_left = -1;
      return n;
    } catch (const std::bad_alloc&) {
      if (stream == nullptr) ADD_FAILURE() << "allocation " << n << " lost the stream";
      if (stream == nullptr) return n;
    }
  }
}

TEST(ExportStream, OutOfMemoryLeavesTheStream) {
  const int64_t before = live_objects();
  EXPECT_GE(fail_each_allocation([](OwnedStream&& stream) { export_stream(std::move(stream)); }),
            2);
  EXPECT_GE(
      fail_each_allocation([](OwnedStream&& stream) { export_device_stream(std::move(stream)); }),
      2);
  EXPECT_EQ(live_objects(), before);
}

}  // namespace
}  // namespace arrowdl::testing
