#include "runtime/engine/Speculator.h"

#include "runtime/decode/grammar/GrammarMatcher.h"

#include <algorithm>
#include <chrono>

namespace llmrt {
namespace {

/// Before anything was seen: a little hope, more where the drafter is sure.
constexpr DraftShares firstShares = {{{0.35f, 0.5f, 0.6f, 0.12f},
                                      {0.5f, 0.65f, 0.75f, 0.12f},
                                      {0.65f, 0.8f, 0.9f, 0.1f},
                                      {0.8f, 0.9f, 0.95f, 0.05f}}};
/// Weight of the newest guess, in a sequence and over all.
constexpr float sequenceRate = 0.12f, overallRate = 0.02f;
/// Weight of a costly drafter's newest time.
constexpr float timeRate = 0.15f;
/// Before other sizes were timed, each token more is taken to cost this share of a step.
constexpr double firstTokenShare = 0.08;
/// Tokens between two tries of a costly drafter that doesn't pay now, and steps between two timings
/// of a plain step: each costs below one percent.
constexpr int64_t tryAgainTokens = 48, plainSteps = 128;
/// Steps after which the times of a size that no step had are forgotten. Times from when the
/// machine stood still would keep windows closed, and so never be replaced; where a window doesn't
/// pay, it is tried once in so many steps.
constexpr int64_t forgetSteps = 512;

} // namespace

void StepTime::add(float seconds, int64_t step) {
  lastStep_ = step;
  newest_[next_] = seconds;
  next_ = static_cast<uint8_t>((next_ + 1) % newest_.size());
  count_ = static_cast<uint8_t>(std::min<size_t>(count_ + 1u, newest_.size()));
  std::array<float, 5> sorted = newest_;
  auto end = sorted.begin() + count_, middle = sorted.begin() + (count_ - 1) / 2;
  std::nth_element(sorted.begin(), middle, end);
  median_ = *middle;
}

Speculator::Speculator(std::unique_ptr<Drafter> drafter, const SpeculationLimits &limits,
                       int64_t maxSequences, int64_t maxStepTokens, int64_t shortContext)
    : drafter_(std::move(drafter)), limits_(limits), shortContext_(shortContext),
      shares_(firstShares), seconds_(static_cast<size_t>(maxStepTokens + 1)) {
  requests_.reserve(static_cast<size_t>(maxSequences));
  sequences_.reserve(static_cast<size_t>(maxSequences));
}

std::unique_ptr<SpeculationState> Speculator::begin(int64_t maxTokens,
                                                    const SamplingParams &sampling) const {
  auto state = std::make_unique<SpeculationState>();
  state->drafts = drafter_->begin(maxTokens, sampling);
  return state;
}

void Speculator::end(Sequence &sequence) {
  if (sequence.speculation && sequence.speculation->drafts)
    drafter_->end(*sequence.speculation->drafts);
}

float Speculator::shareOf(const Sequence &sequence, int32_t grade, size_t place) const {
  float own = sequence.speculation->accepted[size_t(grade)][place];
  return own > 0 ? own : shares_[size_t(grade)][place];
}

static size_t placeOf(const DraftTree &tree, int64_t guess) {
  return tree.isLaterChoice(guess) ? secondChoice : draftPlace(tree.depth(guess));
}

void Speculator::observe(Sequence &sequence, int64_t guess, bool cameTrue) {
  int32_t grade = sequence.speculation->grade;
  size_t place = placeOf(sequence.tree, guess);
  float value = cameTrue ? 1.0f : 0.0f, before = shareOf(sequence, grade, place);
  sequence.speculation->accepted[size_t(grade)][place] =
      std::max(before + (value - before) * sequenceRate, 1e-6f);
  float &overall = shares_[size_t(grade)][place];
  overall += (value - overall) * overallRate;
}

void Speculator::observeStep(int64_t tokens, double seconds) {
  seconds_[static_cast<size_t>(
               std::min<int64_t>(tokens, static_cast<int64_t>(seconds_.size()) - 1))]
      .add(static_cast<float>(seconds), ++steps_);
  if (steps_ % forgetSteps == 0)
    for (StepTime &time : seconds_)
      if (steps_ - time.lastStep() >= forgetSteps)
        time = {};
}

double Speculator::stepSeconds(int64_t tokens) const {
  // On a line through the nearest sizes that were timed.
  int64_t last = static_cast<int64_t>(seconds_.size()) - 1;
  tokens = std::min(tokens, last);
  int64_t below = tokens, above = tokens;
  while (below > 0 && seconds_[size_t(below)].seconds() == 0)
    --below;
  while (above < last && seconds_[size_t(above)].seconds() == 0)
    ++above;
  double low = seconds_[size_t(below)].seconds(), high = seconds_[size_t(above)].seconds();
  if (low == 0 && high == 0)
    return 1 + firstTokenShare * static_cast<double>(tokens); // in any unit
  if (low == 0)
    return high;
  if (high == 0)
    return low * (1 + firstTokenShare * static_cast<double>(tokens - below));
  if (above == below)
    return low;
  double share = static_cast<double>(tokens - below) / static_cast<double>(above - below);
  return low + (std::max(high, low) - low) * share;
}

int64_t Speculator::wanted(const Sequence &sequence) const {
  // The last token of an answer is never computed, so it needs no guess behind it. A window ends
  // where the long context begins, in which the tokens before it have other keys.
  const int64_t known = static_cast<int64_t>(sequence.tokens.size());
  return std::min({limits_.tokens, sequence.maxTokens - known - 1,
                   sequence.inLongContext ? limits_.tokens : shortContext_ - known});
}

int64_t Speculator::costlyWindow(int64_t decoding, const Sequence &sequence) const {
  double plain = stepSeconds(decoding), best = 1 / plain, expected = 1, chance = 1;
  int64_t window = 0;
  for (int64_t k = 1; k <= limits_.tokens; ++k) {
    expected += chance *= double(shareOf(sequence, 0, draftPlace(k)));
    double seconds = stepSeconds(decoding * (k + 1)) + secondsPerGuess_ * static_cast<double>(k);
    if (expected / seconds > best)
      best = expected / seconds, window = k;
  }
  return window;
}

Status Speculator::propose(std::span<const std::unique_ptr<Sequence>> running) {
  requests_.clear();
  sequences_.clear();
  bool costly = drafter_->isCostly() && limits_.adaptive;
  int64_t decoding = std::count_if(running.begin(), running.end(),
                                   [](const auto &s) { return s->isDecoding() && !s->finished; });
  // Now and then the plain step is timed again, which every window is compared with.
  bool plain = limits_.adaptive && ++sincePlain_ > plainSteps;
  if (plain)
    sincePlain_ = 0;
  for (const std::unique_ptr<Sequence> &sequence : running) {
    sequence->draft.clear();
    sequence->tree.clear();
    sequence->window = 0;
    if (!sequence->speculation || !sequence->isDecoding() || sequence->finished)
      continue;
    int64_t limit = wanted(*sequence);
    SpeculationState &state = *sequence->speculation;
    if (costly) {
      int64_t pays = costlyWindow(decoding, *sequence);
      if (pays == 0 && ++state.sinceGuess >= tryAgainTokens)
        pays = 1;
      if (pays > 0)
        state.sinceGuess = 0;
      limit = std::min(limit, plain ? 0 : pays);
    }
    if (limit <= 0)
      continue;
    requests_.push_back({state.drafts.get(), sequence->tokens, &sequence->sampling,
                         &sequence->history, limit, &sequence->draft,
                         limits_.classical ? &state.distributions : nullptr,
                         // A grammar's masks are made along one path.
                         limits_.trees && !sequence->grammar ? &sequence->tree : nullptr, 0});
    state.distributions.clear();
    sequences_.push_back(sequence.get());
  }
  if (requests_.empty())
    return Status::ok();
  auto start = std::chrono::steady_clock::now();
  LLMRT_RETURN_IF_ERROR(drafter_->propose(requests_));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  int64_t longest = 0;
  bool fresh = false;
  for (size_t i = 0; i < requests_.size(); ++i) {
    Sequence &sequence = *sequences_[i];
    SpeculationState &state = *sequence.speculation;
    if (sequence.grammar) // what it refuses can't come
      sequence.draft.resize(static_cast<size_t>(sequence.grammar->fitting(sequence.draft)));
    state.grade = requests_[i].grade;
    fresh |= !state.asked;
    state.asked = true;
    longest = std::max(longest, static_cast<int64_t>(sequences_[i]->draft.size()));
  }
  if (longest > 0 && !fresh) {
    double perGuess = seconds / static_cast<double>(longest), &known = secondsPerGuess_;
    known = known == 0 ? perGuess : known + (std::min(perGuess, 2 * known) - known) * timeRate;
  }
  if (plain)
    return Status::ok();
  if (limits_.adaptive && !drafter_->isCostly()) {
    chooseWindows();
  } else {
    for (Sequence *sequence : sequences_)
      sequence->window = static_cast<int64_t>(sequence->draft.size());
  }
  return Status::ok();
}

void Speculator::weigh(Sequence &sequence) const {
  SpeculationState &state = *sequence.speculation;
  const int64_t count = static_cast<int64_t>(sequence.draft.size());
  for (int64_t i = 0; i < count; ++i) {
    const int32_t parent = sequence.tree.parent(i);
    const float share = shareOf(sequence, state.grade, placeOf(sequence.tree, i));
    state.chances[size_t(i)] = parent < 0 ? share : state.chances[size_t(parent)] * share;
    // No guess is likelier than its parent, so parents stay before their children.
    int64_t at = i;
    for (; at > 0 && state.chances[state.order[size_t(at - 1)]] < state.chances[size_t(i)]; --at)
      state.order[size_t(at)] = state.order[size_t(at - 1)];
    state.order[size_t(at)] = static_cast<uint8_t>(i);
  }
}

void Speculator::gather(Sequence &sequence) {
  if (sequence.tree.isChain())
    return;
  const size_t count = sequence.draft.size();
  SpeculationState &state = *sequence.speculation;
  std::array<bool, maxGuesses> isTaken{};
  for (int64_t i = 0; i < sequence.window; ++i)
    isTaken[state.order[size_t(i)]] = true;
  std::array<int32_t, maxGuesses> place, tokens, parents;
  std::array<bool, maxGuesses> isLaterChoice;
  int32_t next = 0;
  for (bool taken : {true, false})
    for (size_t i = 0; i < count; ++i)
      if (isTaken[i] == taken) {
        const int32_t parent = sequence.tree.parent(int64_t(i));
        parents[size_t(next)] = parent < 0 ? DraftTree::root : place[size_t(parent)];
        isLaterChoice[size_t(next)] = sequence.tree.isLaterChoice(int64_t(i));
        tokens[size_t(next)] = sequence.draft[i];
        place[i] = next++;
      }
  std::copy_n(tokens.begin(), count, sequence.draft.begin());
  sequence.tree.clear();
  for (size_t i = 0; i < count; ++i)
    sequence.tree.add(parents[i], isLaterChoice[i]);
}

void Speculator::chooseWindows() {
  // The next guess that is most likely reached and true joins, one after the other; the number of
  // guesses with the most tokens a second wins. Looking on behind a loss finds steps in the curve.
  double tokens = static_cast<double>(sequences_.size()), expected = tokens;
  int64_t size = static_cast<int64_t>(sequences_.size()), best = 0, taken = 0;
  double bestRate = expected / stepSeconds(size);
  auto worth = [](const Sequence &s) -> double {
    return s.window < static_cast<int64_t>(s.draft.size())
               ? double(s.speculation->chances[s.speculation->order[size_t(s.window)]])
               : 0;
  };
  auto takeNext = [&]() -> double {
    Sequence *next = nullptr;
    double most = 0;
    for (Sequence *s : sequences_)
      if (double value = worth(*s); value > most)
        most = value, next = s;
    if (next)
      ++next->window;
    return most;
  };
  for (Sequence *s : sequences_)
    weigh(*s);
  for (double value; (value = takeNext()) > 0.01;) {
    expected += value;
    if (double rate = expected / stepSeconds(size + ++taken); rate > bestRate)
      bestRate = rate, best = taken;
  }
  for (Sequence *s : sequences_)
    s->window = 0;
  for (taken = 0; taken < best; ++taken)
    (void)takeNext();
  for (Sequence *s : sequences_)
    gather(*s);
}

} // namespace llmrt
