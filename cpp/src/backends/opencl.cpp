#include "registry.hpp"

namespace arrowdl {

Backend* open_opencl(std::string* why_not) {
  *why_not = "arrowdl has no backend for OpenCL yet: synchronize the data in its own library first";
  return nullptr;
}

}  // namespace arrowdl
