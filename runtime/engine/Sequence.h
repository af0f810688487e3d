//===- Sequence.h - a request inside the engine -----------------------------===//
#ifndef LLMRT_ENGINE_SEQUENCE_H
#define LLMRT_ENGINE_SEQUENCE_H

#include "runtime/decode/TokenHistory.h"
#include "runtime/engine/Request.h"

#include <vector>

namespace llmrt {

/// The tokens are the truth; `computed` says how many of them have their keys and values in the
/// KV blocks, which are a cache of that truth. All vectors are reserved when the request comes in.
struct Sequence {
  RequestId id = 0;
  RequestOptions options;
  std::vector<int32_t> tokens; ///< prompt, then output
  int64_t promptTokens = 0;
  int64_t maxTokens = 0; ///< tokens.size() at which the length limit ends it
  int64_t computed = 0;
  std::vector<int32_t> blocks;
  int64_t reservedBlocks = 0; ///< blocks set aside for its longest course
  TokenHistory history;
  bool finished = false;

  int64_t uncomputed() const { return static_cast<int64_t>(tokens.size()) - computed; }
  int64_t outputTokens() const { return static_cast<int64_t>(tokens.size()) - promptTokens; }
  /// Still in its prompt: everything before the first output token.
  bool inPrompt() const { return computed < promptTokens; }
};

} // namespace llmrt

#endif // LLMRT_ENGINE_SEQUENCE_H
