// Compares the declarations of opencl.cpp with CL/cl.h, if CMake finds it.
#include <gtest/gtest.h>

#ifdef HAS_OPENCL_H
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdint>

#include "support/signatures.hpp"

namespace {

EXPECT_MATCH(clGetPlatformIDs, unsigned, void**, unsigned*);
EXPECT_MATCH(clGetDeviceIDs, void*, uint64_t, unsigned, void**, unsigned*);
EXPECT_MATCH(clGetPlatformInfo, void*, unsigned, std::size_t, void*, std::size_t*);
EXPECT_MATCH(clGetContextInfo, void*, unsigned, std::size_t, void*, std::size_t*);
EXPECT_MATCH(clGetCommandQueueInfo, void*, unsigned, std::size_t, void*, std::size_t*);
EXPECT_MATCH(clGetEventInfo, void*, unsigned, std::size_t, void*, std::size_t*);
EXPECT_MATCH(clRetainCommandQueue, void*);
EXPECT_MATCH(clReleaseCommandQueue, void*);
EXPECT_MATCH(clFlush, void*);
EXPECT_MATCH(clEnqueueMarkerWithWaitList, void*, unsigned, void* const*, void**);
EXPECT_MATCH(clEnqueueBarrierWithWaitList, void*, unsigned, void* const*, void**);
EXPECT_MATCH(clWaitForEvents, unsigned, void* const*);
EXPECT_MATCH(clReleaseEvent, void*);
static_assert(std::is_same_v<decltype(clCreateCommandQueue),
                             cl_command_queue(cl_context, cl_device_id, cl_ulong, cl_int*)>);

static_assert(CL_PLATFORM_VERSION == 0x0901 && CL_DEVICE_TYPE_ALL == 0xFFFFFFFF &&
              CL_CONTEXT_DEVICES == 0x1081 && CL_QUEUE_CONTEXT == 0x1090 &&
              CL_EVENT_COMMAND_QUEUE == 0x11D0 && CL_EVENT_COMMAND_EXECUTION_STATUS == 0x11D3 &&
              CL_EVENT_CONTEXT == 0x11D4 && CL_COMPLETE == 0 && CL_QUEUED == 3 &&
              CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST == -14);

TEST(OpenClSignatures, AreThoseOfTheHeader) { SUCCEED() << "checked by the compiler"; }

}  // namespace

#else

TEST(OpenClSignatures, AreThoseOfTheHeader) { GTEST_SKIP() << "no CL/cl.h here"; }

#endif
