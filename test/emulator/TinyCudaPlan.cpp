#include "test/emulator/TinyCudaPlan.h"

#include "runtime/device/cuda/KernelAbi.h"
#include "runtime/plan/PlanImage.h"
#include "test/unit/engine/TinyPlan.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace llmrt::test {

using namespace fbs;

namespace {

std::unique_ptr<Affine> affine(int64_t c, int64_t t = 0, int64_t r = 0, int64_t q = 0) {
  return std::make_unique<Affine>(c, t, 0, r, q);
}

CudaKernelT &add(PlanT &h, uint32_t kernel, const char *entry, std::unique_ptr<Affine> x,
                 uint32_t divide = 1) {
  auto k = std::make_unique<CudaKernelT>();
  k->kernel = kernel;
  k->module_ = 0;
  k->sm = "sm_80";
  k->entry = entry;
  k->block = 32;
  k->registers = 16;
  k->grid_x = std::move(x);
  k->grid_y = affine(1);
  k->grid_z = affine(1);
  k->divide_x = divide;
  k->scratch = affine(0);
  h.cuda_kernels.push_back(std::move(k));
  return *h.cuda_kernels.back();
}

/// What emitCudaSampling() says of the entries in tiny_kernels.cu.
void addDraws(PlanT &h) {
  struct Entry {
    const char *name;
    uint32_t block;
    int64_t blocksARow;
    uint32_t sharedBytes;
  };
  for (auto [name, block, blocksARow, sharedBytes] : {Entry{"sample_top", 64, 4, 16},
                                                      {"sample_select", 64, 1, 16424},
                                                      {"sample_draw", 64, 4, 32},
                                                      {"sample_pick", 32, 1, 0}}) {
    CudaKernelT &k = add(h, 0, name, affine(0, 0, blocksARow));
    k.block = block;
    k.shared_bytes = sharedBytes;
    k.scratch = affine(0, 0, 104);
    h.cuda_sampling.push_back(std::move(h.cuda_kernels.back()));
    h.cuda_kernels.pop_back();
  }
}

} // namespace

std::shared_ptr<const llmrt::Plan> tinyCudaPlan(const std::function<void(PlanT &)> &change,
                                                const TinyPlanOptions &options) {
  std::shared_ptr<const llmrt::Plan> cpu = tinyPlan(options);
  PlanT h;
  cpu->head().UnPackTo(&h);
  for (auto &kernel : h.kernels) {
    kernel->target = Target::Cuda;
    kernel->scratch_bytes = 0;
  }
  auto rows = std::make_unique<ConstantT>();
  rows->name = "rows";
  rows->value = 1;
  h.kernels[2]->constants.push_back(std::move(rows));
  add(h, 0, "remember_long", affine(0, 0, 0, 1)).when = CudaWhen::LongTiles;
  add(h, 0, "remember_single", affine(0, 0, 0, 1)).when = CudaWhen::SingleTiles;
  add(h, 1, "reflect", affine(0, 1), 32).context_split = 64;
  add(h, 2, "select_few", affine(1)).max_rows = 4;
  add(h, 2, "select_many", affine(0, 0, 1), 32);
  CudaKernelT &score = add(h, 3, "score", affine(0, 0, 1));
  score.shared_bytes = 4;
  score.scratch = affine(256);
  h.modules[0]->level = "sm_80.tiny";
  h.modules[0]->target = Target::Cuda;
  h.modules[0]->kernel_abi = LLMRT_CUDA_ABI;
  addDraws(h);
  change(h);
  std::ifstream in(LLMC_TINY_CUDA, std::ios::binary);
  std::vector<SegmentImage> segments;
  for (size_t i = 0; i < h.segments.size(); ++i) {
    auto bytes = cpu->segment(i);
    segments.push_back({h.segments[i]->kind, h.segments[i]->name, {bytes.begin(), bytes.end()}});
  }
  segments[1].bytes.assign(std::istreambuf_iterator<char>(in), {});
  auto plan = llmrt::Plan::fromMemory(buildPlanImage(h, segments), {}, "tiny-cuda.plan");
  EXPECT_TRUE(plan) << plan.status().message();
  return plan ? *plan : nullptr;
}

} // namespace llmrt::test
