#include "compiler/quantize/Quantize.h"

#include "compiler/quantize/HalfFloat.h"
#include "compiler/quantize/Lanes.h"
#include "test/unit/compiler/quantize/PlainQuantizer.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace llmc;

namespace {

const WeightFormat int8Format = groupedFormat(Element::I8, 32, Element::F16, false);
const WeightFormat int4Format = groupedFormat(Element::I4, 32, Element::F16, false);
const WeightFormat int4MinFormat = groupedFormat(Element::I4, 32, Element::F16, true);
const WeightFormat int8MinFormat = groupedFormat(Element::I8, 32, Element::F32, true);

std::vector<WeightFormat> allFormats() {
  std::vector<WeightFormat> formats;
  for (Element element : {Element::I4, Element::I8})
    for (uint32_t group : {16, 32, 64, 128})
      for (Element scale : {Element::F16, Element::F32})
        for (bool hasMin : {false, true})
          formats.push_back(groupedFormat(element, group, scale, hasMin));
  return formats;
}

std::vector<float> gaussian(size_t count, float size = 0.02f, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, size);
  std::vector<float> values(count);
  for (float &v : values)
    v = normal(random);
  return values;
}

QuantizedRows quantize(const WeightFormat &format, const std::vector<float> &values, uint64_t rows,
                       std::span<const float> importance = {}) {
  QuantizedRows result;
  const llmrt::Status status =
      quantizeRows(format, values.data(), rows, values.size() / rows, result, importance);
  EXPECT_TRUE(status.isOk()) << status.message();
  return result;
}

float decode(const QuantizedRows &q, uint64_t row, uint64_t column) {
  const QuantizedRow r = q.row(row);
  const uint64_t group = column / q.format.group;
  return decodeValue(q.format, r.q[column], r.scales[group], r.mins ? r.mins[group] : 0);
}

/// llama.cpp's Q4_0 rule: the largest magnitude at -8, everything else to the nearest step.
double roundToNearest4(const std::vector<float> &values) {
  double error = 0, norm = 0;
  for (size_t g = 0; g < values.size(); g += 32) {
    float largest = 0;
    for (size_t i = g; i != g + 32; ++i)
      if (std::abs(values[i]) > std::abs(largest))
        largest = values[i];
    const float scale = largest / -8;
    for (size_t i = g; i != g + 32; ++i) {
      const float q = std::clamp(std::nearbyint(values[i] / scale), -8.0f, 7.0f);
      error += std::pow(values[i] - q * roundToHalf(scale), 2);
      norm += values[i] * values[i];
    }
  }
  return std::sqrt(error / norm);
}

/// A compiled plan must not change when the quantizer gets faster.
void expectPlain(const WeightFormat &format, const std::vector<float> &values, uint64_t rows,
                 const std::vector<float> &importance) {
  const uint64_t columns = values.size() / rows;
  const QuantizedRows q = quantize(format, values, rows, importance);
  for (uint64_t r = 0; r != rows; ++r)
    for (uint64_t c = 0; c < columns; c += format.group) {
      const uint64_t count = std::min<uint64_t>(format.group, columns - c), g = c / format.group;
      const test::PlainGroup plain(format, values.data() + r * columns + c, count,
                                   importance.empty() ? nullptr : importance.data() + c);
      ASSERT_EQ(q.row(r).scales[g], plain.scale) << "row " << r << " group " << g;
      ASSERT_EQ(format.hasMin ? q.row(r).mins[g] : 0, plain.min) << "row " << r << " group " << g;
      for (uint64_t i = 0; i != count; ++i)
        ASSERT_EQ(q.row(r).q[c + i], plain.code(i)) << "row " << r << " column " << c + i;
    }
}

TEST(Quantize, SameBitsAsThePlainLoops) {
  std::mt19937 random(5);
  for (const WeightFormat &format : allFormats())
    for (uint64_t columns : {1, 7, 32, 96, 200})
      for (uint64_t rows : {1, 3, 16, 35})
        for (float size : {0.02f, 1e-44f, 1e-38f, 1e-7f, 100.0f}) {
          std::vector<float> values = gaussian(rows * columns, 1, random()), importance;
          for (float &v : values)
            v = random() % 8 ? v * size * (random() % 20 ? 1.0f : 50.0f) : 0;
          expectPlain(format, values, rows, importance);
          for (float v : gaussian(columns, 4, random()))
            importance.push_back(random() % 9 ? std::exp(v) : 0);
          expectPlain(format, values, rows, importance);
        }
}

