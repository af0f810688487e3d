//===- RunGraph.h - `llmc run --input`: a plan whose entry is main -----------===//
#ifndef LLMC_TOOLS_COMMON_RUNGRAPH_H
#define LLMC_TOOLS_COMMON_RUNGRAPH_H

#include <ostream>
#include <string>
#include <vector>

namespace llmc::tools {

struct RunGraphOptions {
  std::vector<std::string> inputs; ///< NAME=FILE.npy; a name given again adds to a sequence
  std::string outputDir;           ///< NAME.npy for each output; empty: none is written
  bool json = false;
};

/// Runs main of the plan at \p path once. Prints the outputs' types and shapes, or one JSON object
/// with them. Returns the exit status, 1 with a line on \p err for a failure.
int runGraphMain(const std::string &path, const RunGraphOptions &options, std::ostream &out,
                 std::ostream &err);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_RUNGRAPH_H
