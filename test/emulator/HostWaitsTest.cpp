// Each wait of the host for the device is left out in turn: what the host or the device sees must
// change. The stand-in driver's streams run nothing before something waits for them.
//
// Two waits are not here, since nothing of the host's is in their way: that of createKvPools, which
// only tells of a failure early, and that before an executor's memory goes, which the driver makes
// itself when memory of the device is freed.
#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/device/cuda/Device.h"
#include "runtime/device/cuda/WeightUpload.h"
#include "runtime/engine/DeviceEngine.h"
#include "runtime/plan/PlanImage.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/TinyCudaPlan.h"
#include "test/unit/engine/ScriptedExecutor.h"

#include <functional>
#include <numeric>

using namespace llmrt;
using namespace llmrt::test;

namespace {

using Seen = std::vector<uint8_t>;

/// Counts waits from its beginning to end(), one of which is left out.
class Waits {
public:
  explicit Waits(unsigned skipped) { simt::hostWaits() = {0, skipped}; }
  void end() { met = std::exchange(simt::hostWaits(), {}).met; }
  unsigned met = 0;
};

/// \p run gives what is seen with one wait left out (0: none) and how many there are. Without one,
/// kernels may fault on what they read, which stays with the device: in processes of their own.
void expectEachIsNeeded(unsigned least,
                        const std::function<std::pair<Seen, unsigned>(unsigned)> &run) {
  const auto [want, count] = run(0);
  ASSERT_GE(count, least);
  for (unsigned skipped = 1; skipped <= count; ++skipped)
    EXPECT_EXIT(std::exit(run(skipped).first == want ? 1 : 7), testing::ExitedWithCode(7), "")
        << "wait " << skipped << " of " << count;
}

/// A plan whose weights go through both pinned buffers of uploadWeights() more than once.
std::shared_ptr<const Plan> planOfLargeWeights() {
  std::shared_ptr<const Plan> tiny = tinyPlan();
  fbs::PlanT head;
  tiny->head().UnPackTo(&head);
  std::vector<SegmentImage> segments;
  for (size_t i = 0; i < head.segments.size(); ++i) {
    auto bytes = tiny->segment(i);
    segments.push_back(
        {head.segments[i]->kind, head.segments[i]->name, {bytes.begin(), bytes.end()}});
  }
  std::vector<uint8_t> &weights = segments[0].bytes;
  for (size_t i = weights.size(); i < 29u << 20; ++i)
    weights.push_back(uint8_t(i % 251 + (i >> 20)));
  auto plan = Plan::fromMemory(buildPlanImage(head, segments), {}, "large-weights.plan");
  EXPECT_TRUE(plan) << plan.status().message();
  return *plan;
}

TEST(HostWaits, OfTheWeightsCopy) {
  const std::shared_ptr<const Plan> plan = planOfLargeWeights();
  expectEachIsNeeded(3, [&](unsigned skipped) -> std::pair<Seen, unsigned> {
    auto device = cuda::Device::open(0);
    EXPECT_TRUE(device) << device.status().message();
    const cuda::Driver &driver = (*device)->driver();
    EXPECT_TRUE((*device)->makeCurrent());
    cuda::CUstream stream = nullptr;
    EXPECT_EQ(driver.StreamCreate(&stream, cuda::CU_STREAM_NON_BLOCKING), cuda::CUDA_SUCCESS);
    Waits waits(skipped);
    auto memory = cuda::uploadWeights(driver, stream, *plan);
    waits.end();
    EXPECT_TRUE(memory) << memory.status().message();
    driver.StreamDestroy(stream); // what was queued is done
    const auto *bytes = static_cast<const uint8_t *>((*memory)[0].pointer());
    return {Seen(bytes, bytes + (*memory)[0].bytes()), waits.met};
  });
}

TEST(HostWaits, OfBlocksThatAreSavedAndLoaded) {
  expectEachIsNeeded(2, [&](unsigned skipped) -> std::pair<Seen, unsigned> {
    Seen from(16 * 32), to(16 * 32, 9);
    std::iota(from.begin(), from.end(), uint8_t(1));
    CudaExecutorOptions options;
    options.largest = {8, 1, 1, 8};
    auto executor = CudaExecutor::create(tinyCudaPlan(), options);
    EXPECT_TRUE(executor) << executor.status().message();
    EXPECT_TRUE((*executor)->createKvPool(3, 16));
    Waits waits(skipped);
    EXPECT_TRUE((*executor)->loadKvBlock(1, from.data(), 0));
    std::fill(from.begin(), from.end(), 0); // the caller's again
    EXPECT_TRUE((*executor)->saveKvBlock(1, to.data(), 0));
    const Seen seen = to;
    waits.end();
    return {seen, waits.met};
  });
}

TEST(HostWaits, OfSteps) {
  expectEachIsNeeded(9, [&](unsigned skipped) -> std::pair<Seen, unsigned> {
    EngineOptions options;
    options.maxBatchedTokens = 7;
    auto engine = createEngine(tinyCudaPlan(), options);
    EXPECT_TRUE(engine) << engine.status().message();
    RecordingListener listener;
    RequestOptions request;
    for (int32_t i = 0; i < 20; ++i)
      request.prompt.push_back(i * 5 % tinyVocabulary);
    request.maxNewTokens = 7;
    request.listener = &listener;
    EXPECT_TRUE((*engine)->add(std::move(request)));
    Waits waits(skipped);
    while ((*engine)->busy() && (*engine)->step())
      ;
    waits.end();
    Seen seen;
    for (int32_t id : listener.ids)
      seen.push_back(uint8_t(id));
    return {seen, waits.met};
  });
}

} // namespace
