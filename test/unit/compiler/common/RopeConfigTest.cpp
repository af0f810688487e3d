#include "compiler/import/common/RopeConfig.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

RopeTable resolve(const RopeParameters &p) {
  auto table = resolveRope(p);
  EXPECT_TRUE(table.isOk()) << table.status().message();
  return table.isOk() ? *table : RopeTable{};
}

TEST(RopeConfig, plainFrequencies) { // case A22: 1e6^(-2/128)
  const RopeTable table = resolve({.theta = 1e6, .rotarySize = 128});
  ASSERT_EQ(table.frequencies.size(), 64u);
  EXPECT_EQ(table.frequencies[0], 1.0f);
  EXPECT_NEAR(table.frequencies[1], 0.805842f, 1e-6);
  EXPECT_EQ(table.scale, 1.0);
}

TEST(RopeConfig, linear) {
  const RopeTable table = resolve({.type = "linear", .theta = 1e4, .rotarySize = 64, .factor = 4});
  EXPECT_EQ(table.frequencies[0], 0.25f);
}

TEST(RopeConfig, llama3) { // Llama 3.1 8B; values of transformers 4.57 _compute_llama3_parameters
  const RopeTable table = resolve({.type = "llama3",
                                   .theta = 500000,
                                   .rotarySize = 128,
                                   .factor = 8,
                                   .originalContext = 8192,
                                   .lowFrequencyFactor = 1,
                                   .highFrequencyFactor = 4});
  const RopeTable plain = resolve({.theta = 500000, .rotarySize = 128});
  EXPECT_EQ(table.frequencies[0], 1.0f);
  EXPECT_EQ(table.frequencies[10], plain.frequencies[10]);
  EXPECT_FLOAT_EQ(table.frequencies[63], plain.frequencies[63] / 8);
  // Wave 2 pi / f of pair 30 lies between 8192 / 4 and 8192 / 1: interpolated.
  const double f = plain.frequencies[30], wave = 2 * M_PI / f, smooth = (8192 / wave - 1) / 3;
  ASSERT_GT(wave, 2048);
  ASSERT_LT(wave, 8192);
  EXPECT_FLOAT_EQ(table.frequencies[30], float((1 - smooth) * f / 8 + smooth * f));
}

TEST(RopeConfig, yarn) {
  const RopeTable table = resolve(
      {.type = "yarn", .theta = 10000, .rotarySize = 64, .factor = 4, .originalContext = 4096});
  const RopeTable plain = resolve({.theta = 10000, .rotarySize = 64});
  EXPECT_EQ(table.frequencies[0], plain.frequencies[0]);
  EXPECT_FLOAT_EQ(table.frequencies[31], plain.frequencies[31] / 4);
  EXPECT_NEAR(table.scale, 0.1 * std::log(4.0) + 1, 1e-12);
  // low = floor(64 ln(4096 / (32 * 2 pi)) / (2 ln 10000)) = 10, high = ceil(64 ln(4096 / 2 pi) /
  // ...) = 23
  const double ramp = (16.0 - 10) / (23 - 10), f = plain.frequencies[16];
  EXPECT_FLOAT_EQ(table.frequencies[16], float(f / 4 * ramp + f * (1 - ramp)));
}

TEST(RopeConfig, divisors) {
  const RopeTable table = resolve({.theta = 10000, .rotarySize = 4, .divisors = {2.0f, 1.0f}});
  EXPECT_EQ(table.frequencies[0], 0.5f);
  EXPECT_FALSE(resolveRope({.rotarySize = 8, .divisors = {2.0f, 1.0f}}).isOk());
  EXPECT_FALSE(resolveRope({.rotarySize = 4, .divisors = {2.0f, 0.0f}}).isOk());
}

TEST(RopeConfig, refusesWhatItDoesNotKnow) {
  auto unknown = resolveRope({.type = "ntk", .rotarySize = 64});
  ASSERT_FALSE(unknown.isOk());
  EXPECT_NE(unknown.status().message().find("'ntk' is not supported"), std::string::npos);
  EXPECT_FALSE(resolveRope({.rotarySize = 7}).isOk());
  EXPECT_FALSE(resolveRope({.rotarySize = 0}).isOk());
  EXPECT_FALSE(resolveRope({.theta = 0, .rotarySize = 8}).isOk());
  EXPECT_FALSE(resolveRope({.theta = std::nan(""), .rotarySize = 8}).isOk());
  EXPECT_FALSE(resolveRope({.type = "linear", .rotarySize = 8, .factor = 0}).isOk());
  EXPECT_FALSE(resolveRope({.type = "llama3", .rotarySize = 8, .factor = 2}).isOk());
  EXPECT_FALSE(resolveRope({.type = "yarn", .rotarySize = 8, .factor = 2}).isOk());
}

} // namespace
