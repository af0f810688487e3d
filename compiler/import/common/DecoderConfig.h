//===- DecoderConfig.h - the shape of a decoder, whatever file it came from -----===//
#ifndef LLMC_IMPORT_COMMON_DECODERCONFIG_H
#define LLMC_IMPORT_COMMON_DECODERCONFIG_H

#include "compiler/import/common/RopeConfig.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

/// A decoder of the Llama kind: RMS norms before attention and MLP, rotary embedding, grouped-query
/// attention, gated MLP.
struct DecoderConfig {
  std::string name;         ///< what the model calls itself; may be empty
  std::string architecture; ///< "llama", "mistral", "qwen2", "qwen3"
  uint64_t layers = 0, hidden = 0, intermediate = 0;
  uint64_t heads = 0, kvHeads = 0, headSize = 0;
  uint64_t vocabulary = 0; ///< rows of the embedding
  uint64_t maxContext = 0; ///< tokens
  double normEps = 0;
  std::string activation = "silu";
  bool tiedHead = false;         ///< the head is the embedding
  bool qkvBias = false;          ///< on Q, K and V
  bool outputBias = false;       ///< on attention's output projection
  bool mlpBias = false;          ///< on all three projections
  bool headNorms = false;        ///< an RMS norm of each head of Q and K before the rotation
  bool permutedHeads = false;    ///< rows of Q and K in GGUF's order for interleaved pairs
  std::vector<uint64_t> windows; ///< a layer: keys that a query sees; 0: all
  RopeParameters rope;

  /// Fails where numbers contradict each other; called by every importer before anything is built.
  llmrt::Status check() const;
};

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_DECODERCONFIG_H
