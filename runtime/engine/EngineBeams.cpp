// Beam search: which sequence computes which beam, and what comes out at the end.
//
// A beam is a sequence like any other, scheduled, preempted and resumed as such. When its newest
// token is computed it reports its likeliest continuations and is parked; the last one to report
// moves all on. A beam with several continuations is copied: its blocks are shared, and the one
// that is partly filled is copied when it is written (Engine::ownLastBlock). A sequence whose beam
// has none takes up one of those copies. One that was preempted when it is copied has no blocks to
// share: the copy computes its tokens again.
#include "runtime/engine/Engine.h"
#include "runtime/engine/SequenceBlocks.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace llmrt {

Status Engine::checkBeams(const RequestOptions &options, int64_t limit) const {
  int64_t width = options.beams.width, prompt = static_cast<int64_t>(options.prompt.size());
  if (width == 0)
    return Status::ok();
  if (width < 0 || width > std::min<int64_t>(maxBeams, limits_.maxSequences))
    return invalidArgument("num_beams is " + std::to_string(width) + "; it must be from 1 to " +
                           std::to_string(std::min<int64_t>(maxBeams, limits_.maxSequences)));
  if (options.choices > width)
    return invalidArgument("n is " + std::to_string(options.choices) + " with " +
                           std::to_string(width) + " beams; at most so many answers are found");
  // A finite power: lengths go up to billions.
  if (!(options.beams.lengthPenalty >= -10 && options.beams.lengthPenalty <= 10))
    return invalidArgument("length_penalty is " + std::to_string(options.beams.lengthPenalty) +
                           "; it must be from -10 to 10");
  const SamplingParams &sampling = options.sampling;
  if (sampling.changesLogits())
    return invalidArgument("beam search ranks texts by the model's own probabilities: penalties, "
                           "DRY, logit_bias and bad_words can't be combined with it");
  if (options.grammar)
    return invalidArgument("a grammar can't be combined with beam search");
  int64_t ends = static_cast<int64_t>((options.ignoreEnd ? 0 : options.endIds.size()) +
                                      options.stopIds.size());
  if ((1 + std::max<int64_t>(1, ends)) * width > limits_.sampledVocabulary)
    return invalidArgument("num_beams is " + std::to_string(width) + ", too many for " +
                           std::to_string(limits_.sampledVocabulary) + " tokens to choose from");
  // The beams share the full blocks of the prompt.
  int64_t shared = prompt / limits_.blockTokens;
  int64_t needed = shared + width * (blocksFor(std::max(prompt, limit - 1)) - shared + 1);
  if (needed > limits_.kvBlocks)
    return resourceExhausted("a beam search of " + std::to_string(width) + " beams needs " +
                             std::to_string(needed) + " KV blocks; the pool holds " +
                             std::to_string(limits_.kvBlocks) +
                             "; ask for fewer beams or new tokens, or for a larger pool");
  return Status::ok();
}

void Engine::beginBeams(RequestState &request, int64_t maxNewTokens) {
  RequestOptions &options = request.options;
  if (options.beams.width == 0 || maxNewTokens == 0)
    return;
  request.beams = std::make_unique<BeamSearch>(options.beams, maxNewTokens);
  request.texts.push_back(std::move(options.text));
  for (std::unique_ptr<TextSink> &text : options.moreTexts)
    request.texts.push_back(std::move(text));
  request.texts.resize(static_cast<size_t>(options.choices));
}

void Engine::commitBeam(Sequence &sequence, const float *row) {
  RequestState &request = *sequence.request;
  const RequestOptions &options = request.options;
  BeamSearch &beams = *request.beams;
  std::span<const float> logits(row, static_cast<size_t>(limits_.sampledVocabulary));
  uint64_t position = sequence.tokens.size();
  size_t endCount = options.endIds.size() + options.stopIds.size();
  Status status;
  // Of the model's distribution as it is; then of what may come.
  beamCandidates_.clear();
  size_t wanted = std::max<size_t>(beams.candidates(endCount), maxLogprobs) + endCount;
  status = sampler_.likeliest(logits, wanted, position, likeliest_);
  bool tooShort = sequence.outputTokens() < options.sampling.minTokens;
  for (const TokenLogprob &token : likeliest_) {
    bool isEnd = options.isEnd(token.id);
    if (!(isEnd && tooShort))
      beamCandidates_.push_back({token, isEnd});
  }
  if (status && beamCandidates_.empty())
    status =
        invalidArgument("min_tokens forbids all tokens at position " + std::to_string(position));
  if (!status)
    return finish(sequence, FinishReason::Error, status);
  size_t shown = static_cast<size_t>(std::max<int32_t>(options.sampling.logprobs, 0));
  beams.report(static_cast<size_t>(sequence.beam), beamCandidates_,
               std::span(likeliest_).first(std::min(shown, likeliest_.size())));
  sequence.parked = true;
  if (beams.allReported())
    moveBeams(sequence);
}

