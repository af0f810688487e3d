//===- GraphMemory.h - the memory of one run of `main` -----------------------===//
#ifndef LLMRT_DEVICE_CPU_GRAPHMEMORY_H
#define LLMRT_DEVICE_CPU_GRAPHMEMORY_H

#include "runtime/device/cpu/GraphAbi.h"

#include <cstdlib>

namespace llmrt {

/// Blocks in a ring, so that what a run leaves behind is found at its end.
class GraphMemory {
public:
  LlmrtGraph graph{};

  GraphMemory() {
    graph.allocate = allocate;
    graph.release = release;
    graph.node = -1;
    ring_.next = ring_.previous = &ring_;
  }
  ~GraphMemory() {
    while (ring_.next != &ring_)
      release(&graph, ring_.next + 1);
  }
  GraphMemory(const GraphMemory &) = delete;
  GraphMemory &operator=(const GraphMemory &) = delete;

private:
  struct alignas(64) Block {
    Block *next, *previous;
  };
  // `graph` is the first member, so the code's pointer to it is one to this.
  static GraphMemory &of(LlmrtGraph *graph) { return *reinterpret_cast<GraphMemory *>(graph); }

  static void *allocate(LlmrtGraph *graph, int64_t bytes) {
    GraphMemory &self = of(graph);
    constexpr int64_t largest = int64_t(1) << 47;
    auto *block =
        bytes < 0 || bytes > largest
            ? nullptr
            : static_cast<Block *>(std::aligned_alloc(
                  alignof(Block), (sizeof(Block) + static_cast<size_t>(bytes) + 63) / 64 * 64));
    if (!block) {
      graph->error = LLMRT_GRAPH_NO_MEMORY;
      graph->detail[0] = bytes;
      return nullptr;
    }
    block->next = &self.ring_;
    block->previous = self.ring_.previous;
    block->previous->next = block;
    self.ring_.previous = block;
    return block + 1;
  }
  static void release(LlmrtGraph *, void *memory) {
    Block *block = static_cast<Block *>(memory) - 1;
    block->next->previous = block->previous;
    block->previous->next = block->next;
    std::free(block);
  }

  Block ring_;
};

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_GRAPHMEMORY_H
