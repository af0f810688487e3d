//===- AttentionItems.h - a step's attention in pieces -----------------------===//
#ifndef LLMRT_DEVICE_CPU_ATTENTIONITEMS_H
#define LLMRT_DEVICE_CPU_ATTENTIONITEMS_H

#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/plan/plan_generated.h"

#include <memory>

namespace llmrt {

/// Cuts the query tiles of steps into items. A model with fewer KV heads than threads, or not a
/// multiple of them, would leave threads idle over a long context; so tiles of few tokens (a
/// decoded token, a verified guess) are cut at the plan's splits, as far as the memory set aside
/// for their partial results goes. Results don't depend on it: see LlmrtAttentionItem.
class AttentionItems {
public:
  /// For steps of up to \p mostTiles query tiles. One thread has nobody to share with.
  AttentionItems(const fbs::Plan &plan, int64_t mostTiles, unsigned threads);

  /// Items that a step can have.
  int64_t most() const { return mostTiles_ + (canCut() ? kRows : 0); }
  /// Bytes to set aside for partial results and counters, 64-byte aligned and zeros at first.
  uint64_t bytes() const { return partialBytes_ + arrivalBytes_; }
  void setMemory(uint8_t *memory) { memory_ = memory; }

  /// Sets the items of \p step, and what they need; returns how many.
  int64_t cut(LlmrtStep &step);

private:
  /// Rows of partial results (a token and split each), and tokens of a tile that is cut.
  static constexpr int64_t kRows = 256, kMostTokens = 8;

  bool canCut() const { return partialBytes_ != 0; }

  int64_t mostTiles_, split_ = 0;
  uint64_t partialBytes_ = 0, arrivalBytes_ = 0;
  uint8_t *memory_ = nullptr;
  std::unique_ptr<LlmrtAttentionItem[]> items_;
};

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_ATTENTIONITEMS_H
