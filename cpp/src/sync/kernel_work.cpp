// Runs the kernels of a device on a stream of arrowdl's.
#include "sync/kernel_work.hpp"

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "backends/host_access.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

KernelOps& find_or_refuse(const Device& device, const char* verb) {
  if (find_kernels(device) == nullptr) require_host_readable(device, verb);
  return require_kernels(device);
}

}  // namespace

KernelWork::KernelWork(const Device& device, const char* verb)
    : device_(device),
      kernels_(find_or_refuse(device, verb)),
      borrowed_(std::make_shared<BorrowedStream>(require_memory(device, verb), device)),
      work_(require_memory(device, verb), device, borrowed_->get(), borrowed_) {}

void KernelWork::use(std::shared_ptr<const void> owner, EventHandle event) {
  work_.hold(std::move(owner));
  wait_event(device_, work_.stream(), event);
}

std::shared_ptr<DeviceMemory> KernelWork::allocate_integers(int64_t count) {
  int64_t size = 0;
  if (!checked_multiply(count, int64_t{sizeof(int64_t)}, &size)) {
    throw Error(ErrorKind::kMemory, concat("cannot allocate ", count, " integers"));
  }
  return allocate(size);
}

int64_t KernelWork::upload(std::vector<int64_t> numbers) {
  const auto size = static_cast<int64_t>(numbers.size() * sizeof(int64_t));
  const std::shared_ptr<DeviceMemory> memory = allocate(size);
  const auto source = std::make_shared<std::vector<int64_t>>(std::move(numbers));
  work_.hold(source);
  work_.memory().copy(device_, memory->address(), Device{}, source->data(), size, stream());
  return to_address(memory->address());
}

std::vector<int64_t> KernelWork::read(const void* numbers, int64_t count) {
  const auto target = std::make_shared<std::vector<int64_t>>(static_cast<std::size_t>(count));
  work_.hold(target);
  const int64_t size = count * int64_t{sizeof(int64_t)};
  work_.memory().copy(Device{}, target->data(), device_, numbers, size, stream());
  work_.wait();
  return *target;
}

int64_t find_unit(const std::vector<int64_t>& numbers) noexcept {
  int64_t bits = 16;
  for (const int64_t number : numbers) bits |= number;
  return bits & -bits;
}

ARROWDL_END_NAMESPACE
