#include "runtime/engine/Engine.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace llmrt {
namespace {

std::string count(int64_t n, const char *what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

bool contains(const std::vector<int32_t> &ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// A stop id that no token has can never stop anything: a mistake of the caller.
Status checkIds(const std::vector<int32_t> &ids, int32_t vocabulary, const char *what) {
  for (int32_t id : ids)
    if (id < 0 || id >= vocabulary)
      return invalidArgument(std::string(what) + " names token " + std::to_string(id) +
                             "; ids go from 0 to " + std::to_string(vocabulary - 1));
  return Status::ok();
}

StepBudget budgetOf(const EngineLimits &limits) {
  return {limits.maxBatchedTokens, limits.maxSequences, limits.maxRows};
}

} // namespace

std::string_view finishReasonName(FinishReason reason) {
  switch (reason) {
  case FinishReason::None:
    return "";
  case FinishReason::Stop:
    return "stop";
  case FinishReason::Length:
    return "length";
  case FinishReason::Cancelled:
    return "cancelled";
  case FinishReason::Error:
    return "error";
  }
  return "";
}

Result<std::unique_ptr<Engine>> Engine::create(std::unique_ptr<StepExecutor> executor,
                                               const EngineLimits &limits) {
  const ModelShape &shape = executor->shape();
  auto within = [](int64_t value, int64_t low, int64_t high, const char *what) {
    return value >= low && value <= high
               ? Status::ok()
               : invalidArgument(std::string(what) + " is " + std::to_string(value) +
                                 "; it must be from " + std::to_string(low) + " to " +
                                 std::to_string(high));
  };
  LLMRT_RETURN_IF_ERROR(
      within(limits.maxBatchedTokens, 1, shape.maxTokens, "max-num-batched-tokens"));
  LLMRT_RETURN_IF_ERROR(within(limits.maxSequences, 1,
                               std::min(shape.maxSequences, limits.maxBatchedTokens),
                               "the number of sequences"));
  LLMRT_RETURN_IF_ERROR(within(limits.maxRows, limits.maxSequences,
                               std::min(shape.maxRows, limits.maxBatchedTokens),
                               "the number of logit rows"));
  LLMRT_RETURN_IF_ERROR(
      within(limits.sampledVocabulary, 1, shape.vocabulary, "the number of tokens to draw from"));
  if (limits.blockTokens <= 0 || limits.blockTokens % LLMRT_KV_RUN != 0 ||
      limits.blockTokens > 4096)
    return invalidArgument("block-size is " + std::to_string(limits.blockTokens) +
                           "; it must be a multiple of " + std::to_string(LLMRT_KV_RUN) +
                           " up to 4096");
  LLMRT_RETURN_IF_ERROR(within(limits.kvBlocks, 1, INT32_MAX, "the number of KV blocks"));
  LLMRT_RETURN_IF_ERROR(executor->createKvPool(limits.kvBlocks, limits.blockTokens));
  return std::unique_ptr<Engine>(new Engine(std::move(executor), limits));
}

Engine::Engine(std::unique_ptr<StepExecutor> executor, const EngineLimits &limits)
    : executor_(std::move(executor)), limits_(limits), pool_(static_cast<int32_t>(limits.kvBlocks)),
      builder_(budgetOf(limits), executor_->shape().queryTile, limits.blockTokens,
               std::min(limits.kvBlocks, blocksFor(executor_->shape().maxContext))),
      sampler_(limits.sampledVocabulary), unreservedBlocks_(limits.kvBlocks) {
  running_.reserve(static_cast<size_t>(limits.maxSequences));
  chunks_.reserve(static_cast<size_t>(limits.maxSequences));
}

Engine::~Engine() = default;

Status Engine::checkPrompt(const RequestOptions &options) const {
  if (options.prompt.empty())
    return invalidArgument("the prompt has no tokens; give at least one");
  int32_t vocabulary = shape().vocabulary;
  for (size_t i = 0; i < options.prompt.size(); ++i)
    if (options.prompt[i] < 0 || options.prompt[i] >= vocabulary)
      return invalidArgument("token " + std::to_string(i) + " of the prompt is " +
                             std::to_string(options.prompt[i]) + "; ids go from 0 to " +
                             std::to_string(vocabulary - 1));
  return Status::ok();
}

Result<int64_t> Engine::lengthLimit(const RequestOptions &options) const {
  int64_t prompt = static_cast<int64_t>(options.prompt.size());
  int64_t wanted = options.maxNewTokens, context = shape().maxContext;
  if (wanted < -1)
    return invalidArgument("the limit of new tokens is " + std::to_string(wanted) +
                           "; it must be 0 or more, or -1 for no limit");
  // One token of the answer must fit, unless none is asked for.
  if (prompt + (wanted == 0 ? 0 : 1) > context)
    return invalidArgument("the prompt has " + count(prompt, "token") +
                           "; the model's context holds " + std::to_string(context) +
                           (wanted == 0 ? "" : ", and the answer needs at least one of them"));
  int64_t limit = wanted < 0 ? context : std::min(context - prompt, wanted) + prompt;

  // The last token is never computed, so it needs no room.
  int64_t poolTokens = limits_.kvBlocks * limits_.blockTokens;
  if (wanted < 0)
    limit = std::min(limit, std::max(poolTokens + 1, prompt));
  int64_t needed = std::max(prompt, limit - 1);
  if (needed > poolTokens)
    return resourceExhausted("the request needs KV memory for " + count(needed, "token") + " (" +
                             std::to_string(prompt) + " of the prompt); the pool holds " +
                             std::to_string(poolTokens) + " (" + count(limits_.kvBlocks, "block") +
                             " of " + std::to_string(limits_.blockTokens) +
                             "); ask for fewer new tokens or a larger pool");
  return limit;
}

Result<RequestId> Engine::add(RequestOptions options) {
  assert(options.listener && "nobody would hear the tokens");
  LLMRT_RETURN_IF_ERROR(checkPrompt(options));
  LLMRT_RETURN_IF_ERROR(validate(options.sampling, limits_.sampledVocabulary));
  LLMRT_RETURN_IF_ERROR(checkIds(options.stopIds, shape().vocabulary, "stop_token_ids"));
  LLMRT_ASSIGN_OR_RETURN(int64_t limit, lengthLimit(options));

  auto sequence = std::make_unique<Sequence>();
  sequence->id = nextId_++;
  sequence->promptTokens = static_cast<int64_t>(options.prompt.size());
  sequence->maxTokens = limit;
  sequence->tokens = std::move(options.prompt);
  sequence->tokens.reserve(static_cast<size_t>(limit));
  sequence->reservedBlocks = blocksFor(std::max(sequence->promptTokens, limit - 1));
  sequence->blocks.reserve(static_cast<size_t>(sequence->reservedBlocks));
  if (options.sampling.needsHistory())
    sequence->history = TokenHistory(shape().vocabulary, sequence->tokens,
                                     static_cast<size_t>(limit - sequence->promptTokens));
  sequence->options = std::move(options);
  RequestId id = sequence->id;
  waiting_.push_back(std::move(sequence));
  return id;
}

void Engine::cancel(RequestId id) {
  std::lock_guard lock(cancelMutex_);
  cancelled_.push_back(id);
  anyCancelled_.store(true, std::memory_order_release);
}

void Engine::applyCancellations() {
  if (!anyCancelled_.load(std::memory_order_acquire))
    return;
  std::vector<RequestId> ids;
  {
    std::lock_guard lock(cancelMutex_);
    ids.swap(cancelled_);
    anyCancelled_.store(false, std::memory_order_relaxed);
  }
  auto named = [&, all = std::find(ids.begin(), ids.end(), allRequests) !=
                         ids.end()](const std::unique_ptr<Sequence> &s) {
    return all || std::find(ids.begin(), ids.end(), s->id) != ids.end();
  };
  for (std::unique_ptr<Sequence> &sequence : running_)
    if (named(sequence))
      finish(*sequence, FinishReason::Cancelled);
  removeFinished();
  for (std::unique_ptr<Sequence> &sequence : waiting_)
    if (named(sequence))
      finish(*sequence, FinishReason::Cancelled);
  std::erase_if(waiting_, named);
}

void Engine::admit() {
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < limits_.maxSequences) {
    // First come, first served: a small request never overtakes one that waits for blocks.
    if (waiting_.front()->reservedBlocks > unreservedBlocks_)
      return;
    unreservedBlocks_ -= waiting_.front()->reservedBlocks;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

void Engine::allocateBlocks(std::span<const Chunk> chunks) {
  for (const Chunk &chunk : chunks) {
    Sequence &sequence = *chunk.sequence;
    int64_t needed = blocksFor(sequence.computed + chunk.tokens);
    while (static_cast<int64_t>(sequence.blocks.size()) < needed) {
      std::optional<BlockPool::Allocation> block = pool_.allocate();
      assert(block && "blocks were set aside at admission");
      if (block->used)
        executor_->clearKvBlock(block->block);
      sequence.blocks.push_back(block->block);
    }
  }
}

Status Engine::step() {
  applyCancellations();
  admit();
  scheduleStep(running_, budgetOf(limits_), chunks_);
  if (chunks_.empty())
    return Status::ok();
  allocateBlocks(chunks_);
  LlmrtStep &step = builder_.build(chunks_);
  Status executed = executor_->execute(step);
  if (!executed) {
    for (const Chunk &chunk : chunks_)
      finish(*chunk.sequence, FinishReason::Error, executed);
    removeFinished();
    return executed;
  }
  const float *logits = executor_->logits();
  for (const Chunk &chunk : chunks_) {
    commit(chunk, logits);
    logits += chunk.rows * shape().vocabulary;
  }
  removeFinished();
  return Status::ok();
}

void Engine::commit(const Chunk &chunk, const float *logits) {
  Sequence &sequence = *chunk.sequence;
  bool ofPrompt = sequence.inPrompt();
  int64_t vocabulary = shape().vocabulary;
  sequence.computed += chunk.tokens;
  if (ofPrompt && sequence.options.promptLogits)
    sequence.options.listener->onPromptLogits(
        sequence.computed - chunk.rows, {logits, static_cast<size_t>(chunk.rows * vocabulary)},
        vocabulary);
  if (!chunk.samples)
    return;
  if (static_cast<int64_t>(sequence.tokens.size()) >= sequence.maxTokens)
    return finish(sequence, FinishReason::Length); // no new token was asked for
  const float *row = logits + (chunk.rows - 1) * vocabulary;
  Result<SampledToken> token =
      sampler_.sample({row, static_cast<size_t>(limits_.sampledVocabulary)},
                      sequence.options.sampling, sequence.history, sequence.tokens.size());
  if (!token)
    return finish(sequence, FinishReason::Error, token.status());
  commitToken(sequence, *token);
}

void Engine::commitToken(Sequence &sequence, const SampledToken &token) {
  const RequestOptions &options = sequence.options;
  TokenEvent event;
  event.request = sequence.id;
  event.index = sequence.outputTokens();
  event.token = token;
  sequence.tokens.push_back(token.id);
  if (options.sampling.needsHistory())
    sequence.history.commit(token.id);

  // An end token is part of the ids and never of the text.
  bool ends = (!options.ignoreEnd && contains(options.endIds, token.id)) ||
              contains(options.stopIds, token.id);
  TextSink::Piece piece;
  if (options.text && !ends) {
    Result<TextSink::Piece> pushed = options.text->push(token.id);
    if (!pushed)
      return finish(sequence, FinishReason::Error, pushed.status());
    piece = *pushed;
    event.text = piece.text;
  }
  if (!options.listener->onToken(event))
    return finish(sequence, FinishReason::Cancelled);
  if (ends)
    return finish(sequence, FinishReason::Stop);
  if (piece.stopped)
    return finish(sequence, FinishReason::Stop, {}, piece.stopString);
  if (static_cast<int64_t>(sequence.tokens.size()) >= sequence.maxTokens)
    finish(sequence, FinishReason::Length);
}

void Engine::finish(Sequence &sequence, FinishReason reason, Status status,
                    std::string_view stopString) {
  if (sequence.finished)
    return;
  sequence.finished = true;
  FinishEvent event;
  event.request = sequence.id;
  event.reason = reason;
  event.stopString = stopString;
  event.outputTokens = sequence.outputTokens();
  event.status = std::move(status);
  // After a stop string nothing that was held back belongs to the text.
  if (sequence.options.text && stopString.empty())
    if (Result<std::string_view> rest = sequence.options.text->finish())
      event.text = *rest;
  sequence.options.listener->onFinish(event);
}

void Engine::removeFinished() {
  for (const std::unique_ptr<Sequence> &sequence : running_) {
    if (!sequence->finished)
      continue;
    for (int32_t block : sequence->blocks)
      pool_.release(block);
    unreservedBlocks_ += sequence->reservedBlocks;
  }
  std::erase_if(running_, [](const std::unique_ptr<Sequence> &s) { return s->finished; });
}

} // namespace llmrt
