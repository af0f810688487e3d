//===- Streams.h - queues of work, done as late as possible -----------------===//
//
// A stream of the stand-in driver runs nothing until something waits for it, so that a missing
// synchronisation shows: host memory is read and written when the copy runs, kernels see what the
// streams they depend on have done, and no more.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_EMULATOR_DRIVER_STREAMS_H
#define LLMC_TEST_EMULATOR_DRIVER_STREAMS_H

#include "runtime/device/cuda/DriverTypes.h"

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

namespace standin {

using llmrt::cuda::CUresult;
using Work = std::function<CUresult()>;

struct Event {
  uint64_t recorded = 0, reached = 0; ///< generations
  double seconds = 0;
};

struct Graph {
  std::vector<Work> nodes;
};

struct Stream {
  struct Operation {
    Work work; ///< or:
    Event *record = nullptr, *wait = nullptr;
    uint64_t generation = 0;
  };
  std::deque<Operation> queue;
  std::unique_ptr<Graph> capturing;
};

Stream &nullStream();
/// All streams; the null stream is one of them.
std::set<Stream *> &streams();
/// The first error of any kernel or copy stays the answer of everything after it, as on a device.
CUresult stickyError();

/// Puts work at the end of a stream, or in the graph that it captures.
CUresult enqueue(Stream &stream, Work work);
/// Runs all of a stream, and of others as far as it waits for them.
CUresult drain(Stream &stream);
CUresult drainAll();
CUresult waitFor(Event &event, uint64_t generation);
/// Gives something up once nothing is queued any more, so that queued work may still name it.
void afterQueued(std::function<void()> giveUp);

} // namespace standin

#endif // LLMC_TEST_EMULATOR_DRIVER_STREAMS_H
