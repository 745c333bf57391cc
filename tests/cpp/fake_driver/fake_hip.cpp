// The fake driver under the names of HIP.
#include <cstdint>

#include "calls.hpp"
#include "fake_driver.hpp"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake = arrowdl::testing::fake;

FAKE_EXPORT int hipInit(unsigned flags) { return fake::init(flags); }
FAKE_EXPORT int hipRuntimeGetVersion(int* v) { return fake::get_version(v, 60032830); }
FAKE_EXPORT int hipGetDeviceCount(int* count) { return fake::count_devices(count); }
FAKE_EXPORT int hipGetDevice(int* device) { return fake::get_current_device(device); }
FAKE_EXPORT int hipSetDevice(int device) { return fake::set_current_device(device); }
FAKE_EXPORT int hipGetLastError() { return fake::take_last_error(); }
FAKE_EXPORT int hipThreadExchangeStreamCaptureMode(int* mode) {
  return fake::exchange_capture_mode(mode);
}

FAKE_EXPORT int hipEventCreateWithFlags(void** e, unsigned f) { return fake::create_event(e, f); }
FAKE_EXPORT int hipEventRecord(void* event, void* s) { return fake::record_event(event, s); }
FAKE_EXPORT int hipEventQuery(void* event) { return fake::query_event(event); }
FAKE_EXPORT int hipEventSynchronize(void* event) { return fake::synchronize_event(event); }
FAKE_EXPORT int hipEventDestroy(void* event) { return fake::destroy_event(event); }

FAKE_EXPORT int hipStreamCreateWithFlags(void** s, unsigned f) { return fake::create_stream(s, f); }
FAKE_EXPORT int hipStreamWaitEvent(void* s, void* e, unsigned f) {
  return fake::wait_for_event(s, e, f);
}
FAKE_EXPORT int hipStreamQuery(void* stream) { return fake::query_stream(stream); }
FAKE_EXPORT int hipStreamSynchronize(void* stream) { return fake::synchronize_stream(stream); }
FAKE_EXPORT int hipStreamDestroy(void* stream) { return fake::destroy_stream(stream); }
FAKE_EXPORT int hipStreamGetDevice(void* s, int* d) { return fake::get_stream_device(s, d); }
FAKE_EXPORT int hipStreamIsCapturing(void* s, int* status) { return fake::is_capturing(s, status); }

FAKE_EXPORT int hipMalloc(void** memory, std::size_t n) { return fake::allocate(memory, n); }
FAKE_EXPORT int hipFree(void* memory) { return fake::free(memory); }
FAKE_EXPORT int hipMallocAsync(void** memory, std::size_t n, void* s) {
  return fake::allocate_async(memory, n, s);
}
FAKE_EXPORT int hipFreeAsync(void* memory, void* s) { return fake::free_async(memory, s); }
FAKE_EXPORT int hipHostMalloc(void** memory, std::size_t n, unsigned f) {
  return fake::allocate_host(memory, n, f);
}
FAKE_EXPORT int hipHostFree(void* memory) { return fake::free_host(memory); }
FAKE_EXPORT int hipMemcpyAsync(void* to, const void* from, std::size_t n, int kind, void* s) {
  const int kByAddress = 4;
  return kind == kByAddress ? fake::copy_async(to, from, n, s) : fake::kInvalidValue;
}
FAKE_EXPORT int hipPointerGetAttribute(void* value, int attribute, const void* memory) {
  return fake::get_pointer_attribute(value, attribute, memory);
}

FAKE_EXPORT int hipMemPoolCreate(void** pool, const void* p) { return fake::create_pool(pool, p); }
FAKE_EXPORT int hipMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return fake::set_pool_attribute(pool, attribute, value);
}
FAKE_EXPORT int hipMemPoolSetAccess(void* pool, const void* descriptions, std::size_t n) {
  return fake::set_pool_access(pool, descriptions, n);
}
FAKE_EXPORT int hipMemPoolTrimTo(void* pool, std::size_t n) { return fake::trim_pool(pool, n); }
FAKE_EXPORT int hipMallocFromPoolAsync(void** memory, std::size_t n, void* pool, void* s) {
  return fake::allocate_from_pool(memory, n, pool, s);
}
FAKE_EXPORT int hipDeviceCanAccessPeer(int* can, int device, int peer) {
  return fake::can_access_peer(can, device, peer);
}
FAKE_EXPORT int hipModuleLoadData(void** module, const void* image) {
  return fake::load_module(module, image);
}
FAKE_EXPORT int hipModuleGetFunction(void** kernel, void* module, const char* name) {
  return fake::find_kernel(kernel, module, name);
}
FAKE_EXPORT int hipModuleLaunchKernel(void* kernel, unsigned x, unsigned y, unsigned z,
                                      unsigned block_x, unsigned block_y, unsigned block_z,
                                      unsigned shared, void* s, void** arguments, void** extra) {
  if (y * z * block_y * block_z != 1 || shared != 0 || extra != nullptr) {
    return fake::kInvalidValue;
  }
  return fake::launch_kernel(kernel, x, block_x, s, arguments);
}

FAKE_EXPORT const char* hipGetErrorName(int status) { return fake::name_of(status); }
FAKE_EXPORT const char* hipGetErrorString(int) { return "so says the fake driver"; }
