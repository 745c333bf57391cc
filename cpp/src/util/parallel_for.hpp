// Runs a loop on several threads, for work on memory that is too slow on one.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

namespace detail {

/// `call(context, i)` runs chunk `i`.
using ChunkCall = void (*)(const void* context, int64_t i) noexcept;

void run_chunks(int64_t count, ChunkCall call, const void* context, int64_t most_threads);

}  // namespace detail

/// With fewer bytes to copy, one thread is done before another one starts.
constexpr int64_t kFewestSharedBytes = int64_t{512} << 10;

/// Calls `work(i)` for every i in [0, count), in any order, on this thread and on idle helper
/// threads (`set_thread_limit`), `most_threads` at most. Returns when all calls have returned. A
/// chunk should take 50 us or more. `work` must not call parallel_for or use Python, nor wait for
/// another thread, but on the calling thread for what needs no helper.
template <typename Work>
void parallel_for(int64_t count, const Work& work, int64_t most_threads = INT64_MAX) {
  static_assert(std::is_nothrow_invocable_v<const Work&, int64_t>,
                "an exception of a helper thread has no handler");
  detail::run_chunks(
      count,
      [](const void* context, int64_t i) noexcept { (*static_cast<const Work*>(context))(i); },
      &work, most_threads);
}

ARROWDL_END_NAMESPACE
