// Names, versions and element types of `__cuda_array_interface__` and
// `__sycl_usm_array_interface__`. Sources: "CUDA Array Interface (Version 3)" of Numba's
// documentation, "__sycl_usm_array_interface__" of dpctl's; for typestr numpy's array interface.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "arrowdl/dtype.hpp"

namespace arrowdl::python {

constexpr const char* kCuda = "__cuda_array_interface__";
constexpr const char* kSycl = "__sycl_usm_array_interface__";
constexpr int64_t kCudaVersion = 3;
constexpr int64_t kSyclVersion = 1;

constexpr const char* kSupportedTypes =
    "supported are |b1, <i and <u of 1 to 8 bytes, <f of 2 to 8 and <c of 8 and 16";

/// The unit of strides: bytes in CUDA's interface, elements in SYCL's.
enum class StrideUnit { kBytes, kElements };

/// The dtype of a typestr such as "<f4", or nullptr. "|" means the native byte order, as dpctl
/// writes it.
const Dtype* find_dtype_of_typestr(std::string_view text);

/// "<f4" for float32. Raises BufferError for a type without a typestr.
std::string to_typestr(const Dtype& dtype);

}  // namespace arrowdl::python
