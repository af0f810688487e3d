//===- Sequence.h - one answer inside the engine ----------------------------===//
#ifndef LLMRT_ENGINE_SEQUENCE_H
#define LLMRT_ENGINE_SEQUENCE_H

#include "runtime/cache/PrefixCache.h"
#include "runtime/decode/TokenHistory.h"
#include "runtime/engine/Request.h"
#include "runtime/speculate/DraftTree.h"

#include <memory>
#include <tuple>
#include <vector>

namespace llmrt {

class GrammarMatcher;
struct SpeculationState;
struct Sequence;

/// What the answers of one request have in common.
struct RequestState {
  RequestId id = 0;
  RequestOptions options; ///< its prompt was moved out, its texts belong to the sequences
  int32_t unfinished = 1; ///< answers

  // Of a beam search.
  std::unique_ptr<BeamSearch> beams;            ///< null: none
  std::vector<std::unique_ptr<TextSink>> texts; ///< of the answers
  std::vector<Sequence *> members;              ///< of the live beams, once there are several
};

/// The tokens are the truth; `computed` says how many of them have their keys and values in the
/// KV blocks, which are a cache of that truth: they may be dropped and made again at any time. All
/// vectors are reserved when the request comes in.
struct Sequence {
  Sequence();
  ~Sequence();
  std::shared_ptr<RequestState> request;
  int32_t choice = 0;
  SamplingParams sampling; ///< with the stream of this choice
  std::unique_ptr<TextSink> text;
  /// Of the first choice: the others, until the prompt is computed.
  std::vector<std::unique_ptr<Sequence>> others;

  std::vector<int32_t> tokens; ///< prompt, then output
  int64_t promptTokens = 0;
  int64_t maxTokens = 0; ///< tokens.size() at which the length limit ends it
  int64_t computed = 0;
  /// It has more tokens than ModelShape::shortContext, and what is computed is so for long
  /// contexts.
  bool inLongContext = false;
  /// Of the KV pool; slidOut where all its tokens left the window.
  std::vector<int32_t> blocks;
  static constexpr int32_t slidOut = WindowBlocks::slidOut;
  int64_t firstBlock = 0; ///< blocks before it slid out
  /// Of the layers with narrower windows, a group each: as many as `blocks`.
  std::vector<WindowBlocks> windows;
  /// Host blocks with what `blocks` and `windows` held from firstBlock on, while it waits after a
  /// swap.
  std::vector<int32_t> swapped;
  int64_t swappedTokens = 0; ///< `computed` of that time

  /// The first keptBlocks blocks are in the prefix cache, the last of them as keptNode (the root if
  /// there is none); 0: no further block can be kept.
  int64_t keptBlocks = 0;
  PrefixCache::Serial keptNode = 0;

  /// Guesses of the next tokens, and how many of them the next step verifies.
  std::vector<int32_t> draft;
  DraftTree tree; ///< how they hang together
  int64_t window = 0;
  std::unique_ptr<SpeculationState> speculation; ///< null: no guessing

  std::unique_ptr<GrammarMatcher> grammar; ///< null: any text
  double surprise;                         ///< of mirostat; NaN before the first token

  bool drawsOnDevice = false; ///< canDrawOnDevice()

  TokenHistory history;
  RequestStats stats;
  double sumLogprob = 0;
  int64_t promptRowsGiven = 0; ///< to onPromptLogits
  bool started = false;        ///< has run before, so it isn't counted again
  bool finished = false;
  bool resident = false; ///< among the running ones
  int32_t beam = 0;      ///< which of the live beams it computes, in a beam search
  bool parked = false;   ///< has reported its beam, and waits for the others

  const RequestOptions &options() const { return request->options; }
  int64_t uncomputed() const { return static_cast<int64_t>(tokens.size()) - computed; }
  int64_t outputTokens() const { return static_cast<int64_t>(tokens.size()) - promptTokens; }
  /// Still in its prompt: everything before the first output token.
  bool inPrompt() const { return computed < promptTokens; }
  /// The first choice tells of the prompt.
  bool givesPromptRows() const { return choice == 0 && options().scoresPrompt(); }
  /// Only its newest token is to be computed.
  bool isDecoding() const { return uncomputed() == 1 && !inPrompt(); }
  /// The order of service: priority, then arrival.
  auto rank() const { return std::tuple(options().priority, request->id, choice); }
};

} // namespace llmrt

#endif // LLMRT_ENGINE_SEQUENCE_H
