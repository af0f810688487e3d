// From the logits of a step to tokens, text and ends.
#include "runtime/decode/grammar/GrammarMatcher.h"
#include "runtime/engine/DrawOnDevice.h"
#include "runtime/engine/Engine.h"
#include "runtime/engine/SequenceBlocks.h"

#include <algorithm>

namespace llmrt {

void Engine::planDraws(RowDraws &draws, int64_t rows) {
  int32_t vocabulary = limits_.sampledVocabulary;
  draws.begin(rows, vocabulary, ProbabilityMass::unit(static_cast<size_t>(vocabulary)));
  int64_t next = 0;
  for (const Chunk &chunk : chunks_) {
    const Sequence &sequence = *chunk.sequence;
    const RequestOptions &options = sequence.options();
    next += chunk.rows;
    if (!chunk.samples)
      continue;
    // Other answers draw from the same row, and a prompt's rows may be asked for.
    bool onDevice = sequence.drawsOnDevice && sequence.others.empty() &&
                    !(sequence.inPrompt() && sequence.givesPromptRows());
    for (int64_t i = 0; i <= chunk.drafted; ++i) {
      std::span<const int32_t> banned, alsoBanned;
      if (sequence.outputTokens() + i < sequence.sampling.minTokens) {
        banned = options.endIds;
        alsoBanned = options.stopIds;
      }
      if (!onDevice ||
          !drawOnDevice(draws, next - 1 - chunk.drafted + i, sequence.sampling,
                        sequence.tokens.size() + static_cast<size_t>(i), banned, alsoBanned))
        ++fallbacks_.of(SlowFallback::HostDraw);
    }
  }
}

void Engine::commit(const Chunk &chunk, Row first) {
  Sequence &sequence = *chunk.sequence;
  bool ofPrompt = sequence.inPrompt();
  int64_t vocabulary = shape().vocabulary;
  sequence.computed += chunk.tokens - chunk.drafted;
  if (ofPrompt && sequence.givesPromptRows() && chunk.rows > 0 &&
      sequence.promptRowsGiven < sequence.promptTokens) {
    givePromptRows(sequence, {first.logits, static_cast<size_t>(chunk.rows * vocabulary)});
    if (sequence.finished)
      return;
  }
  if (!chunk.samples) {
    keepFullBlocks(sequence);
    return slideWindow(sequence);
  }
  Row row = first + (chunk.rows - 1 - chunk.drafted);
  if (sequence.request->beams) {
    keepFullBlocks(sequence);
    slideWindow(sequence);
    int64_t before = limits_.allocationCount ? limits_.allocationCount() : 0;
    commitBeam(sequence, row.logits);
    if (limits_.allocationCount) // the search keeps books of its own
      uncounted_ += limits_.allocationCount() - before;
    return;
  }
  if (!sequence.others.empty()) {
    keepFullBlocks(sequence);
    fork(sequence, row);
  }
  sequence.stats.draftTokens += chunk.drafted;
  if (chunk.drafted > 0) {
    metrics_.drafts.add(1);
    metrics_.draftTokens.add(chunk.drafted);
  }
  // Down the tree of guesses, as far as they are what is drawn. Row i + 1 is that of guess i.
  const int64_t known = sequence.computed;
  for (int32_t at = DraftTree::root;;) {
    const int64_t next = at + 1; // of a chain: the classical rule has no other
    int32_t token = draw(sequence, row + next, next < chunk.drafted ? next : -1);
    at = token < 0 ? DraftTree::root : followGuess(sequence, at, token);
    if (at == DraftTree::root || at >= chunk.drafted)
      break;
    ++sequence.stats.acceptedTokens;
    metrics_.acceptedTokens.add(1);
    if (sequence.finished)
      break;
    // The guess was right, so its keys and values are: in the place of its position from now on.
    if (known + at != sequence.computed)
      moveKv(sequence, known + at, sequence.computed);
    ++sequence.computed;
  }
  sequence.draft.clear();
  sequence.tree.clear();
  keepFullBlocks(sequence);
  slideWindow(sequence);
}

int32_t Engine::followGuess(Sequence &sequence, int32_t parent, int32_t token) {
  // Behind the window a guess was not verified, but it can be compared as well.
  int32_t found = DraftTree::root;
  const int32_t count = static_cast<int32_t>(sequence.draft.size());
  for (int32_t i = parent + 1; i < count; ++i) {
    if (sequence.tree.parent(i) != parent)
      continue;
    const bool same = sequence.draft[static_cast<size_t>(i)] == token;
    speculator_->observe(sequence, i, same);
    if (same && found == DraftTree::root)
      found = i;
    if (sequence.tree.isChain())
      break;
  }
  return found;
}

void Engine::moveKv(const Sequence &sequence, int64_t from, int64_t to) {
  auto slot = [&](std::span<const int32_t> blocks, int64_t place) {
    return int64_t(blocks[static_cast<size_t>(place / limits_.blockTokens)]) * limits_.blockTokens +
           place % limits_.blockTokens;
  };
  executor_->moveKv(slot(sequence.blocks, from), slot(sequence.blocks, to));
  for (uint32_t w = 0; w < sequence.windows.size(); ++w) {
    const std::vector<int32_t> &blocks = sequence.windows[w].blocks;
    executor_->moveKv(slot(blocks, from), slot(blocks, to), w + 1);
  }
}

void Engine::givePromptRows(Sequence &sequence, std::span<const float> logits) {
  const RequestOptions &options = sequence.options();
  int64_t vocabulary = shape().vocabulary, first = sequence.promptRowsGiven;
  int64_t rows = static_cast<int64_t>(logits.size()) / vocabulary;
  sequence.promptRowsGiven += rows;
  if (options.promptLogits)
    options.listener->onPromptLogits(first, logits, vocabulary);
  if (options.promptLogprobs < 0)
    return;
  for (int64_t i = 0; i < rows && first + i + 1 < sequence.promptTokens; ++i) {
    int64_t position = first + i + 1;
    Result<SampledToken> token = sampler_.score(
        logits.subspan(static_cast<size_t>(i * vocabulary), size_t(limits_.sampledVocabulary)),
        sequence.tokens[static_cast<size_t>(position)], options.promptLogprobs,
        static_cast<uint64_t>(position));
    if (!token)
      return finish(sequence, FinishReason::Error, token.status());
    options.listener->onPromptToken(position, *token);
  }
}

void Engine::fork(Sequence &sequence, Row row) {
  std::vector<std::unique_ptr<Sequence>> others = std::move(sequence.others);
  sequence.others.clear();
  for (std::unique_ptr<Sequence> &owned : others) {
    if (static_cast<int64_t>(running_.size()) >= limits_.maxSequences) {
      wait(std::move(owned)); // the prefix cache will have what it needs
      continue;
    }
    Sequence &other = *owned;
    shareBlocks(sequence, other);
    begin(std::move(owned));
    other.stats.started = sequence.stats.started;
    other.stats.cachedTokens = sequence.stats.cachedTokens;
    if (!other.finished)
      (void)draw(other, row);
  }
}

Result<SampledToken> Engine::drawnByDevice(const Sequence &sequence, int32_t token) const {
  if (token == RowDraws::notFinite)
    return Sampler::notFinite(sequence.tokens.size());
  if (token == RowDraws::allForbidden)
    return Sampler::allForbidden(sequence.tokens.size());
  if (token < 0 || token >= limits_.sampledVocabulary)
    return internalError("the device drew token " + std::to_string(token) + " of " +
                         std::to_string(limits_.sampledVocabulary));
  SampledToken drawn;
  drawn.id = token;
  return drawn;
}

int32_t Engine::draw(Sequence &sequence, Row row, int64_t guess) {
  if (static_cast<int64_t>(sequence.tokens.size()) >= sequence.maxTokens) {
    finish(sequence, FinishReason::Length); // no new token was asked for
    return -1;
  }
  const RequestOptions &options = sequence.options();
  GrammarMatcher *grammar = sequence.grammar.get();
  SamplingContext context;
  context.history = &sequence.history;
  context.tokens = sequence.tokens;
  context.promptTokens = sequence.promptTokens;
  context.surprise = &sequence.surprise;
  if (sequence.outputTokens() < sequence.sampling.minTokens) {
    context.banned = options.endIds;
    context.alsoBanned = options.stopIds;
  }
  if (grammar) {
    context.allowed = grammar->mask();
    if (grammar->canEnd() && !options.ignoreEnd)
      context.alsoAllowed = options.endIds;
  }
  std::span<const float> logits(row.logits, static_cast<size_t>(limits_.sampledVocabulary));
  bool classical = speculator_ && limits_.speculation.classical && sequence.speculation &&
                   !sequence.sampling.mirostat;
  const RowDraws *draws = executor_->rowDraws();
  Result<SampledToken> token =
      draws && draws->row(row.index).onDevice ? drawnByDevice(sequence, draws->token(row.index))
      : classical
          ? sampler_.sampleClassical(
                logits, sequence.sampling, sequence.tokens.size(), context,
                guess < 0 ? -1 : sequence.draft[static_cast<size_t>(guess)],
                guess < 0 ? std::span<const TokenProbability>()
                          : sequence.speculation->distributions.of(static_cast<size_t>(guess)))
          : sampler_.sample(logits, sequence.sampling, sequence.tokens.size(), context);
  if (!token) {
    finish(sequence, FinishReason::Error, token.status());
    return -1;
  }
  bool inside = grammar && grammar->accept(token->id); // else it is an end token
  if (grammar && !grammar->status()) {
    finish(sequence, FinishReason::Error, grammar->status());
    return -1;
  }
  commitToken(sequence, *token);
  if (inside && !sequence.finished && grammar->mustEnd())
    finish(sequence, FinishReason::Stop);
  return token->id;
}

void Engine::commitToken(Sequence &sequence, const SampledToken &token) {
  const RequestOptions &options = sequence.options();
  TokenEvent event;
  event.request = sequence.request->id;
  event.choice = sequence.choice;
  event.index = sequence.outputTokens();
  event.token = token;
  sequence.tokens.push_back(token.id);
  if (sequence.sampling.needsHistory())
    sequence.history.commit(token.id);
  sequence.sumLogprob += static_cast<double>(token.logprob);
  sequence.stats.lastToken = RequestStats::Clock::now();
  if (event.index == 0)
    sequence.stats.firstToken = sequence.stats.lastToken;
  metrics_.generationTokens.add(1);

  // An end token is part of the ids and never of the text.
  int64_t before = limits_.allocationCount ? limits_.allocationCount() : 0;
  bool ends = options.isEnd(token.id);
  TextSink::Piece piece;
  if (sequence.text && !ends) {
    Result<TextSink::Piece> pushed = sequence.text->push(token.id);
    if (!pushed)
      return finish(sequence, FinishReason::Error, pushed.status());
    piece = *pushed;
    event.text = piece.text;
  }
  bool wanted = options.listener->onToken(event);
  if (limits_.allocationCount)
    uncounted_ += limits_.allocationCount() - before;
  if (!wanted)
    return finishRequest(*sequence.request, FinishReason::Cancelled);
  if (ends)
    return finish(sequence, FinishReason::Stop);
  if (piece.stopped)
    return finish(sequence, FinishReason::Stop, {}, piece.stopString);
  if (static_cast<int64_t>(sequence.tokens.size()) >= sequence.maxTokens)
    finish(sequence, FinishReason::Length);
}

void Engine::finishRequest(const RequestState &request, FinishReason reason) {
  for (const std::unique_ptr<Sequence> &s : running_)
    if (s->request.get() == &request)
      finish(*s, reason);
  for (const std::unique_ptr<Sequence> &s : waiting_)
    if (s->request.get() == &request)
      finish(*s, reason);
}

void Engine::finish(Sequence &sequence, FinishReason reason, Status status,
                    std::string_view stopString) {
  if (sequence.finished)
    return;
  if (sequence.request->beams)
    return finishBeams(sequence, reason, status);
  sequence.finished = anyFinished_ = true;
  FinishEvent event;
  event.request = sequence.request->id;
  event.choice = sequence.choice;
  event.last = --sequence.request->unfinished == 0;
  event.reason = reason;
  event.stopString = stopString;
  event.outputTokens = sequence.outputTokens();
  event.sumLogprob = sequence.sumLogprob;
  event.stats = sequence.stats;
  event.status = status;
  // After a stop string nothing that was held back belongs to the text.
  if (sequence.text && stopString.empty())
    if (Result<std::string_view> rest = sequence.text->finish())
      event.text = *rest;
  metrics_.finished[static_cast<size_t>(reason)].add(1);
  sequence.options().listener->onFinish(event);
  for (std::unique_ptr<Sequence> &other : sequence.others) // never began
    finish(*other, reason, status);
  if (sequence.choice == 0 && !sequence.started)
    queued_.fetch_sub(1, std::memory_order_relaxed);
}

void Engine::removeFinished() {
  if (!anyFinished_)
    return;
  anyFinished_ = false;
  auto leave = [&](const std::unique_ptr<Sequence> &sequence) {
    if (!sequence->finished)
      return false;
    dropBlocks(cache_, *sequence);
    freeHostBlocks(*sequence);
    if (speculator_)
      speculator_->end(*sequence);
    if (sequence->options().deadline)
      withDeadline_ -= 1 + static_cast<int64_t>(sequence->others.size());
    return true;
  };
  std::erase_if(running_, leave);
  std::erase_if(waiting_, leave);
}

} // namespace llmrt
