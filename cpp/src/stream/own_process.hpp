// Refuses streams that are being read in the parent of a forked process.
#pragma once

#include <cstdint>

#include "arrowdl/error.hpp"
#include "util/fork.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Raises RuntimeError unless this process is the one in which `fork_count()` was `process`: the
/// thread that reads the stream, or has it locked, is not in a forked child.
inline void require_own_process(uint64_t process) {
  if (process == fork_count()) return;
  throw Error(ErrorKind::kRuntime,
              "this stream is being read in another process, the one that was forked: make the "
              "stream in the process that reads it");
}

ARROWDL_END_NAMESPACE
