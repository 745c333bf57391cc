// Preloaded into a Python process: makes an allocation of the extension fail, or a thread of it.
//
// Counted are operator new and the C functions where code of the extension calls them, itself or by
// way of libstdc++. It ignores what other libraries allocate for themselves.
#include <dlfcn.h>
#include <pthread.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool has(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return begin <= at && at < end;
  }
};

Range extension;
Range runtime;  // libstdc++
std::atomic<long> count{0};
std::atomic<long> first{0};
std::atomic<long> last{0};
std::atomic<long> largest{0};
std::atomic<bool> fails_threads{false};
thread_local bool is_inside = false;

_Unwind_Reason_Code find_caller(_Unwind_Context* context, void* found) {
  auto* const address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  static const Range own = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&find_caller), &info);
    const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    return Range{base, base + 0x10000};
  }();
  if (own.has(address) || runtime.has(address)) return _URC_NO_REASON;
  *static_cast<const void**>(found) = address;
  return _URC_END_OF_STACK;
}

bool is_ours(const void* caller) {
  if (extension.has(caller)) return true;
  if (!runtime.has(caller)) return false;
  is_inside = true;  // unwinding may allocate
  _Unwind_Backtrace(find_caller, &caller);
  is_inside = false;
  return extension.has(caller);
}

bool fails(const void* caller, std::size_t size) {
  if (first.load(std::memory_order_relaxed) == 0 || is_inside || !is_ours(caller)) return false;
  const long number = ++count;
  if (number < first || number > last) return false;
  if (static_cast<long>(size) > largest) largest = static_cast<long>(size);
  return true;
}

template <typename T>
T next(const char* name) {
  return reinterpret_cast<T>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define CALLER __builtin_return_address(0)

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

/// Where the two libraries lie.
void shim_watch(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t runtime_begin,
                std::uintptr_t runtime_end) {
  extension = {begin, end};
  runtime = {runtime_begin, runtime_end};
}

/// From the `n`th allocation on `failures` of them fail.
void shim_fail(long n, long failures) {
  count = 0;
  largest = 0;
  last = n + failures - 1;
  first = n;
}

/// No more. The allocations since, those that failed among them.
long shim_stop() {
  first = 0;
  return count;
}

void shim_fail_threads(int fails) { fails_threads = fails != 0; }

void* malloc(std::size_t size) {
  if (fails(CALLER, size)) return errno = ENOMEM, nullptr;
  return __libc_malloc(size);
}

void* calloc(std::size_t number, std::size_t size) {
  if (fails(CALLER, number * size)) return errno = ENOMEM, nullptr;
  return __libc_calloc(number, size);
}

void* realloc(void* block, std::size_t size) {
  if (fails(CALLER, size)) return errno = ENOMEM, nullptr;
  return __libc_realloc(block, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  if (fails(CALLER, size)) return errno = ENOMEM, nullptr;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  if (fails(CALLER, size)) return ENOMEM;
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  if (fails_threads && is_ours(CALLER)) return EAGAIN;
  static const auto create = next<decltype(&pthread_create)>("pthread_create");
  return create(thread, attributes, run, argument);
}

}  // extern "C"

namespace {

void* allocate(std::size_t size, std::size_t alignment, const void* caller) {
  if (fails(caller, size)) return nullptr;
  if (size == 0) size = 1;
  return alignment == 0 ? __libc_malloc(size) : __libc_memalign(alignment, size);
}

void* require(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

void* operator new(size_t size) { return require(allocate(size, 0, CALLER)); }
void* operator new[](size_t size) { return require(allocate(size, 0, CALLER)); }
void* operator new(size_t size, align_val_t alignment) {
  return require(allocate(size, static_cast<size_t>(alignment), CALLER));
}
void* operator new[](size_t size, align_val_t alignment) {
  return require(allocate(size, static_cast<size_t>(alignment), CALLER));
}
void* operator new(size_t size, const nothrow_t&) noexcept { return allocate(size, 0, CALLER); }
void* operator new[](size_t size, const nothrow_t&) noexcept { return allocate(size, 0, CALLER); }
void* operator new(size_t size, align_val_t alignment, const nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(alignment), CALLER);
}
void* operator new[](size_t size, align_val_t alignment, const nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(alignment), CALLER);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, align_val_t) noexcept { std::free(block); }
void operator delete(void* block, size_t, align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t, align_val_t) noexcept { std::free(block); }
