// The stream that names memory to other libraries' allocators.
#include "export/allocation_stream.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace arrowdl::python {

StreamHandle find_allocation_stream(MemoryOps& memory, const Device& device) {
  static auto* const mutex = new std::mutex;  // never freed: copies ahead may run at exit, too
  static auto* const streams = new std::map<std::pair<int32_t, int32_t>, StreamHandle>;
  const std::lock_guard<std::mutex> lock(*mutex);
  const std::pair<int32_t, int32_t> key(device.type, device.id);
  const auto found = streams->find(key);
  if (found != streams->end()) return found->second;
  return streams->emplace(key, memory.acquire_stream(device)).first->second;  // never returned
}

}  // namespace arrowdl::python
