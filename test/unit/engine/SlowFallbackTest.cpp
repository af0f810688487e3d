// What goes on without its fast way is counted, by kind; what goes the fast way is not. The mask of
// a grammar is in EngineGrammarTest, the level of the code in CpuEngineTest.
#include "test/unit/engine/SpeculationBench.h"

using namespace llmrt;
using namespace llmrt::test;

namespace {

int64_t countOf(const Engine &engine, SlowFallback kind) {
  return engine.metrics().slowFallbacks[static_cast<size_t>(kind)];
}

TEST(SlowFallback, HostMemoryWithoutRoom) {
  for (int64_t swapBlocks : {0, 2, 64}) {
    BenchOptions setup;
    setup.limits.kvBlocks = 8;
    setup.limits.swapBlocks = swapBlocks;
    setup.limits.preemption = PreemptionMode::Swap;
    TestBench bench(setup);
    std::vector<RecordingListener> listeners(4);
    for (int i = 0; i < 4; ++i)
      ASSERT_TRUE(bench.add(promptOf(20, i), 60, listeners[size_t(i)]));
    bench.drain();
    const EngineMetrics &m = bench.engine->metrics();
    ASSERT_GT(m.preemptions, 2);
    // Two blocks are too few for a sequence of more than 32 tokens; none is no host memory at all.
    EXPECT_EQ(countOf(*bench.engine, SlowFallback::SwapSpace),
              swapBlocks == 2 ? m.preemptions - m.swaps : 0);
    EXPECT_EQ(m.swaps == m.preemptions, swapBlocks == 64);
    EXPECT_EQ(countOf(*bench.engine, SlowFallback::GuessRoom), 0);
    EXPECT_EQ(countOf(*bench.engine, SlowFallback::GrammarMask), 0);
  }
}

TEST(SlowFallback, GuessesWithoutRoom) {
  for (int64_t blocks : {256, 12})
    for (int64_t draftBlocks : {0, 256, 9}) { // 0: no draft model
      BenchOptions setup;
      setup.limits.kvBlocks = blocks;
      Speculative bench(draftBlocks ? ownModel(draftBlocks) : std::make_unique<OracleDrafter>(0), 4,
                        false, setup);
      std::vector<RecordingListener> listeners(6);
      for (int i = 0; i < 6; ++i)
        bench.add(promptOf(10 + 9 * i, i), 60, listeners[size_t(i)]);
      bench.drain();
      EXPECT_EQ(countOf(*bench.engine, SlowFallback::GuessRoom) > 0,
                blocks == 12 || draftBlocks == 9)
          << blocks << " " << draftBlocks;
    }
}

} // namespace
