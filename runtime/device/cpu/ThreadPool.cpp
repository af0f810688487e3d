#include "runtime/device/cpu/ThreadPool.h"

#include "runtime/device/cpu/FloatMode.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <climits>
#include <csignal>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

namespace llmrt {
namespace {

// Inside a region the next phase is microseconds away, and a futex costs about ten: spin a little
// longer than that. Between the steps of a decode loop lies the sampling: spin over it, so that
// the workers are awake for the next step; then sleep, and an idle engine costs nothing.
constexpr int64_t spinInRegion = 50'000;
constexpr int64_t spinBetweenRegions = 200'000;

inline void cpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}
void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

} // namespace

ThreadPool::ThreadPool(unsigned threads, uint32_t phases)
    : threadCount_(threads), phaseCapacity_(phases),
      counts_(std::make_unique<std::atomic<uint32_t>[]>(phases + 1)) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(unsigned threads, uint32_t phases) {
  if (threads == 0)
    return internalError("a thread pool needs at least one thread");
  if (phases > maxPhases)
    return unsupported("a step of " + std::to_string(phases) + " commands; the most is " +
                       std::to_string(maxPhases));
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads, phases));
  pool->workers_.reserve(threads - 1);
  // The application's signal handlers run on the application's threads, not on these.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::string failure;
  for (unsigned i = 1; i < threads && failure.empty(); ++i) {
    try {
      pool->workers_.emplace_back([p = pool.get(), i] { p->worker(i); });
    } catch (const std::system_error &error) {
      failure = error.what();
    }
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (!failure.empty())
    return resourceExhausted("can't start " + std::to_string(threads) + " threads: " + failure +
                             "; ask for fewer with -t");
  return pool;
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(wake_);
  for (std::thread &t : workers_)
    t.join();
}

void ThreadPool::publish(uint64_t word) {
  // seq_cst on the word and on sleepers_: either the sleeper sees the new word before it sleeps,
  // or we see the sleeper.
  word_.store(word, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) {
    wake_.fetch_add(1, std::memory_order_seq_cst);
    futexWakeAll(wake_);
  }
}

uint64_t ThreadPool::waitForChange(uint64_t seen, int64_t spinNanoseconds) {
  int64_t deadline = 0;
  for (unsigned round = 0;; ++round) {
    for (int i = 0; i < 64; ++i) {
      uint64_t word = word_.load(std::memory_order_acquire);
      if (word != seen || stop_.load(std::memory_order_relaxed))
        return word;
      cpuRelax();
    }
    int64_t now = nanoseconds();
    if (round == 0)
      deadline = now + spinNanoseconds;
    else if (now >= deadline)
      break;
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  uint64_t word;
  while (true) {
    uint32_t ticket = wake_.load(std::memory_order_seq_cst);
    word = word_.load(std::memory_order_seq_cst);
    if (word != seen || stop_.load(std::memory_order_seq_cst))
      break;
    futexWait(wake_, ticket);
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  return word;
}

uint32_t ThreadPool::firstBusy(uint32_t phase) const {
  uint32_t phases = phases_.load(std::memory_order_relaxed);
  while (phase < phases && counts_[phase].load(std::memory_order_relaxed) == 0)
    ++phase;
  return phase < phases ? phase : regionOver;
}

void ThreadPool::work(uint64_t region, unsigned thread) {
  uint64_t word = word_.load(std::memory_order_acquire);
  while (regionOf(word) == region) {
    uint32_t phase = phaseOf(word);
    if (phase == regionOver)
      return;
    int64_t next = nextOf(word);
    int64_t total = counts_[phase].load(std::memory_order_relaxed);
    if (next >= total) { // all handed out, not all done
      word = waitForChange(word, spinInRegion);
      if (stop_.load(std::memory_order_relaxed))
        return;
      continue;
    }
    int64_t share = std::max<int64_t>(1, (total - next) / (2 * int64_t(threadCount_)));
    if (!word_.compare_exchange_weak(word, word + uint64_t(share), std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      continue;
    const Task task = task_.load(std::memory_order_relaxed);
    void *const context = context_.load(std::memory_order_relaxed);
    task(context, phase, next, next + share, thread);
    if (done_.fetch_add(share, std::memory_order_acq_rel) + share == total) {
      // Nobody else touches done_ until the next phase is published.
      done_.store(0, std::memory_order_relaxed);
      // A phase of one task (of a step of one token every second one) goes on here: to hand it out
      // would cost more than most of them do.
      uint32_t following = firstBusy(phase + 1);
      for (; following != regionOver && counts_[following].load(std::memory_order_relaxed) == 1;
           following = firstBusy(following + 1))
        task(context, following, 0, 1, thread);
      publish(makeWord(region, following, 0));
    }
    word = word_.load(std::memory_order_acquire);
  }
}

void ThreadPool::worker(unsigned thread) {
  ScopedFloatMode mode;
  pthread_setname_np(pthread_self(), "llmrt");
  uint64_t seen = makeWord(0, regionOver, 0); // the word before the first region
  while (true) {
    uint64_t word = waitForChange(seen, spinBetweenRegions);
    if (stop_.load(std::memory_order_acquire))
      return;
    work(regionOf(word), thread);
    // Wait on whatever made us leave, unless a new region has begun by now.
    seen = word_.load(std::memory_order_acquire);
    if (phaseOf(seen) != regionOver)
      seen = ~seen;
  }
}

void ThreadPool::run(std::span<const int64_t> taskCounts, Task task, void *context) {
  ScopedFloatMode mode;
  if (threadCount_ == 1) {
    for (uint32_t phase = 0; phase < taskCounts.size(); ++phase)
      if (taskCounts[phase] > 0)
        task(context, phase, 0, taskCounts[phase], 0);
    return;
  }
  assert(taskCounts.size() <= phaseCapacity_ && "more phases than the pool was made for");
  // The word still says that the region before is over: nobody takes a task meanwhile.
  uint64_t region = (regionOf(word_.load(std::memory_order_relaxed)) + 1) & ((1u << 20) - 1);
  for (uint32_t phase = 0; phase < taskCounts.size(); ++phase)
    counts_[phase].store(uint32_t(taskCounts[phase]), std::memory_order_relaxed);
  phases_.store(uint32_t(taskCounts.size()), std::memory_order_relaxed);
  task_.store(task, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  publish(makeWord(region, firstBusy(0), 0));
  work(region, 0);
}

} // namespace llmrt
