#include "runtime/device/cpu/CpuLevel.h"

#include <gtest/gtest.h>

using namespace llmrt;

namespace {

/// A machine with everything up to VNNI, whose system saves no tiles.
CpuidBits everything() {
  CpuidBits bits;
  bits.leaf1Ecx = bits.leaf7Ebx = bits.leaf7Ecx = bits.extended1Ecx = ~0u;
  bits.xcr0 = 0xe7;
  return bits;
}

TEST(CpuLevel, FollowsTheBits) {
  EXPECT_EQ(levelOf(everything()), CpuLevel::X86V4);
  EXPECT_EQ(levelOf(CpuidBits{}), CpuLevel::None);
  CpuidBits noVnni = everything();
  noVnni.leaf7Ecx &= ~(1u << 11);
  EXPECT_EQ(levelOf(noVnni), CpuLevel::X86V3);
  CpuidBits noFma = everything();
  noFma.leaf1Ecx &= ~(1u << 12);
  EXPECT_EQ(levelOf(noFma), CpuLevel::None);
}

TEST(CpuLevel, RegistersThatTheSystemDoesNotSaveDoNotCount) {
  CpuidBits noZmm = everything();
  noZmm.xcr0 = 0x7;
  EXPECT_EQ(levelOf(noZmm), CpuLevel::X86V3);
  CpuidBits noYmm = everything();
  noYmm.xcr0 = 0x3;
  EXPECT_EQ(levelOf(noYmm), CpuLevel::None);
}

TEST(CpuLevel, TilesNeedBothTheirInstructionsAndTheSystem) {
  CpuidBits tiles = everything();
  tiles.leaf7Edx = ~0u;
  EXPECT_EQ(levelOf(tiles), CpuLevel::X86V4);
  tiles.xcr0 = 0x600e7;
  EXPECT_EQ(levelOf(tiles), CpuLevel::X86V4Amx);
  tiles.leaf7Edx &= ~(1u << 25);
  EXPECT_EQ(levelOf(tiles), CpuLevel::X86V4);
}

TEST(CpuLevel, FollowsHwcaps) {
  constexpr uint64_t simd = 1 << 1, dot = 1 << 20, i8mm = 1 << 13;
  EXPECT_EQ(levelOf(ArmHwcaps{}), CpuLevel::None);
  EXPECT_EQ(levelOf(ArmHwcaps{simd, i8mm}), CpuLevel::None);
  EXPECT_EQ(levelOf(ArmHwcaps{simd | dot, 0}), CpuLevel::ArmDot);
  EXPECT_EQ(levelOf(ArmHwcaps{simd | dot, i8mm}), CpuLevel::ArmI8mm);
}

TEST(CpuLevel, NamesRoundTrip) {
  for (CpuLevel level :
       {CpuLevel::X86V3, CpuLevel::X86V4, CpuLevel::X86V4Amx, CpuLevel::ArmDot, CpuLevel::ArmI8mm})
    EXPECT_EQ(*parseCpuLevel(cpuLevelName(level)), level);
  Result<CpuLevel> unknown = parseCpuLevel("pentium");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.status().message().find("x86-64-v3, x86-64-v4, x86-64-v4-amx"),
            std::string::npos);
}

/// Case M20.
TEST(CpuLevel, ChoosesTheBestThatTheMachineHas) {
  const std::string_view both[] = {"x86-64-v3", "x86-64-v4"};
  const std::string_view newer[] = {"x86-64-v3", "x86-64-v9"};
  const std::string_view onlyV4[] = {"x86-64-v4"};
  EXPECT_EQ(*chooseCpuModule(both, CpuLevel::X86V4, ""), 1u);
  EXPECT_EQ(*chooseCpuModule(both, CpuLevel::X86V3, ""), 0u);
  EXPECT_EQ(*chooseCpuModule(newer, CpuLevel::X86V4, ""), 0u);
  Result<size_t> lacking = chooseCpuModule(onlyV4, CpuLevel::X86V3, "");
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.status().code(), StatusCode::Unsupported);
  EXPECT_NE(lacking.status().message().find("CPU levels x86-64-v4, this machine has x86-64-v3"),
            std::string::npos);
  EXPECT_FALSE(chooseCpuModule({}, CpuLevel::X86V4, ""));
  const std::string_view all[] = {"x86-64-v3", "x86-64-v4", "x86-64-v4-amx"};
  EXPECT_EQ(*chooseCpuModule(all, CpuLevel::X86V4Amx, ""), 2u);
  EXPECT_EQ(*chooseCpuModule(all, CpuLevel::X86V4, ""), 1u);
  EXPECT_EQ(*chooseCpuModule(both, CpuLevel::X86V4Amx, ""), 1u); // a plan without use for tiles
}

TEST(CpuLevel, RunsCodeOfItsOwnArchitectureOnly) {
  const std::string_view x86[] = {"x86-64-v3", "x86-64-v4"};
  const std::string_view arm[] = {"aarch64-dotprod", "aarch64-i8mm"};
  const std::string_view every[] = {"x86-64-v3", "x86-64-v4", "aarch64-dotprod", "aarch64-i8mm"};
  EXPECT_FALSE(chooseCpuModule(x86, CpuLevel::ArmI8mm, ""));
  EXPECT_FALSE(chooseCpuModule(arm, CpuLevel::X86V4Amx, ""));
  EXPECT_EQ(*chooseCpuModule(every, CpuLevel::X86V4Amx, ""), 1u);
  EXPECT_EQ(*chooseCpuModule(every, CpuLevel::ArmDot, ""), 2u);
  EXPECT_EQ(*chooseCpuModule(every, CpuLevel::ArmI8mm, ""), 3u);
  EXPECT_FALSE(chooseCpuModule(every, CpuLevel::ArmI8mm, "x86-64-v3"));
  EXPECT_FALSE(chooseCpuModule(every, CpuLevel::None, ""));
}

TEST(CpuLevel, CodeThatLeavesOutWhatTheMachineCanDo) {
  EXPECT_FALSE(isLesserCode(CpuLevel::X86V3, CpuLevel::X86V3));
  EXPECT_TRUE(isLesserCode(CpuLevel::X86V3, CpuLevel::X86V4));
  EXPECT_TRUE(isLesserCode(CpuLevel::X86V3, CpuLevel::X86V4Amx));
  EXPECT_FALSE(isLesserCode(CpuLevel::X86V4, CpuLevel::X86V4Amx)) << "no use for tiles";
  EXPECT_FALSE(isLesserCode(CpuLevel::X86V4Amx, CpuLevel::X86V4Amx));
  EXPECT_FALSE(isLesserCode(CpuLevel::ArmDot, CpuLevel::ArmI8mm)) << "no use for SMMLA";
}

TEST(CpuLevel, ForcedLevelIsTakenOrRefused) {
  const std::string_view both[] = {"x86-64-v3", "x86-64-v4"};
  const std::string_view onlyV3[] = {"x86-64-v3"};
  EXPECT_EQ(*chooseCpuModule(both, CpuLevel::X86V4, "x86-64-v3"), 0u);
  EXPECT_FALSE(chooseCpuModule(both, CpuLevel::X86V3, "x86-64-v4"));   // the machine lacks it
  EXPECT_FALSE(chooseCpuModule(onlyV3, CpuLevel::X86V4, "x86-64-v4")); // the plan lacks it
  EXPECT_FALSE(chooseCpuModule(both, CpuLevel::X86V4, "fast"));
}

} // namespace
