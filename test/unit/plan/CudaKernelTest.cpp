// What the verifier says of CUDA launches: the valid plan with one thing wrong.
#include "runtime/plan/Plan.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>

#include <functional>

using namespace llmrt;
using namespace llmrt::test;

namespace {

struct Case {
  const char *name;
  const char *message; ///< a part of the refusal
  std::function<void(fbs::PlanT &)> damage;
};

void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }

const Case kCases[] = {
    {"Kernel", "kernel 6 of 6", [](auto &h) { h.cuda_kernels[0]->kernel = 6; }},
    {"Module", "is no CUDA module", [](auto &h) { h.cuda_kernels[0]->module_ = 9; }},
    {"ModuleOfTheCpu", "is no CUDA module", [](auto &h) { h.cuda_kernels[0]->module_ = 0; }},
    {"OtherArchitecture", "its module is not for sm_86",
     [](auto &h) { h.cuda_kernels[0]->sm = "sm_86"; }},
    {"Entry", "the entry isn't an identifier", [](auto &h) { h.cuda_kernels[0]->entry = "a b"; }},
    {"NoThreads", "beyond what a GPU can launch", [](auto &h) { h.cuda_kernels[0]->block = 0; }},
    {"TooManyThreads", "beyond what a GPU can launch",
     [](auto &h) { h.cuda_kernels[0]->block = 1025; }},
    {"Registers", "beyond what a GPU can launch",
     [](auto &h) { h.cuda_kernels[0]->registers = 256; }},
    {"SharedMemory", "beyond what a GPU can launch",
     [](auto &h) { h.cuda_kernels[0]->shared_bytes = 1 << 20; }},
    {"NoGrid", "grid y", [](auto &h) { h.cuda_kernels[0]->grid_y.reset(); }},
    {"NegativeGrid", "grid x",
     [](auto &h) { *h.cuda_kernels[0]->grid_x = fbs::Affine(0, -1, 0, 0, 0); }},
    {"HugeGrid", "grid z",
     [](auto &h) { *h.cuda_kernels[0]->grid_z = fbs::Affine(65536, 0, 0, 0, 0); }},
    {"TooManySplits", "grid z",
     [](auto &h) {
       *h.cuda_kernels[0]->grid_z = fbs::Affine(60000, 0, 0, 0, 0);
       h.cuda_kernels[0]->context_split = 16;
     }},
    {"When", "unknown 'when'", [](auto &h) { h.cuda_kernels[0]->when = fbs::CudaWhen(3); }},
    {"NoWorkspace", "the workspace", [](auto &h) { h.cuda_kernels[0]->scratch.reset(); }},
    {"HugeWorkspace", "the workspace",
     [](auto &h) { *h.cuda_kernels[0]->scratch = fbs::Affine(int64_t(1) << 50, 0, 0, 0, 0); }},
    {"KernelWithoutLaunch", "has no launch on sm_80",
     [](auto &h) { h.cuda_kernels.erase(h.cuda_kernels.begin() + 2); }},
    {"OnlyForFewRows", "has no launch on sm_80", [](auto &h) { h.cuda_kernels[2]->max_rows = 8; }},
    {"Abi", "newer than the 3", [](auto &h) { h.modules[1]->kernel_abi = 4; }},
    {"DrawsModule", "cuda_sampling[0] 'sample': module 0 is no CUDA module",
     [](auto &h) { h.cuda_sampling[0]->module_ = 0; }},
    {"DrawsGrid", "grid x", [](auto &h) { h.cuda_sampling[1]->grid_x.reset(); }},
    {"DrawsWorkspace", "the workspace", [](auto &h) { h.cuda_sampling[1]->scratch.reset(); }},
    {"DrawsOfAKernel", "which draws don't", [](auto &h) { h.cuda_sampling[0]->kernel = 1; }},
    {"DrawsOfFewRows", "which draws don't", [](auto &h) { h.cuda_sampling[0]->max_rows = 1; }},
    {"DrawsWhen", "which draws don't",
     [](auto &h) { h.cuda_sampling[0]->when = fbs::CudaWhen::LongTiles; }},
    {"DrawsSplit", "which draws don't", [](auto &h) { h.cuda_sampling[0]->context_split = 64; }},
    {"AbiZero", "kernel ABI 0", [](auto &h) { h.modules[1]->kernel_abi = 0; }},
};

class CudaKernelTest : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(CudaKernelTest, Refuses) {
  TestPlan p = makeCudaTestPlan({"sm_80", "sm_90a"});
  buildPlanImage(p.head, p.segments);
  GetParam().damage(p.head);
  auto plan = Plan::fromMemory(wrapHead(p.head, p.segments));
  ASSERT_FALSE(plan.isOk());
  EXPECT_NE(plan.status().message().find(GetParam().message), std::string::npos)
      << plan.status().message();
}

INSTANTIATE_TEST_SUITE_P(, CudaKernelTest, testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(CudaKernel, AcceptsPlansForBothTargetsAndForCudaAlone) {
  for (bool cpu : {true, false}) {
    TestPlan p = makeCudaTestPlan({"sm_80", "compute_80"});
    if (!cpu)
      for (auto &k : p.head.kernels)
        k->target = fbs::Target::Cuda;
    auto plan = Plan::fromMemory(buildPlanImage(p.head, p.segments));
    EXPECT_TRUE(plan.isOk()) << plan.status().message();
  }
}
