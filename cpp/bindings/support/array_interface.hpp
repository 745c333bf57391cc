// What `__cuda_array_interface__` and `__sycl_usm_array_interface__` have in common: names,
// versions and element types. Sources: "CUDA Array Interface (Version 3)" of Numba's documentation,
// "__sycl_usm_array_interface__" of dpctl's; for typestr numpy's array interface.
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

/// What strides count: bytes in CUDA's interface, elements in SYCL's.
enum class StrideUnit { kBytes, kElements };

/// The type that is written like "<f4", or nullptr. The byte order may be missing, as dpctl's is:
/// it can only be the native one.
const Dtype* find_dtype_of_typestr(std::string_view text);

/// "<f4" for float32. Raises BufferError for a type without a typestr.
std::string to_typestr(const Dtype& dtype);

}  // namespace arrowdl::python
