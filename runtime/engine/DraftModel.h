//===- DraftModel.h - a smaller model guesses for a larger one --------------===//
//
// Leviathan et al., "Fast inference from transformers via speculative decoding", 2023; Chen et al.,
// 2023. The draft model draws with the noise of the request's own seed, so its guess is the large
// model's draw wherever the two distributions are close, with sampling as without.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_ENGINE_DRAFTMODEL_H
#define LLMRT_ENGINE_DRAFTMODEL_H

#include "runtime/cache/PrefixCache.h"
#include "runtime/device/StepExecutor.h"
#include "runtime/engine/StepBuilder.h"
#include "runtime/speculate/Drafter.h"

#include <memory>
#include <vector>

namespace llmrt {

struct DraftModelLimits {
  int64_t maxBatchedTokens = 512, maxSequences = 1; ///< of a step
  int64_t blockTokens = 16, kvBlocks = 0;           ///< of its own pool
  std::vector<int64_t> windowBlocks = {};           ///< as EngineLimits::windowBlocks
  int32_t sampledVocabulary = 0;                    ///< ids that the large model may draw
};

class DraftModel final : public Drafter {
public:
  /// \p executor was made for steps of these limits, a row a sequence.
  static Result<std::unique_ptr<DraftModel>> create(std::unique_ptr<StepExecutor> executor,
                                                    const DraftModelLimits &limits);

  const char *name() const override { return "draft model"; }
  /// Blocks that no sequence holds, of the widest layers and of all others.
  int64_t freeBlocks() const;
  std::unique_ptr<DraftState> begin(int64_t maxTokens,
                                    const SamplingParams &sampling) const override;
  Status propose(std::span<DraftRequest> requests) override;
  void end(DraftState &state) override;
  bool isCostly() const override { return true; }
  void addSlowFallbacks(SlowFallbackCounts &counts) const override {
    executor_->addSlowFallbacks(counts);
    counts.of(SlowFallback::GuessRoom) += withoutRoom_;
  }

private:
  struct State;
  DraftModel(std::unique_ptr<StepExecutor> executor, const DraftModelLimits &limits);
  /// Takes over the text of \p request, and what is computed of it already.
  void update(DraftRequest &request);
  /// Puts the tokens that \p request's sequence still needs before it can guess into a chunk, as
  /// far as \p budget goes; false if there is no room for them.
  bool addChunk(DraftRequest &request, StepBudget &budget);
  Status runChunks();

  std::unique_ptr<StepExecutor> executor_;
  DraftModelLimits limits_;
  PrefixCache cache_; ///< used as a pool only: a sequence's beginning is seldom drafted twice
  StepBuilder builder_;
  Sampler sampler_;
  std::vector<Chunk> chunks_;
  std::vector<DraftRequest *> guessing_; ///< whose chunks have a row, in that order
  std::vector<DraftRequest *> again_;
  int64_t withoutRoom_ = 0; ///< sequences that lost their blocks
};

} // namespace llmrt

#endif // LLMRT_ENGINE_DRAFTMODEL_H
