// The fake driver's device: the calls that CUDA and HIP share, under neutral names.
#pragma once

#include <cstddef>

namespace arrowdl::testing::fake {

// The drivers' numbers, the same in both.
enum Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kUnsupportedPtx = 222,
  kJitDisabled = 223,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureImplicit = 906,
};

// What CUmemPoolProps and CUmemAccessDesc, and HIP's, say of memory.
constexpr int kPinned = 1;
constexpr int kDeviceLocation = 1;
constexpr int kReadWrite = 3;

const char* name_of(int status) noexcept;

int init(unsigned flags);
int get_version(int* version, int value);
int count_devices(int* count);
int get_device(int* device, int ordinal);
int exchange_capture_mode(int* mode);

int retain_primary(void** context, int device);
int push_context(void* context);
int pop_context(void** context);
int get_current_device(int* device);
int set_current_device(int device);

int create_event(void** event, unsigned flags);
int record_event(void* event, void* stream);
int query_event(void* event);
int synchronize_event(void* event);
int destroy_event(void* event);

int create_stream(void** stream, unsigned flags);
int wait_for_event(void* stream, void* event, unsigned flags);
int query_stream(void* stream);
int synchronize_stream(void* stream);
int destroy_stream(void* stream);
int get_stream_context(void* stream, void** context);
int get_stream_contexts(void* stream, void** context, void** green);
int get_stream_device(void* stream, int* device);
int is_capturing(void* stream, int* status);

int allocate(void** memory, std::size_t size);
int free(void* memory);
int allocate_async(void** memory, std::size_t size, void* stream);
int free_async(void* memory, void* stream);
int allocate_host(void** memory, std::size_t size, unsigned flags);
int free_host(void* memory);
int allocate_managed(void** memory, std::size_t size, unsigned flags);
int copy_async(void* target, const void* source, std::size_t size, void* stream);
int get_pointer_attribute(void* value, int attribute, const void* memory);

int load_module(void** module, const void* image);
int find_kernel(void** kernel, void* module, const char* name);
/// Launches `blocks` times `threads` threads, in one dimension.
int launch_kernel(void* kernel, unsigned blocks, unsigned threads, void* stream, void** arguments);

int get_context_device(int* device);
int get_device_attribute(int* value, int attribute, int device);
int can_access_peer(int* can, int device, int peer);
int create_pool(void** pool, const void* properties);
int set_pool_attribute(void* pool, int attribute, void* value);
int set_pool_access(void* pool, const void* descriptions, std::size_t count);
int get_pool_access(int* flags, void* pool, const void* location);
int get_access(unsigned long long* flags, const void* location, const void* memory);
int trim_pool(void* pool, std::size_t keep);
int allocate_from_pool(void** memory, std::size_t size, void* pool, void* stream);
int copy_peer_async(void* target, void* target_context, const void* source, void* source_context,
                    std::size_t size, void* stream);

/// The last failed call's status on this thread, cleared: HIP's hipGetLastError.
int take_last_error();

}  // namespace arrowdl::testing::fake
