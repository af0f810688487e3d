#include "runtime/plan/ElfSymbols.h"

#include "runtime/plan/Plan.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <elf.h>
#include <random>

using namespace llmrt;
using namespace llmrt::test;

static std::string refusal(const char *path) {
  std::vector<uint8_t> bytes = readFile(path);
  EXPECT_FALSE(bytes.empty()) << path;
  auto symbols = ElfSymbols::read(bytes);
  return symbols.isOk() ? "" : symbols.status().message();
}

TEST(ElfSymbols, FindsTheKernels) {
  // gnu.so has DT_GNU_HASH only, sysv.so DT_HASH only.
  for (const char *path :
       {LLMC_TEST_KERNELS, LLMC_TEST_MODULES "/gnu.so", LLMC_TEST_MODULES "/sysv.so"}) {
    std::vector<uint8_t> bytes = readFile(path);
    auto symbols = ElfSymbols::read(bytes);
    ASSERT_TRUE(symbols.isOk()) << path << symbols.status().message();
    EXPECT_TRUE(symbols->hasFunction("embed_f32_d8")) << path;
    EXPECT_TRUE(symbols->hasFunction("logits_f32_n20")) << path;
    EXPECT_FALSE(symbols->hasFunction("embed_f32")) << path;
    EXPECT_EQ(symbols->functionCount(), 8u) << path;
    EXPECT_STREQ(symbols->machine(), "x86-64");
  }
}

TEST(ElfSymbols, RefusesWhatAModuleNeverHolds) {
  EXPECT_NE(refusal(LLMC_TEST_MODULES "/needs.so").find("needs another library"),
            std::string::npos);
  EXPECT_NE(refusal(LLMC_TEST_MODULES "/imports.so").find("imports 'outside'"), std::string::npos);
  EXPECT_NE(refusal(LLMC_TEST_MODULES "/constructor.so").find("runs when it is loaded"),
            std::string::npos);
}

TEST(ElfSymbols, DataIsNoKernel) {
  for (const char *path : {LLMC_TEST_MODULES "/data.so", LLMC_TEST_MODULES "/data_function.so"}) {
    std::vector<uint8_t> bytes = readFile(path);
    auto symbols = ElfSymbols::read(bytes);
    ASSERT_TRUE(symbols.isOk()) << symbols.status().message();
    EXPECT_TRUE(symbols->hasFunction("embed_f32_d8"));
    EXPECT_FALSE(symbols->hasFunction("logits_f32_n20")) << path;
  }
}

TEST(ElfSymbols, AModuleWithoutAKernelIsNamed) {
  TestPlan p = makeTestPlan();
  p.segments[1].bytes = readFile(LLMC_TEST_MODULES "/missing.so");
  auto plan = Plan::fromMemory(buildPlanImage(p.head, p.segments));
  ASSERT_FALSE(plan.isOk());
  EXPECT_NE(plan.status().message().find(
                "code module 'x86-64-v3': doesn't provide kernel 'logits_f32_n20'"),
            std::string::npos)
      << plan.status().message();
}

TEST(ElfSymbols, RefusesOtherFiles) {
  EXPECT_FALSE(ElfSymbols::read({}).isOk());
  std::vector<uint8_t> bytes = readFile(LLMC_TEST_KERNELS), other;
  auto with = [&](size_t at, uint8_t value) {
    other = bytes;
    other[at] = value;
    return ElfSymbols::read(other).isOk();
  };
  EXPECT_FALSE(with(0, 'M'));
  EXPECT_FALSE(with(EI_CLASS, ELFCLASS32));
  EXPECT_FALSE(with(EI_DATA, ELFDATA2MSB));
  EXPECT_FALSE(with(offsetof(Elf64_Ehdr, e_type), ET_EXEC));
  EXPECT_FALSE(with(offsetof(Elf64_Ehdr, e_machine), EM_386));
}

/// No damage may make it read outside the object; a sanitizer would see it.
TEST(ElfSymbols, DamageIsNoCrash) {
  std::vector<uint8_t> good = readFile(LLMC_TEST_MODULES "/gnu.so");
  for (size_t size = 0; size < good.size(); size += size < 1024 ? 1 : 61) {
    std::vector<uint8_t> cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(size));
    (void)ElfSymbols::read(cut).isOk();
  }
  std::mt19937_64 random(3);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes = good;
    // Most of what is read lies in the first kilobytes: headers, symbols, hash table, strings.
    for (unsigned n = 1 + random() % 3; n != 0; --n) {
      static constexpr uint64_t kNasty[] = {0, ~uint64_t(0), ~uint64_t(0) >> 1, uint64_t(1) << 63,
                                            0xFFFFFFFF};
      uint64_t value = random() % 2 ? kNasty[random() % 5] : random();
      size_t at = random() % std::min<size_t>(bytes.size() - 8, 2048);
      std::memcpy(bytes.data() + at, &value, 1 + random() % 8);
    }
    auto symbols = ElfSymbols::read(bytes);
    refused += !symbols.isOk();
  }
  EXPECT_GT(refused, 1000);
}