void Engine::moveBeams(Sequence &sequence) {
  std::shared_ptr<RequestState> request = sequence.request;
  std::vector<Sequence *> &members = request->members;
  if (members.empty())
    members.push_back(&sequence);
  std::span<const BeamSearch::Next> next = request->beams->advance();
  if (next.empty())
    return answerBeams(*request, sequence);

  // A beam's first continuation stays where it is; the others go where nothing goes on.
  std::vector<std::unique_ptr<Sequence>> fresh = std::move(sequence.others);
  sequence.others.clear();
  std::vector<Sequence *> moved(next.size(), nullptr), unused = members;
  for (size_t i = 0; i < next.size(); ++i) {
    auto first = std::find(unused.begin(), unused.end(), members[size_t(next[i].parent)]);
    if (first == unused.end())
      continue;
    moved[i] = *first;
    unused.erase(first);
  }
  for (Sequence *place : unused) {
    dropBlocks(cache_, *place);
    freeHostBlocks(*place);
  }
  for (size_t i = 0; i < next.size(); ++i) {
    if (moved[i])
      continue;
    const Sequence &parent = *members[size_t(next[i].parent)];
    if (!unused.empty()) {
      moved[i] = unused.back();
      unused.pop_back();
      copyBeam(parent, *moved[i]);
      continue;
    }
    std::unique_ptr<Sequence> own = std::move(fresh.back());
    fresh.pop_back();
    moved[i] = own.get();
    if (static_cast<int64_t>(running_.size()) < limits_.maxSequences) {
      begin(std::move(own));
      copyBeam(parent, *moved[i]);
    } else {
      copyBeam(parent, *moved[i]);
      wait(std::move(own)); // the prefix cache will have most of what it needs
    }
  }
  assert(unused.empty() && fresh.empty() && "a live beam ended: the vocabulary is too small");
  members = std::move(moved);
  for (size_t i = 0; i < next.size(); ++i) {
    members[i]->beam = static_cast<int32_t>(i);
    members[i]->parked = false;
    members[i]->tokens.push_back(next[i].id);
    // Engine::step sees to those that run.
    if (!members[i]->resident && !members[i]->inLongContext &&
        static_cast<int64_t>(members[i]->tokens.size()) > shape().shortContext) {
      members[i]->inLongContext = true;
      freeHostBlocks(*members[i]);
    }
  }
}

void Engine::copyBeam(const Sequence &from, Sequence &to) {
  to.tokens.assign(from.tokens.begin(), from.tokens.end());
  to.inLongContext = from.inLongContext;
  if (!from.resident || !to.resident)
    return;
  shareBlocks(from, to);
}

void Engine::answerBeams(RequestState &request, const Sequence &sequence) {
  const RequestOptions &options = request.options;
  const std::vector<BeamSearch::Text> &found = request.beams->finished();
  bool wanted = true;
  for (int32_t choice = 0; choice < options.choices && wanted; ++choice) {
    const BeamSearch::Text &answer = found[static_cast<size_t>(choice)];
    TextSink *text = request.texts[static_cast<size_t>(choice)].get();
    for (size_t i = 0; i < answer.tokens.size() && wanted; ++i) {
      TokenEvent event;
      event.request = request.id;
      event.choice = choice;
      event.index = static_cast<int64_t>(i);
      event.token = answer.tokens[i];
      if (text && !(answer.ended && i + 1 == answer.tokens.size()))
        if (Result<TextSink::Piece> piece = text->push(event.token.id))
          event.text = piece->text;
      metrics_.generationTokens.add(1);
      wanted = options.listener->onToken(event);
    }
  }
  finishBeams(*request.members.front(), wanted ? FinishReason::None : FinishReason::Cancelled, {});
}

void Engine::finishBeams(Sequence &sequence, FinishReason reason, const Status &status) {
  std::shared_ptr<RequestState> request = sequence.request;
  const std::vector<BeamSearch::Text> &found = request->beams->finished();
  const Sequence *first = &sequence;
  if (request->members.empty())
    request->members.push_back(&sequence);
  for (Sequence *member : request->members) {
    member->finished = anyFinished_ = true;
    if (member->choice == 0)
      first = member;
  }
  for (int32_t choice = 0; choice < request->options.choices; ++choice) {
    FinishEvent event;
    event.request = request->id;
    event.choice = choice;
    event.last = --request->unfinished == 0;
    event.reason = reason;
    event.status = status;
    event.stats = first->stats;
    if (reason == FinishReason::None) {
      const BeamSearch::Text &answer = found[static_cast<size_t>(choice)];
      event.reason = answer.ended ? FinishReason::Stop : FinishReason::Length;
      event.outputTokens = static_cast<int64_t>(answer.tokens.size());
      event.sumLogprob = answer.sum;
      event.stats.firstToken = event.stats.lastToken = RequestStats::Clock::now();
      if (TextSink *text = request->texts[static_cast<size_t>(choice)].get())
        if (Result<std::string_view> rest = text->finish())
          event.text = *rest;
    }
    metrics_.finished[static_cast<size_t>(event.reason)].add(1);
    request->options.listener->onFinish(event);
  }
  if (!first->started)
    queued_.fetch_sub(1, std::memory_order_relaxed);
}

} // namespace llmrt
