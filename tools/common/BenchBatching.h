//===- BenchBatching.h - `llmc bench --continuous-batching` ------------------===//
#ifndef LLMC_TOOLS_COMMON_BENCHBATCHING_H
#define LLMC_TOOLS_COMMON_BENCHBATCHING_H

#include "tools/common/Bench.h"

namespace llmc::tools {

/// Runs the same requests on the same engine by static batches of options.continuousBatching, each
/// of which ends before the next begins, and with as many places that a waiting request takes as
/// soon as one is free; in turn, options.repetitions times (default 3). The mix: twelve times as
/// many requests as places, prompts of 16 to 64 tokens; in every run of as many requests as there
/// are places one answer of options.newTokens (where no -n is given: 256), the others 8 to 24.
/// Prints tokens/s of both and their ratio (medians), the steps, and how much of the KV memory that
/// was given to sequences held tokens, as a mean over the steps.
int benchBatchingMain(const std::string &plan, const BenchOptions &options, std::ostream &out,
                      std::ostream &err);

/// The time to the first token of a prompt of options.prefixTokens tokens, then of one with the
/// same beginning and 16 other tokens at its end: what the prefix cache saves. The median of
/// options.repetitions (default 3) pairs.
int benchPrefixMain(const std::string &plan, const BenchOptions &options, std::ostream &out,
                    std::ostream &err);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_BENCHBATCHING_H
