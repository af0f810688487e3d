// Who runs next; blocks and grids.
#include "test/emulator/Block.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/Fiber.h"
#include "test/emulator/Traffic.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <link.h>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <sys/mman.h>
#include <thread>

thread_local __attribute__((tls_model("initial-exec"))) simt::ThreadView *simt_thread = nullptr;

namespace simt {

thread_local Block *currentBlock = nullptr;

namespace {

constexpr size_t stackBytes = 128 << 10, sharedRegionBytes = 512 << 10;

std::mutex reportMutex;
std::vector<Report> &allReports() {
  static std::vector<Report> r;
  return r;
}
std::atomic<uint64_t> lastRun{0};

const char *collectiveName(int kind) {
  static const char *const names[] = {"__syncwarp", "shuffle",  "vote",    "reduce",
                                      "ldmatrix",   "ldmatrix", "mma.f16", "mma.bf16",
                                      "mma.s8",     "mma.e4m3", "mma.tf32"};
  return names[kind];
}

std::string whereText(Where at) { return Site(at).text(); }

/// The next thread after \p after by the chosen order, or null if all wait.
Thread *pick(Block &b, const Thread *after) {
  const unsigned warps = unsigned(b.warps.size());
  if (options().order == Order::Random) {
    unsigned first = unsigned(b.random()) % warps;
    for (unsigned i = 0; i < warps; ++i) {
      unsigned index = (first + i) % warps, runnable = b.warps[index].runnable;
      if (!runnable)
        continue;
      for (unsigned skip = unsigned(b.random()) % unsigned(std::popcount(runnable)); skip; --skip)
        runnable &= runnable - 1;
      return &b.threads[index * 32 + unsigned(std::countr_zero(runnable))];
    }
    return nullptr;
  }
  const bool reverse = options().order == Order::Reverse;
  unsigned first = after ? after->linear / 32 : reverse ? warps - 1 : 0;
  for (unsigned i = 0; i < warps; ++i) {
    unsigned index = reverse ? (first + warps - i) % warps : (first + i) % warps;
    unsigned runnable = b.warps[index].runnable;
    if (!runnable)
      continue;
    if (after && i == 0) { // go on around the warp
      unsigned rest =
          reverse ? runnable & ((1u << after->lane) - 1) : runnable & ~((2u << after->lane) - 1);
      runnable = rest ? rest : runnable;
    }
    return &b.threads[index * 32 + unsigned(reverse ? 31 - std::countl_zero(runnable)
                                                    : std::countr_zero(runnable))];
  }
  return nullptr;
}

void switchTo(Thread *to) {
  Thread *from = currentThread();
  simt_thread = to;
  simtSwitchFiber(&from->stackPointer, to->stackPointer);
}

/// Back to runBlock; the fibers of the block are abandoned.
[[noreturn]] void leaveBlock() {
  simt_thread = nullptr;
  void *nowhere;
  simtSwitchFiber(&nowhere, currentBlock->launcher);
  __builtin_unreachable();
}

void record(const char *kind, const std::string &text) {
  std::lock_guard lock(reportMutex);
  allReports().push_back({kind, currentBlock->kernel->name, text});
}

[[noreturn]] void deadlock(Block &b) {
  std::map<std::string, int> states;
  for (const Thread &t : b.threads)
    switch (t.state) {
    case State::Exited:
      ++states["exited"];
      break;
    case State::AtBarrier:
      ++states["at barrier " + std::to_string(t.barrier) + " (" + whereText(t.at) + ")"];
      break;
    case State::AtCollective: {
      char mask[16];
      std::snprintf(mask, sizeof mask, "%08x", t.mask);
      ++states[std::string("at ") + collectiveName(t.collective) + " of lanes " + mask + " (" +
               whereText(t.at) + ")"];
      break;
    }
    case State::AtMbarrier:
      ++states["at an mbarrier, for parity " + std::to_string(t.parity) + " (" + whereText(t.at) +
               ")"];
      break;
    case State::AtWarpgroup:
      ++states["at a wait for products (" + whereText(t.at) + ")"];
      break;
    case State::Runnable:
      ++states["runnable"];
    }
  std::string text;
  for (const auto &[state, count] : states)
    text += (text.empty() ? "" : "; ") + std::to_string(count) + " threads " + state;
  record("deadlock", "block (" + std::to_string(b.index.x) + "," + std::to_string(b.index.y) + "," +
                         std::to_string(b.index.z) + "): no thread can go on: " + text);
  b.failed = true;
  leaveBlock();
}

/// What an exit leaves open.
void checkExit(Block &b, Thread &t) {
  for (const std::vector<AsyncCopy> &group : t.copyGroups)
    if (!group.empty())
      fail("copy in flight", describe(t) + " exits without waiting for its asynchronous copy at " +
                                 group.front().site.text());
  if (!t.openCopies.empty())
    fail("copy in flight", describe(t) + " exits without waiting for its asynchronous copy at " +
                               t.openCopies.front().site.text());
  if (!t.openProducts.empty() || !t.productGroups.empty())
    fail("product in flight",
         describe(t) + " exits without waiting for its wgmma at " +
             Site((t.productGroups.empty() ? t.openProducts : t.productGroups.front()).front().at)
                 .text());
  if (const WarpgroupWait &w = b.warpgroups[t.linear / 128]; w.arrived)
    fail("warpgroup divergence",
         describe(t) + " exits while others of its warpgroup wait at " + whereText(w.at));
  for (const Gathering &g : b.warpOf(t).gatherings)
    if (g.arrived && (g.mask >> t.lane & 1))
      fail("warp divergence", describe(t) + " exits while lanes of its warp wait for it at " +
                                  collectiveName(g.kind) + " (" + whereText(g.at) + ")");
  const Barrier &whole = b.barriers[0];
  if (whole.arrived && whole.expected == b.threadCount)
    fail("barrier divergence",
         describe(t) + " exits while others wait at the barrier " + whereText(whole.at));
}

/// A fiber's whole life.
void runThread() {
  Block &b = *currentBlock;
  Thread &t = *currentThread();
  b.kernel->call(b.arguments);
  checkExit(b, t);
  t.state = State::Exited;
  Warp &w = b.warpOf(t);
  w.runnable &= ~(1u << t.lane);
  w.alive &= ~(1u << t.lane);
  --b.alive;
  Thread *next = pick(b, &t);
  while (!next && b.alive && landTensorCopy(b))
    next = pick(b, &t);
  if (!next) {
    if (b.alive)
      deadlock(b);
    if (!b.tensorCopies.empty())
      fail("copy in flight", "the block ends before its asynchronous copy at " +
                                 b.tensorCopies.front().site.text() + " is there");
    leaveBlock();
  }
  switchTo(next);
  __builtin_unreachable();
}

void prepareThreads(Block &b) {
  size_t wanted = size_t(b.threadCount) * stackBytes;
  if (b.stacksSize < wanted) {
    if (b.stacks)
      munmap(b.stacks, b.stacksSize);
    b.stacks = static_cast<char *>(mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    b.stacksSize = wanted;
  }
  b.threads.resize(b.threadCount);
  b.warps.resize((b.threadCount + 31) / 32);
  b.warpgroups.assign((b.threadCount + 127) / 128, {});
  b.mbarriers.clear();
  b.tensorCopies.clear();
  for (unsigned i = 0; i < b.warps.size(); ++i) {
    unsigned lanes = std::min(32u, b.threadCount - i * 32);
    b.warps[i].runnable = b.warps[i].alive = lanes == 32 ? ~0u : (1u << lanes) - 1;
    for (Gathering &g : b.warps[i].gatherings)
      g.arrived = 0;
  }
  for (unsigned i = 0; i < b.threadCount; ++i) {
    Thread &t = b.threads[i];
    t.index = {i % b.size.x, i / b.size.x % b.size.y, i / (b.size.x * b.size.y)};
    t.linear = i;
    t.lane = i % 32;
    t.block = &b;
    t.state = State::Runnable;
    t.meetings = 0;
    t.openCopies.clear();
    t.copyGroups.clear();
    t.registersFenced = false;
    t.openProducts.clear();
    t.productGroups.clear();
    char *low = b.stacks + i * stackBytes;
    t.stackLow = reinterpret_cast<uintptr_t>(low);
    t.stackHigh = t.stackLow + stackBytes;
    // Tops are staggered, or the same frame of all lanes would share one set of the cache.
    t.stackPointer = prepareFiber(low + stackBytes - (i % 32) * 128, runThread);
  }
}

/// False: it failed.
bool runBlock(Block &b, uint64_t firstRun) {
  currentBlock = &b;
  b.alive = b.threadCount;
  b.failed = false;
  for (Barrier &barrier : b.barriers)
    barrier = Barrier();
  prepareThreads(b);
  std::memset(b.shared, 0xff, b.sharedBytes);
  if (b.staticHigh != b.staticLow)
    std::memset(reinterpret_cast<void *>(b.staticLow), 0xff, b.staticHigh - b.staticLow);
  b.checker.on = b.kernel->checked;
  if (b.checker.on)
    b.checker.start(b, firstRun + b.linear, firstRun);
  simt_thread = pick(b, nullptr);
  simtSwitchFiber(&b.launcher, currentThread()->stackPointer);
  simt_thread = nullptr;
  finishTraffic();
  return !b.failed;
}

struct ObjectTls {
  const void *inside; ///< an address of the object
  uintptr_t low = 0, high = 0;
};

int findTls(dl_phdr_info *info, size_t, void *data) {
  auto &wanted = *static_cast<ObjectTls *>(data);
  auto address = reinterpret_cast<uintptr_t>(wanted.inside);
  bool ours = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &p = info->dlpi_phdr[i];
    uintptr_t low = info->dlpi_addr + p.p_vaddr;
    ours |= p.p_type == PT_LOAD && address >= low && address < low + p.p_memsz;
  }
  if (!ours)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (const ElfW(Phdr) &p = info->dlpi_phdr[i]; p.p_type == PT_TLS && info->dlpi_tls_data) {
      wanted.low = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
      wanted.high = wanted.low + p.p_memsz;
    }
  return 1;
}

/// The index of the i-th block to run.
uint64_t blockAt(uint64_t i, uint64_t total) {
  switch (options().order) {
  case Order::Forward:
    return i;
  case Order::Reverse:
    return total - 1 - i;
  case Order::Random:
    break;
  }
  uint64_t stride = 0x9e3779b1;
  while (std::gcd(stride, total) != 1)
    stride += 2;
  return (i % total * (stride % total) + options().seed) % total;
}

} // namespace

Block::~Block() {
  if (stacks)
    munmap(stacks, stacksSize);
  if (sharedRegion)
    munmap(sharedRegion, sharedRegionBytes);
}

Options &options() {
  static Options o;
  return o;
}

const std::vector<Report> &reports() { return allReports(); }
void clearReports() { allReports().clear(); }

std::string describe(const Thread &t) {
  const Block &b = *currentBlock;
  auto triple = [](uint3 v) {
    return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
  };
  return "block " + triple(b.index) + " thread " + triple(t.index) + ", warp " +
         std::to_string(t.linear / 32) + " lane " + std::to_string(t.lane);
}

void fail(const char *kind, const std::string &text) {
  record(kind, text);
  currentBlock->failed = true;
  leaveBlock();
}

void block(Thread &t, State why, Where at) {
  t.state = why;
  t.at = at;
  currentBlock->warpOf(t).runnable &= ~(1u << t.lane);
}

void wake(Thread &t) {
  t.state = State::Runnable;
  currentBlock->warpOf(t).runnable |= 1u << t.lane;
}

void yieldThread() {
  Thread *t = currentThread();
  Block &b = *currentBlock;
  // Copies land as late as they may: when nobody can go on without; in a random order also before.
  if (options().order == Order::Random && !b.tensorCopies.empty() && b.random() % 8 == 0)
    landTensorCopy(b);
  Thread *next = pick(b, t);
  while (!next && landTensorCopy(b))
    next = pick(b, t);
  if (!next)
    deadlock(b);
  if (next != t)
    switchTo(next);
}

bool launch(const KernelEntry &kernel, dim3 grid, dim3 size, unsigned sharedBytes,
            void *const *arguments) {
  uint64_t threads = uint64_t(size.x) * size.y * size.z, total = uint64_t(grid.x) * grid.y * grid.z;
  if (threads == 0 || threads > maxBlockThreads || sharedBytes > maxSharedBytes || total == 0) {
    std::lock_guard lock(reportMutex);
    allReports().push_back({"invalid launch", kernel.name,
                            std::to_string(total) + " blocks of " + std::to_string(threads) +
                                " threads with " + std::to_string(sharedBytes) +
                                " bytes of shared memory"});
    return false;
  }
  uint64_t firstRun = lastRun.fetch_add(total) + 1;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> ok{true};
  auto work = [&] {
    // Stacks and shared memory stay for the next launch on this host thread.
    // A pointer: a library that is loaded late has little room for thread-local variables.
    static thread_local std::unique_ptr<Block> kept;
    if (!kept)
      kept = std::make_unique<Block>();
    Block &b = *kept;
    if (!b.sharedRegion)
      b.sharedRegion = static_cast<unsigned char *>(mmap(
          nullptr, sharedRegionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    kernel.staticShared();
    ObjectTls tls{reinterpret_cast<const void *>(kernel.call)};
    dl_iterate_phdr(findTls, &tls);
    b.kernel = &kernel;
    b.arguments = arguments;
    b.threadCount = unsigned(threads);
    b.size = size;
    b.grid = grid;
    b.shared = b.sharedRegion;
    b.sharedBytes = sharedBytes;
    b.staticLow = tls.low;
    b.staticHigh = tls.high;
    for (uint64_t i; ok && (i = next++) < total;) {
      b.linear = blockAt(i, total);
      b.index = {unsigned(b.linear % grid.x), unsigned(b.linear / grid.x % grid.y),
                 unsigned(b.linear / (uint64_t(grid.x) * grid.y))};
      b.random.seed(options().seed + unsigned(b.linear) * 7919 + 1);
      if (!runBlock(b, firstRun))
        ok = false;
    }
  };
  unsigned workers = kernel.checked ? 1 : unsigned(std::min<uint64_t>(options().workers, total));
  std::vector<std::thread> others;
  for (unsigned i = 1; i < workers; ++i)
    others.emplace_back(work);
  work();
  for (std::thread &t : others)
    t.join();
  return ok;
}

} // namespace simt
