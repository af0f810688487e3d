//===- InspectPrinters.h - the two forms of inspect's output ------------------===//
#ifndef LLMC_TOOLS_COMMON_INSPECTPRINTERS_H
#define LLMC_TOOLS_COMMON_INSPECTPRINTERS_H

#include "runtime/plan/Plan.h"
#include "runtime/plan/Roofline.h"
#include "tools/common/PlanSummary.h"

#include <ostream>

namespace llmc::tools {

/// Everything that is printed about one plan.
struct Inspection {
  const llmrt::Plan *plan = nullptr;
  PlanSummary summary;
  llmrt::MachineLimits limits;
  int64_t context = 0; ///< of the decode prediction
  int64_t prompt = 0;  ///< of the prefill prediction
  llmrt::Prediction decode, prefill;
};

void printInspectionText(const Inspection &i, std::ostream &out);
void printInspectionJson(const Inspection &i, std::ostream &out);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_INSPECTPRINTERS_H
