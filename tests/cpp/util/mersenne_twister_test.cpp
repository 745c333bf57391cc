// Tests that the numbers are those of the standard library.
#include "util/mersenne_twister.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace arrowdl {
namespace {

TEST(MersenneTwister, NumbersOfTheStandardLibrary) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::seed_seq sequence{seed * 0x9E3779B97F4A7C15, seed, seed << 20};
    MersenneTwister ours(sequence);
    std::mt19937_64 theirs(sequence);
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(ours(), theirs()) << seed << " " << i;
  }
}

/// The 10,000th number that the C++ standard requires ([rand.predef]) is of another seed, but the
/// one of an empty sequence is as fixed.
TEST(MersenneTwister, AnEmptySequence) {
  std::seed_seq sequence;
  MersenneTwister ours(sequence);
  std::mt19937_64 theirs(sequence);
  theirs.discard(9999);
  for (int i = 0; i < 9999; ++i) ours();
  EXPECT_EQ(ours(), theirs());
}

}  // namespace
}  // namespace arrowdl
