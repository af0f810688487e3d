#include "runtime/device/cpu/AttentionItems.h"

#include <algorithm>

namespace llmrt {
namespace {

int64_t constant(const fbs::Kernel &kernel, std::string_view name) {
  for (const fbs::Constant *c : *kernel.constants())
    if (c->name()->string_view() == name)
      return c->value();
  return 0;
}

uint64_t roundUp64(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

} // namespace

AttentionItems::AttentionItems(const fbs::Plan &plan, int64_t mostTiles, unsigned threads)
    : mostTiles_(mostTiles) {
  uint64_t rowFloats = 0, tasks = 0;
  for (const fbs::Command *command : *plan.commands()) {
    const fbs::Kernel &kernel = *plan.kernels()->Get(command->kernel());
    if (kernel.kind()->string_view() != "attention")
      continue;
    split_ = constant(kernel, "key_split"); // the same in all: verified
    rowFloats =
        std::max(rowFloats, uint64_t(constant(kernel, "heads")) *
                                LLMRT_PARTIAL_FLOATS(uint64_t(constant(kernel, "value_size"))));
    tasks = std::max(tasks, uint64_t(command->tasks()->per_tile()));
  }
  if (split_ == 0)
    return;
  if (threads > 1) {
    partialBytes_ = roundUp64(kRows * rowFloats * 4);
    arrivalBytes_ = roundUp64(kRows / 2 * tasks * 4); // a tile that is cut takes two rows at least
  }
  items_ = std::make_unique<LlmrtAttentionItem[]>(static_cast<size_t>(most()));
}

int64_t AttentionItems::cut(LlmrtStep &step) {
  step.items = items_.get();
  step.itemCount = 0;
  step.partials = nullptr;
  step.arrivals = nullptr;
  if (split_ == 0)
    return step.Q;
  if (canCut()) {
    step.partials = reinterpret_cast<float *>(memory_);
    step.arrivals = reinterpret_cast<uint32_t *>(memory_ + partialBytes_);
  }
  int64_t n = 0, rows = 0;
  int32_t arrival = 0;
  for (int64_t q = 0; q < step.Q; ++q) {
    const int64_t count = step.tileCount[q], start = step.tileStart[q];
    int64_t splits = 1;
    if (canCut() && count <= kMostTokens) {
      const int32_t last =
          *std::max_element(step.positions + start, step.positions + start + count);
      splits = last / split_ + 1;
    }
    const int32_t tile = static_cast<int32_t>(q);
    if (splits == 1 || rows + splits * count > kRows) {
      items_[n++] = {tile, -1, 0, 0, 0};
      continue;
    }
    for (int64_t s = 0; s < splits; ++s, rows += count)
      items_[n++] = {tile, static_cast<int32_t>(s), static_cast<int32_t>(splits),
                     static_cast<int32_t>(rows), arrival};
    ++arrival;
  }
  return step.itemCount = n;
}

} // namespace llmrt
