// The numbers of std::mt19937_64, faster.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A std::mt19937_64 that makes all numbers of its state at once, without a branch for each.
class MersenneTwister {
 public:
  /// The state of std::mt19937_64(sequence) ([rand.eng.mers] of the C++ standard).
  explicit MersenneTwister(std::seed_seq& sequence);

  uint64_t operator()() noexcept {
    if (position_ == kSize) refill();
    return numbers_[position_++];
  }

 private:
  static constexpr std::size_t kSize = std::mt19937_64::state_size;

  void refill() noexcept;

  std::array<uint64_t, kSize> state_;
  std::array<uint64_t, kSize> numbers_;
  std::size_t position_ = kSize;
};

ARROWDL_END_NAMESPACE
