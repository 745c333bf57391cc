// Copies bytes with several threads, and short pieces of bytes.
#include "util/copy_bytes.hpp"

#include "util/parallel_for.hpp"

ARROWDL_BEGIN_NAMESPACE

void copy_bytes(uint8_t* target, const uint8_t* source, int64_t size) noexcept {
  constexpr int64_t kShare = int64_t{512} << 10;
  if (size <= 0) return;
  parallel_for(std::max<int64_t>(1, size / kShare), [&](int64_t i) noexcept {
    const int64_t first = i * kShare;
    const int64_t rest = size - first;
    std::memcpy(target + first, source + first,
                static_cast<std::size_t>(rest < 2 * kShare ? rest : kShare));
  });
}

ARROWDL_END_NAMESPACE
