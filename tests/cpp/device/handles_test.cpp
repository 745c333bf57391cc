// Tests that handles of GPU streams and events cost as much as pointers, and do not mix.
#include "arrowdl/handles.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace arrowdl {
namespace {

template <typename Handle>
constexpr bool is_like_a_pointer =
    std::is_trivially_copyable_v<Handle> && sizeof(Handle) == sizeof(void*) &&
    !std::is_convertible_v<void*, Handle> && !std::is_convertible_v<Handle, void*>;
static_assert(is_like_a_pointer<StreamHandle> && is_like_a_pointer<EventHandle>);
static_assert(!std::is_convertible_v<StreamHandle, EventHandle> &&
              !std::is_constructible_v<EventHandle, StreamHandle>);

TEST(Handles, KeepTheRawHandle) {
  int object = 0;
  const StreamHandle stream(&object);
  EXPECT_EQ(stream.get(), &object);
  EXPECT_EQ(StreamHandle(stream.value()), stream);
  EXPECT_NE(stream, StreamHandle());
  EXPECT_TRUE(StreamHandle().is_null());
  EXPECT_EQ(StreamHandle(uintptr_t{2}).value(), 2U);
  const EventHandle event(&object);
  EXPECT_EQ(event.get(), &object);
  EXPECT_EQ(event, EventHandle(&object));
  EXPECT_NE(event, EventHandle());
  EXPECT_TRUE(event);
  EXPECT_FALSE(EventHandle());
}

}  // namespace
}  // namespace arrowdl
