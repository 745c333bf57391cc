// Asks other libraries for the device memory that they keep without using it.
#include "backends/free_caches.hpp"

#include <mutex>
#include <utility>

#include "arrowdl/backends.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

struct Registered {
  std::mutex mutex;
  FreeCaches function;
};

Registered& registered() {
  static auto* const one = new Registered;  // never freed: memory is allocated at exit, too
  return *one;
}

}  // namespace

void set_free_caches(FreeCaches function) {
  Registered& kept = registered();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  std::swap(kept.function, function);
}

void free_caches(const Device& device) {
  FreeCaches function;
  {
    Registered& kept = registered();
    const std::lock_guard<std::mutex> lock(kept.mutex);
    function = kept.function;
  }
  if (function) function(device);
}

ARROWDL_END_NAMESPACE
