#include "runtime/engine/DraftModel.h"

#include "runtime/engine/SequenceBlocks.h"

#include <algorithm>

namespace llmrt {

/// The draft model's own view of a sequence: the tokens that it has computed, guesses among them.
struct DraftModel::State final : DraftState {
  Sequence sequence;
  SamplingParams sampling;
  int64_t agreed = 0; ///< tokens known to be the request's
};

Result<std::unique_ptr<DraftModel>> DraftModel::create(std::unique_ptr<StepExecutor> executor,
                                                       const DraftModelLimits &limits) {
  if (limits.windowBlocks.empty()) {
    LLMRT_RETURN_IF_ERROR(executor->createKvPool(limits.kvBlocks, limits.blockTokens));
  } else {
    std::vector<int64_t> blocks = {limits.kvBlocks};
    blocks.insert(blocks.end(), limits.windowBlocks.begin(), limits.windowBlocks.end());
    LLMRT_RETURN_IF_ERROR(executor->createKvPools(blocks, limits.blockTokens));
  }
  return std::unique_ptr<DraftModel>(new DraftModel(std::move(executor), limits));
}

DraftModel::DraftModel(std::unique_ptr<StepExecutor> executor, const DraftModelLimits &limits)
    : executor_(std::move(executor)), limits_(limits),
      cache_(static_cast<int32_t>(limits.kvBlocks), limits.blockTokens, false,
             WindowPool::make(executor_->shape().kvGroups, limits.windowBlocks, limits.kvBlocks,
                              limits.blockTokens)),
      builder_({limits.maxBatchedTokens, limits.maxSequences, limits.maxSequences},
               executor_->shape().queryTile, limits.blockTokens, limits.kvBlocks,
               limits.windowBlocks.size()),
      sampler_(limits.sampledVocabulary) {
  chunks_.reserve(static_cast<size_t>(limits.maxSequences));
  guessing_.reserve(static_cast<size_t>(limits.maxSequences));
  again_.reserve(static_cast<size_t>(limits.maxSequences));
}

std::unique_ptr<DraftState> DraftModel::begin(int64_t maxTokens,
                                              const SamplingParams &sampling) const {
  auto state = std::make_unique<State>();
  int64_t most = std::min<int64_t>(maxTokens, executor_->shape().maxContext);
  state->sequence.tokens.reserve(static_cast<size_t>(maxTokens + 1));
  size_t blocks = static_cast<size_t>((most + limits_.blockTokens) / limits_.blockTokens + 1);
  state->sequence.blocks.reserve(blocks);
  state->sequence.windows.resize(limits_.windowBlocks.size());
  for (WindowBlocks &window : state->sequence.windows)
    window.blocks.reserve(blocks);
  state->sampling = sampling;
  state->sampling.logprobs = -1;
  return state;
}

void DraftModel::end(DraftState &base) {
  State &state = static_cast<State &>(base);
  dropBlocks(cache_, state.sequence);
  state.sequence.tokens.clear();
  state.agreed = 0;
}

int64_t DraftModel::freeBlocks() const {
  int64_t blocks = cache_.available();
  for (const WindowPool &window : cache_.windows())
    blocks += window.available();
  return blocks;
}

bool DraftModel::addChunk(DraftRequest &request, StepBudget &budget) {
  State &state = static_cast<State &>(*request.state);
  Sequence &sequence = state.sequence;
  int64_t count = std::min(sequence.uncomputed(), budget.tokens);
  int64_t end = sequence.computed + count;
  if (count == 0 || budget.sequences == 0 || end > executor_->shape().maxContext)
    return false;
  if (!growBlocks(cache_, *executor_, sequence,
                  (end + limits_.blockTokens - 1) / limits_.blockTokens)) {
    this->end(state); // others may go on
    ++withoutRoom_;
    return false;
  }
  bool last = count == sequence.uncomputed();
  chunks_.push_back({&sequence, count, last ? 1 : 0, 0, last});
  budget.tokens -= count;
  --budget.sequences;
  if (last)
    guessing_.push_back(&request);
  return true;
}

Status DraftModel::runChunks() {
  if (chunks_.empty())
    return Status::ok();
  // A step without rows still needs one: its logits are not looked at.
  if (guessing_.empty())
    chunks_.back().rows = 1;
  Status executed = executor_->executeGroups(builder_.build(chunks_), builder_.windowTables());
  if (!executed)
    return executed.withContext("the draft model");
  for (const Chunk &chunk : chunks_)
    chunk.sequence->computed += chunk.tokens;
  return Status::ok();
}

void DraftModel::update(DraftRequest &request) {
  State &state = static_cast<State &>(*request.state);
  Sequence &sequence = state.sequence;
  std::vector<int32_t> &own = sequence.tokens;
  // What was guessed wrong, and what came instead.
  size_t same = static_cast<size_t>(state.agreed);
  while (same < own.size() && same < request.tokens.size() && own[same] == request.tokens[same])
    ++same;
  own.assign(request.tokens.begin(), request.tokens.end());
  state.agreed = static_cast<int64_t>(own.size());
  if (bool isLong = state.agreed > executor_->shape().shortContext;
      isLong != sequence.inLongContext) {
    sequence.inLongContext = isLong;
    dropBlocks(cache_, sequence);
  }
  // The last token is computed again if need be: its logits are the first guess. Nothing before it
  // is, whatever is guessed wrong from here on.
  sequence.computed = std::min({sequence.computed, static_cast<int64_t>(same), state.agreed - 1});
  slideBlocks(cache_, executor_->shape().window, limits_.blockTokens, sequence, sequence.computed);
}

Status DraftModel::propose(std::span<DraftRequest> requests) {
  StepBudget budget{limits_.maxBatchedTokens, limits_.maxSequences, limits_.maxSequences};
  chunks_.clear();
  guessing_.clear();
  for (DraftRequest &request : requests) {
    update(request);
    if (request.limit > 0)
      (void)addChunk(request, budget);
  }
  LLMRT_RETURN_IF_ERROR(runChunks());
  while (!guessing_.empty()) {
    const float *logits = executor_->logits();
    budget = {limits_.maxBatchedTokens, limits_.maxSequences, limits_.maxSequences};
    chunks_.clear();
    size_t going = 0, count = guessing_.size();
    for (size_t i = 0; i < count; ++i, logits += executor_->shape().vocabulary) {
      DraftRequest &request = *guessing_[i];
      State &state = static_cast<State &>(*request.state);
      Result<SampledToken> token =
          sampler_.sample({logits, static_cast<size_t>(limits_.sampledVocabulary)}, state.sampling,
                          *request.history, state.sequence.tokens.size());
      if (!token)
        continue; // the large model will say so, if it is the same there
      request.draft->push_back(token->id);
      if (request.distributions) { // from what it was drawn, by the same history
        SamplingContext context;
        context.history = request.history;
        LLMRT_RETURN_IF_ERROR(sampler_.distribution(
            {logits, static_cast<size_t>(limits_.sampledVocabulary)}, state.sampling,
            state.sequence.tokens.size(), context, request.distributions->entries));
        request.distributions->ends.push_back(request.distributions->entries.size());
      }
      if (static_cast<int64_t>(request.draft->size()) >= request.limit)
        continue;
      state.sequence.tokens.push_back(token->id);
      guessing_[going++] = &request;
    }
    again_.assign(guessing_.begin(), guessing_.begin() + static_cast<ptrdiff_t>(going));
    guessing_.clear();
    for (DraftRequest *request : again_)
      (void)addChunk(*request, budget);
    LLMRT_RETURN_IF_ERROR(runChunks());
  }
  return Status::ok();
}

} // namespace llmrt
