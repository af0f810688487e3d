//===- BenchBatching.h - `llmc bench --continuous-batching` ------------------===//
#ifndef LLMC_TOOLS_COMMON_BENCHBATCHING_H
#define LLMC_TOOLS_COMMON_BENCHBATCHING_H

#include "tools/common/Bench.h"

namespace llmc::tools {

/// Runs the same requests on the same engine in three ways, in turn, options.repetitions times
/// (default 3): by static batches of options.continuousBatching, each of which ends before the next
/// begins; by static batches whose finished sequences leave the step; and with as many places that
/// a waiting request takes as soon as one is free.
///
/// Static batching means that a batch keeps its shape until its longest answer is done: a sequence
/// that has its answer is computed on, as padding, and what it yields is thrown away. So it is in
/// the systems that iteration-level scheduling was measured against (Yu et al., "Orca", OSDI 2022,
/// section 3: requests that finished early stay in the batch, inactive, at the price of extra
/// computation) and in Hugging Face's generate(), which gives finished rows the padding token and
/// runs them on. Prompts are not padded here, so these batches are cheaper than theirs. The second
/// way asks what is left when an engine computes ragged batches and needs no padding.
///
/// The mix: twelve times as many requests as places, prompts of 16 to 64 tokens; in every run of as
/// many requests as there are places one answer of options.newTokens (where no -n is given: 256),
/// the others 8 to 24. Prints tokens/s of all three, the ratios (medians of neighbouring runs), the
/// steps, the rows that a step computed and how many of them were padding, and how much of the KV
/// memory that was given to sequences held tokens of unfinished requests, as a mean over the steps.
int benchBatchingMain(const std::string &plan, const BenchOptions &options, std::ostream &out,
                      std::ostream &err);

/// The time to the first token of a prompt of options.prefixTokens tokens, then of one with the
/// same beginning and 16 other tokens at its end: what the prefix cache saves. The median of
/// options.repetitions (default 3) pairs.
int benchPrefixMain(const std::string &plan, const BenchOptions &options, std::ostream &out,
                    std::ostream &err);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_BENCHBATCHING_H
