#include "compiler/calibrate/Arithmetic.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace llmc::calibrate;

namespace {

std::vector<float> random(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &v : values)
    v = normal(engine);
  return values;
}

TEST(Arithmetic, multipliesAnyShape) {
  for (auto [rows, size, count] :
       {std::tuple(1, 1, 1), {2, 8, 4}, {3, 17, 5}, {5, 64, 16}, {128, 33, 7}}) {
    const std::vector<float> x = random(rows * size, 1), w = random(count * size, 2);
    const uint64_t stride = count + 3;
    std::vector<float> y(rows * stride, -1);
    multiply(x.data(), rows, size, w.data(), count, y.data(), stride, 2);
    for (int m = 0; m != rows; ++m) {
      EXPECT_EQ(y[m * stride + 1], -1); // nothing beside its own columns
      EXPECT_EQ(y[m * stride + count + 2], -1);
      for (int n = 0; n != count; ++n) {
        double sum = 0;
        for (int k = 0; k != size; ++k)
          sum += double(x[m * size + k]) * w[n * size + k];
        ASSERT_NEAR(y[m * stride + 2 + n], sum, 1e-4) << rows << " " << size << " " << count;
      }
    }
  }
}

TEST(Arithmetic, normalises) {
  const float x[] = {3, 4}, w[] = {0.5f, -0.25f}, b[] = {1, 1};
  float y[2];
  rmsNorm(x, 1, 2, w, 1e-6f, 1.0f, y); // case Q17
  EXPECT_NEAR(y[0], 1.272792f, 1e-5);
  EXPECT_NEAR(y[1], 0.848528f, 1e-5);
  layerNorm(x, 1, 2, w, b, 0, y);
  EXPECT_NEAR(y[0], 0.5f, 1e-5);
  EXPECT_NEAR(y[1], 0.75f, 1e-5);
}

TEST(Arithmetic, attendsToThePast) {
  // One head of size 1, two tokens: the second sees both, or itself with a window of 1.
  const float q[] = {1, 1}, k[] = {0, std::log(3.0f)}, v[] = {4, 8};
  float y[2];
  attention({2, 1, 1, 1, 1, 0, 1.0f, 0.0f}, q, k, v, y);
  EXPECT_FLOAT_EQ(y[0], 4);
  EXPECT_FLOAT_EQ(y[1], 4 * 0.25f + 8 * 0.75f);
  attention({2, 1, 1, 1, 1, 1, 1.0f, 0.0f}, q, k, v, y);
  EXPECT_FLOAT_EQ(y[1], 8);
}

TEST(Arithmetic, sharesKeysAmongHeads) {
  // Four heads, two KV heads: heads 0 and 1 read the first.
  const float q[] = {1, 1, 1, 1}, k[] = {1, 1}, v[] = {5, 7};
  float y[4];
  attention({1, 4, 2, 1, 1, 0, 1.0f, 0.0f}, q, k, v, y);
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{5, 5, 7, 7}));
}

TEST(Arithmetic, rotatesPairs) {
  const float x[] = {1, 0, 0, 2, 9};   // a head of 5, 4 of them rotated
  const float angles[] = {0, 1, 1, 0}; // cosines 0, 1; sines 1, 0
  float y[5];
  rotate(x, 1, 1, 5, angles, 2, false, y); // pairs (0, 2), (1, 3)
  EXPECT_EQ(std::vector<float>(y, y + 5), (std::vector<float>{0, 0, 1, 2, 9}));
  rotate(x, 1, 1, 5, angles, 2, true, y); // pairs (0, 1), (2, 3)
  EXPECT_EQ(std::vector<float>(y, y + 5), (std::vector<float>{0, 1, 0, 2, 9}));
}

TEST(Arithmetic, activates) {
  EXPECT_NEAR(activate(Activation::Silu, 1), 0.731059f, 1e-5);
  EXPECT_NEAR(activate(Activation::Gelu, 1), 0.841345f, 1e-5);
  EXPECT_NEAR(activate(Activation::GeluTanh, 1), 0.841192f, 1e-5);
  EXPECT_EQ(activate(Activation::Relu, -1), 0);
  EXPECT_EQ(activate(Activation::None, -1), -1);
  for (float x = -6; x <= 6; x += 0.37f) {
    EXPECT_NEAR(activate(Activation::Gelu, x), 0.5 * x * std::erfc(-x / std::sqrt(2.0)), 5e-7);
    EXPECT_NEAR(softcap(x, 2), 2 * std::tanh(x / 2.0), 4e-7);
  }
}

} // namespace
