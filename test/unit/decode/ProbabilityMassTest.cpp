#include "runtime/decode/ProbabilityMass.h"

#include <gtest/gtest.h>

using namespace llmrt;

namespace {

TEST(ProbabilityMass, IsInProportion) {
  const ProbabilityMass mass(50000, 3.5f);
  EXPECT_EQ(mass.of(3.5f), uint64_t(1) << 44);
  EXPECT_NEAR(double(mass.of(2.5f)) * 0x1p-44, std::exp(-1.0), 1e-7);
  EXPECT_NEAR(double(mass.of(-10)) * 0x1p-44, std::exp(-13.5), 1e-12);
  EXPECT_EQ(mass.of(-40), 0u);
  EXPECT_EQ(mass.of(-INFINITY), 0u);
}

TEST(ProbabilityMass, TheSumOfAllFits) {
  for (size_t vocabulary : {size_t(1), size_t(32000), size_t(1) << 18, (size_t(1) << 19) - 1,
                            size_t(1) << 19, size_t(1) << 28, (size_t(1) << 31) - 1}) {
    const uint64_t one = ProbabilityMass(vocabulary, -2).of(-2);
    uint64_t sum;
    ASSERT_FALSE(__builtin_mul_overflow(one, vocabulary, &sum)) << vocabulary;
    EXPECT_LT(sum, uint64_t(1) << 63) << vocabulary;
    EXPECT_GE(one, uint64_t(1) << 31) << vocabulary;
  }
}

TEST(ProbabilityMass, WantedIsWithinWhatThereIs) {
  EXPECT_EQ(ProbabilityMass::wanted(0.5f, 101), 51u);
  EXPECT_EQ(ProbabilityMass::wanted(1e-30f, 1000), 1u);
  EXPECT_EQ(ProbabilityMass::wanted(0.9f, 0), 1u);
  const uint64_t most = (uint64_t(1) << 63) - 1; // as a double it is more
  EXPECT_LE(ProbabilityMass::wanted(0x1.fffffep-1f, most), most);
}

} // namespace