TEST(Quantize, LanesRoundToHalfAsScalarsDo) {
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 0x1000 - 37) {
    Lanes v = 0;
    float same[laneCount];
    for (uint32_t i = 0; i != laneCount; ++i) {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(bits + (i << 12)));
      v[i] = value, same[i] = roundToHalf(value);
    }
    roundLanesToHalf(v);
    for (uint32_t i = 0; i != laneCount; ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(float(v[i])) & 0xffffe000,
                std::bit_cast<uint32_t>(same[i]) & 0xffffe000)
          << bits;
  }
}

TEST(Quantize, int8RoundsToNearest) {
  const std::vector<float> values = gaussian(32 * 50);
  const QuantizedRows q = quantize(int8Format, values, 2);
  for (uint64_t r = 0; r != 2; ++r)
    for (uint64_t c = 0; c != 800; ++c) {
      const float step = q.row(r).scales[c / 32];
      ASSERT_LE(std::abs(decode(q, r, c) - values[r * 800 + c]), step * 0.5001f);
    }
  EXPECT_LT(relativeError(values.data(), q), 0.006);
}

TEST(Quantize, int8UsesTheWholeRange) {
  std::vector<float> values(32, 0.0f);
  values[3] = -1.27f, values[4] = 0.635f;
  const QuantizedRows q = quantize(int8Format, values, 1);
  EXPECT_EQ(static_cast<int8_t>(q.codes[3]), -127);
  EXPECT_EQ(static_cast<int8_t>(q.codes[0]), 0);
  EXPECT_NEAR(decode(q, 0, 4), 0.635f, 0.0051f);
}

TEST(Quantize, int8ScaleNeverCutsOff) { // also where f16 scales are subnormal and coarse
  for (float size : {1e-6f, 3e-6f, 8.1e-6f, 1e-5f, 1e-4f, 1.0f}) {
    std::vector<float> values(32, size);
    values[0] = -size;
    const QuantizedRows q = quantize(int8Format, values, 1);
    EXPECT_NEAR(decode(q, 0, 1), size, std::max(q.scales[0] * 0.51f, 4e-6f)) << size;
  }
}

TEST(Quantize, searchesBeatRoundToNearest) {
  const std::vector<float> values = gaussian(32 * 500);
  const double nearest = roundToNearest4(values);
  std::vector<float> even(values.size() / 10, 1.0f); // plain square error
  const double scale = relativeError(values.data(), quantize(int4Format, values, 10, even));
  const double scaleMin = relativeError(values.data(), quantize(int4MinFormat, values, 10, even));
  EXPECT_LT(scale, nearest * 0.95);
  EXPECT_LT(scaleMin, scale * 0.92);
  // Weighted by size the plain error is a little larger, still below round to nearest.
  EXPECT_LT(relativeError(values.data(), quantize(int4Format, values, 10)), nearest);
}

TEST(Quantize, importanceMovesTheErrorAway) {
  const std::vector<float> values = gaussian(64 * 32);
  std::vector<float> importance(32, 1.0f);
  for (int c : {3, 17})
    importance[c] = 1000.0f;
  const QuantizedRows plain = quantize(int4Format, values, 64),
                      steered = quantize(int4Format, values, 64, importance);
  double plainError = 0, steeredError = 0;
  for (uint64_t r = 0; r != 64; ++r)
    for (int c : {3, 17}) {
      plainError += std::pow(decode(plain, r, c) - values[r * 32 + c], 2);
      steeredError += std::pow(decode(steered, r, c) - values[r * 32 + c], 2);
    }
  EXPECT_LT(steeredError, 0.35 * plainError);
}

