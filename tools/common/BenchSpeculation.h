//===- BenchSpeculation.h - `llmc bench --prompts` ---------------------------===//
#ifndef LLMC_TOOLS_COMMON_BENCHSPECULATION_H
#define LLMC_TOOLS_COMMON_BENCHSPECULATION_H

#include "tools/common/Bench.h"

namespace llmc::tools {

/// Answers each prompt of options.promptsFile greedily by two engines, a plain one and one with
/// options.speculativeConfig, in turn, options.repetitions times (default 5). Prints for each
/// prompt the median decode speeds (tokens after the first over their time; the prompt itself is in
/// the prefix cache from the first time on), the median of the ratios of neighbouring runs, the ratio
/// as the sizes of the steps and the median time of each size give it (StepCosts.h: what else runs
/// on the machine decides the first, hardly the second), and how the guesses went; below them the
/// lowest and the geometric mean, and what a step of n tokens costs. An answer that isn't the plain
/// one's is a failure, but with the classical rule.
///
/// The file is JSON Lines: {"name": "...", "prompt": "..."} goes as it stands,
/// {"name": "...", "messages": [{"role": "user", "content": "..."}]} through the chat template.
int benchSpeculationMain(const std::string &plan, const BenchOptions &options, std::ostream &out,
                         std::ostream &err);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_BENCHSPECULATION_H
