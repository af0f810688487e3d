//===- PlanEmitter.h - from the plan dialect to a plan file --------------------------===//
#ifndef LLMC_COMPILER_DRIVER_PLANEMITTER_H
#define LLMC_COMPILER_DRIVER_PLANEMITTER_H

#include "compiler/calibrate/Calibrate.h"
#include "compiler/driver/CompileOptions.h"
#include "compiler/driver/Progress.h"
#include "compiler/driver/WeightExpression.h"
#include "dialects/plan/PlanDialect.h"
#include "runtime/plan/plan_generated.h"

#include <functional>

namespace llmc {

/// Machine code of one level, as it goes into the plan.
struct CodeImage {
  std::string level;
  std::string bytes;
};

/// The CUDA side of a plan: modules, cubins and PTX, and how each kernel is launched.
struct CudaImages {
  std::vector<CodeImage> modules;                ///< "sm_80.gemm", "compute_80.gemm"
  std::vector<llmrt::fbs::CudaKernelT> kernels;  ///< module counts in `modules`
  std::vector<llmrt::fbs::CudaKernelT> sampling; ///< what draws tokens
};

/// What a plan holds besides the program.
struct PlanExtras {
  std::vector<CodeImage> code;
  std::vector<uint64_t> scratchBytes; ///< of each kernel, in the program's order
  CudaImages cuda;
  std::string tokenizerBlob; ///< empty: no tokenizer
  llmrt::fbs::TextT text;
  llmrt::fbs::ProvenanceT provenance;
  llmrt::fbs::ElementType activations = llmrt::fbs::ElementType::F32;
  ColumnImportance importance; ///< weighs the errors of 4-bit weights; may be empty
};

struct EmitOptions {
  unsigned threads = 1;
  SelfTestRunner selfTest; ///< none: a plan without a self-test
};

/// Fills the head of a plan from \p program: all that does not need the weights' values.
llmrt::Result<std::unique_ptr<llmrt::fbs::PlanT>> buildHead(plan::ProgramOp program,
                                                            const PlanExtras &extras);

/// Writes the plan to \p path: quantizes and packs weight by weight from the mapped \p files, a few
/// rows at a time, on EmitOptions::threads threads; the bytes do not depend on their number.
llmrt::Status writePlan(plan::ProgramOp program, const ModelFiles &files, const PlanExtras &extras,
                        const std::string &path, const EmitOptions &options, Progress &progress);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_PLANEMITTER_H
