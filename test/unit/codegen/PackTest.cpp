//===- PackTest.cpp - the packed layouts, byte by byte ------------------------===//
#include "compiler/quantize/Pack.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>
#include <vector>

using namespace llmc;

namespace {

/// The layout as the design states it: byte 4 r + i of unit u is row r, element i of a quad.
TEST(Pack, NibblesLieAsTheLayoutSays) {
  WeightFormat f{Element::I4, Packing::N16K4, 16, Element::F16};
  std::vector<std::vector<uint8_t>> q(16, std::vector<uint8_t>(16));
  std::vector<QuantizedRow> rows;
  const float scale = 0.5f;
  for (int r = 0; r < 16; ++r) {
    for (int k = 0; k < 16; ++k)
      q[r][k] = (r * 7 + k * 3) & 15;
    rows.push_back({q[r].data(), &scale, nullptr});
  }
  ASSERT_EQ(*packedTileBytes(f, 16), 2u * 64 + 32);
  std::vector<uint8_t> tile(2 * 64 + 32);
  packTile(f, 16, std::span<const QuantizedRow>(rows), tile.data());
  for (int unit = 0; unit < 2; ++unit)
    for (int r = 0; r < 16; ++r)
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(tile[64 * unit + 4 * r + i] & 15, q[r][8 * unit + i]);
        EXPECT_EQ(tile[64 * unit + 4 * r + i] >> 4, q[r][8 * unit + 4 + i]);
      }
  EXPECT_EQ(tile[128] | tile[129] << 8, 0x3800) << "f16 of 0.5";
}

TEST(Pack, PaddingHasTheValueZero) {
  WeightFormat f{Element::I4, Packing::N16K4, 8, Element::F32};
  const uint8_t q[5] = {15, 15, 15, 15, 15};
  const float scale = 2;
  QuantizedRow row{q, &scale, nullptr};
  std::vector<uint8_t> tile(*packedTileBytes(f, 5));
  packTile(f, 5, std::span<const QuantizedRow>(&row, 1), tile.data());
  EXPECT_EQ(tile[0], 0xff);
  EXPECT_EQ(tile[1] >> 4, 8) << "element 5 is padding: 8 - 8";
  EXPECT_EQ(tile[4], 0x88) << "row 1 is padding";
  float values[5];
  unpackRow(f, 5, tile.data(), 15, values);
  EXPECT_EQ(values[0], 0) << "rows of padding have scale 0";
}

/// e2m1: codes in i4's places, exponents as they are, for every code and exponent.
TEST(Pack, E2m1KeepsCodesAndExponents) {
  const WeightFormat f{Element::E2M1, Packing::N16K4, 16, Element::E8M0};
  ASSERT_TRUE(isValidFormat(f));
  ASSERT_EQ(*packedTileBytes(f, 16), 2u * 64 + 16);
  std::vector<uint8_t> tile(2 * 64 + 16), back(16);
  for (int first = 0; first < 256; first += 16) {
    std::vector<std::vector<uint8_t>> q(16, std::vector<uint8_t>(16));
    std::vector<float> scales(16);
    std::vector<QuantizedRow> rows;
    for (int r = 0; r < 16; ++r) {
      scales[r] = halfPowerOfTwo(static_cast<uint8_t>(first + r));
      for (int k = 0; k < 16; ++k)
        q[r][k] = static_cast<uint8_t>(doubledE2m1((r + k) % 16));
      rows.push_back({q[r].data(), &scales[r], nullptr});
    }
    packTile(f, 16, std::span<const QuantizedRow>(rows), tile.data());
    for (int r = 0; r < 16; ++r) {
      EXPECT_EQ(tile[128 + r], first + r);
      float scale, values[16];
      unpackQuantizedRow(f, 16, tile.data(), r, back.data(), &scale, nullptr);
      unpackRow(f, 16, tile.data(), r, values);
      EXPECT_EQ(back, q[r]);
      if (first + r == 255) {
        EXPECT_TRUE(scale != scale && values[1] != values[1]);
        continue;
      }
      EXPECT_EQ(scale, std::ldexp(1.0f, first + r - 128));
      constexpr float kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
      for (int k = 0; k < 16; ++k) {
        const int code = (r + k) % 16;
        const double value = code < 8 ? kMagnitudes[code] : -kMagnitudes[code - 8];
        EXPECT_EQ(values[k], static_cast<float>(std::ldexp(value, first + r - 127)));
      }
    }
  }
  EXPECT_EQ(tile[4 * 1], 1 | 5 << 4) << "row 1: codes 1 and 5, four along K apart";
  for (WeightFormat bad : {WeightFormat{Element::E2M1, Packing::N16K4, 12, Element::E8M0},
                           WeightFormat{Element::E2M1, Packing::N16K4, 32, Element::F16},
                           WeightFormat{Element::I4, Packing::N16K4, 32, Element::E8M0},
                           WeightFormat{Element::E2M1, Packing::N16, 0, Element::F32},
                           WeightFormat{Element::E2M1, Packing::N16K4, 32, Element::E8M0, true}})
    EXPECT_FALSE(isValidFormat(bad));
}

