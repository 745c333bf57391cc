// Work on memory that one thread alone is too slow for.
#pragma once

#include <cstdint>
#include <type_traits>

namespace arrowdl {

namespace detail {

/// `call(context, i)` is the work's i-th share.
using ShareCall = void (*)(const void* context, int64_t i) noexcept;

void run_shares(int64_t count, ShareCall call, const void* context);

}  // namespace detail

/// Calls `work(i)` for every i of [0, count), in any order, on this thread and on others where they
/// are free (`set_thread_limit`); all calls have returned when it does. A share should take some
/// 50 us or more. `work` must not call parallel_for, wait for another thread or touch Python.
template <typename Work>
void parallel_for(int64_t count, const Work& work) {
  static_assert(std::is_nothrow_invocable_v<const Work&, int64_t>,
                "nobody could catch what another thread throws");
  detail::run_shares(
      count,
      [](const void* context, int64_t i) noexcept { (*static_cast<const Work*>(context))(i); },
      &work);
}

}  // namespace arrowdl
