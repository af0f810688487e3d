#include "runtime/decode/BeamSearch.h"

#include "runtime/decode/Math.h"

#include <algorithm>
#include <cassert>

namespace llmrt {

BeamSearch::BeamSearch(const BeamSearchParams &params, int64_t maxNewTokens)
    : params_(params), maxNewTokens_(maxNewTokens), beams_(1) {
  assert(params.width >= 1 && maxNewTokens >= 1);
}

void BeamSearch::report(size_t beam, std::span<const Candidate> candidates,
                        std::span<const TokenLogprob> likeliest) {
  Beam &b = beams_[beam];
  if (!b.candidates.empty())
    return;
  assert(!candidates.empty());
  b.candidates.assign(candidates.begin(), candidates.end());
  b.likeliest.topCount = static_cast<int32_t>(std::min(likeliest.size(), b.likeliest.top.size()));
  std::copy_n(likeliest.begin(), b.likeliest.topCount, b.likeliest.top.begin());
  ++reported_;
}

double BeamSearch::score(double sum, int64_t length) const {
  // Our own power, so that the order is the same on every machine.
  return sum / fixedExp(static_cast<double>(params_.lengthPenalty) *
                        fixedLog(static_cast<double>(length)));
}

SampledToken BeamSearch::tokenOf(const Choice &choice) const {
  SampledToken token = beams_[static_cast<size_t>(choice.beam)].likeliest;
  token.id = choice.candidate.token.id;
  token.logprob = choice.candidate.token.logprob;
  return token;
}

void BeamSearch::finish(const Choice &choice) {
  Text text;
  text.score = score(choice.sum, length_);
  auto place = std::upper_bound(finished_.begin(), finished_.end(), text.score,
                                [](double s, const Text &t) { return s > t.score; });
  size_t width = static_cast<size_t>(params_.width);
  if (finished_.size() == width && place == finished_.end())
    return;
  text.sum = choice.sum;
  text.ended = choice.candidate.ends;
  text.tokens.resize(static_cast<size_t>(length_));
  text.tokens.back() = tokenOf(choice);
  int64_t node = beams_[static_cast<size_t>(choice.beam)].node;
  for (size_t at = text.tokens.size() - 1; at-- > 0;
       node = nodes_[static_cast<size_t>(node)].before)
    text.tokens[at] = nodes_[static_cast<size_t>(node)].token;
  finished_.insert(place, std::move(text));
  if (finished_.size() > width)
    finished_.pop_back();
}

bool BeamSearch::isOver(double best) const {
  if (finished_.size() < static_cast<size_t>(params_.width))
    return false;
  if (params_.stop == BeamStop::Early)
    return true;
  // Sums only fall; with a power above 0 a longer text's score may still rise.
  bool atLimit = params_.stop == BeamStop::Never && params_.lengthPenalty > 0;
  return score(best, atLimit ? maxNewTokens_ : length_) <= finished_.back().score;
}

std::span<const BeamSearch::Next> BeamSearch::advance() {
  assert(allReported() && "a beam has not reported");
  size_t width = static_cast<size_t>(params_.width);
  choices_.clear();
  for (size_t b = 0; b < beams_.size(); ++b)
    for (const Candidate &c : beams_[b].candidates)
      choices_.push_back(
          {beams_[b].sum + static_cast<double>(c.token.logprob), static_cast<int32_t>(b), c});
  std::sort(choices_.begin(), choices_.end(), [](const Choice &x, const Choice &y) {
    if (x.sum != y.sum)
      return x.sum > y.sum;
    return x.beam != y.beam ? x.beam < y.beam : x.candidate.token.id < y.candidate.token.id;
  });
  ++length_;
  going_.clear();
  for (size_t rank = 0; rank < choices_.size(); ++rank) {
    const Choice &choice = choices_[rank];
    if (choice.candidate.ends || length_ == maxNewTokens_) {
      if (rank < width)
        finish(choice);
    } else if (going_.size() < width) {
      going_.push_back(choice);
    }
  }
  next_.clear();
  if (going_.empty() || isOver(going_.front().sum))
    return next_;
  makeNext();
  return next_;
}

void BeamSearch::makeNext() {
  spare_.clear();
  for (const Choice &choice : going_) {
    next_.push_back({choice.beam, choice.candidate.token.id});
    nodes_.push_back({beams_[static_cast<size_t>(choice.beam)].node, tokenOf(choice)});
    Beam &beam = spare_.emplace_back();
    beam.node = static_cast<int64_t>(nodes_.size()) - 1;
    beam.sum = choice.sum;
  }
  beams_.swap(spare_);
  reported_ = 0;
}

} // namespace llmrt
