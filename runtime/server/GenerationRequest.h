//===- GenerationRequest.h - what every generating endpoint asks for --------===//
#ifndef LLMRT_SERVER_GENERATIONREQUEST_H
#define LLMRT_SERVER_GENERATIONREQUEST_H

#include "runtime/decode/BeamSearch.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llmrt {
class Grammar;
class VocabularyTrie;
} // namespace llmrt

namespace llmrt::server {

struct GenerationRequest {
  std::shared_ptr<const Grammar> grammar; ///< what the text must be; with the tokenizer's trie
  std::shared_ptr<const VocabularyTrie> vocabularyTrie;
  std::vector<std::vector<int32_t>> prompts;
  uint32_t choices = 1; ///< that are generated of each prompt
  uint32_t answers = 1; ///< of them that are given: the likeliest (best_of)
  BeamSearchParams beams;
  int32_t promptLogprobs = -1; ///< as in RequestOptions
  SamplingParams sampling;     ///< its stream is the number of the choice
  int64_t maxNewTokens = -1;
  std::vector<std::string> stops;
  std::vector<int32_t> stopIds;
  bool ignoreEnd = false;
  bool skipSpecial = true;  ///< control tokens are not part of the text
  bool includeStop = false; ///< the stop string is part of the text
  bool stream = false;
  int32_t priority = 0;               ///< smaller ones go first
  std::string cacheSalt;              ///< cached prefixes are shared among equal ones only
  std::optional<double> timeout;      ///< seconds until the request ends, finished or not
  std::string promptField = "prompt"; ///< named by errors about its length

  /// Places among the engine's sequences that it takes.
  uint64_t sequences() const {
    return uint64_t(prompts.size()) * std::max(choices, static_cast<uint32_t>(beams.width));
  }
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_GENERATIONREQUEST_H
