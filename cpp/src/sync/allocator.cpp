// Keeps the default allocator of device memory.
#include "arrowdl/allocator.hpp"

#include <mutex>
#include <utility>

ARROWDL_BEGIN_NAMESPACE
namespace {

struct Default {
  std::mutex mutex;
  Allocator allocator;
};

Default& kept() {
  static auto* const one = new Default;  // never freed: memory is allocated at exit, too
  return *one;
}

}  // namespace

void set_default_allocator(Allocator allocator) {
  const std::lock_guard<std::mutex> lock(kept().mutex);
  std::swap(kept().allocator, allocator);
}

Allocator default_allocator() {
  const std::lock_guard<std::mutex> lock(kept().mutex);
  return kept().allocator;
}

ARROWDL_END_NAMESPACE
