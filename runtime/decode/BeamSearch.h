//===- BeamSearch.h - the likeliest texts, several at a time ----------------===//
//
// The books of one beam search, without a model: who calls computes a row of logits for each live
// beam, reports its likeliest continuations and advances. As Hugging Face's generate() has it
// (transformers, `num_beams`), so that answers can be compared:
//
//   - A beam's sum is that of its tokens' log-probabilities, of the model's own distribution. Of
//     the continuations of all beams those with the largest sums are taken, in that order; equals
//     go by beam, then by lower id.
//   - One that ends (an end token, or the length limit) is finished if it is among the first
//     `width`; its score is sum / length^lengthPenalty, where length counts the tokens of the
//     output with the end token. The best `width` finished ones are kept. Of those that go on, the
//     first `width` are the next beams.
//   - With `width` finished ones, BeamStop says when to stop.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DECODE_BEAMSEARCH_H
#define LLMRT_DECODE_BEAMSEARCH_H

#include "runtime/decode/Sampler.h"

namespace llmrt {

/// When a search with enough finished texts ends before its length limit.
enum class BeamStop {
  Hopeless, ///< no live beam would beat a finished one if it ended now (early_stopping false)
  Early,    ///< at once (true)
  Never     ///< no live beam could beat one at any length up to the limit ("never")
};

struct BeamSearchParams {
  int32_t width = 0; ///< beams; 0: no beam search
  /// Power of the length in a score: above 0 favours long texts, below 0 short ones.
  float lengthPenalty = 1;
  BeamStop stop = BeamStop::Hopeless;
};

/// The most beams that a request can ask for.
inline constexpr int32_t maxBeams = 128;

class BeamSearch {
public:
  /// \p maxNewTokens is at least 1.
  BeamSearch(const BeamSearchParams &params, int64_t maxNewTokens);

  const BeamSearchParams &params() const { return params_; }
  /// Live beams: 1 at first.
  size_t live() const { return beams_.size(); }
  /// Continuations that report() needs of each beam, where \p ends ids end a text: whatever ends,
  /// `width` that go on are among them.
  size_t candidates(size_t ends) const {
    return (1 + std::max<size_t>(1, ends)) * static_cast<size_t>(params_.width);
  }

  struct Candidate {
    TokenLogprob token;
    bool ends;
  };
  /// The likeliest continuations of a live beam, and what its tokens show as the likeliest. Again
  /// for the same beam changes nothing.
  void report(size_t beam, std::span<const Candidate> candidates,
              std::span<const TokenLogprob> likeliest);
  bool allReported() const { return reported_ == beams_.size(); }

  /// A beam of the next step: its text is that of \p parent, then \p id.
  struct Next {
    int32_t parent;
    int32_t id;
  };
  /// Chooses the next beams, once all have reported; none: the search is over. Valid until the
  /// next call.
  std::span<const Next> advance();

  struct Text {
    std::vector<SampledToken> tokens; ///< of the output, an end token included
    double sum = 0;                   ///< of their log-probabilities
    double score = 0;
    bool ended = false; ///< by an end token; else by the limit
  };
  /// Best first; equals in the order in which they finished.
  const std::vector<Text> &finished() const { return finished_; }

private:
  /// The texts are a tree: a token, and the node of the one before it.
  struct Node {
    int64_t before; ///< -1: it is the first
    SampledToken token;
  };
  struct Beam {
    int64_t node = -1; ///< its last token; -1: none yet
    double sum = 0;
    std::vector<Candidate> candidates; ///< empty: it has not reported
    SampledToken likeliest;            ///< top and topCount of its next token
  };
  struct Choice {
    double sum;
    int32_t beam;
    Candidate candidate;
  };
  double score(double sum, int64_t length) const;
  SampledToken tokenOf(const Choice &choice) const;
  void finish(const Choice &choice);
  bool isOver(double best) const;
  void makeNext();

  const BeamSearchParams params_;
  const int64_t maxNewTokens_;
  int64_t length_ = 0; ///< tokens of each live beam
  std::vector<Node> nodes_;
  std::vector<Beam> beams_, spare_;
  size_t reported_ = 0;
  std::vector<Choice> choices_, going_;
  std::vector<Next> next_;
  std::vector<Text> finished_;
};

} // namespace llmrt

#endif // LLMRT_DECODE_BEAMSEARCH_H
