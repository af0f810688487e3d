//===- Block.h - a running block: threads, warps, barriers ------------------===//
#ifndef LLMC_TEST_EMULATOR_BLOCK_H
#define LLMC_TEST_EMULATOR_BLOCK_H

#include "test/emulator/Abi.h"
#include "test/emulator/Checker.h"

#include <bit>
#include <map>
#include <random>
#include <vector>

namespace simt {

enum class State : uint8_t { Runnable, AtCollective, AtBarrier, AtMbarrier, AtWarpgroup, Exited };

struct AsyncCopy {
  unsigned char *destination;
  const void *source;
  int bytes, sourceBytes;
  Site site;
};

/// wgmma.mma_async, as one thread asked for it. Its sums are poisoned until it is done.
struct Product {
  float *d;
  int columns;
  const unsigned *aNow; ///< where a lies: it must not change
  unsigned a[4];
  uint64_t b;
  bool alongRows, isBf16, add;
  bool isChained;          ///< its sums are those of an earlier unfinished one
  std::vector<float> sums; ///< what d held, of the first of a chain
  Where at;
};

/// A box on its way into shared memory.
struct TensorCopy {
  struct Row {
    unsigned char *destination; ///< 16 bytes
    const void *source;         ///< null: zeros
  };
  std::vector<Row> rows;
  void *barrier;
  Site site;
};

struct Mbarrier {
  int expected = 0;  ///< arrivals of a phase
  int pending = 0;   ///< of this phase
  int64_t bytes = 0; ///< announced and not there yet
  int parity = 0;    ///< of this phase
  unsigned slot = 0; ///< of its copies in the checker's clocks
  unsigned initialiser = 0;
  bool isFenced = false; ///< copies may count on it
  Knowledge arrivals, done;
};

struct Thread : ThreadView {
  void *stackPointer; ///< while another runs
  uintptr_t stackLow, stackHigh;
  State state;
  Where at;                          ///< where it waits
  int collective;                    ///< the operation that it waits for
  unsigned mask;                     ///< and its lanes
  int barrier;                       ///< the barrier that it waits at
  unsigned meetings;                 ///< barriers and operations of the whole warp so far
  std::vector<AsyncCopy> openCopies; ///< issued since the last commit
  std::vector<std::vector<AsyncCopy>> copyGroups;
  void *mbarrier;                    ///< that it waits for
  int parity;                        ///< and the parity of the phase
  bool registersFenced;              ///< wgmma.fence since the last wait
  std::vector<Product> openProducts; ///< since the last commit
  std::vector<std::vector<Product>> productGroups;
};

/// Threads of a warpgroup that have arrived at a wait for products.
struct WarpgroupWait {
  unsigned arrived = 0;
  int groupsLeft;
  Where at;
};

/// A warp operation that lanes are gathering for.
struct Gathering {
  unsigned mask, arrived = 0;
  int kind;
  Where at;
  void *lanes[32];
};

struct Warp {
  unsigned runnable, alive;
  Gathering gatherings[32]; ///< by the lowest lane of their mask: disjoint masks run apart
};

struct Barrier {
  unsigned arrived = 0, expected = 0;
  Where at;
  std::vector<unsigned> waiting;
  Knowledge arrivals;              ///< what those that arrived without waiting knew then
  int count = 0, any = 0, all = 1; ///< of the predicates so far
  int doneCount = 0, doneAny = 0, doneAll = 0; ///< of the last completed one
};

struct Block : BlockView {
  Block() = default;
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;
  ~Block();

  const KernelEntry *kernel;
  void *const *arguments;
  unsigned threadCount, alive;
  uint64_t linear; ///< its index in the grid
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier barriers[16];
  std::map<void *, Mbarrier> mbarriers;
  std::vector<TensorCopy> tensorCopies; ///< on their way
  std::vector<WarpgroupWait> warpgroups;
  void *launcher; ///< the stack pointer of whoever runs the block
  bool failed;
  std::minstd_rand random;
  BlockChecker checker;
  // Kept from block to block.
  char *stacks = nullptr;
  size_t stacksSize = 0;
  unsigned char *sharedRegion = nullptr;
  uintptr_t staticLow = 0, staticHigh = 0; ///< static shared memory of the kernel's object

  Warp &warpOf(const Thread &t) { return warps[t.linear / 32]; }
};

/// The block and thread of this fiber. A block never changes its host thread.
extern thread_local Block *currentBlock;
inline Thread *currentThread() { return static_cast<Thread *>(simt_thread); }

/// Lets others run until this thread is runnable again; ends the block if none can.
void yieldThread();
/// Marks it as waiting, or as runnable again.
void block(Thread &t, State why, Where at);
void wake(Thread &t);

/// Lands one of the copies that are on their way, by the order of threads; false: there is none.
bool landTensorCopy(Block &b);
/// Whether an address lies in the block's shared memory.
bool isShared(const Block &b, const void *address);

/// Ends the launch with a report about the current thread.
[[noreturn]] void fail(const char *kind, const std::string &text);
/// "block (0,0,0) thread (33,0,0), warp 1 lane 1"
std::string describe(const Thread &t);

inline bool sameWhere(Where a, Where b) {
  return a.line() == b.line() && a.column() == b.column() && a.file_name() == b.file_name();
}

} // namespace simt

#endif // LLMC_TEST_EMULATOR_BLOCK_H
