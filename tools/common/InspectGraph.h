//===- InspectGraph.h - `inspect` of a plan whose entry is main ---------------===//
#ifndef LLMC_TOOLS_COMMON_INSPECTGRAPH_H
#define LLMC_TOOLS_COMMON_INSPECTGRAPH_H

#include "runtime/plan/Plan.h"

#include <ostream>

namespace llmc::tools {

/// Inputs, outputs, weights and code: as text, or one JSON object.
void printGraph(const llmrt::Plan &plan, bool json, std::ostream &out);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_INSPECTGRAPH_H
