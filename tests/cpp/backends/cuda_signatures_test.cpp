// Compares the declarations of cuda.cpp with cuda.h, if CMake finds a toolkit.
#include <gtest/gtest.h>

#ifdef HAS_CUDA_H
#include <cuda.h>

#include <cstddef>

#include "support/signatures.hpp"

namespace {

// cuda.h's macros turn the plain names into those with a version, as cuda.cpp has them.
EXPECT_MATCH(cuInit, unsigned);
EXPECT_MATCH(cuDriverGetVersion, int*);
EXPECT_MATCH(cuDeviceGetCount, int*);
EXPECT_MATCH(cuDeviceGet, int*, int);
EXPECT_MATCH(cuDevicePrimaryCtxRetain, void**, int);
EXPECT_MATCH(cuCtxPushCurrent, void*);
EXPECT_MATCH(cuCtxPopCurrent, void**);
EXPECT_MATCH(cuThreadExchangeStreamCaptureMode, int*);
EXPECT_MATCH(cuEventCreate, void**, unsigned);
EXPECT_MATCH(cuEventRecord, void*, void*);
EXPECT_MATCH(cuEventQuery, void*);
EXPECT_MATCH(cuEventSynchronize, void*);
EXPECT_MATCH(cuEventDestroy, void*);
EXPECT_MATCH(cuStreamCreate, void**, unsigned);
EXPECT_MATCH(cuStreamWaitEvent, void*, void*, unsigned);
EXPECT_MATCH(cuStreamGetCtx, void*, void**);
#if CUDA_VERSION >= 12050
EXPECT_MATCH(cuStreamGetCtx_v2, void*, void**, void**);
#endif
EXPECT_MATCH(cuStreamQuery, void*);
EXPECT_MATCH(cuStreamSynchronize, void*);
EXPECT_MATCH(cuStreamDestroy, void*);
EXPECT_MATCH(cuStreamIsCapturing, void*, int*);
EXPECT_MATCH(cuMemAllocAsync, void**, std::size_t, void*);
EXPECT_MATCH(cuMemFreeAsync, void*, void*);
EXPECT_MATCH(cuMemAlloc, void**, std::size_t);
EXPECT_MATCH(cuMemFree, void*);
EXPECT_MATCH(cuMemHostAlloc, void**, std::size_t, unsigned);
EXPECT_MATCH(cuMemFreeHost, void*);
EXPECT_MATCH(cuMemAllocManaged, void**, std::size_t, unsigned);
EXPECT_MATCH(cuMemcpyAsync, void*, const void*, std::size_t, void*);
EXPECT_MATCH(cuMemcpyPeerAsync, void*, void*, const void*, void*, std::size_t, void*);
EXPECT_MATCH(cuCtxGetDevice, int*);
EXPECT_MATCH(cuDeviceGetAttribute, int*, int, int);
EXPECT_MATCH(cuDeviceCanAccessPeer, int*, int, int);
EXPECT_MATCH(cuMemPoolCreate, void**, const void*);
EXPECT_MATCH(cuMemPoolSetAttribute, void*, int, void*);
EXPECT_MATCH(cuMemPoolSetAccess, void*, const void*, std::size_t);
EXPECT_MATCH(cuMemGetAccess, unsigned long long*, const void*, const void*);
EXPECT_MATCH(cuMemPoolGetAccess, int*, void*, const void*);
EXPECT_MATCH(cuMemPoolTrimTo, void*, std::size_t);
EXPECT_MATCH(cuMemAllocFromPoolAsync, void**, std::size_t, void*, void*);
EXPECT_MATCH(cuPointerGetAttribute, void*, int, const void*);
EXPECT_MATCH(cuModuleLoadData, void**, const void*);
EXPECT_MATCH(cuModuleGetFunction, void**, void*, const char*);
EXPECT_MATCH(cuLaunchKernel, void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
             unsigned, void*, void**, void**);
EXPECT_MATCH(cuGetErrorName, int, const char**);
EXPECT_MATCH(cuGetErrorString, int, const char**);

static_assert(CUDA_ERROR_OUT_OF_MEMORY == 2 && CUDA_ERROR_NO_DEVICE == 100 &&
              CUDA_ERROR_NOT_READY == 600 && CUDA_ERROR_NOT_SUPPORTED == 801 &&
              CUDA_ERROR_STREAM_CAPTURE_IMPLICIT == 906);
static_assert(CU_EVENT_DISABLE_TIMING == 2 && CU_STREAM_NON_BLOCKING == 1 &&
              CU_MEMHOSTALLOC_PORTABLE == 1 && CU_MEM_ATTACH_GLOBAL == 1 &&
              CU_STREAM_CAPTURE_MODE_RELAXED == 2 && CU_STREAM_CAPTURE_STATUS_NONE == 0);
static_assert(CU_POINTER_ATTRIBUTE_MEMORY_TYPE == 2 && CU_POINTER_ATTRIBUTE_IS_MANAGED == 8 &&
              CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL == 9 && CU_MEMORYTYPE_HOST == 1);

static_assert(CU_POINTER_ATTRIBUTE_BUFFER_ID == 7);
#if CUDA_VERSION >= 12020
static_assert(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID == 134);
#endif
static_assert(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE == 17 &&
              CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS == 89 &&
              CU_MEMPOOL_ATTR_RELEASE_THRESHOLD == 4 && CU_MEM_ALLOCATION_TYPE_PINNED == 1 &&
              CU_MEM_LOCATION_TYPE_DEVICE == 1 && CU_MEM_ACCESS_FLAGS_PROT_READWRITE == 3 &&
              sizeof(CUmemPoolProps) == 88 && sizeof(CUmemAccessDesc) == 12);
static_assert(CUDA_ERROR_INVALID_IMAGE == 200 && CUDA_ERROR_NO_BINARY_FOR_GPU == 209 &&
              CUDA_ERROR_INVALID_PTX == 218 && CUDA_ERROR_JIT_COMPILER_NOT_FOUND == 221 &&
              CUDA_ERROR_UNSUPPORTED_PTX_VERSION == 222 &&
              CUDA_ERROR_JIT_COMPILATION_DISABLED == 223 && CUDA_ERROR_INVALID_SOURCE == 300 &&
              CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND == 302 &&
              CUDA_ERROR_SHARED_OBJECT_INIT_FAILED == 303);

TEST(CudaSignatures, AreThoseOfTheToolkit) { SUCCEED() << "checked by the compiler"; }

}  // namespace

#else

TEST(CudaSignatures, AreThoseOfTheToolkit) { GTEST_SKIP() << "no cuda.h here"; }

#endif
