#include "runtime/device/cpu/ThreadPool.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <gtest/gtest.h>
#include <thread>
#include <time.h>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace llmrt;
using Clock = std::chrono::steady_clock;

namespace {

/// Counts how often each task of each phase ran, and that no phase begins before the one before
/// it is complete.
struct Recorder {
  explicit Recorder(std::vector<int64_t> c) : counts(std::move(c)) {
    for (int64_t n : counts) {
      runs.emplace_back(n);
      done.emplace_back(0);
    }
  }
  static void task(void *context, uint32_t phase, int64_t begin, int64_t end, unsigned) {
    auto &self = *static_cast<Recorder *>(context);
    for (uint32_t p = 0; p < phase; ++p)
      if (self.done[p].load() != self.counts[p])
        self.outOfOrder = true;
    for (int64_t t = begin; t < end; ++t)
      self.runs[phase][t].fetch_add(1);
    self.done[phase].fetch_add(end - begin);
  }
  void expectEachOnce() const {
    EXPECT_FALSE(outOfOrder.load());
    for (size_t p = 0; p < counts.size(); ++p)
      for (int64_t t = 0; t < counts[p]; ++t)
        ASSERT_EQ(runs[p][t].load(), 1) << "phase " << p << " task " << t;
  }
  std::vector<int64_t> counts;
  std::deque<std::vector<std::atomic<int>>> runs;
  std::deque<std::atomic<int64_t>> done;
  std::atomic<bool> outOfOrder{false};
};

class ThreadPoolSizes : public ::testing::TestWithParam<unsigned> {};

TEST_P(ThreadPoolSizes, EveryTaskRunsOnceAndPhasesInOrder) {
  auto pool = std::move(*ThreadPool::create(GetParam(), 64));
  for (int round = 0; round < 300; ++round) {
    // Different numbers of phases a round: a late thread must not take a task of another region.
    std::vector<int64_t> counts;
    for (int p = 0; p < 1 + (round * 7) % 40; ++p)
      counts.push_back((p * 37 + round) % 5 == 0 ? 0 : (p * 13 + round) % 50);
    Recorder recorder(counts);
    pool->run(recorder.counts, Recorder::task, &recorder);
    recorder.expectEachOnce();
  }
}
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolSizes, ::testing::Values(1, 2, 3, 8));

TEST(ThreadPool, NothingToDoReturns) {
  auto pool = std::move(*ThreadPool::create(3, 4));
  Recorder recorder({0, 0, 0});
  pool->run(recorder.counts, Recorder::task, &recorder);
  pool->run({}, Recorder::task, &recorder);
}

TEST(ThreadPool, WorksAfterTheThreadsFellAsleep) {
  auto pool = std::move(*ThreadPool::create(4, 4));
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Recorder recorder({100, 3, 1});
    pool->run(recorder.counts, Recorder::task, &recorder);
    recorder.expectEachOnce();
  }
}

TEST(ThreadPool, IdleThreadsUseNoCpu) {
  auto pool = std::move(*ThreadPool::create(4, 4));
  Recorder recorder({10});
  pool->run(recorder.counts, Recorder::task, &recorder);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  auto cpu = [] {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
  };
  double before = cpu();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu() - before, 20.0) << "milliseconds of CPU in 200 ms without work";
}

// Case R04: four of eight workers three times slower. A static split takes 2 x the ideal.
TEST(ThreadPool, SlowCoresDoNotHoldUpFastOnes) {
  auto pool = std::move(*ThreadPool::create(8, 1));
  auto slowHalf = [](void *, uint32_t, int64_t begin, int64_t end, unsigned thread) {
    auto each = std::chrono::microseconds(thread % 2 ? 1500 : 500);
    std::this_thread::sleep_for(each * (end - begin));
  };
  const int64_t tasks[] = {400};
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    auto start = Clock::now();
    pool->run(tasks, slowHalf, nullptr);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  double ideal = 400 * 500e-6 / (4 + 4.0 / 3);
  EXPECT_LT(best, 1.25 * ideal + 0.005);
}

#if defined(__x86_64__)
TEST(ThreadPool, DenormalsAreZeroInsideAndTheHostsModeComesBack) {
  auto pool = std::move(*ThreadPool::create(3, 1));
  unsigned before = _mm_getcsr();
  struct Modes {
    std::atomic<int> runs{0}, wrong{0};
  } modes;
  const int64_t tasks[] = {64};
  pool->run(
      tasks,
      [](void *context, uint32_t, int64_t begin, int64_t end, unsigned) {
        auto &m = *static_cast<Modes *>(context);
        m.runs += int(end - begin);
        if ((_mm_getcsr() & 0x8040) != 0x8040)
          ++m.wrong;
      },
      &modes);
  EXPECT_EQ(modes.runs.load(), 64);
  EXPECT_EQ(modes.wrong.load(), 0);
  EXPECT_EQ(_mm_getcsr(), before);
}
#endif

} // namespace
