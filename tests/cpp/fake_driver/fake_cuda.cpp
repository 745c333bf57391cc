// The fake driver under the names of CUDA's.
#include <cstdint>

#include "calls.hpp"
#include "fake_driver.hpp"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake = arrowdl::testing::fake;

// Defined in the build of the library that imitates a driver before CUDA 10.
#ifndef FAKE_OLD_DRIVER
FAKE_EXPORT int cuStreamIsCapturing(void* s, int* status) { return fake::is_capturing(s, status); }
#endif

FAKE_EXPORT int cuInit(unsigned flags) { return fake::init(flags); }
FAKE_EXPORT int cuDriverGetVersion(int* version) { return fake::get_version(version, 12040); }
FAKE_EXPORT int cuDeviceGetCount(int* count) { return fake::count_devices(count); }
FAKE_EXPORT int cuDeviceGet(int* device, int i) { return fake::get_device(device, i); }
FAKE_EXPORT int cuThreadExchangeStreamCaptureMode(int* m) { return fake::exchange_capture_mode(m); }
FAKE_EXPORT int cuDevicePrimaryCtxRetain(void** c, int d) { return fake::retain_primary(c, d); }
FAKE_EXPORT int cuCtxPushCurrent_v2(void* context) { return fake::push_context(context); }
FAKE_EXPORT int cuCtxPopCurrent_v2(void** context) { return fake::pop_context(context); }

FAKE_EXPORT int cuEventCreate(void** event, unsigned f) { return fake::create_event(event, f); }
FAKE_EXPORT int cuEventRecord(void* event, void* s) { return fake::record_event(event, s); }
FAKE_EXPORT int cuEventQuery(void* event) { return fake::query_event(event); }
FAKE_EXPORT int cuEventSynchronize(void* event) { return fake::synchronize_event(event); }
FAKE_EXPORT int cuEventDestroy_v2(void* event) { return fake::destroy_event(event); }

FAKE_EXPORT int cuStreamCreate(void** stream, unsigned f) { return fake::create_stream(stream, f); }
FAKE_EXPORT int cuStreamGetCtx(void* s, void** c) { return fake::get_stream_context(s, c); }
FAKE_EXPORT int cuStreamGetCtx_v2(void* s, void** c, void** g) {
  return fake::get_stream_contexts(s, c, g);
}
FAKE_EXPORT int cuStreamWaitEvent(void* s, void* e, unsigned f) {
  return fake::wait_for_event(s, e, f);
}
FAKE_EXPORT int cuStreamQuery(void* stream) { return fake::query_stream(stream); }
FAKE_EXPORT int cuStreamSynchronize(void* stream) { return fake::synchronize_stream(stream); }
FAKE_EXPORT int cuStreamDestroy_v2(void* stream) { return fake::destroy_stream(stream); }

FAKE_EXPORT int cuMemAlloc_v2(void** memory, std::size_t n) { return fake::allocate(memory, n); }
FAKE_EXPORT int cuMemFree_v2(void* memory) { return fake::free(memory); }
FAKE_EXPORT int cuMemAllocAsync(void** memory, std::size_t n, void* s) {
  return fake::allocate_async(memory, n, s);
}
FAKE_EXPORT int cuMemFreeAsync(void* memory, void* s) { return fake::free_async(memory, s); }
FAKE_EXPORT int cuMemHostAlloc(void** memory, std::size_t n, unsigned f) {
  return fake::allocate_host(memory, n, f);
}
FAKE_EXPORT int cuMemFreeHost(void* memory) { return fake::free_host(memory); }
FAKE_EXPORT int cuMemAllocManaged(void** memory, std::size_t n, unsigned f) {
  return fake::allocate_managed(memory, n, f);
}
FAKE_EXPORT int cuMemcpyAsync(void* to, const void* from, std::size_t n, void* s) {
  return fake::copy_async(to, from, n, s);
}
FAKE_EXPORT int cuPointerGetAttribute(void* value, int attribute, const void* memory) {
  return fake::get_pointer_attribute(value, attribute, memory);
}

// Missing in a driver before CUDA 11.2, and not needed.
#ifndef FAKE_OLD_DRIVER
FAKE_EXPORT int cuMemPoolCreate(void** pool, const void* p) { return fake::create_pool(pool, p); }
FAKE_EXPORT int cuMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return fake::set_pool_attribute(pool, attribute, value);
}
FAKE_EXPORT int cuMemPoolSetAccess(void* pool, const void* descriptions, std::size_t n) {
  return fake::set_pool_access(pool, descriptions, n);
}
FAKE_EXPORT int cuMemGetAccess(unsigned long long* flags, const void* location, const void* p) {
  return fake::get_access(flags, location, p);
}
FAKE_EXPORT int cuMemPoolGetAccess(int* flags, void* pool, const void* location) {
  return fake::get_pool_access(flags, pool, location);
}
FAKE_EXPORT int cuMemPoolTrimTo(void* pool, std::size_t n) { return fake::trim_pool(pool, n); }
FAKE_EXPORT int cuMemAllocFromPoolAsync(void** memory, std::size_t n, void* pool, void* s) {
  return fake::allocate_from_pool(memory, n, pool, s);
}
#endif
FAKE_EXPORT int cuCtxGetDevice(int* device) { return fake::get_context_device(device); }
FAKE_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return fake::get_device_attribute(value, attribute, device);
}
FAKE_EXPORT int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  return fake::can_access_peer(can, device, peer);
}
FAKE_EXPORT int cuMemcpyPeerAsync(void* to, void* to_context, const void* from, void* from_context,
                                  std::size_t n, void* s) {
  return fake::copy_peer_async(to, to_context, from, from_context, n, s);
}

FAKE_EXPORT int cuModuleLoadData(void** module, const void* image) {
  return fake::load_module(module, image);
}
FAKE_EXPORT int cuModuleGetFunction(void** kernel, void* module, const char* name) {
  return fake::find_kernel(kernel, module, name);
}
FAKE_EXPORT int cuLaunchKernel(void* kernel, unsigned x, unsigned y, unsigned z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned, void* s,
                               void** arguments, void**) {
  if (y * z * block_y * block_z != 1) return fake::kInvalidValue;
  return fake::launch_kernel(kernel, x, block_x, s, arguments);
}

FAKE_EXPORT int cuGetErrorName(int status, const char** name) {
  *name = fake::name_of(status);
  return fake::kSuccess;
}
FAKE_EXPORT int cuGetErrorString(int, const char** text) {
  *text = "so says the fake driver";
  return fake::kSuccess;
}
