#include "runtime/plan/WeightFormat.h"

#include <gtest/gtest.h>

using namespace llmrt;
using fbs::ElementType;
using fbs::Packing;

static WeightFormat rows(ElementType e) {
  WeightFormat f;
  f.element = e;
  return f;
}

static WeightFormat tiled(ElementType e) {
  WeightFormat f = rows(e);
  f.packing = Packing::N16;
  return f;
}

static WeightFormat grouped(ElementType e, uint32_t group, ElementType scale, bool hasMin = false) {
  WeightFormat f = rows(e);
  f.packing = Packing::N16K4;
  f.group = group;
  f.scale = scale;
  f.hasMin = hasMin;
  f.min = scale;
  return f;
}

TEST(WeightFormat, Rows) {
  EXPECT_EQ(packedBytes(rows(ElementType::F32), 3, 5), 60u);
  EXPECT_EQ(packedBytes(rows(ElementType::BF16), 3, 5), 30u);
  EXPECT_EQ(packedBytes(rows(ElementType::I64), 3, 1), 24u);
  EXPECT_EQ(packedBytes(rows(ElementType::I4), 3, 5), 9u) << "each row on its own bytes";
}

TEST(WeightFormat, Tiles) {
  EXPECT_EQ(packedBytes(tiled(ElementType::F32), 17, 5), 2u * 5 * 16 * 4);
  EXPECT_EQ(packedBytes(tiled(ElementType::F16), 16, 5), 5u * 16 * 2);
  EXPECT_EQ(packedBytes(tiled(ElementType::BF16), 16, 5), 6u * 16 * 2) << "K in pairs";
  EXPECT_FALSE(packedBytes(tiled(ElementType::I8), 16, 16));
}

TEST(WeightFormat, Groups) {
  // A tile's group of 32: 16 * 32 / 2 bytes, 16 scales.
  EXPECT_EQ(packedBytes(grouped(ElementType::I4, 32, ElementType::F16), 16, 32), 256u + 32);
  EXPECT_EQ(packedBytes(grouped(ElementType::I4, 32, ElementType::F16, true), 16, 32), 256u + 64);
  EXPECT_EQ(packedBytes(grouped(ElementType::I8, 32, ElementType::F32), 16, 32), 512u + 64);
  EXPECT_EQ(packedBytes(grouped(ElementType::E2M1, 32, ElementType::E8M0), 17, 33),
            2u * 2 * (256 + 16));
  EXPECT_EQ(grouped(ElementType::E2M1, 32, ElementType::E8M0).name(), "e2m1.g32.e8m0");
  EXPECT_FALSE(packedBytes(grouped(ElementType::E2M1, 32, ElementType::F16), 16, 32));
  EXPECT_FALSE(packedBytes(grouped(ElementType::E2M1, 12, ElementType::E8M0), 16, 32));
  EXPECT_FALSE(packedBytes(grouped(ElementType::E2M1, 32, ElementType::E8M0, true), 16, 32));
  EXPECT_FALSE(packedBytes(grouped(ElementType::I4, 32, ElementType::E8M0), 16, 32));
  EXPECT_FALSE(packedBytes(rows(ElementType::E2M1), 16, 32));
  EXPECT_FALSE(packedBytes(tiled(ElementType::E8M0), 16, 32));
  EXPECT_EQ(packedBytes(grouped(ElementType::I4, 32, ElementType::F32), 1, 33), 2u * (256 + 64));
  EXPECT_EQ(packedBytes(grouped(ElementType::I8, 576, ElementType::F32), 33, 576),
            3u * (16 * 576 + 64))
      << "a scale a row";
  WeightFormat mixed = grouped(ElementType::I4, 32, ElementType::F16, true);
  mixed.min = ElementType::F32;
  EXPECT_EQ(packedBytes(mixed, 16, 32), 256u + 32 + 64);
}

TEST(WeightFormat, SmolLm2InInt4IsFourAndAHalfBits) {
  // 576 x 1536 in groups of 32 with f16 scales: no padding, 4.5 bits a weight.
  EXPECT_EQ(packedBytes(grouped(ElementType::I4, 32, ElementType::F16), 1536, 576),
            1536u * 576 * 9 / 16);
}

TEST(WeightFormat, RefusesWhatNoPlanHolds) {
  EXPECT_FALSE(packedBytes(rows(ElementType::F32), 0, 5));
  EXPECT_FALSE(packedBytes(rows(ElementType::F32), 5, 0));
  EXPECT_FALSE(packedBytes(rows(ElementType(8)), 5, 5));
  WeightFormat f = rows(ElementType::F32);
  f.group = 32;
  EXPECT_FALSE(packedBytes(f, 16, 32));
  for (uint32_t group : {0u, 4u, 12u, (1u << 20) + 8, 0xFFFFFFF8u})
    EXPECT_FALSE(packedBytes(grouped(ElementType::I4, group, ElementType::F16), 16, 32)) << group;
  EXPECT_TRUE(packedBytes(grouped(ElementType::I8, 4, ElementType::F16), 16, 32));
  EXPECT_FALSE(packedBytes(grouped(ElementType::I8, 6, ElementType::F16), 16, 32));
  EXPECT_FALSE(packedBytes(grouped(ElementType::F16, 32, ElementType::F16), 16, 32));
  EXPECT_FALSE(packedBytes(grouped(ElementType::I4, 32, ElementType::BF16), 16, 32));
}

TEST(WeightFormat, SizesThatOverflowAreNone) {
  constexpr uint64_t kMax = ~uint64_t(0);
  for (uint64_t n : {kMax, kMax - 7, kMax / 2, uint64_t(1) << 61, uint64_t(1) << 60}) {
    EXPECT_FALSE(packedBytes(rows(ElementType::I64), n, 2)) << n;
    EXPECT_FALSE(packedBytes(rows(ElementType::F32), 4, n)) << n;
    EXPECT_FALSE(packedBytes(tiled(ElementType::F32), n, 4)) << n;
    EXPECT_FALSE(packedBytes(grouped(ElementType::I8, 32, ElementType::F32), n, 1)) << n;
  }
  EXPECT_EQ(packedBytes(rows(ElementType::U8), kMax / 8, 1), kMax / 8);
}

TEST(WeightFormat, Names) {
  EXPECT_EQ(tiled(ElementType::BF16).name(), "bf16.n16");
  EXPECT_EQ(grouped(ElementType::I4, 32, ElementType::F16).name(), "i4.g32.f16");
  EXPECT_EQ(grouped(ElementType::I4, 64, ElementType::F32, true).name(), "i4.g64.f32.min");
}
