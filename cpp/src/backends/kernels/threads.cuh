// What all kernels share: the elements of a thread.
#pragma once

namespace {

__device__ long long first_element() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ long long stride() { return static_cast<long long>(gridDim.x) * blockDim.x; }

}  // namespace
