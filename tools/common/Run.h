//===- Run.h - `llmc run` and `llmrt run` -----------------------------------===//
#ifndef LLMC_TOOLS_COMMON_RUN_H
#define LLMC_TOOLS_COMMON_RUN_H

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace llmc::tools {

/// What was not given keeps the plan's recommendation.
struct RunOptions {
  std::optional<std::string> prompt;
  std::vector<int32_t> promptIds; ///< instead of a text
  bool chat = false;              ///< the prompt is a user's message
  std::optional<std::string> system;

  int64_t newTokens = 256; ///< -1: until the context is full
  bool ignoreEos = false;
  std::vector<std::string> stop;

  std::optional<float> temperature, topP, minP, typicalP, repetitionPenalty, presencePenalty,
      frequencyPenalty, dryMultiplier, dryBase, xtcProbability, xtcThreshold, mirostatTau,
      mirostatEta;
  std::optional<int32_t> topK, dryAllowedLength, mirostat, minTokens;
  uint64_t seed = 0;

  /// At most one: a JSON schema, a regular expression, a GBNF grammar; a text, or @FILE.
  std::string jsonSchema, regex, grammar;
  std::string speculativeConfig; ///< JSON, see runtime/speculate/SpeculativeConfig.h

  int32_t logprobs = -1;
  bool json = false;
  std::string logitsOut; ///< a .npy file for the logits of every prompt position

  unsigned threads = 0;
  std::string device; ///< "cpu", "cuda", "cuda:N"; empty: what the plan is for
  int64_t maxBatchedTokens = 0;
  int64_t blockSize = 0;
  /// A plan whose entry is main takes tensors: NAME=FILE.npy, and where its outputs go.
  std::vector<std::string> inputs;
  std::string outputDir;

  std::string activations; ///< "f32", "int8": what the plan must have been compiled with
};

/// Runs one prompt on the plan at \p path: streams the text to \p out (or prints one JSON object)
/// and a line with the speeds to \p err. Returns the exit status: 1 for a failure, with one line
/// on \p err, 2 for options that contradict each other.
int runMain(const std::string &path, const RunOptions &options, std::ostream &out,
            std::ostream &err);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_RUN_H
