//===- Eval.h - `llmc eval` and `llmrt eval` --------------------------------===//
#ifndef LLMC_TOOLS_COMMON_EVAL_H
#define LLMC_TOOLS_COMMON_EVAL_H

#include <cstdint>
#include <ostream>
#include <string>

namespace llmc::tools {

struct EvalOptions {
  std::string text;       ///< a text file; or
  std::string tokensFile; ///< token ids: .npy or a JSON list
  std::string reference;  ///< a plan whose distributions are the measure; empty: none
  int64_t maxTokens = 0;  ///< of the text; 0: all
  int64_t context = 0;    ///< tokens a window; 0: 512, or the model's context if that is less
  int64_t chunk = 512;    ///< tokens a step: so many rows of logits are in memory
  unsigned threads = 0;
  bool json = false;
};

/// Runs the text through the plan at \p path in windows that follow each other, each from an empty
/// cache and without special tokens, and prints the perplexity of all tokens but the first of each
/// window; with a reference also the divergence of the plan's distributions from the reference's.
/// Returns the exit status.
int evalMain(const std::string &path, const EvalOptions &options, std::ostream &out,
             std::ostream &err);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_EVAL_H
