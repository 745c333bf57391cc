// Opens the device runtimes as backends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/backend.hpp"
#include "backends/dynamic_library.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The backend of CUDA, owned by the caller; nullptr, with the reason in `*why_not`, if it cannot
/// be opened.
Backend* open_cuda(std::string* why_not);

/// The same for the first of `library_names` that can be loaded.
Backend* open_cuda(const std::vector<const char*>& library_names, std::string* why_not);

/// The id of this thread's current device, asked of the loaded `library`, which is not started.
std::optional<int64_t> find_current_cuda(const DynamicLibrary& library);

/// The backend of HIP, owned by the caller; nullptr, with the reason in `*why_not`, if it cannot be
/// opened.
Backend* open_hip(std::string* why_not);

/// The same for the first of `library_names` that can be loaded.
Backend* open_hip(const std::vector<const char*>& library_names, std::string* why_not);

/// The id of this thread's current device, asked of the loaded `library`, which is not started.
std::optional<int64_t> find_current_hip(const DynamicLibrary& library);

/// The backend of SYCL, owned by the caller; nullptr, with the reason in `*why_not`, if it cannot
/// be opened.
Backend* open_oneapi(std::string* why_not);

/// The backend of OpenCL, owned by the caller; nullptr, with the reason in `*why_not`, if it cannot
/// be opened.
Backend* open_opencl(std::string* why_not);

ARROWDL_END_NAMESPACE
