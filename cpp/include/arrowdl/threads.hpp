// The limit of the threads that one operation uses.
#pragma once

#include <cstdint>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Limits the threads that copy the rows of one operation (a shuffle, a concatenation, the filling
/// of pinned memory), the calling thread included. The default is the number of processors, 8 at
/// most, or the value of the environment variable OMP_NUM_THREADS at the first such operation.
/// Operations of some 512 KiB or more use them, of rows in random order some 128 KiB or 4,096
/// values; one operation at a time. Idle threads end. Raises ValueError for less than 1.
void set_thread_limit(int64_t threads);

/// The present limit.
int64_t thread_limit() noexcept;

ARROWDL_END_NAMESPACE
