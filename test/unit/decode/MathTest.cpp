#include "runtime/decode/Math.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llmrt;

namespace {

/// Units in the last place between \p got and the true value.
double ulps(double got, long double truth) {
  int exponent;
  std::frexp(static_cast<double>(truth), &exponent);
  return static_cast<double>(std::fabs(got - truth) / std::ldexp(1.0L, exponent - 53));
}

TEST(Math, ExpIsAccurate) {
  double worst = 0;
  for (double x = -700; x < 709; x += 0.00973)
    worst = std::max(worst, ulps(fixedExp(x), std::exp(static_cast<long double>(x))));
  EXPECT_LT(worst, 2.0);
  EXPECT_EQ(fixedExp(0), 1.0);
  EXPECT_EQ(fixedExp(-800), 0.0);
  EXPECT_EQ(fixedExp(-INFINITY), 0.0);
}

TEST(Math, LogIsAccurate) {
  double worst = 0;
  for (double x = 1e-300; x < 1e300; x *= 1.00731)
    worst = std::max(worst, ulps(fixedLog(x), std::log(static_cast<long double>(x))));
  for (double x = 0.5; x < 2; x += 0.000137)
    if (x != 1)
      worst = std::max(worst, ulps(fixedLog(x), std::log(static_cast<long double>(x))));
  EXPECT_LT(worst, 2.0);
  EXPECT_EQ(fixedLog(1), 0.0);
}

TEST(Math, SinglePrecisionExpIsAccurate) {
  double worst = 0;
  for (float x = -87; x <= 0; x += 0.00317f) {
    const double truth = std::exp(static_cast<double>(x));
    // The argument's own rounding is x units.
    worst = std::max(worst, std::fabs(fixedExpf(x) - truth) / truth / (1 - x / 4) * 0x1p24);
  }
  EXPECT_LT(worst, 2.0);
  EXPECT_EQ(fixedExpf(0), 1.0f);
  EXPECT_EQ(fixedExpf(-90), 0.0f);
  EXPECT_EQ(fixedExpf(-INFINITY), 0.0f);
}

TEST(Math, TheBitsStayWhatTheyAre) {
  // Sampled text depends on these: a change of any is a change of what every seed means.
  EXPECT_EQ(fixedExp(-1.25), 0x1.25618372a584fp-2);
  EXPECT_EQ(fixedLog(0.3), -0x1.34378fcbda721p+0);
  EXPECT_EQ(fixedExpf(-1.25f), 0x1.256184p-2f);
}

} // namespace
