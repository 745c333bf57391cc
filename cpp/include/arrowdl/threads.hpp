// How many threads one operation may use.
#pragma once

#include <cstdint>

namespace arrowdl {

/// How many threads may copy the rows of one operation (a shuffle, a concatenation, the filling of
/// pinned memory), its own included: the processors that this process may use, 8 at most, or what
/// the environment variable OMP_NUM_THREADS said at the first such operation. They are used from
/// some 512 KiB on, by one operation at a time, and end when they are idle. Raises ValueError for
/// less than 1.
void set_thread_limit(int64_t threads);

int64_t thread_limit() noexcept;

}  // namespace arrowdl
