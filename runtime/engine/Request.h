//===- Request.h - what one generation asks for and reports -----------------===//
#ifndef LLMRT_ENGINE_REQUEST_H
#define LLMRT_ENGINE_REQUEST_H

#include "runtime/decode/BeamSearch.h"
#include "runtime/decode/Sampler.h"
#include "runtime/decode/SamplingParams.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt {

class Grammar;
class VocabularyTrie;

using RequestId = uint64_t;

enum class FinishReason : int {
  None = 0,
  Stop = 1,      ///< an end token, a stop id or a stop string
  Length = 2,    ///< the limit of new tokens, or the context is full
  Cancelled = 3, ///< by cancel(), or by the listener
  Error = 4      ///< FinishEvent::status says which
};

/// "stop", "length", "cancelled", "error"; "" for None.
std::string_view finishReasonName(FinishReason reason);

struct TokenEvent {
  RequestId request = 0;
  int32_t choice = 0; ///< which of the request's answers, from 0
  int64_t index = 0;  ///< of the token in the output, from 0
  SampledToken token;
  std::string_view text; ///< what may be shown now; empty while characters or a stop string could
                         ///< still form. Valid during the call
};

/// How one answer came about.
struct RequestStats {
  using Clock = std::chrono::steady_clock;
  int64_t promptTokens = 0;
  int64_t cachedTokens = 0; ///< of the prompt, found in the prefix cache when it started
  int64_t preemptions = 0;
  int64_t draftTokens = 0, acceptedTokens = 0; ///< of speculation
  /// When it was added, began to run, gave its first and its last token; zero if it never did.
  Clock::time_point added{}, started{}, firstToken{}, lastToken{};
};

struct FinishEvent {
  RequestId request = 0;
  int32_t choice = 0;
  bool last = true; ///< no other answer of this request comes
  FinishReason reason = FinishReason::None;
  std::string_view text;       ///< what was held back and belongs to the output
  std::string_view stopString; ///< which one ended it, if one did
  int64_t outputTokens = 0;    ///< an end token that was drawn counts
  /// Sum of the log-probabilities of the output, where logprobs were asked for: what `best_of`
  /// ranks by (divided by outputTokens).
  double sumLogprob = 0;
  RequestStats stats;
  Status status; ///< a failure if reason is Error
};

/// Hears about one request, from within Engine::step.
class RequestListener {
public:
  virtual ~RequestListener() = default;
  /// Returning false cancels the request.
  virtual bool onToken(const TokenEvent &event) = 0;
  virtual void onFinish(const FinishEvent &event) = 0;
  /// Logits [rows, vocabulary] of prompt positions from \p firstPosition on, for a request that
  /// asked for them.
  virtual void onPromptLogits(int64_t firstPosition, std::span<const float> logits,
                              int64_t vocabulary) {}
  /// Token \p position of the prompt, from 1 on, after those before it, for a request that asked
  /// for promptLogprobs.
  virtual void onPromptToken(int64_t position, const SampledToken &token) {}
};

/// Turns a request's tokens into text as they come, and watches for stop strings.
class TextSink {
public:
  struct Piece {
    std::string_view text;       ///< valid until the next call
    bool stopped = false;        ///< a stop string is complete; text ends before it
    std::string_view stopString; ///< which
  };
  virtual ~TextSink() = default;
  virtual Result<Piece> push(int32_t id) = 0;
  /// What is held back when no more tokens come.
  virtual Result<std::string_view> finish() = 0;
};

struct RequestOptions {
  std::vector<int32_t> prompt; ///< at least one id, each below the vocabulary
  SamplingParams sampling;
  /// New tokens at most; -1: as many as context and KV pool hold. 0 scores the prompt only.
  int64_t maxNewTokens = -1;
  std::vector<int32_t> endIds;  ///< the model's end tokens
  bool ignoreEnd = false;       ///< end tokens are ordinary output
  std::vector<int32_t> stopIds; ///< of this request; ignoreEnd does not concern them
  bool promptLogits = false;    ///< call onPromptLogits
  /// Call onPromptToken, with so many of the likeliest tokens; -1: don't.
  int32_t promptLogprobs = -1;
  std::unique_ptr<TextSink> text;      ///< none: no text, no stop strings
  RequestListener *listener = nullptr; ///< not owned, outlives the request

  /// Answers to one prompt, which is computed once; each draws with its own stream
  /// (sampling.stream + choice). The text of those after the first goes through \c moreTexts.
  int32_t choices = 1;
  std::vector<std::unique_ptr<TextSink>> moreTexts;

  /// Instead of drawing: the likeliest `choices` texts of a beam search, best first. Their tokens
  /// come all at its end. Of \c sampling only logprobs and minTokens count.
  BeamSearchParams beams = {};

  /// What the text must be; the mask of the next tokens is made while the step runs. With it goes
  /// the trie of the tokenizer (Model::vocabularyTrie). A complete text that can't go on ends the
  /// answer.
  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<const VocabularyTrie> vocabularyTrie;

  int32_t priority = 0; ///< smaller ones go first, as in vLLM; equal ones in order of arrival
  /// When it ends with StatusCode::DeadlineExceeded, waiting or running.
  std::optional<RequestStats::Clock::time_point> deadline;
  /// Cached prefixes are shared among requests of equal salts only (tenant, adapter).
  std::string cacheSalt;

  /// Whether the answer ends with \p id.
  bool isEnd(int32_t id) const {
    auto has = [id](const std::vector<int32_t> &ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    return (!ignoreEnd && has(endIds)) || has(stopIds);
  }
  bool scoresPrompt() const { return promptLogits || promptLogprobs >= 0; }
};

} // namespace llmrt

#endif // LLMRT_ENGINE_REQUEST_H
