// The device table.
#include "arrowdl/device.hpp"

#include <cstddef>
#include <iterator>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

// Source: dlpack.h, DLDeviceType; Arrow "C Device Data Interface", device types and the table of
// event types. Those from MAIA on have no Arrow macro yet and keep DLPack's number. 19 to 21 are in
// dlpack.h after version 1.3 (pull request 189), which the build does not need.
constexpr const char* kProducerDefined = "producer-defined";
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
    {kDLExtDev, "ext_dev", kProducerDefined, false, false},
    {kDLCUDAManaged, "cuda_managed", "cudaEvent_t*", true, false},
    {kDLOneAPI, "oneapi", "sycl::event*", false, false},
    {kDLWebGPU, "webgpu", nullptr, false, true},
    {kDLHexagon, "hexagon", nullptr, false, false},
    {kDLMAIA, "maia", nullptr, false, false},
    {kDLTrn, "trainium", nullptr, false, false},
    {19, "tpu", kProducerDefined, false, true},
    {20, "tpu_host", kProducerDefined, false, false},
    {21, "ascend", kProducerDefined, false, false},
};

static_assert(kDLCPU == ARROW_DEVICE_CPU && kDLCUDA == ARROW_DEVICE_CUDA &&
                  kDLCUDAHost == ARROW_DEVICE_CUDA_HOST && kDLOpenCL == ARROW_DEVICE_OPENCL &&
                  kDLVulkan == ARROW_DEVICE_VULKAN && kDLMetal == ARROW_DEVICE_METAL &&
                  kDLVPI == ARROW_DEVICE_VPI && kDLROCM == ARROW_DEVICE_ROCM &&
                  kDLROCMHost == ARROW_DEVICE_ROCM_HOST && kDLExtDev == ARROW_DEVICE_EXT_DEV &&
                  kDLCUDAManaged == ARROW_DEVICE_CUDA_MANAGED && kDLOneAPI == ARROW_DEVICE_ONEAPI &&
                  kDLWebGPU == ARROW_DEVICE_WEBGPU && kDLHexagon == ARROW_DEVICE_HEXAGON,
              "one number means one device on both sides");

Device make_device(int32_t type, int64_t id) {
  if (type < 1) {
    raise_value_error("device type ", type, " is unknown: DLPack and Arrow count from 1");
  }
  return Device{type, type == kDLCPU ? 0 : id};
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

std::string device_type_name(int32_t type) {
  const DeviceType* row = find_device_type(type);
  return row == nullptr ? concat("device type ", type) : row->name;
}

const char* device_event_type(int32_t type) noexcept {
  const DeviceType* row = find_device_type(type);
  return row == nullptr ? kProducerDefined : row->event_type;
}

std::string to_string(const Device& device) {
  return concat(device_type_name(device.type), ":", device.id);
}

bool is_pointer_handle(const Device& device) noexcept {
  const DeviceType* row = find_device_type(device.type);
  return row == nullptr || row->pointer_is_handle;
}

Device from_dl_device(DLDevice device) { return make_device(device.device_type, device.device_id); }

Device from_arrow_device(ArrowDeviceType type, int64_t id) { return make_device(type, id); }

DLDevice to_dl_device(const Device& device) {
  if (device.id != static_cast<int32_t>(device.id)) {
    raise_buffer_error("device id ", device.id, " does not fit DLPack's 32 bits");
  }
  return DLDevice{static_cast<DLDeviceType>(device.type), static_cast<int32_t>(device.id)};
}

int64_t to_arrow_device_id(const Device& device) noexcept {
  return device.type == kDLCPU ? -1 : device.id;
}

ARROWDL_END_NAMESPACE
