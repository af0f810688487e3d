//===- RopeConfig.h - rotary frequencies from a model's parameters -------------===//
//
// The one place that turns what checkpoints say about rotary position embedding into frequencies.
// Every importer fills RopeParameters; a scaling that isn't known is an error, never plain RoPE.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_ROPECONFIG_H
#define LLMC_IMPORT_COMMON_ROPECONFIG_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

/// The parameters, named as Hugging Face's configuration names them.
struct RopeParameters {
  /// default, linear, dynamic, llama3, yarn or longrope. `dynamic` changes the frequencies beyond
  /// the original context only, which a plan's context never exceeds.
  std::string type = "default";
  double theta = 10000.0;
  uint64_t rotarySize = 0; ///< values of a head that are rotated; even
  double factor = 1.0;
  uint64_t originalContext = 0;                               ///< original_max_position_embeddings
  double lowFrequencyFactor = 1.0, highFrequencyFactor = 4.0; ///< llama3
  double betaFast = 32.0, betaSlow = 1.0;                     ///< yarn
  std::optional<double> attentionFactor = {}, mscale = {}, mscaleAllDim = {}; ///< yarn, longrope
  bool truncate = true;                                                       ///< yarn
  /// longrope: each divides the frequency of its pair, in contexts up to originalContext and in
  /// longer ones.
  std::vector<float> shortFactors = {}, longFactors = {};
  /// The plan has contexts of both kinds (see limitLongRope).
  bool hasLongContexts = false;
  /// Divides frequency i, for files that hold the result of a scaling (GGUF's rope_freqs.weight).
  std::vector<float> divisors = {};

  bool operator==(const RopeParameters &) const = default;
};

struct RopeTable {
  std::vector<float> frequencies; ///< [rotarySize / 2], radians a position
  double scale = 1.0;             ///< of cosines and sines
};

/// Which of longrope's factors.
enum class RopeContext { Short, Long };

/// Calculated as Hugging Face does it, in f32 where it uses f32. Unsupported for an unknown type;
/// InvalidFile for parameters that make no sense.
llmrt::Result<RopeTable> resolveRope(const RopeParameters &parameters,
                                     RopeContext context = RopeContext::Short);

/// For longrope: whether a plan whose contexts end at \p wanted tokens (0: at \p maxContext) needs
/// both kinds of factors; \p notes gets a line if so. Does nothing for the others.
void limitLongRope(RopeParameters &parameters, uint64_t wanted, uint64_t maxContext,
                   std::vector<std::string> &notes);

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_ROPECONFIG_H
