// The names of OpenCL's status codes.
#include "backends/opencl_status.hpp"

#include <algorithm>
#include <iterator>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

struct Status {
  int code;
  const char* name;
};

// Source: OpenCL API specification 3.0, appendix "Error Codes"; cl_khr_icd.
constexpr Status kStatuses[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-8, "CL_MEM_COPY_OVERLAP"},
    {-9, "CL_IMAGE_FORMAT_MISMATCH"},
    {-10, "CL_IMAGE_FORMAT_NOT_SUPPORTED"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE"},
    {-16, "CL_LINKER_NOT_AVAILABLE"},
    {-17, "CL_LINK_PROGRAM_FAILURE"},
    {-18, "CL_DEVICE_PARTITION_FAILED"},
    {-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-48, "CL_INVALID_KERNEL"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

constexpr bool is_descending() {
  for (std::size_t i = 1; i < std::size(kStatuses); ++i) {
    if (kStatuses[i].code >= kStatuses[i - 1].code) return false;
  }
  return true;
}
static_assert(is_descending(), "every status stands here once");

}  // namespace

std::string describe_opencl_status(int status) {
  const auto* const found = std::find_if(std::begin(kStatuses), std::end(kStatuses),
                                         [&](const Status& row) { return row.code == status; });
  if (found == std::end(kStatuses)) return concat("status ", status);
  return concat(found->name, " (", status, ")");
}

ARROWDL_END_NAMESPACE
