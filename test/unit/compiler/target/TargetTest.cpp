#include "compiler/target/Target.h"

#include <gtest/gtest.h>

using namespace llmc;

static std::string parsed(const std::vector<std::string> &values) {
  auto set = parseTargets(values);
  return set ? formatTargets(*set) : set.status().message();
}

TEST(Targets, AreReadInAnyOrderAndOnce) {
  EXPECT_EQ(parsed({}), "cpu");
  EXPECT_EQ(parsed({"cpu"}), "cpu");
  EXPECT_EQ(parsed({"cuda:sm_90a,sm_80"}), "cuda:sm_80,sm_90a");
  EXPECT_EQ(parsed({"cuda:sm_80,cpu"}), "cpu,cuda:sm_80");
  EXPECT_EQ(parsed({"cuda:sm_80", "cpu", "cuda:sm_80,cuda:sm_86"}), "cpu,cuda:sm_80,sm_86");
  EXPECT_EQ(parsed({"cuda"}), "cuda:sm_80,sm_86,sm_89,sm_90a,sm_100a,sm_120a");
}

TEST(Targets, ReadWhatTheyPrint) {
  for (const char *text : {"cpu", "cuda:sm_89", "cpu,cuda:sm_80,sm_120a"})
    EXPECT_EQ(parsed({text}), text);
}

TEST(Targets, NameWhatIsNone_invalid) {
  for (const char *text :
       {"", "gpu", "sm_80", "cpu,sm_80", "cuda:", "cuda:sm_75", "cuda:sm_80,", "cuda,sm_80"})
    EXPECT_NE(parsed({text}).find("is no target; targets are cpu, cuda"), std::string::npos)
        << text;
}

TEST(Occupancy, IsTheLeastOfItsLimits) {
  const CudaArch &a100 = *findCudaArch("sm_80");
  // 128 threads of 64 registers: 8,192 of 65,536.
  Occupancy o = occupancy(a100, 128, 64, 0);
  EXPECT_EQ(o.blocks, 8u);
  EXPECT_EQ(o.limit, "registers");
  EXPECT_DOUBLE_EQ(o.warps, 0.5);
  // 48 KiB and 1 for the system of 164.
  o = occupancy(a100, 128, 64, 48 * 1024);
  EXPECT_EQ(o.blocks, 3u);
  EXPECT_EQ(o.limit, "shared memory");
  // 32 blocks at most, whatever they need.
  EXPECT_EQ(occupancy(a100, 32, 16, 0).blocks, 32u);
  EXPECT_EQ(occupancy(a100, 32, 16, 0).limit, "blocks");
  EXPECT_EQ(occupancy(a100, 1024, 16, 0).blocks, 2u);
  // More than one block may have: none.
  EXPECT_EQ(occupancy(*findCudaArch("sm_86"), 128, 64, 100 * 1024).blocks, 0u);
  EXPECT_EQ(occupancy(a100, 128, 64, 100 * 1024).blocks, 1u);
}

TEST(Gpus, HaveAnArchitectureOfTheTable) {
  for (const CudaGpu &gpu : cudaGpus())
    EXPECT_NE(findCudaArch(gpu.arch), nullptr) << gpu.name;
}
