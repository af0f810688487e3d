//===- Speculator.h - how far to guess --------------------------------------===//
//
// Asks the drafter, and decides how many guesses of each sequence the next step verifies: those
// that are expected to bring more tokens a second than the same step without. It knows what share
// of guesses came true lately, by the drafter's own grade, and what steps of each size take, both
// observed as the engine runs: of first guesses and of later ones apart, since a guess behind one
// that came true is the better one. A window of 0 is plain decoding, so speculation doesn't lose;
// while it is at 0, guesses of a cheap drafter are still compared with what comes, which costs
// nothing.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_ENGINE_SPECULATOR_H
#define LLMRT_ENGINE_SPECULATOR_H

#include "runtime/engine/Scheduler.h"
#include "runtime/speculate/Drafter.h"

#include <array>
#include <memory>
#include <vector>

namespace llmrt {

struct SpeculationLimits {
  int64_t tokens = 0;     ///< guesses a window at most
  bool adaptive = true;   ///< false: always as many as there are
  bool classical = false; ///< acceptance with probability p / q, Sampler::sampleClassical
  bool trees = false;     ///< drafters may give several choices for a token
};

/// Where in a window a guess stands: the first, the second or third, a later one; a second choice.
inline constexpr size_t draftPlaces = 4, secondChoice = 3;
inline size_t draftPlace(int64_t depth) { return depth == 1 ? 0 : depth <= 3 ? 1 : 2; }
/// The share of guesses that came true behind true ones, by grade and place.
using DraftShares = std::array<std::array<float, draftPlaces>, draftGrades>;

/// What was observed of one sequence's guesses.
struct SpeculationState {
  std::unique_ptr<DraftState> drafts;
  DraftShares accepted{};           ///< moving; 0: not seen yet
  DraftDistributions distributions; ///< of the present guesses, for the classical rule
  int32_t grade = 0;                ///< of the present guesses
  /// While windows are chosen: that guess i comes true, and the guesses by that, the likeliest
  /// first.
  std::array<float, maxGuesses> chances;
  std::array<uint8_t, maxGuesses> order;
  int64_t sinceGuess = 0; ///< tokens since a costly drafter was asked
  bool asked = false;     ///< before: the first time, the drafter has to read the prompt
};

/// The median of the newest times of a step: on a busy machine every few steps take several times
/// as long, which is no news of the step.
class StepTime {
public:
  /// \p step counts the steps of all sizes.
  void add(float seconds, int64_t step);
  /// 0: none was seen.
  float seconds() const { return median_; }
  int64_t lastStep() const { return lastStep_; }

private:
  std::array<float, 5> newest_{}; ///< a ring
  uint8_t count_ = 0, next_ = 0;
  float median_ = 0;
  int64_t lastStep_ = 0;
};

class Speculator {
public:
  Speculator(std::unique_ptr<Drafter> drafter, const SpeculationLimits &limits,
             int64_t maxSequences, int64_t maxStepTokens, int64_t shortContext);

  const SpeculationLimits &limits() const { return limits_; }
  const Drafter &drafter() const { return *drafter_; }
  /// Any thread.
  std::unique_ptr<SpeculationState> begin(int64_t maxTokens, const SamplingParams &sampling) const;
  /// Sets Sequence::draft and Sequence::window of those that decode.
  Status propose(std::span<const std::unique_ptr<Sequence>> running);
  /// Guess \p guess of the window, all of whose ancestors came true, was compared with the token
  /// that came.
  void observe(Sequence &sequence, int64_t guess, bool cameTrue);
  /// A step of \p tokens tokens, all of sequences that decode, took \p seconds.
  void observeStep(int64_t tokens, double seconds);
  void end(Sequence &sequence);

  /// Seconds that a step of \p tokens tokens should take, by the steps seen so far.
  double stepSeconds(int64_t tokens) const;

private:
  float shareOf(const Sequence &sequence, int32_t grade, size_t place) const;
  int64_t wanted(const Sequence &sequence) const;
  /// The window that pays for all of \p decoding sequences alike, when guessing itself takes time.
  int64_t costlyWindow(int64_t decoding, const Sequence &sequence) const;
  /// Sets SpeculationState::chances and order.
  void weigh(Sequence &sequence) const;
  /// Moves the guesses of the window to the draft's beginning, in the order that they had.
  static void gather(Sequence &sequence);
  void chooseWindows();

  std::unique_ptr<Drafter> drafter_;
  SpeculationLimits limits_;
  int64_t shortContext_;          ///< see ModelShape
  DraftShares shares_;            ///< of all sequences: what a new one starts from
  std::vector<StepTime> seconds_; ///< of a step by its tokens
  int64_t steps_ = 0;             ///< that were timed
  double secondsPerGuess_ = 0;    ///< of a costly drafter, moving
  int64_t sincePlain_ = 0;        ///< steps since one without guesses was timed
  std::vector<DraftRequest> requests_;
  std::vector<Sequence *> sequences_; ///< of requests_
};

} // namespace llmrt

#endif // LLMRT_ENGINE_SPECULATOR_H
