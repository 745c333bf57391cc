// Devices, numbered as DLPack and Arrow do.
#pragma once

#include <cstdint>
#include <string>

#include "arrowdl/dlpack.hpp"
#include "arrowdl/namespace.hpp"
#include "nanoarrow/nanoarrow_device.h"

ARROWDL_BEGIN_NAMESPACE

/// The device of some memory. `type` is a DLDeviceType, which is also the ArrowDeviceType of that
/// number, also one that no row of the table has: arrays of such a type are passed on unread. `id`
/// is DLPack's (0 for the CPU; Arrow's is -1).
struct Device {
  int32_t type = kDLCPU;
  int64_t id = 0;

  friend bool operator==(const Device& a, const Device& b) {
    return a.type == b.type && a.id == b.id;
  }
  friend bool operator!=(const Device& a, const Device& b) { return !(a == b); }
};

/// One row of the device table: the facts about a device type.
struct DeviceType {
  int32_t value;           ///< DLDeviceType and ArrowDeviceType
  const char* name;        ///< lower case, e.g. "cuda_host"
  const char* event_type;  ///< what ArrowDeviceArray.sync_event points to; nullptr: always NULL
  bool host_readable;      ///< whether the CPU may read the memory (see `is_host_readable`)
  bool pointer_is_handle;  ///< data pointers are opaque handles, without arithmetic
};

/// The row of `value`, or nullptr for a number that no version of the two specifications defines.
const DeviceType* find_device_type(int32_t value) noexcept;

/// The row named `name`, or nullptr.
const DeviceType* find_device_type(const std::string& name) noexcept;

/// All rows, in the order of their numbers.
struct DeviceTypes {
  const DeviceType* begin() const noexcept;
  const DeviceType* end() const noexcept;
};

/// "cuda", or "device type 99" for a number without a row.
std::string device_type_name(int32_t type);

/// What ArrowDeviceArray.sync_event points to on devices of `type`; nullptr: it is always NULL. A
/// number without a row may have events, of which only their producer knows.
const char* device_event_type(int32_t type) noexcept;

/// "cpu:0", "cuda:1", or "device type 99:0" for a number without a row.
std::string to_string(const Device& device);

/// Whether the CPU may read memory on `device`, once its event is complete. The runtime knows this
/// for managed memory: where a GPU has no concurrent access to it (Windows, WSL2, some Tegra), the
/// CPU may not touch it while any work runs. Source: CUDA driver API, device attribute 89.
bool is_host_readable(const Device& device) noexcept;

/// Whether data pointers on `device` are, or may be, opaque handles (OpenCL's cl_mem), with no
/// arithmetic.
bool is_pointer_handle(const Device& device) noexcept;

/// A DLPack device as a Device. Raises ValueError for a type below 1. Any CPU id is the one CPU.
Device from_dl_device(DLDevice device);

/// An Arrow device as a Device. Raises ValueError for a type below 1. CPU ids -1 and 0 are one.
Device from_arrow_device(ArrowDeviceType type, int64_t id);

/// `device` as DLPack writes it.
DLDevice to_dl_device(const Device& device);

/// `device`'s id as Arrow writes it: -1 for the CPU.
int64_t to_arrow_device_id(const Device& device) noexcept;

ARROWDL_END_NAMESPACE
