// Takes host memory that a device writes from the pinned blocks.
#include "copy/host_block.hpp"

#include <utility>

#include "arrowdl/owned.hpp"
#include "copy/staging_pool.hpp"

ARROWDL_BEGIN_NAMESPACE

HostBlock::HostBlock(StreamWork& work, const Device& from, int64_t size) : size_(size) {
  std::shared_ptr<const void> owner;
  const std::optional<Device> pinned = work.memory().find_pinned(from);
  if (pinned && size <= StagingPool::kMaxBlock) {
    if (std::shared_ptr<uint8_t> block = StagingPool::get().take(work.memory(), *pinned, size)) {
      device_ = *pinned;
      address_ = block.get();
      owner = std::move(block);
    }
  }
  if (owner == nullptr) owner = Buffer::allocate(size, &address_).owner();
  work.hold(std::move(owner));
}

ARROWDL_END_NAMESPACE
