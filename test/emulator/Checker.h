//===- Checker.h - who touched which byte, and what ordered it --------------===//
//
// Exact happens-before in a block. Each thread has a counter that grows at every synchronisation
// and a vector of what it knows of the others' counters. A barrier of the whole block orders
// everything before it: it starts a new epoch, and vectors count from it, so its cost does not grow
// with the square of the threads. Shuffles and matrix operations order no memory, as on a GPU.
//
// Between blocks of a launch nothing is ordered, but by fences and atomics as PTX's memory model
// has it (Visibility.h): what a thread knew of at a __threadfence is published by the atomics that
// this thread makes after it, and is known to a thread that fences after its atomic at that
// address. The others of either block learn it, or are learned of, by barriers.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_EMULATOR_CHECKER_H
#define LLMC_TEST_EMULATOR_CHECKER_H

#include "test/emulator/Abi.h"
#include "test/emulator/Site.h"
#include "test/emulator/Visibility.h"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace simt {

struct Thread;
struct Block;

/// Clocks of a block besides those of its threads: one an mbarrier, of the copies that count on it.
inline constexpr unsigned maxMbarriers = 32;

enum class Mode : uint8_t { Read, Write, Atomic };

/// One access, for comparing with later ones. Runs number block executions from 1; 0 is no access.
struct Access {
  uint64_t run = 0;
  uint32_t epoch = 0, clock = 0;
  uint16_t thread = 0;
  bool atomic = false;
  Site site;
};

/// The last accesses to four bytes, or to one where threads share a word.
struct Cell {
  Access write, read;
  int32_t readers = -1; ///< several unordered ones of this run: index into BlockChecker::readers
  int32_t bytes = -1;   ///< index into Shadow::split
  bool readByOtherRuns = false; ///< of the same launch as `read`
};

/// Cells of a piece of memory, made as they are needed.
class Shadow {
public:
  /// The cells that cover [offset, offset + bytes).
  template <typename F> void each(uint64_t offset, int bytes, F f) {
    uint64_t end = offset + uint64_t(bytes);
    while (offset < end) {
      Cell &cell = word(offset / 4);
      if (offset % 4 == 0 && end - offset >= 4 && cell.bytes < 0) {
        f(cell);
        offset += 4;
        continue;
      }
      if (cell.bytes < 0) {
        cell.bytes = int32_t(split_.size());
        Cell one = cell;
        one.bytes = -1;
        split_.push_back({one, one, one, one});
      }
      std::array<Cell, 4> &parts = split_[size_t(cell.bytes)];
      do
        f(parts[offset % 4]);
      while (++offset < end && offset % 4 != 0);
    }
  }

private:
  static constexpr uint64_t pageWords = 1024;
  Cell &word(uint64_t index) {
    uint64_t page = index / pageWords;
    if (page >= pages_.size())
      pages_.resize(page + 1);
    if (!pages_[page])
      pages_[page] = std::make_unique<std::array<Cell, pageWords>>();
    return (*pages_[page])[index % pageWords];
  }
  std::vector<std::unique_ptr<std::array<Cell, pageWords>>> pages_;
  std::deque<std::array<Cell, 4>> split_;
};

/// State of each byte of shared memory.
enum ByteState : uint8_t { Uninitialised, Initialised, InFlight };

/// The checker's part of a running block.
struct BlockChecker {
  bool on = false;
  uint64_t run = 0, firstRunOfLaunch = 0;
  uint32_t epoch = 0;
  std::vector<uint32_t> clocks;     ///< [threads + maxMbarriers] own counters
  std::vector<uint32_t> known;      ///< [threads, threads + maxMbarriers], of this epoch
  std::vector<uint32_t> fencedAt;   ///< [threads] own counters at the last fence.proxy.async
  std::vector<uint32_t> knownEpoch; ///< [threads]: rows of other epochs are zero
  std::vector<std::vector<Access>> readers;
  std::vector<ThreadVisibility> visibility; ///< [threads]
  Shadow sharedShadow, staticShadow;
  std::vector<uint8_t> sharedState, staticState;

  void start(const Block &block, uint64_t run, uint64_t firstRun);
  void barrierOfAll();
  /// Orders everything that \p threads did, and knew, before them all; and \p more.
  void join(const std::vector<unsigned> &threads, Knowledge more = {});
  /// Adds what \p thread knows to \p knowledge; what it does from now on is news.
  void tell(unsigned thread, Knowledge &knowledge);
  /// From now on \p thread knows this.
  void learn(unsigned thread, const Knowledge &knowledge);
  /// __threadfence by \p thread.
  void fence(unsigned thread);
};

/// Every access of a kernel comes here: bounds and alignment always, the rest in checked objects.
/// \p isCounted: it is a transaction of its own (Traffic.h).
void checkAccess(const void *address, int bytes, Mode mode, Site site, int alignment,
                 bool isCounted = true);
/// A read of shared memory by the asynchronous proxy on behalf of the current thread: what threads
/// wrote must be ordered before, with a proxy fence of the writer between.
void checkProxyRead(const void *address, int bytes, Site site);
/// Shared memory only: the copies of clock \p slot wrote these bytes.
void noteCopied(const void *address, int bytes, unsigned slot, Site site);
/// Shared memory only: the state of bytes that an asynchronous copy writes.
void setSharedState(const void *address, int bytes, ByteState state);
/// Before the atomic at \p address itself: publishes and takes up.
void noteAtomic(const void *address);

} // namespace simt

#endif // LLMC_TEST_EMULATOR_CHECKER_H
