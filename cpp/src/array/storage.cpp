// Releases the memory of an imported array after its last use.
#include <new>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The memory of a Storage, for the release thread.
struct Contents {
  explicit Contents(Storage& from) noexcept
      : array(std::move(from.array)), releaser(from.releaser) {}
  ~Contents() {
    if (releaser != nullptr) releaser(nullptr, &array);
  }

  OwnedDeviceArray array;
  Releaser releaser;
};

}  // namespace

Storage::~Storage() {
  if (recorded_streams.empty()) {
    if (releaser != nullptr) releaser(nullptr, &array);
    return;
  }
  try {
    const int64_t bytes = known_nbytes();
    recorded_streams.release(std::make_shared<Contents>(*this), bytes);
  } catch (const std::bad_alloc&) {
    if (!recorded_streams.wait()) {
      array->array.release = nullptr;  // the streams cannot be waited for: abandon the memory
    } else if (releaser != nullptr) {
      releaser(nullptr, &array);
    }
  }
}

ARROWDL_END_NAMESPACE
