// The numbers of std::mt19937_64, faster.
#include "util/mersenne_twister.hpp"

#include <algorithm>

ARROWDL_BEGIN_NAMESPACE
namespace {

using Engine = std::mt19937_64;

constexpr uint64_t kLower = (uint64_t{1} << Engine::mask_bits) - 1;

/// The next state of an element, whose own state is `state`.
constexpr uint64_t twist(uint64_t state, uint64_t next, uint64_t far) noexcept {
  const uint64_t mixed = (state & ~kLower) | (next & kLower);
  return far ^ (mixed >> 1) ^ ((0 - (mixed & 1)) & Engine::xor_mask);
}

constexpr uint64_t temper(uint64_t x) noexcept {
  x ^= (x >> Engine::tempering_u) & Engine::tempering_d;
  x ^= (x << Engine::tempering_s) & Engine::tempering_b;
  x ^= (x << Engine::tempering_t) & Engine::tempering_c;
  return x ^ (x >> Engine::tempering_l);
}

}  // namespace

MersenneTwister::MersenneTwister(std::seed_seq& sequence) {
  std::array<uint32_t, 2 * kSize> words{};
  sequence.generate(words.begin(), words.end());
  for (std::size_t i = 0; i < kSize; ++i) {
    state_[i] = words[2 * i] | uint64_t{words[2 * i + 1]} << 32;
  }
  const bool is_zero = (state_[0] & ~kLower) == 0 && std::all_of(state_.begin() + 1, state_.end(),
                                                                 [](uint64_t x) { return x == 0; });
  if (is_zero) state_[0] = uint64_t{1} << 63;
}

void MersenneTwister::refill() noexcept {
  constexpr std::size_t kFar = Engine::shift_size;
  for (std::size_t i = 0; i < kSize - kFar; ++i) {
    state_[i] = twist(state_[i], state_[i + 1], state_[i + kFar]);
  }
  for (std::size_t i = kSize - kFar; i < kSize - 1; ++i) {
    state_[i] = twist(state_[i], state_[i + 1], state_[i + kFar - kSize]);
  }
  state_[kSize - 1] = twist(state_[kSize - 1], state_[0], state_[kFar - 1]);
  std::transform(state_.begin(), state_.end(), numbers_.begin(), temper);
  position_ = 0;
}

ARROWDL_END_NAMESPACE
