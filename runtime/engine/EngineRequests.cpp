// How requests come into an engine and leave it before their end.
#include "runtime/decode/grammar/GrammarMatcher.h"
#include "runtime/engine/DrawOnDevice.h"
#include "runtime/engine/Engine.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace llmrt {
namespace {

/// As in OpenAI's API.
constexpr int32_t maxChoices = 128;

std::string count(int64_t n, const char *what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

/// A stop id that no token has can never stop anything: a mistake of the caller.
Status checkIds(const std::vector<int32_t> &ids, int32_t vocabulary, const char *what) {
  for (int32_t id : ids)
    if (id < 0 || id >= vocabulary)
      return invalidArgument(std::string(what) + " names token " + std::to_string(id) +
                             "; ids go from 0 to " + std::to_string(vocabulary - 1));
  return Status::ok();
}

} // namespace

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

Status Engine::checkChoices(const RequestOptions &options) const {
  if (options.choices < 1 || options.choices > maxChoices)
    return invalidArgument("n is " + std::to_string(options.choices) + "; it must be from 1 to " +
                           std::to_string(maxChoices));
  if (options.promptLogprobs >= 0)
    LLMRT_RETURN_IF_ERROR(checkIds(options.prompt, limits_.sampledVocabulary, "the prompt"));
  assert((!options.text || options.moreTexts.size() == static_cast<size_t>(options.choices - 1)) &&
         "a text for each choice, or for none");
  return Status::ok();
}

Status Engine::checkGrammar(const RequestOptions &options) const {
  if (!options.grammar)
    return Status::ok();
  if (!options.vocabularyTrie || options.vocabularyTrie->vocabulary() != limits_.sampledVocabulary)
    return invalidArgument("a grammar needs the model's tokenizer");
  GrammarAutomaton automaton(options.grammar);
  LLMRT_RETURN_IF_ERROR(automaton.status());
  if (automaton.start() == GrammarAutomaton::dead)
    return invalidArgument("the grammar accepts no text at all");
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

Status Engine::check(const RequestOptions &options) const {
  LLMRT_RETURN_IF_ERROR(checkPrompt(options));
  LLMRT_RETURN_IF_ERROR(checkChoices(options));
  LLMRT_RETURN_IF_ERROR(checkGrammar(options));
  LLMRT_RETURN_IF_ERROR(validate(options.sampling, limits_.sampledVocabulary));
  LLMRT_RETURN_IF_ERROR(checkIds(options.stopIds, shape().vocabulary, "stop_token_ids"));
  LLMRT_ASSIGN_OR_RETURN(int64_t limit, lengthLimit(options));
  return checkBeams(options, limit);
}

std::unique_ptr<Sequence> Engine::makeSequence(std::shared_ptr<RequestState> request,
                                               int32_t choice, std::vector<int32_t> prompt,
                                               int64_t limit) const {
  auto sequence = std::make_unique<Sequence>();
  RequestOptions &options = request->options;
  sequence->choice = choice;
  sequence->sampling = options.sampling;
  sequence->sampling.stream += static_cast<uint32_t>(choice);
  if (!request->beams) // whose texts are the answers', not the sequences'
    sequence->text = choice == 0 ? std::move(options.text)
                     : options.moreTexts.empty()
                         ? nullptr
                         : std::move(options.moreTexts[static_cast<size_t>(choice - 1)]);
  sequence->promptTokens = static_cast<int64_t>(prompt.size());
  sequence->maxTokens = limit;
  sequence->inLongContext = sequence->promptTokens > shape().shortContext;
  sequence->tokens = std::move(prompt);
  sequence->tokens.reserve(static_cast<size_t>(limit));
  size_t blocks = static_cast<size_t>(blocksFor(std::max(sequence->promptTokens, limit - 1)));
  sequence->blocks.reserve(blocks);
  sequence->windows.resize(limits_.windowBlocks.size());
  for (WindowBlocks &window : sequence->windows)
    window.blocks.reserve(blocks);
  if (limits_.swapBlocks > 0)
    sequence->swapped.reserve(blocks);
  if (options.sampling.needsHistory())
    sequence->history = TokenHistory(shape().vocabulary, sequence->tokens,
                                     static_cast<size_t>(limit - sequence->promptTokens));
  if (options.grammar)
    sequence->grammar = std::make_unique<GrammarMatcher>(options.grammar, options.vocabularyTrie);
  if (speculator_ && !request->beams && limit - sequence->promptTokens > 1) {
    sequence->draft.reserve(static_cast<size_t>(speculator_->limits().tokens));
    sequence->tree.reserve(static_cast<size_t>(speculator_->limits().tokens));
    sequence->speculation = speculator_->begin(limit, sequence->sampling);
  }
  sequence->drawsOnDevice =
      executor_->rowDraws() && !limits_.speculation.classical && canDrawOnDevice(options);
  sequence->stats.promptTokens = sequence->promptTokens;
  sequence->stats.added = RequestStats::Clock::now();
  sequence->request = std::move(request);
  return sequence;
}

bool Engine::takePlaceInQueue() {
  int64_t queued = queued_.load(std::memory_order_relaxed);
  do {
    int64_t startAtOnce = std::max<int64_t>(0, limits_.maxSequences - metrics_.running);
    if (limits_.maxQueued > 0 && queued >= limits_.maxQueued + startAtOnce)
      return false;
  } while (!queued_.compare_exchange_weak(queued, queued + 1, std::memory_order_relaxed));
  return true;
}

Result<RequestId> Engine::add(RequestOptions options) {
  assert(options.listener && "nobody would hear the tokens");
  LLMRT_RETURN_IF_ERROR(check(options));
  LLMRT_ASSIGN_OR_RETURN(int64_t limit, lengthLimit(options));
  if (!takePlaceInQueue()) {
    std::lock_guard lock(mailMutex_);
    metrics_.queueRefusals.add(1);
    return Status(StatusCode::QueueFull,
                  "the queue is full: " + count(limits_.maxQueued, "request") +
                      " wait already (max-num-queued-reqs); try again later");
  }
  auto request = std::make_shared<RequestState>();
  std::vector<int32_t> prompt = std::move(options.prompt);
  request->options = std::move(options);
  request->unfinished = request->options.choices;
  RequestId id = request->id = nextId_.fetch_add(1, std::memory_order_relaxed);
  std::vector<std::unique_ptr<Sequence>> others;
  beginBeams(*request, limit - static_cast<int64_t>(prompt.size()));
  int32_t sequences = request->beams ? request->options.beams.width : request->options.choices;
  for (int32_t choice = 1; choice < sequences; ++choice)
    others.push_back(makeSequence(request, choice, prompt, limit));
  std::unique_ptr<Sequence> sequence = makeSequence(request, 0, std::move(prompt), limit);
  sequence->others = std::move(others);
  std::lock_guard lock(mailMutex_);
  added_.push_back(std::move(sequence));
  anyMail_.store(true, std::memory_order_release);
  return id;
}

void Engine::cancel(RequestId id) {
  std::lock_guard lock(mailMutex_);
  cancelled_.push_back(id);
  anyMail_.store(true, std::memory_order_release);
}

void Engine::readMail() {
  if (!anyMail_.load(std::memory_order_acquire))
    return;
  std::vector<std::unique_ptr<Sequence>> added;
  std::vector<RequestId> cancelled;
  {
    std::lock_guard lock(mailMutex_);
    added.swap(added_);
    cancelled.swap(cancelled_);
    anyMail_.store(false, std::memory_order_relaxed);
  }
  for (std::unique_ptr<Sequence> &sequence : added) {
    if (sequence->options().deadline)
      withDeadline_ += 1 + static_cast<int64_t>(sequence->others.size());
    wait(std::move(sequence));
  }
  if (!cancelled.empty())
    cancelNamed(cancelled);
}

void Engine::wait(std::unique_ptr<Sequence> sequence) {
  auto place = std::upper_bound(waiting_.begin(), waiting_.end(), sequence->rank(),
                                [](auto rank, const auto &s) { return rank < s->rank(); });
  waiting_.insert(place, std::move(sequence));
}

void Engine::cancelNamed(const std::vector<RequestId> &ids) {
  bool all = std::find(ids.begin(), ids.end(), allRequests) != ids.end();
  auto end = [&](Sequence &s) {
    if (all || std::find(ids.begin(), ids.end(), s.request->id) != ids.end())
      finish(s, FinishReason::Cancelled);
  };
  for (std::unique_ptr<Sequence> &sequence : running_)
    end(*sequence);
  for (std::unique_ptr<Sequence> &sequence : waiting_)
    end(*sequence);
  removeFinished();
}

void Engine::expire() {
  RequestStats::Clock::time_point now = RequestStats::Clock::now();
  auto end = [&](Sequence &s) {
    if (s.options().deadline && *s.options().deadline <= now)
      finish(s, FinishReason::Error,
             Status(StatusCode::DeadlineExceeded,
                    s.started ? "the request's time limit was reached after " +
                                    count(s.outputTokens(), "token")
                              : "the request's time limit was reached while it waited"));
  };
  for (std::unique_ptr<Sequence> &sequence : running_)
    end(*sequence);
  for (std::unique_ptr<Sequence> &sequence : waiting_)
    end(*sequence);
  removeFinished();
}

} // namespace llmrt
