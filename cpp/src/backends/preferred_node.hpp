// Memory of this thread close to a device.
#pragma once

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// While it is in scope, the kernel takes new pages of this thread from a NUMA node, if that has
/// free ones and the user has chosen none, as numactl does. A negative `node` changes nothing.
class PreferredNode {
 public:
#if defined(__linux__)
  explicit PreferredNode(int node) noexcept {
    int before = kDefault;
    if (node < 0 || node >= kNodes || syscall(SYS_get_mempolicy, &before, nullptr, 0, nullptr, 0) ||
        before != kDefault) {
      return;
    }
    unsigned long mask[kNodes / kBits] = {};
    mask[node / kBits] = 1UL << (node % kBits);
    is_set_ = syscall(SYS_set_mempolicy, kPreferred, mask, kNodes + 1) == 0;
  }
  ~PreferredNode() {
    if (is_set_) syscall(SYS_set_mempolicy, kDefault, nullptr, 0);
  }
#else
  explicit PreferredNode(int) noexcept {}
#endif
  PreferredNode(const PreferredNode&) = delete;
  PreferredNode& operator=(const PreferredNode&) = delete;

 private:
  static constexpr int kDefault = 0;  // of linux/mempolicy.h, as kPreferred
  static constexpr int kPreferred = 1;
  static constexpr int kNodes = 1024;
  static constexpr int kBits = 8 * sizeof(unsigned long);
  bool is_set_ = false;
};

ARROWDL_END_NAMESPACE