TEST(Quantize, findsExactGridsAgain) {
  std::mt19937 random(7);
  std::vector<float> symmetric, shifted;
  for (int i = 0; i != 320; ++i) {
    const int q = i % 32 == 0 ? 0 : i % 32 == 1 ? 15 : int(random() % 16);
    symmetric.push_back(0.125f * float(q - 8));
    shifted.push_back(0.125f * float(q) + 0.5f);
  }
  EXPECT_EQ(relativeError(symmetric.data(), quantize(int4Format, symmetric, 1)), 0);
  EXPECT_EQ(relativeError(shifted.data(), quantize(int4MinFormat, shifted, 1)), 0);
}

TEST(Quantize, zerosStayZero) { // case Q12
  for (const WeightFormat &format : allFormats()) {
    std::vector<float> values(256, 0.0f);
    values[200] = 1.0f; // the last group of 128 only
    const QuantizedRows q = quantize(format, values, 1);
    EXPECT_EQ(q.scales[0], 0);
    for (int c = 0; c != 128; ++c)
      ASSERT_EQ(decode(q, 0, c), 0);
    for (float scale : q.scales)
      ASSERT_TRUE(std::isfinite(scale));
  }
}

TEST(Quantize, survivesExtremeMagnitudes) { // case Q12: denormals, mixed sizes
  for (const WeightFormat &format : allFormats())
    for (float size : {1e-44f, 1e-38f, 1e-30f, 1e-20f, 1e-7f, 1e4f}) {
      std::vector<float> values = gaussian(256, 1.0f);
      for (float &v : values)
        v *= size;
      values[3] = 0;
      const QuantizedRows q = quantize(format, values, 1);
      for (int c = 0; c != 256; ++c) {
        ASSERT_TRUE(std::isfinite(decode(q, 0, c)));
        ASSERT_LT(std::abs(decode(q, 0, c) - values[c]), 0.6f * 4 * size + 4e-6f);
      }
    }
}

TEST(Quantize, refusesWhatF16CannotScale) {
  std::vector<float> values(32, 1e30f);
  QuantizedRows result;
  for (bool hasMin : {false, true}) {
    const llmrt::Status status = quantizeRows(groupedFormat(Element::I4, 32, Element::F16, hasMin),
                                              values.data(), 1, 32, result);
    ASSERT_FALSE(status.isOk());
    EXPECT_NE(status.message().find("row 0, column 0"), std::string::npos);
    values[5] = -1e30f;
  }
  EXPECT_TRUE(quantizeRows(groupedFormat(Element::I4, 32, Element::F32, false), values.data(), 1,
                           32, result)
                  .isOk());
  EXPECT_FALSE(quantizeRows(WeightFormat{}, values.data(), 1, 32, result).isOk());
}

TEST(Quantize, storesScalesThatTheFormatHolds) {
  const std::vector<float> values = gaussian(512);
  for (const WeightFormat &format : allFormats()) {
    const QuantizedRows q = quantize(format, values, 2);
    EXPECT_EQ(q.mins.size(), format.hasMin ? q.scales.size() : 0u);
    if (format.scale == Element::F16)
      for (const auto &list : {q.scales, q.mins})
        for (float v : list)
          ASSERT_EQ(roundToHalf(v), v);
    if (format.element == Element::I4)
      for (uint8_t code : q.codes)
        ASSERT_LT(code, 16);
  }
}

TEST(Quantize, takesAnyTail) { // groups that K doesn't fill, rows on their own (case Q11)
  const std::vector<float> all = gaussian(3 * 200);
  for (const WeightFormat &format : allFormats())
    for (uint64_t columns : {1, 3, 8, 31, 33, 65, 192, 200}) {
      const std::vector<float> values(all.begin(), all.begin() + 3 * columns);
      const QuantizedRows q = quantize(format, values, 3);
      EXPECT_EQ(q.codes.size(), 3 * columns);
      EXPECT_LT(relativeError(values.data(), q), 0.25) << columns;
      // A row alone gives the same.
      const std::vector<float> last(values.end() - columns, values.end());
      const QuantizedRows alone = quantize(format, last, 1);
      EXPECT_TRUE(std::equal(alone.codes.begin(), alone.codes.end(), q.codes.end() - columns));
    }
}

TEST(Quantize, int8WithMinimumCoversTheRange) {
  std::vector<float> values = gaussian(320);
  for (float &v : values)
    v += 0.3f;
  EXPECT_LT(relativeError(values.data(), quantize(int8MinFormat, values, 1)), 0.001);
}

} // namespace
