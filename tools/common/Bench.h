//===- Bench.h - `llmc bench` and `llmrt bench` -----------------------------===//
#ifndef LLMC_TOOLS_COMMON_BENCH_H
#define LLMC_TOOLS_COMMON_BENCH_H

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace llmc::tools {

struct BenchOptions {
  std::vector<int64_t> prompts{512}; ///< prefill: tokens of a prompt, one test each
  int64_t newTokens = 128;           ///< decode: tokens generated; 0: no decode tests
  int64_t depth = 0;                 ///< tokens in the cache before decoding; at least 1 is used
  std::vector<int64_t> batches;      ///< decode this many sequences at once, one test each
  int64_t repetitions = 0;           ///< of each test, the median counts; 0: 3 for prompts up to
                                     ///< 128 tokens, 2 for longer ones, 1 for decoding
  unsigned threads = 0;
  std::string device; ///< "cpu", "cuda", "cuda:N"; empty: what the plan is for
  int64_t maxBatchedTokens = 0;
  int64_t blockSize = 0;
  std::string speculativeConfig;  ///< JSON, see runtime/speculate/SpeculativeConfig.h
  std::string promptsFile;        ///< compare speculation with plain decoding on these
  int64_t continuousBatching = 0; ///< compare with static batches of so many requests; 0: don't
  int64_t prefixTokens = 0;       ///< time a prompt that shares so many tokens; 0: don't
  bool newTokensGiven = false;    ///< newTokens was asked for
  bool measure = false;           ///< the roofline of this machine, measured, instead of defaults
  bool json = false;
};

/// Times the plan at \p path with greedy decoding, end tokens ignored and a new pseudo-random
/// prompt for every call. Prefill is prompt tokens over the time to the first token; decode the
/// tokens after the first over their time, for batches from when all have their first. Prints a
/// table with the roofline beside each row, or a JSON object with `load_s`, `prefill<N>`,
/// `decode`, `batch<B>` (tokens/s, of all sequences together). Returns the exit status.
int benchMain(const std::string &path, const BenchOptions &options, std::ostream &out,
              std::ostream &err);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_BENCH_H
