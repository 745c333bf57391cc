// The device table.
#include "arrowdl/device.hpp"

#include <cstddef>
#include <iterator>

#include "arrowdl/error.hpp"

namespace arrowdl {
namespace {

// Source: dlpack.h, DLDeviceType; Arrow "C Device Data Interface", device types and the table of
// event types. MAIA and Trainium have no Arrow macro yet and keep DLPack's number.
constexpr DeviceType kDeviceTypes[] = {
    {kDLCPU, "cpu", nullptr, true, false},
    {kDLCUDA, "cuda", "cudaEvent_t*", false, false},
    {kDLCUDAHost, "cuda_host", "cudaEvent_t*", true, false},
    {kDLOpenCL, "opencl", "cl_event*", false, true},
    {kDLVulkan, "vulkan", "VkEvent*", false, true},
    {kDLMetal, "metal", "MTLEvent*", false, true},
    {kDLVPI, "vpi", nullptr, false, false},
    {kDLROCM, "rocm", "hipEvent_t*", false, false},
    {kDLROCMHost, "rocm_host", "hipEvent_t*", true, false},
    {kDLExtDev, "ext_dev", "producer-defined", false, false},
    {kDLCUDAManaged, "cuda_managed", "cudaEvent_t*", true, false},
    {kDLOneAPI, "oneapi", "sycl::event*", false, false},
    {kDLWebGPU, "webgpu", nullptr, false, true},
    {kDLHexagon, "hexagon", nullptr, false, false},
    {kDLMAIA, "maia", nullptr, false, false},
    {kDLTrn, "trainium", nullptr, false, false},
};

static_assert(kDLCPU == ARROW_DEVICE_CPU && kDLCUDA == ARROW_DEVICE_CUDA &&
                  kDLCUDAHost == ARROW_DEVICE_CUDA_HOST && kDLOpenCL == ARROW_DEVICE_OPENCL &&
                  kDLVulkan == ARROW_DEVICE_VULKAN && kDLMetal == ARROW_DEVICE_METAL &&
                  kDLVPI == ARROW_DEVICE_VPI && kDLROCM == ARROW_DEVICE_ROCM &&
                  kDLROCMHost == ARROW_DEVICE_ROCM_HOST && kDLExtDev == ARROW_DEVICE_EXT_DEV &&
                  kDLCUDAManaged == ARROW_DEVICE_CUDA_MANAGED && kDLOneAPI == ARROW_DEVICE_ONEAPI &&
                  kDLWebGPU == ARROW_DEVICE_WEBGPU && kDLHexagon == ARROW_DEVICE_HEXAGON,
              "one number means one device on both sides");

const DeviceType& require_device_type(int32_t value) {
  const DeviceType* row = find_device_type(value);
  if (row == nullptr) {
    raise_value_error("device type ", value,
                      " is unknown: DLPack 1.3 and Arrow define 1-4 and 7-18");
  }
  return *row;
}

}  // namespace

const DeviceType* DeviceTypes::begin() const noexcept { return std::begin(kDeviceTypes); }

const DeviceType* DeviceTypes::end() const noexcept { return std::end(kDeviceTypes); }

const DeviceType* find_device_type(int32_t value) noexcept {
  for (const DeviceType& row : kDeviceTypes) {
    if (row.value == value) return &row;
  }
  return nullptr;
}

const DeviceType* find_device_type(const std::string& name) noexcept {
  for (const DeviceType& row : kDeviceTypes) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

std::string to_string(const Device& device) {
  const DeviceType* row = find_device_type(device.type);
  if (row == nullptr) return concat("device type ", device.type, ":", device.id);
  return concat(row->name, ":", device.id);
}

bool is_pointer_handle(const Device& device) noexcept {
  const DeviceType* row = find_device_type(device.type);
  return row != nullptr && row->pointer_is_handle;
}

Device from_dl_device(DLDevice device) {
  const DeviceType& row = require_device_type(device.device_type);
  return Device{row.value, row.value == kDLCPU ? 0 : device.device_id};
}

Device from_arrow_device(ArrowDeviceType type, int64_t id) {
  const DeviceType& row = require_device_type(type);
  return Device{row.value, row.value == kDLCPU ? 0 : id};
}

DLDevice to_dl_device(const Device& device) {
  if (device.id != static_cast<int32_t>(device.id)) {
    raise_buffer_error("device id ", device.id, " does not fit DLPack's 32 bits");
  }
  return DLDevice{static_cast<DLDeviceType>(device.type), static_cast<int32_t>(device.id)};
}

int64_t to_arrow_device_id(const Device& device) noexcept {
  return device.type == kDLCPU ? -1 : device.id;
}

}  // namespace arrowdl