TEST(Pack, RoundTripIsExact) {
  std::mt19937 rng(1);
  for (WeightFormat f : {WeightFormat{Element::F32, Packing::N16},
                         {Element::F16, Packing::N16},
                         {Element::BF16, Packing::N16}})
    for (uint64_t k : {1, 2, 7, 32}) {
      std::vector<std::vector<float>> rows(13, std::vector<float>(k));
      std::vector<const float *> pointers;
      for (auto &row : rows) {
        for (float &v : row)
          v = static_cast<float>(int(rng() % 255) - 127) / 64; // exact in every type
        pointers.push_back(row.data());
      }
      std::vector<uint8_t> tile(*packedTileBytes(f, k));
      packTile(f, k, std::span<const float *const>(pointers), tile.data());
      for (unsigned r = 0; r < 16; ++r) {
        std::vector<float> got(k);
        unpackRow(f, k, tile.data(), r, got.data());
        EXPECT_EQ(got, r < 13 ? rows[r] : std::vector<float>(k));
      }
    }
  for (WeightFormat f :
       {WeightFormat{Element::I4, Packing::N16K4, 32, Element::F16, true, Element::F16},
        {Element::I4, Packing::N16K4, 32, Element::F32, true, Element::F16},
        {Element::I8, Packing::N16K4, 20, Element::F16, false},
        {Element::I8, Packing::N16K4, 64, Element::F32, true, Element::F32}})
    for (uint64_t k : {1, 33, 64}) {
      const uint64_t groups = (k + f.group - 1) / f.group;
      std::vector<uint8_t> q(k), gotQ(k);
      std::vector<float> scales(groups), mins(groups), gotScales(groups), gotMins(groups);
      for (uint8_t &v : q)
        v = f.element == Element::I4 ? rng() & 15 : rng() & 255;
      for (uint64_t g = 0; g < groups; ++g)
        scales[g] = 0.25f * (g + 1), mins[g] = -0.5f * g;
      QuantizedRow row{q.data(), scales.data(), f.hasMin ? mins.data() : nullptr};
      std::vector<QuantizedRow> rows(16, row);
      std::vector<uint8_t> tile(*packedTileBytes(f, k));
      packTile(f, k, std::span<const QuantizedRow>(rows), tile.data());
      for (unsigned r : {0u, 5u, 15u}) {
        unpackQuantizedRow(f, k, tile.data(), r, gotQ.data(), gotScales.data(), gotMins.data());
        EXPECT_EQ(gotQ, q);
        EXPECT_EQ(gotScales, scales);
        if (f.hasMin)
          EXPECT_EQ(gotMins, mins);
        std::vector<float> values(k);
        unpackRow(f, k, tile.data(), r, values.data());
        const float q0 = f.element == Element::I8 ? int8_t(q[0]) : f.hasMin ? q[0] : q[0] - 8.0f;
        EXPECT_EQ(values[0], q0 * scales[0] + (f.hasMin ? mins[0] : 0));
      }
    }
}

/// Cases Q02, Q11: every zero point and nibble; a group beyond K's end.
TEST(Pack, MinimumsHoldEveryZeroPoint) {
  WeightFormat f{Element::I4, Packing::N16K4, 128, Element::F32, true, Element::F32};
  for (int zero = 0; zero < 16; ++zero) {
    uint8_t q[16];
    for (int i = 0; i < 16; ++i)
      q[i] = i;
    const float scale = 0.25f, min = -0.25f * zero;
    QuantizedRow row{q, &scale, &min};
    std::vector<uint8_t> tile(*packedTileBytes(f, 16));
    packTile(f, 16, std::span<const QuantizedRow>(&row, 1), tile.data());
    float values[16];
    unpackRow(f, 16, tile.data(), 0, values);
    for (int i = 0; i < 16; ++i)
      EXPECT_EQ(values[i], (i - zero) * 0.25f);
  }
}

TEST(Pack, SizesAreChecked) {
  EXPECT_EQ(*packedBytes({Element::F32, Packing::Rows}, 3, 5), 60u);
  EXPECT_EQ(*packedBytes({Element::BF16, Packing::N16}, 17, 5), 2u * 6 * 32);
  EXPECT_EQ(*packedBytes({Element::I4, Packing::N16K4, 32, Element::F16}, 17, 33), 2u * 2 * 288);
  EXPECT_FALSE(packedBytes({Element::I4, Packing::N16K4, 12, Element::F16}, 1, 1));
  EXPECT_FALSE(packedBytes({Element::I4, Packing::N16K4, 0, Element::F16}, 1, 1));
  EXPECT_FALSE(packedBytes({Element::I4, Packing::N16}, 1, 1));
  EXPECT_FALSE(packedBytes({Element::F32, Packing::N16}, UINT64_MAX, UINT64_MAX));
  EXPECT_FALSE(packedBytes({Element::F32, Packing::N16}, 16, UINT64_MAX / 8));
}

} // namespace
