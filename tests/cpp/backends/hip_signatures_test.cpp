// Compares the declarations of hip.cpp with HIP's header, if CMake finds ROCm.
#include <gtest/gtest.h>

#ifdef HAS_HIP_H
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include "support/signatures.hpp"

namespace {

EXPECT_MATCH(hipInit, unsigned);
EXPECT_MATCH(hipRuntimeGetVersion, int*);
EXPECT_MATCH(hipGetDeviceCount, int*);
EXPECT_MATCH(hipGetDevice, int*);
EXPECT_MATCH(hipSetDevice, int);
EXPECT_MATCH(hipThreadExchangeStreamCaptureMode, int*);
EXPECT_MATCH(hipEventCreateWithFlags, void**, unsigned);
EXPECT_MATCH(hipEventRecord, void*, void*);
EXPECT_MATCH(hipEventQuery, void*);
EXPECT_MATCH(hipEventSynchronize, void*);
EXPECT_MATCH(hipEventDestroy, void*);
EXPECT_MATCH(hipStreamCreateWithFlags, void**, unsigned);
EXPECT_MATCH(hipStreamWaitEvent, void*, void*, unsigned);
EXPECT_MATCH(hipStreamQuery, void*);
EXPECT_MATCH(hipStreamSynchronize, void*);
EXPECT_MATCH(hipStreamDestroy, void*);
EXPECT_MATCH(hipStreamIsCapturing, void*, int*);
EXPECT_MATCH(hipFreeAsync, void*, void*);
EXPECT_MATCH(hipFree, void*);
EXPECT_MATCH(hipHostFree, void*);
EXPECT_MATCH(hipMemcpyAsync, void*, const void*, std::size_t, int, void*);
EXPECT_MATCH(hipPointerGetAttribute, void*, int, const void*);
// Templates of the header have these names too: the type picks the C function.
[[maybe_unused]] constexpr hipError_t (*kMalloc)(void**, std::size_t) = hipMalloc;
[[maybe_unused]] constexpr hipError_t (*kHostMalloc)(void**, std::size_t, unsigned) = hipHostMalloc;
[[maybe_unused]] constexpr hipError_t (*kAsync)(void**, std::size_t, hipStream_t) = hipMallocAsync;
[[maybe_unused]] constexpr const char* (*kErrorName)(hipError_t) = hipGetErrorName;
[[maybe_unused]] constexpr const char* (*kErrorString)(hipError_t) = hipGetErrorString;
[[maybe_unused]] constexpr hipError_t (*kLastError)() = hipGetLastError;

static_assert(hipErrorOutOfMemory == 2 && hipErrorNoDevice == 100 && hipErrorInvalidDevice == 101 &&
              hipErrorNotReady == 600 && hipErrorNotSupported == 801 &&
              hipErrorStreamCaptureImplicit == 906);
static_assert(hipEventDisableTiming == 2 && hipStreamNonBlocking == 1 &&
              hipHostMallocPortable == 1 && hipMemcpyDefault == 4 &&
              hipStreamCaptureModeRelaxed == 2 && hipStreamCaptureStatusNone == 0 &&
              HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL == 9);

static_assert(hipMemAllocationTypePinned == 1 && hipMemLocationTypeDevice == 1 &&
              hipMemAccessFlagsProtReadWrite == 3 && sizeof(hipMemAccessDesc) == 12);

TEST(HipSignatures, AreThoseOfRocm) { SUCCEED() << "checked by the compiler"; }

}  // namespace

#else

TEST(HipSignatures, AreThoseOfRocm) { GTEST_SKIP() << "no hip_runtime_api.h here"; }

#endif
